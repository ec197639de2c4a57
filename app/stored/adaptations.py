"""What is kept of an adaptation, beside the arrays that it predicts with."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import ClassVar

from app.stored.document import Document, StoredWarning


class StoredAdaptation(Document):
    """A source model adapted to a sample; ``result``: what its kind tells of it.

    The JSON is flat: the members of ``result`` stand between the others.
    """

    NAME: ClassVar[str] = "an adaptation"

    id: str
    model: str
    version: int
    kind: str
    created_at: datetime
    result: dict[str, object]
    warnings: Sequence[StoredWarning]

    @classmethod
    def upgraded(cls, content: Mapping[str, object], number: int) -> Mapping[str, object]:
        """With its result apart; nothing has changed between the formats but the number."""
        own = cls.model_fields.keys() - {"result"}
        result = {k: v for k, v in content.items() if k not in own and k != "format"}
        return {**{k: v for k, v in content.items() if k in own}, "result": result}

    def flat(self) -> dict[str, object]:
        """All of it as one object."""
        content = self.model_dump(mode="json")
        result, warnings = content.pop("result"), content.pop("warnings")
        return {**content, **result, "warnings": warnings}

    def written(self) -> dict[str, object]:
        """As JSON, for the database."""
        return {"format": self.FORMAT, **self.flat()}
