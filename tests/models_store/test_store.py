import threading
import time
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest

from app.core.prevalence.estimators.confusion import ConfusionMatrix
from app.core.prevalence.source import Source, SourceModel, ValidationSet, derive
from models_store import arrays, sources
from models_store.engine import connect
from models_store.errors import AlreadyAnswered, IdempotencyConflict, StillInUse, Unavailable
from models_store.records import RecordedAnswer, VersionRecord
from models_store.store import Store
from models_store.versions import VersionCache

NOW = datetime(2026, 1, 31, 12, 0, 0, 123456, tzinfo=UTC)
CLASSES = ("a", "b")


def validated(seed: int = 0, rows: int = 60) -> Source:
    rng = np.random.default_rng(seed)
    labels = np.arange(rows) % 2
    positive = np.clip(0.5 + 0.2 * (labels - 0.5) + rng.normal(0, 0.2, rows), 0.01, 0.99)
    both = np.column_stack([1 - positive, positive])
    return Source(CLASSES, validation=ValidationSet(labels, both))


def prepared(source: Source) -> sources.Prepared:
    return sources.Prepared.of(source, derive(source))


def same(one: SourceModel, other: SourceModel) -> bool:
    return sources.to_json(one) == sources.to_json(other)


class TestVersions:
    def test_what_is_stored_comes_back_bit_for_bit(self, store: Store) -> None:
        source = validated()
        derived = derive(source)
        with store.write() as unit:
            unit.models.create("m", "classifier", CLASSES, "", NOW)
            unit.versions.register(
                "m", sources.Prepared.of(source, derived), {"commit": "abc"}, NOW
            )
        with Store(store.engine).read() as unit:
            record = unit.versions.get("m", "latest")
            kept = unit.versions.validation(record)
        assert same(record.source, derived)
        assert record.source.confusion is not None
        assert derived.confusion is not None
        np.testing.assert_array_equal(record.source.confusion.counts, derived.confusion.counts)
        assert record.metadata == {"commit": "abc"}
        assert record.created_at == NOW
        assert kept is not None
        assert source.validation is not None
        np.testing.assert_array_equal(kept.labels, source.validation.labels)
        np.testing.assert_array_equal(kept.posteriors, source.validation.posteriors)

    def test_a_failed_transaction_leaves_nothing(self, store: Store) -> None:
        source = validated()
        with pytest.raises(RuntimeError), store.write() as unit:
            unit.models.create("m", "classifier", CLASSES, "", NOW)
            unit.versions.register("m", prepared(source), {}, NOW)
            raise RuntimeError
        with store.read() as unit:
            assert unit.models.list(None, 10).items == ()

    def test_a_version_is_loaded_once(self, store: Store) -> None:
        source = validated()
        with store.write() as unit:
            unit.models.create("m", "classifier", CLASSES, "", NOW)
            unit.versions.register("m", prepared(source), {}, NOW)
        with store.read() as unit:
            assert unit.versions.get("m", "1") is unit.versions.get("m", "latest")


class TestDigest:
    def test_depends_on_everything_that_was_registered(self) -> None:
        given = [
            validated(),
            validated(seed=1),
            Source(CLASSES, validation=validated().validation, calibration="none"),
            Source(("b", "a"), validation=validated().validation),
            Source(CLASSES, priors=np.array([0.5, 0.5])),
            Source(CLASSES, class_counts=np.array([0.5, 0.5])),
            Source(CLASSES, confusion=ConfusionMatrix(np.eye(2)), outputs=CLASSES),
            Source(CLASSES, confusion=ConfusionMatrix(np.eye(2)), outputs=("x", "y")),
        ]
        assert len({sources.digest(source) for source in given}) == len(given)
        assert sources.digest(validated()) == sources.digest(validated())

    def test_does_not_depend_on_the_memory_layout(self) -> None:
        source = validated()
        assert source.validation is not None
        other = ValidationSet(
            source.validation.labels.astype(np.int32).astype(np.intp),
            np.asfortranarray(source.validation.posteriors),
        )
        assert sources.digest(Source(CLASSES, validation=other)) == sources.digest(source)


class TestCache:
    def record(self, id: int, classes: int = 2) -> VersionRecord:
        source = Source(tuple(map(str, range(classes))), priors=np.full(classes, 1 / classes))
        return VersionRecord(id, 1, "m", id, "", derive(source), {}, NOW)

    def test_the_least_recently_used_goes_first(self) -> None:
        cache = VersionCache(10**9, max_items=2)
        for id in (1, 2):
            cache.put(self.record(id))
        assert cache.get(1) is not None
        cache.put(self.record(3))
        assert cache.get(2) is None
        assert cache.get(1) is not None

    def test_is_bounded_in_bytes(self) -> None:
        cache = VersionCache(20_000)
        for id in range(100):
            cache.put(self.record(id))
        assert 1 < sum(cache.get(id) is not None for id in range(100)) < 6
        cache.put(self.record(1000, classes=1000))
        assert cache.get(1000) is None


