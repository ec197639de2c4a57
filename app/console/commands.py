"""priorshift register | estimate | history | compare.

Exit status: 0, 2 for something wrong with what was given, 3 for a detected shift with
--fail-on-shift, 1 where nobody answers.
"""

from pathlib import Path
from typing import Annotated

import typer

from app.console import show
from app.console.options import (
    SHIFTED,
    Batch,
    BatchOptions,
    Calibration,
    Limit,
    Method,
    Name,
    ServiceOptions,
    with_groups,
)
from app.console.service import RequestRefused, Upload, ask
from app.core.json_types import JsonObject


@with_groups
def register(
    name: Name,
    scores: Annotated[Path, typer.Argument(help="CSV, Parquet, Arrow or NDJSON")],
    label: Annotated[str, typer.Option(help="Column of labels; classes are the others")],
    calibration: Calibration = None,
    *,
    target: ServiceOptions,
) -> None:
    """Register labelled scores as a version of a model, made if there is none."""
    from app.console import files

    service = target.connect()
    table = files.frame(scores)
    known = service.send("GET", f"/v1/models/{name}", {}, None)
    names = tuple(known.json()["classes"]) if known.is_success else files.classes(table, label)
    source: dict[str, object] = {"validation": files.validation(table, label, names)}
    if calibration is not None:
        source["calibration"] = calibration
    body: JsonObject = {"source": source}
    path = f"/v1/models/{name}/versions"
    if not known.is_success:
        body |= {"name": name, "classes": list(names)}
        path = "/v1/models"
    answer = ask(service, "POST", path, Upload(files.upload_of(body), "application/json")).json()
    version = answer if known.is_success else answer["version"]
    target.show(version, show.version)


@with_groups
def estimate(
    name: Name,
    batch: Batch,
    out: Annotated[Path | None, typer.Option(help="File for the adjusted posteriors")] = None,
    method: Method = "auto",
    *,
    columns: BatchOptions,
    fail_on_shift: Annotated[
        bool, typer.Option(help=f"Status {SHIFTED} if a shift is detected")
    ] = False,
    target: ServiceOptions,
) -> None:
    """Estimate the class shares behind a file of rows, and keep the estimate."""
    from app.console import files

    service = target.connect()
    content, kind = files.content(batch), files.kind(batch)
    accept = None if out is None else files.kind(out)
    address = f"/v1/models/{name}/versions/{columns.version}"
    # A JSON body holds its own options.
    chosen = None if kind == "application/json" else method
    query = {"method": chosen, **columns.query}
    upload = Upload(content, kind)
    answer = ask(service, "POST", f"{address}/estimates", upload, **query).json()
    if out is not None and accept is not None:
        upload = Upload(content, kind, accept)
        adjusted = ask(service, "POST", f"{address}/posteriors", upload, **query)
        files.save(out, adjusted.content)
    target.show(answer, show.estimate)
    if fail_on_shift and answer["shift"] is not None and answer["shift"]["detected"]:
        raise typer.Exit(SHIFTED)


@with_groups
def history(
    name: Name,
    limit: Limit = 20,
    *,
    target: ServiceOptions,
) -> None:
    """The estimates that were kept of a model, newest first."""
    service = target.connect()
    items = ask(service, "GET", "/v1/estimates", model=name, limit=str(limit)).json()["items"]
    target.show(items, show.history)


@with_groups
def compare(name: Name, batch: Batch, columns: BatchOptions, target: ServiceOptions) -> None:
    """Every method on one file of rows, side by side; nothing is kept."""
    from app.console import files
    from app.estimation.methods import METHODS

    service = target.connect()
    content, kind = files.content(batch), files.kind(batch)
    if kind == "application/json":
        raise ValueError(f"{batch.name}: a JSON body names its own method; send a table or NPY")
    path = f"/v1/models/{name}/versions/{columns.version}"
    ask(service, "GET", path)
    answers: JsonObject = {}
    for method in METHODS:
        query = {"keep": "false", "method": method, **columns.query}
        try:
            answer = ask(service, "POST", f"{path}/estimates", Upload(content, kind), **query)
            answers[method] = answer.json()
        except RequestRefused as error:
            answers[method] = {"reason": str(error)}
    if not any("prevalence" in answer for answer in answers.values()):
        raise RequestRefused(answers["mle"]["reason"])
    target.show(answers, show.comparison)
