"""What the operator lets callers read: ``PRIORSHIFT_DATA_ROOTS``, folders and object storage.

Each root is an absolute path or a URL (s3, gs, abfs, hdfs, memory), ``name=`` before it where
there are several. A caller says ``scores/2026-01/*.parquet`` of the only root, or of the root
``lake``: ``lake:scores/2026-01/*.parquet``. With several roots a name is needed: what is found
must not depend on which root happens to hold a file of that name today.

    roots = Roots.of(settings.data_roots)
    root, path = roots.find("lake:scores/*.parquet", "/dataset/path")
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from app.core.errors import InvalidInput
from app.datasets import paths
from app.datasets.folders import Folders
from app.datasets.local import LocalFolders
from app.datasets.paths import Path
from app.datasets.remote import RemoteFolders

SCHEMES = ("s3", "gs", "abfs", "hdfs", "memory")
NAMED = re.compile(r"([a-z0-9][a-z0-9._-]{0,62})=(.+)", re.DOTALL)
URL = re.compile(r"([a-z][a-z0-9]*)://([^\s]*)")


@dataclass(frozen=True)
class Root:
    """``where``: an absolute path, or a URL. ``name``: empty for an only root without one."""

    name: str
    where: str

    @property
    def folders(self) -> Folders:
        """What is below it."""
        return RemoteFolders(self.where) if self.remote else LocalFolders(self.where)

    @property
    def remote(self) -> bool:
        """Whether it is object storage."""
        return "://" in self.where

    @classmethod
    def of(cls, text: str) -> "Root":
        """A root from the operator's words; ``ValueError`` for what is none."""
        named = NAMED.fullmatch(text)
        name, where = (named[1], named[2]) if named is not None else ("", text)
        if where.startswith("/") and "\x00" not in where:
            return cls(name, where)
        url = URL.fullmatch(where)
        if url is None:
            raise ValueError("must be an absolute path or a URL, name= before it if need be")
        if url[1] not in SCHEMES:
            raise ValueError(f"must be an absolute path or a URL of {', '.join(SCHEMES)}")
        if "@" in url[2].partition("/")[0] and url[1] != "abfs":
            raise ValueError("must hold no credentials; they come from the environment")
        return cls(name, where)


@dataclass(frozen=True)
class Roots:
    """All roots, in the operator's order; none of one name."""

    roots: tuple[Root, ...]

    @classmethod
    def of(cls, given: Sequence[str]) -> "Roots":
        """The roots of a setting; ``ValueError`` for what are none."""
        roots = tuple(map(Root.of, given))
        names = [root.name for root in roots]
        if len(set(names)) < len(names) or (len(names) > 1 and "" in names):
            raise ValueError('several roots need a name each: ["lake=s3://bank/lake", "day=/day"]')
        return cls(roots)

    def only(self, names: Collection[str] | None) -> "Roots":
        """Those of these names, None for all."""
        if names is None:
            return self
        return Roots(tuple(root for root in self.roots if root.name in names))

    def find(self, text: str, at: str) -> tuple[Root, Path]:
        """The root that a caller's path starts from, and the path."""
        if not self.roots:
            raise InvalidInput.at(at, "no data sets are open here; see PRIORSHIFT_DATA_ROOTS")
        path = paths.parse(text, at)
        for root in self.roots:
            if path.root == root.name or (path.root is None and len(self.roots) == 1):
                return root, path
        known = ", ".join(root.name for root in self.roots if root.name)
        if path.root is None:
            raise InvalidInput.at(at, f"needs a root before it, root:path; there are {known}")
        message = f"starts with {path.root[:60]}:, which is no root here" + (
            f"; there are {known}" if known else "; leave it out"
        )
        raise InvalidInput.at(at, message)