class TestIdempotency:
    ANSWER = RecordedAnswer(201, {"location": "/x"}, b"{}")

    def model(self, store: Store) -> int:
        with store.write() as unit:
            return unit.models.create("m", "classifier", CLASSES, "", NOW).id

    def test_lives_a_day(self, store: Store) -> None:
        model = self.model(store)
        with store.write() as unit:
            unit.idempotency.add("o", "r", "k", "h", model, self.ANSWER, NOW)
        later = NOW + timedelta(hours=23, minutes=59)
        with store.read() as unit:
            assert unit.idempotency.find("o", "r", "k", "h", later) == self.ANSWER
            assert unit.idempotency.find("o", "other", "k", "h", later) is None
            assert unit.idempotency.find("other", "r", "k", "h", later) is None
            with pytest.raises(IdempotencyConflict):
                unit.idempotency.find("o", "r", "k", "another", later)
            assert unit.idempotency.find("o", "r", "k", "h", NOW + timedelta(hours=24)) is None
        with store.write() as unit:
            day = NOW + timedelta(hours=24)
            unit.idempotency.add("o", "r", "k", "new", model, self.ANSWER, day)

    def test_the_second_writer_rolls_back(self, store: Store) -> None:
        model = self.model(store)
        with store.write() as unit:
            unit.idempotency.add("o", "r", "k", "h", model, self.ANSWER, NOW)
        with pytest.raises(AlreadyAnswered), store.write() as unit:
            unit.models.create("other", "classifier", CLASSES, "", NOW)
            unit.idempotency.add("o", "r", "k", "h", model, self.ANSWER, NOW)
        with store.read() as unit:
            assert [m.name for m in unit.models.list(None, 10).items] == ["m"]

    def test_goes_with_its_model(self, store: Store) -> None:
        model = self.model(store)
        with store.write() as unit:
            unit.idempotency.add("o", "r", "k", "h", model, self.ANSWER, NOW)
        with store.write() as unit:
            unit.models.delete("m", force=False)
        with store.read() as unit:
            assert unit.idempotency.find("o", "r", "k", "h", NOW) is None


class TestDelete:
    def test_waits_for_an_estimate_that_is_being_written(self, store: Store) -> None:
        source = validated()
        with store.write() as unit:
            unit.models.create("m", "classifier", CLASSES, "", NOW)
            record, _ = unit.versions.register("m", prepared(source), {}, NOW)
        outcome: list[object] = []

        def delete() -> None:
            try:
                with store.write() as unit:
                    unit.models.delete("m", force=False)
                outcome.append("deleted")
            except StillInUse:
                outcome.append("refused")

        thread = threading.Thread(target=delete)
        with store.write() as unit:
            unit.estimates.add(record.id, NOW, NOW, {}, {"id": "0" * 32})
            thread.start()
            time.sleep(0.3)
        thread.join()
        assert outcome == ["refused"]
        with store.read() as unit:
            assert unit.estimates.get("0" * 32)


class TestTimes:
    def test_are_utc_whatever_came(self, store: Store) -> None:
        abroad = NOW.astimezone(timezone(timedelta(hours=5)))
        with store.write() as unit:
            assert unit.models.create("m", "classifier", CLASSES, "", abroad).created_at == NOW

    def test_naive_ones_are_a_mistake(self, store: Store) -> None:
        with pytest.raises(Exception, match="naive"), store.write() as unit:
            unit.models.create("m", "classifier", CLASSES, "", NOW.replace(tzinfo=None))


class TestEngine:
    def test_sqlite_is_durable_and_sound(self, tmp_path: str) -> None:
        engine = connect(f"sqlite:///{tmp_path}/x.db")
        with engine.connect() as connection:
            for pragma, value in (("journal_mode", "wal"), ("synchronous", 2), ("foreign_keys", 1)):
                found = connection.exec_driver_sql(f"PRAGMA {pragma}").scalar_one()
                assert found == value
        engine.dispose()

    @pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "mysql://host/x"])
    def test_databases_that_cannot_serve(self, url: str) -> None:
        with pytest.raises(ValueError, match="PRIORSHIFT_DATABASE_URL"):
            connect(url)

    def test_a_locked_database_is_unavailable(self, tmp_path: str) -> None:
        url = f"sqlite:///{tmp_path}/x.db"
        first, second = Store(connect(url)), Store(connect(url, busy_timeout=0.05))
        with first.write(), pytest.raises(Unavailable), second.write():
            pass
        first.close()
        second.close()


@pytest.mark.parametrize(
    "array",
    [np.arange(6.0).reshape(2, 3), np.array([1, 2], np.int32), np.zeros((0, 3)), np.ones((3, 2)).T],
)
def test_arrays_round_trip(array: "np.ndarray[tuple[int, ...], np.dtype[np.float64]]") -> None:
    back = arrays.decode(arrays.encode(array))
    np.testing.assert_array_equal(back, array)
    assert back.dtype == array.dtype
