"""What a worker does with a partition: split it into groups and chunks, and pass over them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from app.core.arrays import AnyFloats, Codes, take_rows
from app.core.prevalence.likelihood.blocks import BLOCK
from app.engines.engine import TooManyGroups
from app.engines.partitions import Partition, Piece
from app.engines.statistics import Pass, RowChunk, SurveyPass, WorkerModel
from app.engines.subsample import BinCounter, Sample
from app.engines.tallies import Group, Read, Sums, Tally

CHUNK = BLOCK
"""Numbers of a chunk: its arrays are small enough for malloc to hand out the same ones again."""
SHORT = 1 << 16
GATHERED = 1 << 21
"""Numbers of grouped pieces that are put together before they are taken apart by group."""


@dataclass(frozen=True, eq=False)
class Task:
    """``passes``: the pass of each group, or the survey of whatever group there is.

    ``sampled``: rows that a partition gives to the driver's sample, with the survey; one of each
    group at least.
    """

    source: WorkerModel
    passes: dict[Group, Pass] | SurveyPass
    most_groups: int
    sampled: int = 0


@dataclass
class _Work:
    """The sums of a partition in the making; of a survey, with a few of the rows."""

    task: Task
    answers: dict[Group, Sums] = field(default_factory=dict)
    some: dict[Group, tuple[Sample, BinCounter]] = field(default_factory=dict)

    def add(self, group: Group, rows: AnyFloats) -> None:
        """Some rows of a group."""
        passes = self.task.passes
        question = passes if isinstance(passes, SurveyPass) else passes.get(group)
        if question is None:
            return
        if isinstance(passes, SurveyPass):
            self._keep_some(group, rows)
        length = max(CHUNK // rows.shape[1], 1)
        for first in range(0, len(rows), length):
            chunk = RowChunk(rows[first : first + length], self.task.source)
            sums, before = question.over(chunk), self.answers.get(group)
            self.answers[group] = sums if before is None else before.merge(sums)

    def _keep_some(self, group: Group, rows: AnyFloats) -> None:
        if group not in self.some:
            if len(self.some) >= self.task.most_groups:
                raise TooManyGroups(self.task.most_groups)
            self.some[group] = Sample(self.task.sampled), BinCounter(self.task.source.bins)
        for few in self.some[group]:
            few.add(rows)

    def finish(self) -> dict[Group, Sums]:
        """All answers; those of the survey with the sample."""
        if not isinstance(self.task.passes, SurveyPass):
            return self.answers
        sampled = sum(sample.size for sample, _ in self.some.values())
        step = -(-sampled // self.task.sampled)
        return {
            group: Sums(self.answers[group].added | looked.counted(), sample.joined(step))
            for group, (sample, looked) in self.some.items()
        }


def work(task: Task, partition: Partition) -> Tally:
    """The answers of a partition to all that is asked of it."""
    doing = _Work(task)
    read = Read()
    for pieces in _gather(partition.pieces()):
        for piece in pieces:
            read = read.and_(_of(piece))
        for group, some in _by_group(pieces):
            doing.add(group, some)
    return Tally(doing.finish(), task.most_groups, read)


def _of(piece: Piece) -> Read:
    size = piece.posteriors.nbytes + (0 if piece.groups is None else piece.groups.nbytes)
    return Read(
        len(piece.posteriors),
        size,
        piece.renormalised,
        piece.skipped,
        piece.skipped_files,
        piece.messages,
    )


def _gather(pieces: Iterable[Piece]) -> Iterator[list[Piece]]:
    """Grouped pieces several at a time, others one by one."""
    bundle: list[Piece] = []
    numbers = 0
    for piece in pieces:
        bundle.append(piece)
        numbers += piece.posteriors.size
        if piece.groups is None or numbers >= GATHERED:
            yield bundle
            bundle, numbers = [], 0
    if bundle:
        yield bundle


def _by_group(pieces: list[Piece]) -> Iterator[tuple[Group, AnyFloats]]:
    """The rows of each group, put together from pieces."""
    first = pieces[0]
    if first.groups is None:
        if len(first.posteriors):
            yield (), first.posteriors
        return
    names: dict[Group, int] = {}
    codes: list[Codes] = []
    for piece in pieces:
        assert piece.groups is not None
        own = np.array([names.setdefault(name, len(names)) for name in piece.names], np.intp)
        codes.append(own[piece.groups] if len(own) else piece.groups)
    every = np.concatenate(codes)
    # Of two bytes codes are sorted in a fraction of the time that others take.
    short = every.astype(np.uint16) if len(names) < SHORT else every
    order = np.argsort(short, kind="stable")
    rows = take_rows(np.concatenate([piece.posteriors for piece in pieces]), order)
    ends = np.cumsum(np.bincount(every, minlength=len(names)))
    begin = 0
    for name, end in zip(names, ends, strict=True):
        if end > begin:
            yield name, rows[begin:end]
        begin = end
