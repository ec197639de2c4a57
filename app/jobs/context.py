"""What every kind of job is given, and gives."""

from collections.abc import Callable
from dataclasses import dataclass

from app.core.lazy import cached_property
from app.core.warnings import Warning, WarningCode
from app.datasets.dataset import Resolved, resolve
from app.datasets.partition import Counts
from app.datasets.roots import Roots
from app.engines.tallies import Json
from app.jobs.lease import Keeping
from app.schemas import presenters
from app.schemas.jobs import JobIn
from app.serving.null_distributions import NullDistributions
from app.settings import Settings
from app.stored.jobs import StoredJobRequest, StoredJobResult
from models_store.jobs import JobRecord
from models_store.records import VersionRecord
from models_store.store import Store, UnitOfWork


@dataclass(frozen=True)
class Result:
    """What is written in the transaction that ends the job; it gives the job's result."""

    write: Callable[[UnitOfWork], StoredJobResult]


@dataclass(frozen=True)
class Context:
    """A job that runs."""

    store: Store
    settings: Settings
    nulls: NullDistributions
    job: JobRecord
    keeping: Keeping

    @cached_property
    def kept(self) -> StoredJobRequest:
        """What was asked, and what was decided then."""
        return StoredJobRequest.read(self.job.asked)

    @cached_property
    def asked(self) -> JobIn:
        """The request, which was checked when it came."""
        return JobIn.model_validate(self.kept.request)

    @cached_property
    def version(self) -> VersionRecord:
        """The version that was meant when the job was asked for."""
        return self.store.version(self.job.model, str(self.kept.version))

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """Of the model."""
        with self.store.read() as unit:
            return unit.models.get(self.job.model).classes

    def resolved(self) -> Resolved:
        """The data set as it is now, below the roots that were open to whoever asked."""
        asked = self.asked.dataset.asked(self.asked.group_by)
        roots = Roots.of(self.settings.data_roots).only(self.kept.roots)
        return resolve(roots, asked, self.classes)

    def resumed(self) -> Json:
        """What a run before this one has left; empty for the first."""
        with self.store.read() as unit:
            return unit.jobs.resumed(self.job.id) or {}


def counted(counts: Counts) -> StoredJobResult:
    """Rows that were read and left out, in a job's result."""
    notes = []
    if counts.renormalised:
        message = f"{counts.renormalised} rows did not sum to 1 within 1e-6 and were rescaled"
        notes.append(Warning(WarningCode.RENORMALISED, message))
    if counts.skipped_rows or counts.skipped_files:
        files = f" and {counts.skipped_files} files" if counts.skipped_files else ""
        first = f", first {'; '.join(counts.messages[:3])}" if counts.messages else ""
        message = f"{counts.skipped_rows} rows{files} were left out{first}"
        notes.append(Warning(WarningCode.SKIPPED_ROWS, message[:1000]))
    return StoredJobResult(
        rows=counts.rows,
        skipped_rows=counts.skipped_rows,
        skipped_files=counts.skipped_files,
        warnings=presenters.stored_warnings(notes),
    )
