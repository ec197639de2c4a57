"""Copies of a database that is in use, and what is no copy."""

import sqlite3
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from alembic import command

from models_store import backup, schema
from models_store.engine import connect
from models_store.store import Store
from tests.patience import until

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def used(sqlite_url: str) -> Iterator[Store]:
    store = Store(connect(sqlite_url))
    yield store
    store.close()


def add(store: Store, name: str) -> None:
    with store.write() as unit:
        unit.models.create(name, "classifier", ("a", "b"), "", NOW)


def names(url: str) -> list[str]:
    store = Store(connect(url))
    with store.read() as unit:
        found = [model.name for model in unit.models.list(None, 200).items]
    store.close()
    return found


def test_a_copy_made_under_writes_is_whole_and_comes_back(
    used: Store, sqlite_url: str, tmp_path: Path
) -> None:
    add(used, "first")
    stop = threading.Event()
    written: list[str] = []

    def write() -> None:
        while not stop.is_set():
            add(used, f"m{len(written)}")
            written.append(f"m{len(written)}")

    writer = threading.Thread(target=write)
    writer.start()
    until(lambda: len(written) >= 5)
    before = len(written)
    file = tmp_path / "copy.db"
    size = backup.save(sqlite_url, file, overwrite=False)
    stop.set()
    writer.join()
    assert size == file.stat().st_size
    assert [path.name for path in tmp_path.iterdir()] == ["copy.db"]
    copied = names(f"sqlite:///{file}")
    assert copied == sorted(["first", *written[: len(copied) - 1]])
    assert len(copied) > before

    elsewhere = f"sqlite:///{tmp_path / 'new.db'}"
    assert backup.restore(elsewhere, file, overwrite=False) == schema.head()
    assert names(elsewhere) == copied


def test_nothing_is_overwritten_unasked(used: Store, sqlite_url: str, tmp_path: Path) -> None:
    file = tmp_path / "copy.db"
    backup.save(sqlite_url, file, overwrite=False)
    with pytest.raises(ValueError, match="--overwrite"):
        backup.save(sqlite_url, file, overwrite=False)
    add(used, "later")
    assert backup.save(sqlite_url, file, overwrite=True)
    used.close()
    with pytest.raises(ValueError, match="--overwrite"):
        backup.restore(sqlite_url, file, overwrite=False)
    other = Store(connect(sqlite_url))
    add(other, "lost")
    other.close()
    backup.restore(sqlite_url, file, overwrite=True)
    assert names(sqlite_url) == ["later"]


def test_a_database_in_use_is_not_replaced(used: Store, sqlite_url: str, tmp_path: Path) -> None:
    file = tmp_path / "copy.db"
    backup.save(sqlite_url, file, overwrite=False)
    add(used, "kept")
    with pytest.raises(backup.InUse, match="stop the service"):
        backup.restore(sqlite_url, file, overwrite=True)
    used.close()
    assert names(sqlite_url) == ["kept"]


@pytest.mark.parametrize("kind", ["noise", "empty", "other", "cut", "future"])
def test_what_is_no_copy_is_refused(sqlite_url: str, tmp_path: Path, kind: str) -> None:
    file = tmp_path / "copy.db"
    backup.save(sqlite_url, file, overwrite=False)
    if kind == "noise":
        file.write_bytes(b"not a database at all" * 1000)
    elif kind == "empty":
        file.write_bytes(b"")
    elif kind == "cut":
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    else:
        with sqlite3.connect(file) as database:
            if kind == "other":
                database.execute("DROP TABLE alembic_version")
            else:
                database.execute("UPDATE alembic_version SET version_num = '9999'")
        database.close()
    store = Store(connect(sqlite_url))
    add(store, "kept")
    store.close()
    with pytest.raises(backup.NotABackup):
        backup.restore(sqlite_url, file, overwrite=True)
    assert names(sqlite_url) == ["kept"]


def test_an_older_copy_tells_its_revision(sqlite_url: str, tmp_path: Path) -> None:
    engine = connect(sqlite_url)
    config = schema.configuration()
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.downgrade(config, "0003")
    engine.dispose()
    file = tmp_path / "copy.db"
    backup.save(sqlite_url, file, overwrite=False)
    assert backup.restore(f"sqlite:///{tmp_path / 'new.db'}", file, overwrite=False) == "0003"


def test_other_places(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="pg_dump"):
        backup.save("postgresql://localhost/x", tmp_path / "copy.db", overwrite=False)
    with pytest.raises(ValueError, match="no database yet"):
        backup.save(f"sqlite:///{tmp_path / 'none.db'}", tmp_path / "copy.db", overwrite=False)
    with pytest.raises(ValueError, match="there is no file"):
        backup.restore(f"sqlite:///{tmp_path / 'none.db'}", tmp_path / "none", overwrite=False)
