"""Adjusted posteriors as Parquet files, one for each partition of what was read.

    output = Output.of(settings.output_root, "adjusted/2026-01", job, digest, resolved)
    output.prepare()
    written = [output.write(k, p, adjust) for k, p in enumerate(resolved.partitions)]  # anywhere
    output.finish(written)                          # _SUCCESS, with the rows of each

A file is named by the number of its partition and says in its footer which job wrote it, of what,
and what was left out; so a job that is run again skips what is there, and what it does write is the
same, byte for byte. Its columns: the keys that were asked for, then a posterior for each class.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass

from app.core.arrays import AnyFloats
from app.core.errors import InvalidInput
from app.core.json_types import JsonObject
from app.datasets import paths, writing
from app.datasets.arrow import ArrowFile, ArrowSchema, ArrowTable, ArrowType, pyarrow
from app.datasets.dataset import Resolved
from app.datasets.folders import Segments
from app.datasets.partition import Counts, FilePartition, Taken
from app.datasets.paths import Path
from app.datasets.places import DONE, PART, occupied, read_again
from app.datasets.reading import Unreadable, readable, source
from app.datasets.roots import Root

ROW_GROUP = 262_144
KEY = b"priorshift"
Adjust = Callable[[AnyFloats], AnyFloats]
"""n × C raw posteriors to n × C adjusted ones."""


@dataclass(frozen=True)
class WrittenFile:
    """A file: the number of its partition, and what went into it. ``fresh``: written just now."""

    number: int
    counts: Counts
    fresh: bool

    @property
    def name(self) -> str:
        """Of the file."""
        return _name(self.number)


@dataclass(frozen=True)
class Output:
    """A folder below the output root that one job writes.

    ``job``: its id. ``digest``: of everything that decides what is written. ``single``: posteriors
    are float32, as all of those that are read.
    """

    root: Root
    place: Segments
    job: str
    digest: str
    single: bool
    at: str = "/output"

    @classmethod
    def of(
        cls,
        root: str | None,
        path: str,
        job: str,
        digest: str,
        resolved: Resolved,
        at: str = "/output",
    ) -> "Output":
        """The folder in a caller's words; ``InvalidInput`` at the pointer ``at``."""
        if root is None:
            raise InvalidInput.at(at, "nothing is written here; see PRIORSHIFT_OUTPUT_ROOT")
        parsed = paths.parse(path, at)
        if parsed.root is not None or not parsed.plain:
            raise InvalidInput.at(at, "names one folder below the output root, no pattern, no root")
        if any(name.startswith((".", "_")) for name in parsed.segments):
            raise InvalidInput.at(at, "holds a name that starts with . or _, which readers skip")
        for part in resolved.partitions[:1]:
            for name in part.wanted.keys:
                if name in part.wanted.classes:
                    raise InvalidInput.at(at, f"has two columns {name[:80]!r}: a key and a class")
        return cls(Root.of(root), parsed.segments, job, digest, resolved.single, at)

    def require_apart(self, data: Root, path: Path) -> None:
        """``InvalidInput`` if others' files are there, above or below, or ``path`` finds these."""
        if read_again(self.root, self.place, data, path):
            message = "lies in the data set that is read; name a folder that its path does not find"
            raise InvalidInput.at(self.at, message)
        self._require_free(fresh=True)

    def prepare(self) -> None:
        """Make the folder; ``InvalidInput`` if it holds anything but this job's files."""
        self._require_free(fresh=False)
        try:
            writing.make(self.root, self.place)
            entry = self.root.folders.entry(self.place)
            entries = [] if entry is None else list(self.root.folders.entries(self.place))
        except OSError:
            raise InvalidInput.at(self.at, "cannot be written to") from None
        for found in sorted(entries, key=lambda entry: entry.name):
            name = found.name
            if name.startswith("."):
                continue
            if name != DONE and not PART.fullmatch(name):
                raise InvalidInput.at(self.at, f"holds other files, {name[:80]!a}; name a new one")
            if name != DONE:
                self.written(int(name[5:-8]))

    def _require_free(self, fresh: bool) -> None:
        try:
            reason = occupied(self.root, self.place, fresh)
        except OSError:
            reason = "cannot be read; it must be a folder below the output root"
        if reason is not None:
            raise InvalidInput.at(self.at, reason)

    def written(self, number: int) -> WrittenFile | None:
        """The file of a partition if this job has finished it; ``InvalidInput`` if another has."""
        place = (*self.place, _name(number))
        if self.root.folders.entry(place) is None:
            return None
        try:
            said = _said(self.root, place)
        except Unreadable:
            if self.root.remote:
                # A part of an upload that failed.
                return None
            said = {}
        if [said.get(key) for key in ("job", "digest", "partition")] != self._identity(number):
            raise InvalidInput.at(self.at, f"holds another job's {_name(number)}; name a new one")
        counts = said["counts"]
        return WrittenFile(
            number, Counts(**{**counts, "messages": tuple(counts["messages"])}), False
        )

    def write(self, number: int, partition: FilePartition, adjust: Adjust) -> WrittenFile:
        """The file of a partition, unless it is finished."""
        found = self.written(number)
        if found is not None:
            return found
        counts = Counts()

        def fill(sink: ArrowFile) -> None:
            nonlocal counts
            counts = self._fill(sink, number, partition, adjust)

        writing.put(self.root, (*self.place, _name(number)), fill)
        return WrittenFile(number, counts, True)

    def finish(self, written: Sequence[WrittenFile]) -> None:
        """Say that all is there, and how many rows each file has."""
        ordered = sorted(written, key=lambda one: one.number)
        content = {
            "job": self.job,
            "digest": self.digest,
            "rows": sum(one.counts.rows for one in ordered),
            "skipped_rows": sum(one.counts.skipped_rows for one in ordered),
            "files": [{"name": one.name, "rows": one.counts.rows} for one in ordered],
        }
        writing.sweep(self.root, self.place)
        text = json.dumps(content, indent=1).encode()
        writing.put(self.root, (*self.place, DONE), lambda sink: sink.write(text))

    def _fill(
        self, sink: ArrowFile, number: int, partition: FilePartition, adjust: Adjust
    ) -> Counts:
        import pyarrow.parquet as pq

        schema = self._schema(partition)
        counts = Counts()
        with pq.ParquetWriter(sink, schema, compression="zstd", use_dictionary=False) as writer:
            for tables in _grouped(partition.taken()):
                batches = []
                for taken in tables:
                    counts = counts.plus(taken.piece)
                    if len(taken.piece.posteriors):
                        batches.append(_columns(taken, adjust, schema))
                if batches:
                    table = pyarrow().Table.from_batches(batches, schema)
                    writer.write_table(table, row_group_size=ROW_GROUP)
            job, digest, part = self._identity(number)
            said = {"job": job, "digest": digest, "partition": part, "counts": asdict(counts)}
            writer.add_key_value_metadata({KEY: json.dumps(said).encode()})
        return counts

    def _schema(self, partition: FilePartition) -> ArrowSchema:
        pa = pyarrow()
        types = dict(partition.types) | {value.name: value.type for value in partition.folders}
        number = pa.float32() if self.single else pa.float64()
        fields = [(name, _plain(types[name])) for name in partition.wanted.keys]
        return pa.schema([*fields, *((name, number) for name in partition.wanted.classes)])

    def _identity(self, number: int) -> list[object]:
        return [self.job, self.digest, number]


