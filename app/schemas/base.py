"""What every answer is made of: its base, warnings, and problems."""

from pydantic import BaseModel, ConfigDict


class Out(BaseModel):
    """An answer part."""

    model_config = ConfigDict(populate_by_name=True, from_attributes=True)


class WarningOut(Out):
    """What to doubt, or what was decided for the caller."""

    code: str
    message: str


class FaultOut(Out):
    """One wrong thing."""

    pointer: str
    message: str
    row: int | None = None


class ProblemOut(Out):
    """RFC 9457."""

    type: str
    title: str
    status: int
    detail: str
    instance: str
    errors: list[FaultOut] | None = None
    error_count: int | None = None
