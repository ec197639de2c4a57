"""Estimates over partitions: rounds of sums until every group has its answer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from app.core.errors import InvalidInput
from app.core.prevalence.source import SourceModel
from app.engines.checkpoint import Checkpoint, digest
from app.engines.engine import MOST_GROUPS, Engine, EngineError, Observer
from app.engines.partition_work import Task, work
from app.engines.partitions import Partition
from app.engines.remote_evidence import Answers, SummedEvidence, SumMissing
from app.engines.statistics import Pass, WorkerModel, survey
from app.engines.tallies import SAMPLED, Group, Json, Read, Tally
from app.estimation import Estimate, Method, Request, SourceRows, SummedBatch, estimate_from
from app.estimation.methods import choose

AVERAGES: frozenset[Method] = frozenset({"pcc", "pacc-qp"})
LIKELIHOOD: frozenset[Method] = frozenset({"mle"})


class DataChanged(EngineError):
    """The rows of this round are not those of the rounds before."""


@dataclass(frozen=True)
class DatasetEstimates:
    """An estimate per group of a data set.

    ``estimates``: by the values of the columns that group; by () where nothing groups.
    ``rounds``: how often the rows were gone through.
    ``read``: what the first round met.
    """

    estimates: dict[Group, Estimate]
    rounds: int
    read: Read


def estimate_partitions(
    model: SourceModel,
    partitions: Sequence[Partition],
    request: Request,
    engine: Engine,
    *,
    source_rows: SourceRows | None = None,
    state: Json | None = None,
    keep: Callable[[Json], None] = lambda _: None,
    observer: Observer | None = None,
    most_groups: int = MOST_GROUPS,
) -> DatasetEstimates:
    """Estimate the shares of the population of each group of the rows of ``partitions``.

    ``source_rows``: of the version, for the answers that need them. ``state``: what ``keep`` was
    given after the last finished round, of this or of another process. ``MethodUnavailable``
    for methods that go through the rows too often; ``TooManyGroups``, ``Cancelled``,
    ``EngineLost`` of the engine; ``DataChanged``; ``InvalidInput`` for no rows.
    """
    observer = observer or Observer()
    method, _ = choose(model, _batch(model, 0, 0), request.method)
    source = _source(model, method)
    checkpoint = Checkpoint.resume(state, digest(partitions, source))
    rounds = _Rounds(engine, partitions, source, most_groups, observer, checkpoint, keep)
    if checkpoint.rounds == 0:
        rounds.survey(method in LIKELIHOOD or request.shift is not None)
    if checkpoint.read.rows == 0:
        raise InvalidInput.at("/dataset", "holds no rows that could be estimated from")
    open_ = {
        group: _evidence(model, source, answers, checkpoint, source_rows)
        for group, answers in checkpoint.groups.items()
    }
    done: dict[Group, Estimate] = {}
    while open_:
        passes: dict[Group, Pass] = {}
        for group, evidence in open_.items():
            observer.check()
            try:
                done[group] = estimate_from(evidence, request)
            except SumMissing as interruption:
                passes[group] = interruption.missing
        open_ = {group: evidence for group, evidence in open_.items() if group in passes}
        if passes:
            rounds.another(passes)
    return DatasetEstimates(
        {group: done[group] for group in checkpoint.groups}, checkpoint.rounds, checkpoint.read
    )


def _source(model: SourceModel, method: Method) -> WorkerModel:
    embedding = model.matching.embedding if method == "rffm" and model.matching else None
    averages = method in AVERAGES
    return WorkerModel(model.priors, model.calibration, model.bins, embedding, averages)


def _batch(model: SourceModel, rows: int, renormalised: int) -> SummedBatch:
    return SummedBatch(np.empty((0, len(model.classes))), renormalised, rows=rows)


def _evidence(
    model: SourceModel,
    source: WorkerModel,
    answers: Answers,
    state: Checkpoint,
    source_rows: SourceRows | None,
) -> SummedEvidence:
    """Of a group. Which group a rescaled row is in, nobody counts: it is said of the whole."""
    rows = int(answers.survey.added["rows"][0])
    renormalised = state.read.renormalised if len(state.groups) == 1 else 0
    batch = _batch(model, rows, renormalised)
    return SummedEvidence(model, batch, source_rows, answers=answers, worker_model=source)


@dataclass(frozen=True)
class _Rounds:
    """Goes through the rows, and keeps what that tells."""

    engine: Engine
    partitions: Sequence[Partition]
    source: WorkerModel
    most_groups: int
    observer: Observer
    state: Checkpoint
    keep: Callable[[Json], None]

    def survey(self, likelihood: bool) -> None:
        """The first time; whether the likelihood is going to be asked for."""
        if not self.partitions:
            return
        sampled = -(-SAMPLED // (len(self.source.priors) * len(self.partitions)))
        survey_pass = survey(self.source, likelihood)
        tally = self._sum(Task(self.source, survey_pass, self.most_groups, sampled))
        self.state.add_survey(tally, survey_pass)
        self.keep(self.state.to_json())

    def another(self, passes: dict[Group, Pass]) -> None:
        """Once more, for what each group wants; ``DataChanged`` if the rows are others."""
        tidy = all(answers.tidy for answers in self.state.groups.values())
        tally = self._sum(Task(replace(self.source, tidy=tidy), passes, self.most_groups))
        if tally.rows != self.state.read.rows or tally.answers.keys() != passes.keys():
            raise DataChanged(
                f"round {self.state.rounds + 1} read {tally.rows} rows, those before "
                f"{self.state.read.rows}: the data set was written to meanwhile; start again"
            )
        self.state.add(tally, passes)
        self.keep(self.state.to_json())

    def _sum(self, task: Task) -> Tally:
        observer = replace(self.observer, round=self.state.rounds + 1)
        return self.engine.sum(work, self.partitions, task, observer)
