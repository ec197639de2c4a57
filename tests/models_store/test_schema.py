import threading
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from models_store import schema
from models_store.engine import connect
from models_store.tables import metadata


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


def test_concurrent_migrations_of_an_empty_database(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'new.db'}"
    failures: list[Exception] = []

    def run() -> None:
        engine = connect(url)
        try:
            schema.migrate(engine)
        except Exception as error:
            failures.append(error)
        finally:
            engine.dispose()

    threads = [threading.Thread(target=run) for _ in range(2)]
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
