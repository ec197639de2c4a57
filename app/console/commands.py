"""priorshift register | estimate | history | compare.

Exit status: 0, 2 for something wrong with what was given, 3 for a detected shift with
--fail-on-shift, 1 where nobody answers.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.console import show
from app.console.service import Local, Refused, Remote, Service, Upload, ask
from app.console.terminal import Terminal, write_json

if TYPE_CHECKING:
    from app.settings import Settings

SHIFTED = 3
URL = "http://127.0.0.1:8000"

Name = Annotated[str, typer.Argument(help="The model's name")]
Url = Annotated[str, typer.Option(envvar="PRIORSHIFT_URL", help="Where the service is")]
Key = Annotated[str | None, typer.Option(envvar="PRIORSHIFT_KEY", help="A key that opens it")]
InPlace = Annotated[
    bool, typer.Option("--local", help="Without a server, on PRIORSHIFT_DATABASE_URL")
]
AsJson = Annotated[bool, typer.Option("--json", help="The service's answer, as JSON")]
Batch = Annotated[Path, typer.Argument(help="CSV, Parquet, Arrow, NDJSON, JSON or NPY")]
Version = Annotated[str, typer.Option(help="A number, latest or @alias")]
Predictions = Annotated[str | None, typer.Option(help="Column of predicted labels")]
Labels = Annotated[str | None, typer.Option(help="Column of labels, empty where unknown")]


def register(
    name: Name,
    scores: Annotated[Path, typer.Argument(help="CSV, Parquet, Arrow or NDJSON")],
    label: Annotated[str, typer.Option(help="Column of labels; classes are the others")],
    calibration: Annotated[str | None, typer.Option(help="bcts, auto, …")] = None,
    url: Url = URL,
    key: Key = None,
    local: InPlace = False,
    as_json: AsJson = False,
) -> None:
    """Register labelled scores as a version of a model, made if there is none."""
    from app.console import files

    service = service_of(url, key, local)
    table = files.frame(scores)
    known = service.send("GET", f"/v1/models/{name}", {}, None)
    names = tuple(known.json()["classes"]) if known.is_success else files.classes(table, label)
    source: dict[str, Any] = {"validation": files.validation(table, label, names)}
    if calibration is not None:
        source["calibration"] = calibration
    body: dict[str, Any] = {"source": source}
    path = f"/v1/models/{name}/versions"
    if not known.is_success:
        body |= {"name": name, "classes": list(names)}
        path = "/v1/models"
    answer = ask(service, "POST", path, Upload(files.upload_of(body), "application/json")).json()
    version = answer if known.is_success else answer["version"]
    tell(version, as_json, show.version)


def estimate(
    name: Name,
    batch: Batch,
    out: Annotated[Path | None, typer.Option(help="File for the adjusted posteriors")] = None,
    method: Annotated[str, typer.Option(help="auto, mle, acc-qp, …")] = "auto",
    version: Version = "latest",
    predictions: Predictions = None,
    labels: Labels = None,
    fail_on_shift: Annotated[
        bool, typer.Option(help=f"Status {SHIFTED} if a shift is detected")
    ] = False,
    url: Url = URL,
    key: Key = None,
    local: InPlace = False,
    as_json: AsJson = False,
) -> None:
    """Estimate the class shares behind a file of rows, and keep the estimate."""
    from app.console import files

    service = service_of(url, key, local)
    content, kind = files.content(batch), files.kind(batch)
    wanted = None if out is None else files.kind(out)
    address = f"/v1/models/{name}/versions/{version}"
    # A JSON body holds its own options.
    chosen = None if kind == "application/json" else method
    options = {"method": chosen, "predictions": predictions, "labels": labels}
    upload = Upload(content, kind)
    found = ask(service, "POST", f"{address}/estimates", upload, **options).json()
    if out is not None and wanted is not None:
        upload = Upload(content, kind, wanted)
        adjusted = ask(service, "POST", f"{address}/posteriors", upload, **options)
        files.save(out, adjusted.content)
    tell(found, as_json, show.estimate)
    if fail_on_shift and found["shift"] is not None and found["shift"]["detected"]:
        raise typer.Exit(SHIFTED)


def history(
    name: Name,
    limit: Annotated[int, typer.Option(min=1, max=200, help="How many")] = 20,
    url: Url = URL,
    key: Key = None,
    local: InPlace = False,
    as_json: AsJson = False,
) -> None:
    """The estimates that were kept of a model, newest first."""
    service = service_of(url, key, local)
    items = ask(service, "GET", "/v1/estimates", model=name, limit=str(limit)).json()["items"]
    tell(items, as_json, show.history)


def compare(
    name: Name,
    batch: Batch,
    version: Version = "latest",
    predictions: Predictions = None,
    labels: Labels = None,
    url: Url = URL,
    key: Key = None,
    local: InPlace = False,
    as_json: AsJson = False,
) -> None:
    """Every method on one file of rows, side by side; nothing is kept."""
    from app.console import files
    from app.estimation.methods import METHODS

    service = service_of(url, key, local)
    content, kind = files.content(batch), files.kind(batch)
    if kind == "application/json":
        raise ValueError(f"{batch.name}: a JSON body names its own method; send a table or NPY")
    path = f"/v1/models/{name}/versions/{version}"
    ask(service, "GET", path)
    found: dict[str, Any] = {}
    for method in METHODS:
        try:
            answer = ask(
                service,
                "POST",
                f"{path}/estimates",
                Upload(content, kind),
                keep="false",
                method=method,
                predictions=predictions,
                labels=labels,
            )
            found[method] = answer.json()
        except Refused as error:
            found[method] = {"reason": str(error)}
    if not any("prevalence" in answer for answer in found.values()):
        raise Refused(found["mle"]["reason"])
    tell(found, as_json, show.comparison)


def service_of(url: str, key: str | None, local: bool) -> Service:
    """A running service, or one within this process on the configured database."""
    if not local:
        return Remote(url, key)
    from app.settings import Settings

    return in_place(Settings(), key)


def in_place(settings: "Settings", key: str | None) -> Local:
    """The application within this process, its database at this release."""
    from app.main import create_app
    from models_store import schema
    from models_store.engine import connect

    engine = connect(settings.database_url)
    schema.migrate(engine)
    engine.dispose()
    return Local(create_app(settings), key)


def tell(content: Any, as_json: bool, shown: Any) -> None:
    """As JSON, or by ``shown`` to a person."""
    if as_json:
        write_json(content)
    else:
        shown(Terminal(), content)