def _name(number: int) -> str:
    return f"part-{number:05d}.parquet"


def _plain(kind: ArrowType) -> ArrowType:
    """A type of which files need no dictionary."""
    return kind.value_type if pyarrow().types.is_dictionary(kind) else kind


def _grouped(taken: Iterator[Taken]) -> Iterator[list[Taken]]:
    """Pieces that make a row group together, about."""
    found: list[Taken] = []
    rows = 0
    for one in taken:
        found.append(one)
        rows += len(one.piece.posteriors)
        if rows >= ROW_GROUP:
            yield found
            found, rows = [], 0
    yield found


def _columns(taken: Taken, adjust: Adjust, schema: ArrowSchema) -> ArrowTable:
    pa = pyarrow()
    adjusted = adjust(taken.piece.posteriors)
    count = len(schema.names) - adjusted.shape[1]
    arrays = [taken.keys.column(k).cast(kind) for k, kind in enumerate(schema.types[:count])]
    kind = schema.types[-1].to_pandas_dtype()
    arrays += [pa.array(column.astype(kind)) for column in adjusted.T]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _said(root: Root, place: Segments) -> JsonObject:
    """What the footer of a file says of the job that wrote it; empty for somebody else's."""
    import pyarrow.parquet as pq

    with readable(), root.folders.open(place) as file:
        found = pq.read_metadata(source(file)).metadata or {}
        said = json.loads(found.get(KEY, b"{}"))
        return said if isinstance(said, dict) else {}
