"""What a stream of a monitor remembers of its windows."""

from collections.abc import Mapping
from typing import ClassVar

from app.stored.document import Document, Part


class StoredEvidence(Part):
    """Evidence that adds up from ``since`` (microseconds since 1970) on, under a version.

    ``version``: its identity in the database; ``state``: of the e-process.
    """

    version: int
    since: int
    state: dict[str, int | float | list[float]]


class StoredStream(Document):
    """Windows in a row, up to the last one, that were detected, and that were calm.

    ``evidence`` None: of windows that are tested each by itself, and before the first one.
    """

    NAME: ClassVar[str] = "what a stream remembers"

    detected: int = 0
    calm: int = 0
    evidence: StoredEvidence | None = None

    @classmethod
    def upgraded(cls, content: Mapping[str, object], number: int) -> Mapping[str, object]:
        """Format 1 has empty evidence where there is none."""
        return content if number > 1 else {**content, "evidence": content.get("evidence") or None}
