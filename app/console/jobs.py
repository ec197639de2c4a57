"""priorshift job run | list | show | follow | resume | cancel.

Exit status: 0, 2 for something wrong with what was given or in the data, 3 for a detected shift
with --fail-on-shift, 1 where there is no answer: nobody there, or the job cancelled or left.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any, NoReturn

import typer

from app.console import asking, show
from app.console.commands import (
    SHIFTED,
    URL,
    AsJson,
    InPlace,
    Key,
    Url,
    in_place,
    service_of,
    tell,
)
from app.console.following import Job, Left, address, follow, news
from app.console.interrupts import Interrupts
from app.console.service import Refused, Service, Upload, ask
from app.console.terminal import Terminal

WITHOUT = 1
"""Status where there is no answer."""
WRONG = 2

job = typer.Typer(no_args_is_help=True, help="Work on data sets that goes on behind.")
JobId = Annotated[str, typer.Argument(metavar="ID", help="Of job run or job list")]
Stop = Annotated[bool, typer.Option("--fail-on-shift", help=f"Status {SHIFTED} if one is detected")]


class Kind(StrEnum):
    """What to do."""

    ESTIMATE = "estimate"
    REGISTER = "register"
    ADJUST = "adjust"


class OnError(StrEnum):
    """What becomes of wrong rows and files."""

    FAIL = "fail"
    SKIP = "skip"


@job.command()
def run(
    kind: Annotated[Kind, typer.Argument(help="What to do")],
    dataset: Annotated[
        str, typer.Option(help="A file, a folder or a pattern below a data root, [ROOT:]PATH")
    ],
    model: Annotated[str, typer.Option(help="NAME, NAME@ALIAS or NAME@VERSION")],
    group_by: Annotated[
        list[str] | None, typer.Option(help="An estimate for each value of this column; repeat")
    ] = None,
    filter: Annotated[str | None, typer.Option(help="country = 'BE' and amount > 10")] = None,
    label: Annotated[str | None, typer.Option(help="Column of true classes")] = None,
    column: Annotated[
        list[str] | None, typer.Option(help="CLASS=COLUMN where they differ; repeat")
    ] = None,
    method: Annotated[str | None, typer.Option(help="auto, mle, acc-qp, …")] = None,
    segment: Annotated[
        list[str] | None, typer.Option(help="Of estimate: KEY=VALUE, to find it by; repeat")
    ] = None,
    observed_at: Annotated[
        str | None, typer.Option(help="Of estimate: when its rows were, 2026-01-31T12:00:00Z")
    ] = None,
    calibration: Annotated[str | None, typer.Option(help="Of register: bcts, auto, …")] = None,
    output: Annotated[str | None, typer.Option(help="Of adjust: a folder to write")] = None,
    target_priors: Annotated[
        str | None, typer.Option(help="Of adjust: CLASS=SHARE,CLASS=SHARE")
    ] = None,
    keep: Annotated[
        list[str] | None, typer.Option(help="Of adjust: a column to pass through; repeat")
    ] = None,
    on_error: Annotated[OnError | None, typer.Option(help="Of wrong rows and files")] = None,
    detach: Annotated[bool, typer.Option("--detach", help="Do not wait for it")] = False,
    fail_on_shift: Stop = False,
    url: Url = URL,
    key: Key = None,
    local: Annotated[
        bool,
        typer.Option(
            "--local",
            help="Run it here, without a server, on PRIORSHIFT_DATABASE_URL; without "
            "PRIORSHIFT_DATA_ROOTS paths start from the current folder",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Have work done on a data set, and follow it; Ctrl-C asks whether to cancel or to detach."""
    from app.console import files

    if local and detach:
        raise ValueError("--local runs the job here; there is nothing to --detach from")
    columns = asking.named("--column", column or [])
    given = asking.stated(
        kind=kind.value,
        **asking.model(model),
        dataset=asking.stated(
            path=dataset,
            columns=columns,
            label=label,
            filter=filter,
            keys=keep,
            on_error=None if on_error is None else on_error.value,
        ),
        group_by=group_by,
        method=method,
        segment=asking.named("--segment", segment or [], "KEY", str.partition),
        observed_at=observed_at,
        calibration=calibration,
        output=output,
        target_priors=None if target_priors is None else asking.priors(target_priors),
    )
    body = Upload(files.upload_of(given), "application/json")
    if local:
        _here(key, lambda service: str(_made(service, body)["id"]), fail_on_shift, as_json)
        return
    service = service_of(url, key, False)
    with Interrupts() as interrupts:
        made = _made(service, body)
        found = None if detach else _followed(service, made["id"], interrupts)
    if found is None:
        tell(made, as_json, show.queued)
    else:
        _end(service, found, fail_on_shift, as_json)


