"""What requests about jobs hold, and what they are answered, as JSON shapes."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field, model_validator

from app.core.prevalence.calibration import Method
from app.datasets.dataset import MOST_GROUP_COLUMNS
from app.datasets.paths import LONGEST as LONGEST_PATH
from app.engines.engine import MOST_GROUPS
from app.schemas.base import Out, WarningOut
from app.schemas.datasets import ColumnName, DatasetIn
from app.schemas.requests import (
    ByName,
    In,
    IntervalIn,
    Metadata,
    Name,
    SegmentKey,
    SegmentValue,
    ShiftIn,
    Text,
    Timestamp,
    at_most,
)
from app.stored.jobs import StoredFault, StoredGroupEstimate, StoredProgress

OF_KIND = {
    "estimate": {"group_by", "method", "interval", "shift", "observed_at", "segment"},
    "register": {"calibration", "metadata"},
    "adjust": {"method", "target_priors", "output"},
}
GROUPED = (
    f"Columns; an estimate for each combination of their values, of {MOST_GROUPS:,} at most. A row "
    "without a value is wrong, as is a partition of no value (Hive's default): see on_error"
)
ALWAYS = {"kind", "model", "version", "alias", "dataset"}


class JobIn(In):
    """Work on a data set, under a version or the one that an alias points to now.

    ``estimate``: one estimate, or one for each group of ``group_by``. ``register``: the labelled
    rows become a version. ``adjust``: rows to ``target_priors`` or to their own estimate, into the
    folder ``output``, which no other job has used, and none that holds it or lies in it.
    """

    kind: Literal["estimate", "register", "adjust"]
    model: Name
    version: Annotated[int | None, Field(ge=1, le=999_999_999)] = None
    alias: Name | None = None
    dataset: DatasetIn
    group_by: Annotated[
        list[ColumnName], at_most(MOST_GROUP_COLUMNS), Field(description=GROUPED)
    ] = Field(default_factory=list)
    method: Annotated[Text, Field(max_length=40)] = "auto"
    interval: IntervalIn = IntervalIn()
    shift: ShiftIn = ShiftIn()
    observed_at: Timestamp | None = None
    segment: Annotated[dict[SegmentKey, SegmentValue], at_most(16)] = Field(default_factory=dict)
    target_priors: ByName | None = None
    output: Annotated[str | None, Field(min_length=1, max_length=LONGEST_PATH)] = None
    calibration: Literal["auto", Method] | None = None
    metadata: Metadata = Field(default_factory=dict)

    @model_validator(mode="after")
    def of_its_kind(self) -> "JobIn":
        """Nothing that its kind does not use."""
        if self.version is not None and self.alias is not None:
            raise ValueError("give one of version and alias; without either it is the latest")
        others = sorted(self.model_fields_set - OF_KIND[self.kind] - ALWAYS)
        if others:
            raise ValueError(f"{others[0]} does not belong to a job of the kind {self.kind}")
        if self.kind == "register" and (self.version is not None or self.alias is not None):
            raise ValueError("register makes the next version; leave version and alias out")
        if self.kind == "adjust" and self.output is None:
            raise ValueError("adjust needs output, a folder below the output root")
        if self.target_priors is not None and self.method != "auto":
            raise ValueError("method finds target_priors, which are stated; leave it out")
        return self


class ProgressOut(StoredProgress):
    """How far a job is: ``partitions`` of ``of`` in round ``round``, ``rows`` in them.

    ``remaining_seconds``: of this round, by the pace so far; how many rounds there are, the data
    decide.
    """


class GroupEstimateOut(StoredGroupEstimate):
    """The estimate of a group, by the columns grouped by; empty where there are no groups."""


class JobFaultOut(StoredFault):
    """What was wrong: ``pointer`` into what was asked."""


class JobOut(Out):
    """A job. ``warnings``: of its rows; ``errors``: why it failed."""

    id: str
    kind: str
    model: str
    version: int | None
    state: Literal["queued", "running", "cancelling", "done", "failed", "cancelled"]
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    asked: dict[str, object]
    progress: ProgressOut | None
    rounds: int | None = None
    rows: int | None = None
    skipped_rows: int | None = None
    skipped_files: int | None = None
    estimates: list[GroupEstimateOut] = Field(default_factory=list)
    output: str | None = None
    files: int | None = None
    warnings: list[WarningOut] = Field(default_factory=list)
    errors: list[JobFaultOut] = Field(default_factory=list)


class JobPage(Out):
    """Jobs, newest first."""

    items: list[JobOut]
    next_cursor: str | None
