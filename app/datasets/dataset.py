"""From what a caller asks for to partitions: files, their columns, and parts of bounded size.

    resolved = resolve(Roots.of(settings.data_roots), Asked("scores/2026-01/*.parquet"), classes)
    for partition in resolved.partitions:        # picklable; on any worker that sees the roots
        for piece in partition.pieces():         # n × C posteriors, groups, labels
            counts = counts.plus(piece)

Every footer is read and checked before work starts, so that a column that is missing somewhere is
known at once. ``folder=value`` in a path gives a column to filter and group by, a whole number
where all of them are, and stands before a column of that name in the files.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal

from app.core import deadline
from app.core.errors import Fault, Faults, InvalidInput
from app.core.names import Spellings
from app.datasets import columns, filters
from app.datasets.arrow import ArrowType, pyarrow
from app.datasets.listing import Listing
from app.datasets.partition import SUFFIXES, Counts, FilePartition, Wanted
from app.datasets.plan import Looked, Plan, folder_values, short
from app.datasets.roots import Roots

MOST_GROUP_COLUMNS = 4
AHEAD = 8
"""Footers that are read at a time."""


@dataclass(frozen=True)
class Asked:
    """A data set in a caller's words. ``columns``: by class, the class's own name if not there.

    ``label``: a column of class names. ``keys``: columns that pass through beside the rows.
    ``on_error``: whether a row or file that is wrong ends the work, or is left out and counted.
    """

    path: str
    columns: Mapping[str, str] | None = None
    label: str | None = None
    group_by: tuple[str, ...] = ()
    filter: str | None = None
    keys: tuple[str, ...] = ()
    on_error: Literal["fail", "skip"] = "fail"


@dataclass(frozen=True)
class Resolved:
    """Partitions in order, and what was left out already.

    ``rows``: before the filter, None where a format does not tell. ``single``: whether all
    posteriors are float32. ``digest``: of the files, their sizes and what is read of them.
    """

    partitions: tuple[FilePartition, ...]
    rows: int | None
    single: bool
    skipped: Counts
    digest: str


def resolve(roots: Roots, asked: Asked, classes: Sequence[str], at: str = "/dataset") -> Resolved:
    """The partitions of a data set; ``InvalidInput`` below the pointer ``at``."""
    pyarrow()
    wanted = _wanted(asked, classes, at)
    root, path = roots.find(asked.path, f"{at}/path")
    files = Listing(root.folders, tuple(SUFFIXES), f"{at}/path").files(path)
    folders = folder_values(files)
    plans = [Plan(root, file, wanted, folders[file]) for file in files]
    plans = [plan for plan in plans if plan.possible()]
    if not plans:
        raise InvalidInput.at(f"{at}/filter", "passes no file: no folder's name suits it")
    return _resolved(_all_looked(plans), wanted)


def _all_looked(plans: Sequence[Plan]) -> list[Looked]:
    with ThreadPoolExecutor(AHEAD) as pool:
        futures = [pool.submit(plan.looked) for plan in plans]
        try:
            return [_waited(future) for future in futures]
        finally:
            # When time is up nobody waits for the rest.
            pool.shutdown(wait=False, cancel_futures=True)


def _wanted(asked: Asked, classes: Sequence[str], at: str) -> Wanted:
    faults = Faults()
    known, mapping = Spellings(classes), dict[str, str]()
    for name, column in (asked.columns or {}).items():
        k = known.find(name)
        if k is None:
            faults.add(f"{at}/columns", f"{name[:80]!r} is no class of the model")
        elif classes[k] in mapping:
            faults.add(f"{at}/columns", f"names {name[:80]!r} twice, in two normal forms")
        else:
            mapping[classes[k]] = column
    posteriors = tuple(mapping.get(name, name) for name in classes)
    once = [*posteriors, *([] if asked.label is None else [asked.label])]
    for place, names in (("columns", once), ("group_by", asked.group_by), ("keys", asked.keys)):
        for name in {name for name in names if list(names).count(name) > 1}:
            faults.add(f"{at}/{place}", f"names column {name[:80]!r} twice")
    if len(asked.group_by) > MOST_GROUP_COLUMNS:
        faults.add(f"{at}/group_by", f"names more than {MOST_GROUP_COLUMNS} columns")
    faults.raise_if_any()
    condition = None if asked.filter is None else filters.parse(asked.filter, f"{at}/filter")
    return Wanted(
        tuple(classes),
        posteriors,
        asked.label,
        asked.group_by,
        condition,
        asked.keys,
        asked.on_error,
        at,
    )


def _waited(future: Future[Looked]) -> Looked:
    deadline.check()
    return future.result()


def _resolved(looked: Sequence[Looked], wanted: Wanted) -> Resolved:
    looked = _same_keys(looked, wanted)
    wrong = [file for file in looked if file.problem is not None]
    if wrong and (wanted.on_error == "fail" or len(wrong) == len(looked)):
        raise _told(wrong, wanted.at)
    skipped = Counts()
    for file in wrong:
        message = f"{file.file.path}: {file.problem}"
        lost = Counts(skipped_rows=file.rows or 0, skipped_files=1, messages=(message,))
        skipped = skipped.and_(lost)
    good = [file for file in looked if file.problem is None]
    partitions = tuple(part for file in good for part in file.partitions)
    counts = [file.rows for file in good if file.rows is not None]
    kinds = {kind for part in partitions for n, kind in part.types if n in wanted.posteriors}
    return Resolved(
        partitions,
        sum(counts) if len(counts) == len(good) else None,
        columns.single(tuple(kinds)),
        skipped,
        _digest(partitions, wanted),
    )


def _told(wrong: Sequence[Looked], at: str) -> InvalidInput:
    """What is wrong with files, each thing once: the first file, and how many more have it."""
    kinds: dict[tuple[str, str], list[Looked]] = {}
    for file in wrong:
        kinds.setdefault((file.place, str(file.problem)), []).append(file)
    faults = []
    for (place, problem), files in list(kinds.items())[: Faults.SHOWN]:
        more = f"; and {len(files) - 1:,} more files like it" if len(files) > 1 else ""
        faults.append(Fault(f"{at}{place}", f"{files[0].file.path}: {problem}{more}"))
    return InvalidInput(faults, len(kinds))


def _same_keys(looked: Sequence[Looked], wanted: Wanted) -> list[Looked]:
    """Keys are of one type in all files, since they are written to one table."""
    first: dict[str, ArrowType] = {}
    found = []
    for file in looked:
        types = dict(file.partitions[0].types) if file.partitions else {}
        other = [
            name
            for name in wanted.keys
            if name in types and first.setdefault(name, types[name]) != types[name]
        ]
        if other:
            kinds = f"{short(types[other[0]])}, elsewhere of type {short(first[other[0]])}"
            problem = f"column {other[0][:80]!r} is of type {kinds}"
            file = Looked(file.file, rows=file.rows, problem=problem)
        found.append(file)
    return found


def _digest(partitions: Sequence[FilePartition], wanted: Wanted) -> str:
    found = hashlib.sha256(json.dumps([str(wanted)]).encode())
    for part in partitions:
        place = [part.root.where, part.file.path, part.file.size, part.chunks, part.rows]
        found.update(json.dumps(place).encode())
    return found.hexdigest()
