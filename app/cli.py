"""priorshift serve | migrate | health | demo."""

import sys
from typing import Annotated

import typer
from rich.console import Console

from app.settings import Settings
from models_store import schema
from models_store.engine import connect
from models_store.errors import StoreError

cli = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


@cli.command()
def migrate() -> None:
    """Bring the database (PRIORSHIFT_DATABASE_URL) to the schema of this release."""
    engine = connect(Settings().database_url)
    revision = schema.migrate(engine)
    engine.dispose()
    Console().print(f"database at revision {revision}")


@cli.command()
def serve(
    host: Annotated[
        str, typer.Option(envvar="PRIORSHIFT_HOST", help="Address to listen on")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(envvar="PRIORSHIFT_PORT", help="Port to listen on")] = 8000,
    log_level: Annotated[str, typer.Option(help="debug, info, warning, error")] = "info",
) -> None:
    """Serve the API; migrate first, with a command of its own."""
    from threadpoolctl import threadpool_limits

    from app import server
    from app.main import create_app

    # Requests compute in threads of their own; more inside each would only get in their way.
    threadpool_limits(1)
    server.run(create_app(), host, port, log_level)


@cli.command()
def health(
    port: Annotated[int, typer.Option(envvar="PRIORSHIFT_PORT", help="Port to ask")] = 8000,
) -> None:
    """Ask the local service whether it is ready; status 0 if it is, for health checks."""
    import httpx

    try:
        answer = httpx.get(f"http://127.0.0.1:{port}/readyz", timeout=4)
    except httpx.TransportError as error:
        Console(stderr=True).print(f"no answer: {error}")
        sys.exit(1)
    Console().print(answer.text)
    sys.exit(0 if answer.status_code == 200 else 1)


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
    """The command's entry point; mistakes in the configuration are one line, not a trace."""
    try:
        cli()
    except (ValueError, StoreError) as error:
        Console(stderr=True).print(f"priorshift: {error}", style="red")
        sys.exit(2)


if __name__ == "__main__":
    main()
