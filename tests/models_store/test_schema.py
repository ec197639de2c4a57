import threading
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.engine import make_url

from models_store import schema
from models_store.engine import connect
from models_store.errors import WrongRevision
from models_store.store import Store
from models_store.tables import metadata
from tests.models_store.test_store import NOW, prepared, validated


def test_the_migrations_build_the_tables(database_url: str) -> None:
    engine = connect(database_url)
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    assert schema.current(engine) == schema.head()
    engine.dispose()


def test_down_and_up_again(database_url: str) -> None:
    engine = connect(database_url)
    config = schema.configuration()
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.downgrade(config, "base")
    assert schema.current(engine) is None
    assert schema.migrate(engine) == schema.current(engine)
    engine.dispose()


@pytest.fixture(params=["sqlite", "postgresql"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """An empty database of each kind."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'new.db'}"
        return
    server: str = request.getfixturevalue("postgresql")
    name = f"empty{uuid4().hex}"
    engine = connect(server).execution_options(isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    yield make_url(server).set(database=name).render_as_string(hide_password=False)
    with engine.connect() as connection:
        connection.exec_driver_sql(f"DROP DATABASE {name}")
    engine.dispose()


def test_concurrent_migrations_of_an_empty_database(empty: str) -> None:
    url = empty
    failures: list[Exception] = []

    def run() -> None:
        engine = connect(url)
        try:
            schema.migrate(engine)
        except Exception as error:
            failures.append(error)
        finally:
            engine.dispose()

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_errors_of_a_database_do_not_quote_what_was_sent(database_url: str) -> None:
    engine = connect(database_url)
    with engine.connect() as connection, pytest.raises(sa.exc.DBAPIError) as raised:
        connection.execute(sa.text("SELECT :given FROM nothing"), {"given": "a value"})
    engine.dispose()
    assert "a value" not in str(raised.value)


def test_a_wrong_address_is_not_quoted() -> None:
    for url in ("postgresql://me:a/b@:secret/x", "a secret", "postgresql://me@host:secret/x"):
        with pytest.raises(ValueError, match="not a database URL") as raised:
            connect(url)
        assert "secret" not in str(raised.value)
        assert raised.value.__suppress_context__


def test_down_and_up_again_with_data(database_url: str) -> None:
    """What a step does not concern is there after it, in both directions."""
    store = Store(connect(database_url))
    with store.write() as unit:
        unit.models.create("m", "classifier", ("a", "b"), "", NOW)
        version = unit.versions.register("m", prepared(validated()), {"k": "v"}, NOW)[0]
        unit.aliases.put("m", "champion", 1, NOW)
        unit.estimates.add(version.id, NOW, NOW, {"country": "BE"}, {"id": "1" * 32})
    config = schema.configuration()
    steps = [s.revision for s in ScriptDirectory.from_config(config).walk_revisions()]
    for revision in [*steps[1:], *reversed(steps[:-1])]:
        with schema.altering(store.engine) as connection:
            config.attributes["connection"] = connection
            down = steps.index(revision) > steps.index(str(revision_of(connection)))
            (command.downgrade if down else command.upgrade)(config, revision)
            for table in ("models", "versions", "version_arrays", "aliases", "estimates"):
                count = connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar_one()
                assert count > 0, (revision, table)
    with Store(store.engine).read() as unit:
        kept = unit.versions.get("m", "@champion")
        assert kept.metadata == {"k": "v"}
        assert unit.versions.validation(kept) is not None
        assert unit.estimates.get("1" * 32).content["id"] == "1" * 32
    store.close()


def test_tables_that_are_replaced_keep_what_refers_to_them(database_url: str) -> None:
    """SQLite drops the table of monitors to give it another constraint."""
    store = Store(connect(database_url))
    with store.write() as unit:
        for name in ("m", "n"):
            model = unit.models.create(name, "classifier", ("a", "b"), "", NOW)
            id = unit.monitors.add(name * 32, f"watch-{name}", model.id, {"of": name}, NOW).id
            stream = unit.windows.stream(id, "BE", 10)
            unit.windows.begin(stream.id, 0, 0, 1, None)
            unit.alerts.open(id, stream.id, {"id": name * 32, "state": "open"}, NOW)
    config = schema.configuration()
    for step in (command.downgrade, command.upgrade):
        with schema.altering(store.engine) as connection:
            config.attributes["connection"] = connection
            step(config, "0009" if step is command.downgrade else "head")
            for table in ("monitors", "streams", "windows", "alerts"):
                count = connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar_one()
                assert count == 2, (step, table)
    with store.write() as unit:
        assert [m.content for m in unit.monitors.list(None, 10).items] == [{"of": "m"}, {"of": "n"}]
        unit.models.delete("m", False)
        for table in ("monitors", "streams", "windows", "alerts"):
            count = unit.monitors._connection.exec_driver_sql(f"SELECT count(*) FROM {table}")
            assert count.scalar_one() == 1, table
    store.close()


def test_a_database_with_rows_of_nothing_is_left_alone(sqlite_url: str) -> None:
    engine = connect(sqlite_url)
    with engine.connect() as connection:
        driver = connection.connection.driver_connection
        assert driver is not None
        driver.execute("PRAGMA foreign_keys = OFF")
        driver.execute("INSERT INTO aliases VALUES (7, 'a', 7, '2026-01-01')")
        driver.execute("UPDATE alembic_version SET version_num = '0009'")
    with pytest.raises(WrongRevision, match="belong to nothing"), schema.altering(engine):
        pass
    engine.dispose()


def revision_of(connection: sa.Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()
