"""Models that are no classifiers: what each kind takes and answers; the rest is common to all."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from app.core.arrays import AnyArray
from app.core.warnings import Warning
from app.http.body import Payload
from app.training.process import Trainer
from models_store.adaptations import AdaptationRecord, Arrays, SourceRecord
from models_store.sources import Prepared

Load = Callable[[], Arrays]
"""Reads the arrays of a source, which may be as large as its training data."""


@dataclass(frozen=True)
class Adapted:
    """What was made of a sample: ``content`` and ``arrays`` are kept, ``included`` is only told."""

    content: dict[str, object]
    arrays: Mapping[str, AnyArray]
    warnings: tuple[Warning, ...] = ()
    included: dict[str, object] = field(default_factory=dict)


class Kind(Protocol):
    """One kind of model."""

    @property
    def classes(self) -> bool:
        """Whether its models have classes."""

    def prepare(
        self, source: object, classes: tuple[str, ...], at: str, trainer: Trainer
    ) -> tuple[Prepared, dict[str, object]]:
        """A source ready to be written, and its metadata; ``at``: where it stands in the body."""

    def version(self, record: SourceRecord) -> dict[str, object]:
        """What a version's page shows besides what every page does."""

    def adapt(self, record: SourceRecord, load: Load, payload: Payload) -> Adapted:
        """The source model adapted to the sample in a body."""

    def predict(
        self, record: AdaptationRecord, kept: Arrays, load: Load, payload: Payload
    ) -> dict[str, object]:
        """What an adaptation says of further rows; ``kept``: its arrays, ``load``: the source's."""
