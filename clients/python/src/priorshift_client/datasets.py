"""Data sets: files of the service's, which its jobs read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Names = str | Sequence[str]
"""One name or several."""


@dataclass(frozen=True)
class Dataset:
    """Parquet, Arrow or CSV files below a data root of the service.

    ``path``: a file, a folder or a pattern, ``scores/2026-01/*.parquet``. ``columns``: by class,
    where a column is not called as its class. ``label``: the column of true classes. ``filter``:
    ``country = 'BE' and amount > 10``. ``group_by``: columns; each of their values has an estimate
    of its own, 1,000 at most; rows without a value are wrong. ``keys``: columns to pass through
    beside adjusted posteriors. ``on_error``: wrong rows and files end the job ("fail"), or are left
    out and counted ("skip").
    """

    path: str
    columns: Mapping[str, str] | None = None
    label: str | None = None
    filter: str | None = None
    group_by: Names = ()
    keys: Names = ()
    on_error: Literal["fail", "skip"] | None = None

    def content(self) -> dict[str, Any]:
        """What jobs are asked with, for JSON, without what was not given."""
        content = {
            "path": self.path,
            "columns": None if self.columns is None else dict(self.columns),
            "label": self.label,
            "filter": self.filter,
            "keys": _listed(self.keys) or None,
            "on_error": self.on_error,
        }
        dataset = {name: value for name, value in content.items() if value is not None}
        groups = _listed(self.group_by)
        return {"dataset": dataset, "group_by": groups} if groups else {"dataset": dataset}


def _listed(names: Names) -> list[str]:
    return [names] if isinstance(names, str) else list(names)
