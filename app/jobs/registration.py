"""A version from the labelled rows of a data set."""

from app.clock import now
from app.core.prevalence.source import Source
from app.datasets.labelled import labelled
from app.intake import parse
from app.jobs.context import Context, Result, counted
from app.stored.jobs import StoredJobResult
from models_store import sources
from models_store.sources import Prepared
from models_store.store import UnitOfWork


def run(context: Context) -> Result:
    """The version, or the one of the same content that exists."""
    asked, name = context.asked, context.job.model
    validation, counts = labelled(context.resolved(), context.settings.max_rows)
    context.keeping.check()
    source = Source(
        classes=context.classes, validation=validation, calibration=asked.calibration or "bcts"
    )
    digest = sources.digest(source)
    with context.store.read() as unit:
        known = unit.versions.has(name, digest)
    prepared = Prepared.known(digest)
    if not known:
        prepared = Prepared.of(source, parse.derived(source, "/dataset"))

    def write(unit: UnitOfWork) -> StoredJobResult:
        record, _ = unit.versions.register(name, prepared, asked.metadata, now())
        return counted(counts).model_copy(update={"version": record.number})

    return Result(write)
