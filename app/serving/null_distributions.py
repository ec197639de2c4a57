"""Null distributions of the resampled shift test, kept: they depend on version and size only."""

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from app.core.arrays import Floats
from app.core.prevalence.matching.version import Exact
from app.core.prevalence.source import ValidationSet
from app.core.prevalence.tests import two_sample
from app.estimation import SourceRows
from models_store.records import VersionRecord
from models_store.store import Store

KEPT = 1000
Key = tuple[int, float, int]
"""Version, batch size, seed."""


class NullDistributions:
    """Computed once per version, batch size and seed; the least recently used goes first."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: OrderedDict[Key, Floats] = OrderedDict()
        self._turns: dict[Key, tuple[threading.Lock, int]] = {}
        self._lock = threading.Lock()

    def of(self, record: VersionRecord) -> SourceRows:
        """The validation rows of a version, and the null statistics drawn from them."""
        return _Rows(self, record)

    def validation(self, record: VersionRecord) -> ValidationSet | None:
        """The rows, from the store."""
        if record.source.validation_size is None:
            return None
        with self._store.read() as unit:
            return unit.versions.validation(record)

    def exact(self, record: VersionRecord) -> Exact | None:
        """The rows of features for the exact kernels, from the store."""
        with self._store.read() as unit:
            return unit.versions.exact(record)

    def statistics(self, record: VersionRecord, size: float, seed: int) -> Floats | None:
        """The null statistics, drawn once for batches of about this size."""
        n = record.source.validation_size
        if n is None or n * len(record.source.classes) > two_sample.MOST_NUMBERS:
            return None
        near = two_sample.round_size(size)
        key = (record.id, near, seed)
        with self._turn(key):
            drawn = self._find(key)
            if drawn is None:
                drawn = self._draw(record, near, seed)
                self._keep(key, drawn)
        return two_sample.rescale(drawn, near, size, n)

    def _find(self, key: Key) -> Floats | None:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def _keep(self, key: Key, drawn: Floats) -> None:
        with self._lock:
            self._kept[key] = drawn
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)

    @contextmanager
    def _turn(self, key: Key) -> Iterator[None]:
        """Equal requests draw one after another, so that all but the first find it drawn."""
        with self._lock:
            turn, waiting = self._turns.get(key, (threading.Lock(), 0))
            self._turns[key] = (turn, waiting + 1)
        try:
            with turn:
                yield
        finally:
            with self._lock:
                turn, waiting = self._turns.pop(key)
                if waiting > 1:
                    self._turns[key] = (turn, waiting - 1)

    def _draw(self, record: VersionRecord, size: float, seed: int) -> Floats:
        rows = self.validation(record)
        assert rows is not None
        calibration = record.source.calibration
        return two_sample.null_statistics(size, rows.posteriors, rows.labels, calibration, seed)


@dataclass(frozen=True)
class _Rows:
    nulls: NullDistributions
    record: VersionRecord

    def validation(self) -> ValidationSet | None:
        return self.nulls.validation(self.record)

    def exact(self) -> Exact | None:
        return self.nulls.exact(self.record)

    def null_statistics(self, size: float, seed: int) -> Floats | None:
        return self.nulls.statistics(self.record, size, seed)
