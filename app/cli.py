"""priorshift serve | migrate | backup | restore | keys | health | demo, and what asks a service.

What only some commands need is imported when one of them runs: the database, the application and
numpy take a second of computing.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from app.console import commands, jobs
from app.console.terminal import complain, lenient, say
from app.health import PATH, PORT, check, sound
from app.hostnames import is_loopback

if TYPE_CHECKING:
    from app.access.gate import Gate
    from app.settings import Settings
    from models_store.records import AuditRecord
    from models_store.store import Store

cli = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


@cli.callback()
def start() -> None:
    """Prevalence estimation under prior probability shift, as a service."""
    if any(name.startswith("PRIORSHIFT_") for name in os.environ):
        from app.settings import require_names

        require_names(os.environ)


@cli.command()
def migrate() -> None:
    """Bring the database (PRIORSHIFT_DATABASE_URL) to the schema of this release."""
    from app.settings import Settings
    from models_store import schema
    from models_store.engine import connect

    engine = connect(Settings().database_url)
    revision = schema.migrate(engine)
    engine.dispose()
    say(f"database at revision {revision}")


def _require_keys(gate: "Gate", host: str) -> None:
    """Refuse to start where nobody could get in; a database that does not answer may have keys."""
    from models_store.errors import Unavailable

    try:
        if gate.has_keys():
            return
    except Unavailable:
        return
    raise ValueError(
        f"{host} can be reached from elsewhere and there is no key: make one with priorshift "
        "keys create --scope admin, or name PRIORSHIFT_ADMIN_KEY_FILE; or say --allow-anonymous"
    )


def _several(host: str, port: int, count: int, log_level: str, anonymous: bool) -> int:
    from app.operations import workers

    try:
        bound = workers.listening(host, port)
    except OSError as error:
        raise ValueError(f"{host}:{port}: {error.strerror or error}") from None
    descriptor = bound.fileno()
    command = workers.command(host, port, log_level, descriptor, anonymous)
    with TemporaryDirectory(prefix="priorshift-metrics") as folder:
        return workers.Workers(command, count, descriptor, Path(folder)).run()


@cli.command()
def serve(
    host: Annotated[
        str, typer.Option(envvar="PRIORSHIFT_HOST", help="Address to listen on")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(envvar="PRIORSHIFT_PORT", help="Port to listen on")] = 8000,
    log_level: Annotated[str, typer.Option(help="debug, info, warning, error")] = "info",
    allow_anonymous: Annotated[
        bool, typer.Option(help="Listen beyond this machine without any key")
    ] = False,
    workers: Annotated[
        int, typer.Option(envvar="PRIORSHIFT_WORKERS", min=1, max=64, help="Server processes")
    ] = 1,
    worker: Annotated[tuple[int, int] | None, typer.Option(hidden=True)] = None,
) -> None:
    """Serve the API; makes a SQLite database that does not exist, migrates none that does."""
    from threadpoolctl import threadpool_limits

    from app import logs
    from app.main import create_app
    from app.operations import server
    from models_store import schema

    app = create_app(host=host)
    services = app.state.services
    logs.configure(services.settings.log_format, log_level)
    if schema.create(services.store.engine):
        logs.log.info("database created", revision=schema.head())
    schema.require_head(services.store.engine)
    anonymous = is_loopback(host) or allow_anonymous
    if not anonymous:
        services.gate.close()
    if not anonymous and worker is None:
        _require_keys(services.gate, host)
    if workers > 1 and worker is None:
        sys.exit(_several(host, port, workers, log_level, anonymous))
    # Requests compute in threads of their own; more inside each would only get in their way.
    threadpool_limits(1)
    server.run(app, host, port, log_level, worker)


@cli.command()
def backup(
    file: Annotated[Path, typer.Argument(help="Where to; it appears when it is whole")],
    overwrite: Annotated[bool, typer.Option(help="Replace a file that exists")] = False,
) -> None:
    """Copy the SQLite database while it is served."""
    from app.settings import Settings
    from models_store import backup as backups

    size = backups.save(Settings().database_url, file, overwrite)
    say(f"{file}: {size} bytes")


@cli.command()
def restore(
    file: Annotated[Path, typer.Argument(help="A file that backup made")],
    overwrite: Annotated[bool, typer.Option(help="Lose what the database holds")] = False,
) -> None:
    """Put a copy in place of the SQLite database; stop the service first."""
    from app.settings import Settings
    from models_store import backup as backups
    from models_store import schema

    revision = backups.restore(Settings().database_url, file, overwrite)
    advice = "" if revision == schema.head() else "; run priorshift migrate"
    say(f"restored, at revision {revision}{advice}")


cli.command()(commands.register)
cli.command()(commands.estimate)
cli.command()(commands.history)
cli.command()(commands.compare)
cli.add_typer(jobs.job, name="job")

keys = typer.Typer(no_args_is_help=True, help="API keys, straight in the database.")
cli.add_typer(keys, name="keys")


@keys.command("create")
def create_key(
    scope: Annotated[list[str], typer.Option(help="read, estimate, register, admin; repeat")],
    name: Annotated[str, typer.Option(help="Whose key it is")] = "admin",
    model: Annotated[
        list[str] | None, typer.Option(help="Restrict it to this model; repeat")
    ] = None,
    root: Annotated[
        list[str] | None, typer.Option(help="Data root that it opens, none with --model; repeat")
    ] = None,
    all_roots: Annotated[bool, typer.Option(help="Every data root, also with --model")] = False,
    days: Annotated[int | None, typer.Option(min=1, help="Days until it expires")] = None,
) -> None:
    """Make a key and print it, alone, once."""
    from app.access import gate
    from app.core.names import named
    from app.settings import Settings

    wrong = sorted(set(scope) - set(gate.SCOPES))
    if wrong:
        raise ValueError(f"{', '.join(wrong)}: scopes are {', '.join(gate.SCOPES)}")
    if root and all_roots:
        raise ValueError("give --root or --all-roots, one of the two")
    roots = root or (None if all_roots or not model else [])
    name = named(name)
    expires_at = None if days is None else datetime.now(UTC) + timedelta(days=days)
    settings = Settings()
    with opened(settings) as store:
        secret = gate.Gate(store, settings).secret()
        try:
            token, record = gate.new_key(secret, name, scope, model or None, expires_at, roots)
        except gate.Contradiction as error:
            option = {"models": "--model", "roots": "--root"}[error.restriction]
            raise ValueError(f"{option} {error}") from None
        with store.write() as unit:
            unit.keys.add(record)
            unit.audit.add(_entry("keys create", record.id))
    say(token)


@keys.command("list")
def list_keys() -> None:
    """Every key, newest first; never the keys themselves."""
    from app.settings import Settings

    with opened(Settings()) as store, store.read() as unit:
        for record in unit.keys.list(None, 1000).items:
            state = "" if record.opens(datetime.now(UTC)) else "  (revoked or expired)"
            scopes, models = ",".join(record.scopes), ",".join(record.models or ["*"])
            if record.roots is not None:
                models += f"  roots: {','.join(record.roots) or 'none'}"
            say(f"{record.id}  {record.prefix}…  {record.name}  {scopes}  {models}{state}")


@keys.command("revoke")
def revoke_key(key_id: Annotated[str, typer.Argument(help="The id, of keys list")]) -> None:
    """Revoke a key; the service feels it within a second."""
    from app.settings import Settings

    with opened(Settings()) as store, store.write() as unit:
        unit.keys.revoke(key_id, datetime.now(UTC))
        unit.audit.add(_entry("keys revoke", key_id))


def _entry(action: str, target: str) -> "AuditRecord":
    from app.access.callers import COMMAND_LINE
    from models_store.records import AuditRecord

    by = COMMAND_LINE.name
    return AuditRecord(datetime.now(UTC), None, by, action, target, "local")


@contextmanager
def opened(settings: "Settings") -> Iterator["Store"]:
    """The store of these settings, closed again."""
    from models_store.engine import connect
    from models_store.store import Store

    store = Store(connect(settings.database_url))
    try:
        yield store
    finally:
        store.close()


@cli.command()
def health(
    port: Annotated[
        int, typer.Option(envvar="PRIORSHIFT_PORT", min=1, max=65535, help="Port to ask")
    ] = PORT,
    path: Annotated[str, typer.Option(help="What to ask for")] = PATH,
) -> None:
    """Ask the local service whether it is ready; status 0 if it is, for health checks."""
    if not sound(path):
        raise ValueError(f"--path {path!r}: a path begins with / and is ASCII without spaces")
    sys.exit(check(port, path))


@cli.command()
def demo(
    keep_running: Annotated[
        bool, typer.Option(help="Leave the service up when the demo has ended")
    ] = False,
    port: Annotated[int, typer.Option(help="Port; 0 takes a free one")] = 0,
) -> None:
    """Start a service, register real models, post shifted batches, print what comes back."""
    from app.demo import run

    sys.exit(run(port, keep_running))


def main() -> None:
    """The command's entry point; mistakes are a line each, not a trace."""
    lenient()
    try:
        sys.exit(cli(standalone_mode=False) or 0)
    except typer.Abort:
        sys.exit(1)
    except typer.TyperException as error:
        # Without words: the help, which is printed already.
        if error.format_message():
            context = getattr(error, "ctx", None)
            advice = "" if context is None else f" See {context.command_path} --help"
            complain(f"{error.format_message()}{advice}")
        sys.exit(error.exit_code)
    except Exception as error:
        sys.exit(_report(error))


def _report(error: Exception) -> int:
    """Say what went wrong; the exit status. What is nobody's mistake is raised again."""
    from pydantic import ValidationError
    from pydantic_settings import SettingsError

    from app.console.service import Unreachable
    from app.core.errors import PriorshiftError
    from app.settings import Misnamed, mistakes
    from models_store.errors import StoreError

    if isinstance(error, (ValidationError, SettingsError, Misnamed)):
        for mistake in mistakes(error):
            complain(mistake)
        return 2
    if isinstance(error, (Unreachable, ValueError, StoreError, PriorshiftError)):
        complain(str(error))
        return 1 if isinstance(error, Unreachable) else 2
    raise error


if __name__ == "__main__":
    main()
