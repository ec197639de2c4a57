"""Estimates of a data set, one for each of its groups."""

from typing import Any
from uuid import uuid4

from app.clock import now
from app.datasets.partition import Counts
from app.engines import DatasetEstimates, engine, estimate_partitions
from app.engines.tallies import Group, Json
from app.intake import groups, options
from app.jobs.context import Context, Result, counted
from app.schemas import presenters
from app.stored.jobs import StoredGroupEstimate, StoredJobResult
from models_store.store import UnitOfWork


def run(context: Context) -> Result:
    """The estimates, written as ordinary ones when the job ends."""
    resolved = context.resolved()
    outcome = estimated(context, resolved.partitions, context.resumed())
    read = outcome.read
    counts = resolved.skipped.and_(
        Counts(read.rows, read.renormalised, read.skipped, read.skipped_files, read.messages)
    )
    results = list(outcome.estimates.values())
    adjusted = groups.adjusted(results)

    def write(unit: UnitOfWork) -> StoredJobResult:
        items = [
            _kept(unit, context, group, outcome, p)
            for group, p in zip(outcome.estimates, adjusted, strict=True)
        ]
        more = {"rounds": outcome.rounds, "estimates": items}
        return counted(counts).model_copy(update=more)

    return Result(write)


def estimated(context: Context, partitions: Any, state: Json) -> DatasetEstimates:
    """An estimate of each group, going on from ``state``."""
    asked, settings, version = context.asked, context.settings, context.version
    request = options.asked(asked, version.source)
    with engine(settings.dask_scheduler, settings.data_memory_bytes) as where:
        return estimate_partitions(
            version.source,
            partitions,
            request,
            where,
            source_rows=context.nulls.of(version),
            state=state or None,
            keep=context.keeping.checkpoint,
            observer=context.keeping.observer,
        )


def _kept(
    unit: UnitOfWork,
    context: Context,
    group: Group,
    outcome: DatasetEstimates,
    holm_p_value: float | None,
) -> StoredGroupEstimate:
    asked, version, result = context.asked, context.version, outcome.estimates[group]
    names = dict(zip(asked.group_by, group, strict=False))
    segment, id, at = {**asked.segment, **names}, uuid4().hex, now()
    shown = presenters.estimate(version, result, id, asked.observed_at, segment, at)
    kept = presenters.stored_estimate(shown)
    unit.estimates.add(version.id, kept.moment, at, segment, kept.written())
    return StoredGroupEstimate(
        group=names, estimate=id, size=result.size, holm_p_value=holm_p_value
    )
