"""Closing windows: each becomes an estimate in the history, once, in order within its stream."""

from dataclasses import replace
from datetime import datetime
from uuid import uuid4

from app.clock import micros, moment, now
from app.core.errors import InvalidInput, MethodUnavailable
from app.core.prevalence.tests.shift import Reference
from app.estimation import Evidence, IntervalOptions, ShiftOptions, estimate_from
from app.estimation import Request as Asked
from app.logs import log
from app.metrics import Metrics
from app.monitoring import alerting, levels
from app.monitoring.alerting import Answered, Found
from app.monitoring.specification import AlertSpec, ByDuration, Spec
from app.monitoring.window_rows import WindowRows
from app.monitoring.window_tests import Past, SourceSets, takes_outputs, tested
from app.operations.tasks import Lane, Lease
from app.schemas import presenters
from app.serving.null_distributions import NullDistributions
from app.stored.monitors import StoredMonitor
from app.stored.streams import StoredStream
from models_store.errors import NotFound, OtherKind
from models_store.records import TaskRecord
from models_store.series import packed
from models_store.store import Store, UnitOfWork
from models_store.windows import Closing, StreamRecord

KIND = "close-windows"
"""Of tasks; their key is the stream."""
LONGEST_NOTE = 500
MOST_ATTEMPTS = 5
UNEXPECTED = "an unexpected error, which was logged"
LEASE_SECONDS = 20.0
"""For one window; what a killed process was closing is closed by another after that."""


def ask(unit: UnitOfWork, stream_id: int, due: datetime) -> None:
    """Have the windows of a locked stream closed that are sealed, or due by ``due``."""
    if not unit.tasks.add(KIND, str(stream_id), {"stream": stream_id}, due):
        unit.tasks.hasten(KIND, str(stream_id), due)