@job.command("list")
def list_jobs(
    model: Annotated[str | None, typer.Option(help="Of this model")] = None,
    state: Annotated[str | None, typer.Option(help="queued, running, done, …")] = None,
    limit: Annotated[int, typer.Option(min=1, max=200, help="How many")] = 20,
    url: Url = URL,
    key: Key = None,
    local: InPlace = False,
    as_json: AsJson = False,
) -> None:
    """Jobs, newest first."""
    service = service_of(url, key, local)
    answer = ask(service, "GET", "/v1/jobs", model=model, state=state, limit=str(limit))
    tell(answer.json()["items"], as_json, show.jobs)


@job.command("show")
def show_job(
    id: JobId, url: Url = URL, key: Key = None, local: InPlace = False, as_json: AsJson = False
) -> None:
    """A job: how far it is, or what came of it."""
    service = service_of(url, key, local)
    found = ask(service, "GET", address(id)).json()
    if as_json:
        tell(found, True, None)
    else:
        show.job(Terminal(), found, _estimates(service, found))


@job.command("follow")
def follow_job(
    id: JobId,
    fail_on_shift: Stop = False,
    url: Url = URL,
    key: Key = None,
    local: InPlace = False,
    as_json: AsJson = False,
) -> None:
    """Wait for a job, as job run does; it may be over."""
    service = service_of(url, key, local)
    with Interrupts() as interrupts:
        found = _followed(service, id, interrupts)
    _end(service, found, fail_on_shift, as_json)


@job.command("resume")
def resume_job(
    id: JobId, fail_on_shift: Stop = False, key: Key = None, as_json: AsJson = False
) -> None:
    """Go on here with a job that nobody runs, as job run --local does; wait where somebody does."""
    _here(key, lambda _: id, fail_on_shift, as_json)


@job.command("cancel")
def cancel_job(
    id: JobId, url: Url = URL, key: Key = None, local: InPlace = False, as_json: AsJson = False
) -> None:
    """Have a job end, within seconds; files that it has written stay."""
    service = service_of(url, key, local)
    tell(ask(service, "DELETE", address(id)).json(), as_json, show.queued)


def _here(
    key: str | None, find: Callable[[Service], str], fail_on_shift: bool, as_json: bool
) -> None:
    """Run the job whose id ``find`` asks for."""
    # It brings all that runs jobs, which takes a while to import.
    from app.console import foreground

    service = in_place(foreground.settings(), key)
    with Interrupts() as interrupts:
        here = foreground.Foreground(service)
        id = find(service)
        here.start(id)
        try:
            found = follow(lambda: here.news(id), service, id, interrupts, foreground.LEAVING)
        except Left as left:
            here.leave()
            _left(left)
    _end(service, found, fail_on_shift, as_json)


def _made(service: Service, body: Upload) -> dict[str, Any]:
    made: dict[str, Any] = ask(service, "POST", "/v1/jobs", body).json()
    return made


def _followed(service: Service, id: str, interrupts: Interrupts) -> Job:
    try:
        return follow(lambda: news(service, id), service, id, interrupts)
    except Left as left:
        _left(left)


def _left(left: Left) -> NoReturn:
    Terminal(stderr=True).say(str(left))
    raise typer.Exit(WITHOUT) from None


def _end(service: Service, found: Job, fail_on_shift: bool, as_json: bool) -> None:
    """Show what came of a job that is over, and say it by the status."""
    if found["state"] == "failed" and not as_json:
        raise Refused("; ".join(show.faults(found)) or "the job failed")
    kept = _estimates(service, found) if fail_on_shift or not as_json else []
    if as_json:
        tell(found, True, None)
    else:
        show.job(Terminal(), found, kept)
    if found["state"] != "done":
        raise typer.Exit(WITHOUT if found["state"] == "cancelled" else WRONG)
    if fail_on_shift and any(map(_shifted, found["estimates"], kept)):
        raise typer.Exit(SHIFTED)


def _estimates(service: Service, found: Job) -> list[dict[str, Any]]:
    """The estimates of a job's groups, in the job's order."""
    paths = [f"/v1/estimates/{item['estimate']}" for item in found["estimates"]]
    return [ask(service, "GET", path).json() for path in paths]


def _shifted(item: dict[str, Any], estimate: dict[str, Any]) -> bool:
    """Whether a shift is detected still when all groups are tested."""
    shift, p = estimate["shift"], item["holm_p_value"]
    return bool(shift is not None and shift["detected"] and p <= shift["significance"])
