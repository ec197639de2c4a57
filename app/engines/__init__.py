"""Estimates over data sets that need not fit into memory, on this machine or on a cluster.

Whoever has partitions (``partitions.Partition``: rows that can be read again and again) asks

    with engine(settings.dask_scheduler, settings.data_memory_bytes) as where:
        outcome = estimate_partitions(
            model, partitions, request, where,
            source_rows=rows,            # of the version, as for a batch
            state=kept, keep=store,      # the last finished round; called after each
            observer=Observer(progress, cancelled),
        )
    outcome.estimates[("BE",)]           # by the names of the pieces' groups; () without groups
    outcome.read.skipped                 # rows, renormalised, skipped, messages of one reading

and gets the estimates that a batch in memory would have had. Groups come with the pieces. A request
without ``shift`` needs one round for cc, pcc, acc, acc-qp, pacc-qp and rffm (of versions that match
posteriors); the shift test and mle take a few more. ``state`` is JSON; it is not gone on with if
partitions of other names, or other priors, are asked. Errors: ``engine``, and those of an estimate.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from app.engines.engine import (
    Cancelled,
    Engine,
    EngineError,
    EngineLost,
    EngineMissing,
    Observer,
    Progress,
    TooManyGroups,
)
from app.engines.estimation import DataChanged, DatasetEstimates, estimate_partitions
from app.engines.local import MEMORY, LocalEngine
from app.engines.partitions import Partition, Piece
from app.engines.tallies import Read

__all__ = [
    "MEMORY",
    "Cancelled",
    "DataChanged",
    "DatasetEstimates",
    "Engine",
    "EngineError",
    "EngineLost",
    "EngineMissing",
    "LocalEngine",
    "Observer",
    "Partition",
    "Piece",
    "Progress",
    "Read",
    "TooManyGroups",
    "engine",
    "estimate_partitions",
]


@contextmanager
def engine(scheduler: str | None = None, memory: int = MEMORY) -> Iterator[Engine]:
    """The Dask cluster of ``scheduler``, or this machine with ``memory`` bytes for rows.

    ``EngineMissing`` where Dask is not installed, ``EngineLost`` where no scheduler answers.
    """
    if scheduler is None:
        yield LocalEngine(memory)
        return
    try:
        from app.engines.cluster import Cluster
    except ImportError:
        raise EngineMissing from None
    with Cluster(scheduler) as cluster:
        yield cluster
