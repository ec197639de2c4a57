"""Migrations: run them, or ask whether the database is at their head."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.engine import Engine

import migrations
from models_store.engine import WRITING
from models_store.errors import Unavailable, WrongRevision


def configuration() -> Config:
    """Alembic's configuration, from the package; no ini file."""
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    return config


def head() -> str:
    """The revision that this code expects."""
    revision = ScriptDirectory.from_config(configuration()).get_current_head()
    assert revision is not None
    return revision


def current(engine: Engine) -> str | None:
    """The revision that the database is at; None for an empty one."""
    with engine.connect() as connection:
        return MigrationContext.configure(connection).get_current_revision()


def require_head(engine: Engine) -> None:
    """``WrongRevision`` for a database at another one; one that does not answer may come yet."""
    try:
        found = current(engine)
    except sa.exc.SQLAlchemyError:
        return
    if found != head():
        raise WrongRevision(
            f"the database is at revision {found}, this release needs {head()}: type priorshift "
            "migrate, or start the release that belongs to the database"
        )


def create(engine: Engine) -> bool:
    """Build an embedded database that holds nothing yet; whether that was so.

    One of another release is left to ``migrate``, as is a server's, where others decide.
    """
    if engine.dialect.name != "sqlite":
        return False
    try:
        if sa.inspect(engine).get_table_names():
            return False
    except sa.exc.SQLAlchemyError:
        return False
    migrate(engine)
    return True


def migrate(engine: Engine) -> str:
    """Bring the database to the head; the revision it is at then."""
    config = configuration()
    try:
        _upgrade(engine, config)
    except sa.exc.OperationalError as error:
        raise Unavailable(f"the database cannot be migrated: {error.orig}") from error
    return head()


@contextmanager
def altering(engine: Engine) -> Iterator[sa.Connection]:
    """A transaction in which tables may be replaced by others of their name.

    SQLite would take the rows that refer to a table along when it is dropped. So it looks at
    references at the end, and not before; outside a transaction, where alone that can be said.
    """
    with engine.execution_options(**{WRITING: True}).connect() as connection:
        driver: Any = connection.connection.driver_connection
        lenient = connection.dialect.name == "sqlite"
        if lenient:
            driver.execute("PRAGMA foreign_keys = OFF")
        try:
            with connection.begin():
                yield connection
                if lenient:
                    _require_sound(connection)
        finally:
            if lenient:
                driver.execute("PRAGMA foreign_keys = ON")


def _require_sound(connection: sa.Connection) -> None:
    found = connection.exec_driver_sql("PRAGMA foreign_key_check").first()
    if found is not None:
        raise WrongRevision(
            f"the database holds rows of {found[0]} that belong to nothing in {found[2]}; nothing "
            "was changed. Restore a back-up, or delete them"
        )


def _upgrade(engine: Engine, config: Config) -> None:
    with altering(engine) as connection:
        _lock(connection)
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def _lock(connection: sa.Connection) -> None:
    """One migration at a time; SQLite's write transaction locks by itself."""
    if connection.dialect.name == "postgresql":
        connection.execute(sa.text("SELECT pg_advisory_xact_lock(7460271)"))
