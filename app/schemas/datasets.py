"""Data sets in requests: where they are and what is read of them, checked by ``app.datasets``."""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from app.datasets.dataset import Asked
from app.datasets.filters import LONGEST as LONGEST_FILTER
from app.datasets.paths import LONGEST as LONGEST_PATH
from app.schemas.requests import In, Named, Text, at_most

MOST_KEYS = 20
ColumnName = Annotated[Named, Field(min_length=1, max_length=200)]


class DatasetIn(In):
    """Files below a root of the operator's: Parquet, Arrow or CSV.

    ``path``: a file, a folder or a pattern, ``scores/2026-01/*.parquet``. ``columns``: by class,
    where a column is not called as its class. ``filter``: ``country = 'BE' and amount > 10``.
    ``keys``: columns that pass through beside adjusted posteriors. ``on_error``: whether a row or a
    file that is wrong ends the work, or is left out and counted.
    """

    path: Annotated[str, Field(min_length=1, max_length=LONGEST_PATH)]
    columns: Annotated[dict[Text, ColumnName] | None, at_most(1000)] = None
    label: ColumnName | None = None
    filter: Annotated[str | None, Field(min_length=1, max_length=LONGEST_FILTER)] = None
    keys: Annotated[list[ColumnName], at_most(MOST_KEYS)] = Field(default_factory=list)
    on_error: Literal["fail", "skip"] = "fail"

    def asked(self, group_by: Sequence[str] = ()) -> Asked:
        """The same for ``app.datasets``; ``group_by``: columns."""
        columns = None if self.columns is None else dict(self.columns)
        groups, keys = tuple(group_by), tuple(self.keys)
        return Asked(self.path, columns, self.label, groups, self.filter, keys, self.on_error)
