"""The JSON that one row keeps: written with the number of its format, upgraded when it is read.

A row without a number is of format 1, which releases wrote that knew no numbers.
"""

from collections.abc import Mapping
from typing import ClassVar, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from models_store.errors import Unavailable


class LaterFormat(Unavailable):
    """A later release has written it; this one would read it wrongly."""


class Damaged(Exception):
    """It is not what any release has written."""


class Part(BaseModel):
    """A part of what is kept."""

    model_config = ConfigDict(frozen=True, populate_by_name=True, from_attributes=True)


class Document(Part):
    """All that one row keeps as JSON."""

    NAME: ClassVar[str]
    FORMAT: ClassVar[int] = 2
    """The format that is written."""
    LEFT_OUT: ClassVar[frozenset[str]] = frozenset()
    """Fields that are left out where there are none, as they are long or rare."""

    @classmethod
    def read(cls, content: Mapping[str, object]) -> Self:
        """From JSON of this format or an earlier one; ``LaterFormat``, ``Damaged``."""
        number = content.get("format", 1)
        if type(number) is not int or number < 1:
            raise Damaged(f"{cls.NAME} is kept in the format {number!r}, which there is not")
        if number > cls.FORMAT:
            raise LaterFormat(
                f"{cls.NAME} was kept by a later release, in format {number}; this release reads "
                f"formats up to {cls.FORMAT}: upgrade it"
            )
        try:
            return cls.model_validate(cls.upgraded(content, number))
        except ValidationError as error:
            raise Damaged(f"{cls.NAME} is kept in format {number}, but not as that") from error

    @classmethod
    def upgraded(cls, content: Mapping[str, object], number: int) -> Mapping[str, object]:
        """Content of the format ``number`` as of the one that is written.

        From 1 to 2 nothing has changed but that the number is there.
        """
        return content

    def written(self) -> dict[str, object]:
        """As JSON, for the database."""
        content = self.model_dump(mode="json", by_alias=True)
        for name in self.LEFT_OUT:
            if content[name] is None:
                del content[name]
        return {"format": self.FORMAT, **content}


class StoredWarning(Part):
    """A warning, as it was told."""

    code: str
    message: str
