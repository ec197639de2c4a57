"""priorshift job estimate | adjust | register | list | show | follow | resume | cancel.

Exit status: 0, 2 for something wrong with what was given or in the data, 3 for a detected shift
with --fail-on-shift, 1 where there is no answer: nobody there, or the job cancelled or left.
"""

from collections.abc import Callable
from typing import Annotated, NoReturn

import typer

from app.console import arguments, show
from app.console.following import Job, Left, address, follow, news
from app.console.interrupts import Interrupts
from app.console.options import (
    SHIFTED,
    AsJson,
    Calibration,
    DatasetOptions,
    FailOnShift,
    JobId,
    JobOptions,
    Key,
    Limit,
    Method,
    ServiceOptions,
    with_groups,
)
from app.console.service import RequestRefused, Service, Upload, ask, local_service
from app.console.terminal import Terminal, write_json
from app.core.json_types import JsonObject

WITHOUT = 1
"""Status where there is no answer."""
WRONG = 2

job = typer.Typer(no_args_is_help=True, help="Work on data sets that goes on behind.")


@job.command("estimate")
@with_groups
def estimate_dataset(
    rows: DatasetOptions,
    group_by: Annotated[
        list[str] | None, typer.Option(help="An estimate for each value of this column; repeat")
    ] = None,
    method: Method = None,
    segment: Annotated[
        list[str] | None, typer.Option(help="KEY=VALUE, to find it by; repeat")
    ] = None,
    observed_at: Annotated[
        str | None, typer.Option(help="When its rows were, 2026-01-31T12:00:00Z")
    ] = None,
    fail_on_shift: FailOnShift = False,
    *,
    target: JobOptions,
) -> None:
    """Estimate a data set, or each group of it, and keep the estimates.

    The job is followed; Ctrl-C asks whether to cancel it or to detach.
    """
    content = arguments.drop_missing(
        kind="estimate",
        **rows.content(),
        group_by=group_by,
        method=method,
        segment=arguments.parse_pairs("--segment", segment or [], "KEY", str.partition),
        observed_at=observed_at,
    )
    _run(target, content, fail_on_shift)


@job.command("adjust")
@with_groups
def adjust_dataset(
    rows: DatasetOptions,
    output: Annotated[str, typer.Option(help="A folder to write, below the output root")],
    target_priors: Annotated[str | None, typer.Option(help="CLASS=SHARE,CLASS=SHARE")] = None,
    method: Method = None,
    keep: Annotated[list[str] | None, typer.Option(help="A column to pass through; repeat")] = None,
    *,
    target: JobOptions,
) -> None:
    """Adjust a data set's posteriors, to stated priors or to its own estimate, into new files.

    The job is followed; Ctrl-C asks whether to cancel it or to detach.
    """
    content = arguments.drop_missing(
        kind="adjust",
        **rows.content(keys=keep),
        method=method,
        output=output,
        target_priors=arguments.parse_priors(target_priors),
    )
    _run(target, content)


@job.command("register")
@with_groups
def register_dataset(
    rows: DatasetOptions,
    label: Annotated[str, typer.Option(help="Column of true classes")],
    calibration: Calibration = None,
    *,
    target: JobOptions,
) -> None:
    """Register the labelled rows of a data set as the next version of its model.

    The job is followed; Ctrl-C asks whether to cancel it or to detach.
    """
    content = arguments.drop_missing(
        kind="register", **rows.content(label=label), calibration=calibration
    )
    _run(target, content)


@job.command("list")
@with_groups
def list_jobs(
    model: Annotated[str | None, typer.Option(help="Of this model")] = None,
    state: Annotated[str | None, typer.Option(help="queued, running, done, …")] = None,
    limit: Limit = 20,
    *,
    target: ServiceOptions,
) -> None:
    """Jobs, newest first."""
    service = target.connect()
    answer = ask(service, "GET", "/v1/jobs", model=model, state=state, limit=str(limit))
    target.show(answer.json()["items"], show.jobs)


