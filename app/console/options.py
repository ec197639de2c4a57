"""Options that several commands have, in groups, each written once.

A command takes a group as one parameter; ``with_groups`` makes the group's fields its options.
"""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import StrEnum
from functools import wraps
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from app.console import arguments
from app.console.service import Remote, Service, local_service
from app.console.terminal import Terminal, write_json

SHIFTED = 3
"""Status where a shift is detected, with --fail-on-shift."""
URL = "http://127.0.0.1:8000"

Name = Annotated[str, typer.Argument(help="The model's name")]
Batch = Annotated[Path, typer.Argument(help="CSV, Parquet, Arrow, NDJSON, JSON or NPY")]
JobId = Annotated[str, typer.Argument(metavar="ID", help="Of job list")]
Limit = Annotated[int, typer.Option(min=1, max=200, help="How many")]
Method = Annotated[str | None, typer.Option(help="auto, mle, acc-qp, …")]
Calibration = Annotated[str | None, typer.Option(help="bcts, auto, …")]
FailOnShift = Annotated[
    bool, typer.Option("--fail-on-shift", help=f"Status {SHIFTED} if one is detected")
]
Key = Annotated[str | None, typer.Option(envvar="PRIORSHIFT_KEY", help="A key that opens it")]
AsJson = Annotated[bool, typer.Option("--json", help="The service's answer, as JSON")]


class OnError(StrEnum):
    """What becomes of wrong rows and files."""

    FAIL = "fail"
    SKIP = "skip"


@dataclass(frozen=True)
class ServiceOptions:
    """Which service is asked, and how its answer is shown."""

    url: Annotated[str, typer.Option(envvar="PRIORSHIFT_URL", help="Where the service is")] = URL
    key: Key = None
    local: Annotated[
        bool, typer.Option("--local", help="Without a server, on PRIORSHIFT_DATABASE_URL")
    ] = False
    as_json: AsJson = False

    def connect(self) -> Service:
        """A running service, or one within this process on the configured database."""
        if not self.local:
            return Remote(self.url, self.key)
        from app.settings import Settings

        return local_service(Settings(), self.key)

    def show(self, content: Any, render: Callable[[Terminal, Any], None]) -> None:
        """As JSON, or rendered for a person."""
        if self.as_json:
            write_json(content)
        else:
            render(Terminal(), content)


@dataclass(frozen=True)
class BatchOptions:
    """The version that a batch is sent to, and what the batch's columns are."""

    version: Annotated[str, typer.Option(help="A number, latest or @alias")] = "latest"
    predictions: Annotated[str | None, typer.Option(help="Column of predicted labels")] = None
    labels: Annotated[str | None, typer.Option(help="Column of labels, empty where unknown")] = None

    @property
    def query(self) -> dict[str, str | None]:
        """The columns, for an address."""
        return {"predictions": self.predictions, "labels": self.labels}


@dataclass(frozen=True)
class DatasetOptions:
    """The rows of a job, and its model."""

    dataset: Annotated[
        str, typer.Option(help="A file, a folder or a pattern below a data root, [ROOT:]PATH")
    ]
    model: Annotated[str, typer.Option(help="NAME, NAME@ALIAS or NAME@VERSION")]
    filter: Annotated[str | None, typer.Option(help="country = 'BE' and amount > 10")] = None
    column: Annotated[
        list[str] | None, typer.Option(help="CLASS=COLUMN where they differ; repeat")
    ] = None
    on_error: Annotated[OnError | None, typer.Option(help="Of wrong rows and files")] = None

    def content(self, **more: Any) -> dict[str, Any]:
        """As the service takes it; ``more``: of the data set."""
        dataset = arguments.drop_missing(
            path=self.dataset,
            columns=arguments.parse_pairs("--column", self.column or []),
            filter=self.filter,
            on_error=None if self.on_error is None else self.on_error.value,
            **more,
        )
        return {**arguments.parse_model(self.model), "dataset": dataset}


@dataclass(frozen=True)
class JobOptions(ServiceOptions):
    """Where a new job runs, and whether it is waited for."""

    local: Annotated[
        bool,
        typer.Option(
            "--local",
            help="Run it here, without a server, on PRIORSHIFT_DATABASE_URL; without "
            "PRIORSHIFT_DATA_ROOTS paths start from the current folder",
        ),
    ] = False
    detach: Annotated[bool, typer.Option("--detach", help="Do not wait for it")] = False

    def __post_init__(self) -> None:
        if self.local and self.detach:
            raise ValueError("--local runs the job here; there is nothing to --detach from")


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the fields of its groups in place of each, as Typer takes them."""
    parameters = inspect.signature(command, eval_str=True).parameters.values()
    groups: dict[str, Any]
    groups = {p.name: p.annotation for p in parameters if is_dataclass(p.annotation)}

    @wraps(command)
    def expanded(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        command(**values)

    options = [option for parameter in parameters for option in _options(parameter)]
    vars(expanded)["__signature__"] = inspect.Signature(options)
    expanded.__annotations__ = {option.name: option.annotation for option in options}
    return expanded


def _options(parameter: Parameter) -> Iterator[Parameter]:
    """The parameter, or the fields of the group that it is."""
    if not is_dataclass(parameter.annotation):
        yield parameter.replace(kind=Parameter.KEYWORD_ONLY)
        return
    hints = get_type_hints(parameter.annotation, include_extras=True)
    for field in fields(parameter.annotation):
        default = Parameter.empty if field.default is MISSING else field.default
        yield Parameter(
            field.name, Parameter.KEYWORD_ONLY, default=default, annotation=hints[field.name]
        )