class Closer:
    """Closes the windows of one stream after another."""

    def __init__(self, store: Store, nulls: NullDistributions, metrics: Metrics) -> None:
        self._store = store
        self._nulls = nulls
        self._metrics = metrics
        self._sources = SourceSets()

    def lane(self) -> Lane:
        """Threads of their own, so that nothing else waits for a window or holds one up."""
        return Lane("windows", {KIND: self.run}, lease_seconds=LEASE_SECONDS)

    def run(self, task: TaskRecord, lease: Lease) -> None:
        """Close what can be closed of a stream, and come again when its next window is due."""
        while not lease.stopping:
            found = self._next(task, lease)
            if found is None:
                return
            self._close(task, lease, found)

    def _next(self, task: TaskRecord, lease: Lease) -> Found | None:
        """The next window, sealed; None, the task being settled, where there is none.

        The stream is locked before the task is touched, in the order of whoever adds rows.
        """
        with self._store.write() as unit:
            try:
                stream = unit.windows.lock(task.payload["stream"])
            except NotFound:
                unit.tasks.done(task)
                lease.settled = True
                return None
            window = unit.windows.next_to_close(stream.id, micros(now()))
            if window is None:
                due = unit.windows.next_due(stream.id)
                unit.tasks.done(task)
                if due is not None:
                    ask(unit, stream.id, moment(due))
                lease.settled = True
                return None
            if window.state == "open":
                unit.windows.seal(stream.id, window.end)
            return Found(
                unit.monitors.by_id(stream.monitor_id),
                stream,
                window,
                unit.windows.spans(stream.id, levels.PACED_BY),
                unit.windows.count(stream.monitor_id),
            )

    def _close(self, task: TaskRecord, lease: Lease, found: Found) -> None:
        spec, window = Spec.of(StoredMonitor.read(found.monitor.content)), found.window
        if isinstance(spec.window, ByDuration) and window.size < spec.window.minimum_rows:
            note = f"{window.size} rows, fewer than {spec.window.minimum_rows}: no estimate"
            self._write(task, lease, found, spec, note)
            return
        try:
            answered = self._answer(found, spec)
        except (InvalidInput, MethodUnavailable, NotFound, OtherKind) as error:
            self._write(task, lease, found, spec, str(error)[:LONGEST_NOTE], failed=True)
            return
        except Exception as error:
            # The windows behind it must not wait for ever.
            if task.attempts < MOST_ATTEMPTS:
                raise
            log.error("window failed", window=window.id, exc_info=error)
            self._write(task, lease, found, spec, UNEXPECTED, failed=True)
            return
        self._write(task, lease, found, spec, answered)

    def _answer(self, found: Found, spec: Spec) -> Answered:
        record = self._store.version(found.monitor.model, spec.version)
        with self._store.read() as unit:
            # Nobody changes the rows of a sealed window; the stream need not be held for them.
            pieces = unit.windows.rows(found.window.id)
        evidence = Evidence(record.source, WindowRows.of(pieces).batch(), self._nulls.of(record))
        outputs = takes_outputs(evidence)
        known = record.source.output_validation_size if outputs else record.source.validation_size
        # Resampled references are for single batches: no number of resamples reaches such levels.
        reference: Reference = "chi-square" if known is None else "scaled-chi-square"
        level = None if spec.alert is None else _level(found, spec, spec.alert)
        shift = ShiftOptions(reference=reference)
        if level is not None:
            shift = replace(shift, significance=level)
        asked = Asked(spec.method, shift=shift, interval=IntervalOptions(spec.interval_level))
        with self._metrics.estimating(record.model, record.number) as method:
            result = estimate_from(evidence, asked)
            method.append(result.method)
        if spec.alert is None or level is None or not evidence.has_likelihood:
            return Answered(record, result, None)
        sources = self._sources.of(record.id, record.source, outputs)
        memory = StoredStream.read(found.stream.state).evidence
        past = Past(memory, record.id, found.window.start)
        return Answered(record, result, tested(evidence, sources, spec.alert, level, past))

    def _write(
        self,
        task: TaskRecord,
        lease: Lease,
        found: Found,
        spec: Spec,
        said: Answered | str,
        failed: bool = False,
    ) -> None:
        """Close the window with what it said, all of it or nothing."""
        with self._store.write() as unit:
            try:
                stream = unit.windows.lock(found.stream.id)
            except NotFound:
                return
            unit.tasks.renew(task, now(), lease.seconds)
            if isinstance(said, str):
                closing = _silent(found, said, failed)
            else:
                closing = self._kept(unit, found, spec, stream, said)
            unit.windows.close(found.window.id, closing)
            if not (spec.keep_rows or failed):
                unit.windows.drop_rows(found.window.id)

    def _kept(
        self, unit: UnitOfWork, found: Found, spec: Spec, stream: StreamRecord, said: Answered
    ) -> Closing:
        """The estimate in the history, and what comes of it."""
        at, window, test = now(), found.window, said.test
        id = uuid4().hex
        segment = {} if spec.segment_by is None else {spec.segment_by: stream.segment}
        start = moment(window.start)
        shown = presenters.estimate(said.record, said.result, id, start, segment, at)
        shown.monitor = found.monitor.name
        kept = presenters.stored_estimate(shown).written()
        unit.estimates.add(said.record.id, start, at, segment, kept)
        if spec.alert is not None:
            alerting.decide(unit, found, spec.alert, stream, said, id)
        tested = None if test is None else (test.p_value, test.level, test.detected)
        told = packed(
            window.start,
            window.end,
            window.size,
            said.record.number,
            tested,
            alerting.shares(said.result),
        )
        return Closing("closed", told, id)


def _level(found: Found, spec: Spec, alert: AlertSpec) -> float | None:
    """The level of this window, itself among those that tell the pace."""
    spans = [(found.window.start, found.window.end), *found.spans]
    return levels.of(alert, spec.window, found.segments, spans).value


def _silent(found: Found, note: str, failed: bool) -> Closing:
    """A window without an estimate."""
    window, classes = found.window, len(found.monitor.classes)
    told = packed(window.start, window.end, window.size, classes=classes)
    return Closing("failed" if failed else "closed", told, note=note)