@job.command("show")
@with_groups
def show_job(id: JobId, target: ServiceOptions) -> None:
    """A job: how far it is, or what came of it."""
    service = target.connect()
    job = ask(service, "GET", address(id)).json()
    target.show(job, lambda terminal, job: show.job(terminal, job, _estimates(service, job)))


@job.command("follow")
@with_groups
def follow_job(
    id: JobId,
    fail_on_shift: FailOnShift = False,
    *,
    target: ServiceOptions,
) -> None:
    """Wait for a job, as the command that began it does; it may be over."""
    service = target.connect()
    with Interrupts() as interrupts:
        job = _follow(service, id, interrupts)
    _end(service, job, fail_on_shift, target.as_json)


@job.command("resume")
def resume_job(
    id: JobId, fail_on_shift: FailOnShift = False, key: Key = None, as_json: AsJson = False
) -> None:
    """Go on here with a job that nobody runs, as --local does; wait where somebody does."""
    _run_here(key, lambda _: id, fail_on_shift, as_json)


@job.command("cancel")
@with_groups
def cancel_job(id: JobId, target: ServiceOptions) -> None:
    """Have a job end, within seconds; files that it has written stay."""
    service = target.connect()
    target.show(ask(service, "DELETE", address(id)).json(), show.queued)


def _run(target: JobOptions, content: JsonObject, fail_on_shift: bool = False) -> None:
    """Have a job done, and follow it."""
    from app.console import files

    body = Upload(files.upload_of(content), "application/json")
    if target.local:
        _run_here(target.key, lambda s: str(_create(s, body)["id"]), fail_on_shift, target.as_json)
        return
    service = target.connect()
    with Interrupts() as interrupts:
        job = _create(service, body)
        done = None if target.detach else _follow(service, job["id"], interrupts)
    if done is None:
        target.show(job, show.queued)
    else:
        _end(service, done, fail_on_shift, target.as_json)


def _run_here(
    key: str | None, find: Callable[[Service], str], fail_on_shift: bool, as_json: bool
) -> None:
    """Run the job whose id ``find`` asks for."""
    # It brings all that runs jobs, which takes a while to import.
    from app.console import foreground

    service = local_service(foreground.settings(), key)
    with Interrupts() as interrupts:
        here = foreground.Foreground(service)
        id = find(service)
        here.start(id)
        try:
            job = follow(lambda: here.news(id), service, id, interrupts, foreground.LEAVING)
        except Left as left:
            here.leave()
            _leave(left)
    _end(service, job, fail_on_shift, as_json)


def _create(service: Service, body: Upload) -> Job:
    job: Job = ask(service, "POST", "/v1/jobs", body).json()
    return job


def _follow(service: Service, id: str, interrupts: Interrupts) -> Job:
    try:
        return follow(lambda: news(service, id), service, id, interrupts)
    except Left as left:
        _leave(left)


def _leave(left: Left) -> NoReturn:
    Terminal(stderr=True).say(str(left))
    raise typer.Exit(WITHOUT) from None


def _end(service: Service, job: Job, fail_on_shift: bool, as_json: bool) -> None:
    """Show what came of a job that is over, and say it by the status."""
    if job["state"] == "failed" and not as_json:
        raise RequestRefused("; ".join(show.faults(job)) or "the job failed")
    estimates = _estimates(service, job) if fail_on_shift or not as_json else []
    if as_json:
        write_json(job)
    else:
        show.job(Terminal(), job, estimates)
    if job["state"] != "done":
        raise typer.Exit(WITHOUT if job["state"] == "cancelled" else WRONG)
    if fail_on_shift and any(map(_detects_shift, job["estimates"], estimates)):
        raise typer.Exit(SHIFTED)


def _estimates(service: Service, job: Job) -> list[JsonObject]:
    """The estimates of a job's groups, in the job's order."""
    paths = [f"/v1/estimates/{item['estimate']}" for item in job["estimates"]]
    return [ask(service, "GET", path).json() for path in paths]


def _detects_shift(item: JsonObject, estimate: JsonObject) -> bool:
    """Whether a shift is detected still when all groups are tested."""
    shift, p = estimate["shift"], item["holm_p_value"]
    return bool(shift is not None and shift["detected"] and p <= shift["significance"])
