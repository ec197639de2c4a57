"""What is kept of a job: what was asked, how far it is, what came of it."""

from collections.abc import Sequence
from typing import ClassVar

from pydantic import Field

from app.stored.document import Document, Part, StoredWarning


class StoredJobRequest(Document):
    """What was asked. ``request``: the body as it came, which was checked.

    ``version``: the one that was meant then, None for a job that makes one; ``roots``: the data
    roots that are open to whoever asked, None for all.
    """

    NAME: ClassVar[str] = "what was asked of a job"

    request: dict[str, object]
    version: int | None = None
    roots: Sequence[str] | None = None


class StoredProgress(Document):
    """How far a job is: ``partitions`` of ``of`` in round ``round``, ``rows`` in them."""

    NAME: ClassVar[str] = "how far a job is"

    round: int
    partitions: int
    of: int
    rows: int | None
    rows_per_second: float | None
    remaining_seconds: float | None


class StoredGroupEstimate(Part):
    """The estimate of a group, by the columns grouped by; empty where there are no groups."""

    group: dict[str, str]
    estimate: str
    size: int
    holm_p_value: float | None


class StoredFault(Part):
    """What was wrong: ``pointer`` into what was asked."""

    pointer: str
    message: str


class StoredJobResult(Document):
    """What came of a job; of its kind, None and nothing else."""

    NAME: ClassVar[str] = "what came of a job"

    version: int | None = None
    rows: int | None = None
    skipped_rows: int | None = None
    skipped_files: int | None = None
    rounds: int | None = None
    estimates: Sequence[StoredGroupEstimate] = Field(default_factory=list)
    files: int | None = None
    output: str | None = None
    errors: Sequence[StoredFault] = Field(default_factory=list)
    warnings: Sequence[StoredWarning] = Field(default_factory=list)
