"""The tests of a window: by itself, and of all that came before it in its stream."""

from dataclasses import dataclass, replace
from math import exp

from app.clock import MICROSECONDS
from app.core.prevalence.source import SourceModel
from app.core.prevalence.watching import budget
from app.core.prevalence.watching.eprocess import EProcess, EProcessState
from app.core.prevalence.watching.source_set import SourceSet
from app.core.prevalence.watching.window import window_test
from app.core.warnings import Warning
from app.estimation import Evidence, OutputBatch
from app.monitoring.specification import AlertSpec
from app.stored.streams import StoredEvidence

KEPT = 32


@dataclass(frozen=True)
class Tested:
    """What a window's test said: ``p_value`` against ``level``, and the size of the effect.

    ``alone``: the p-value of this window by itself, which tells whether a stream has recovered.
    ``memory``: what the stream remembers of it.
    """

    p_value: float
    level: float
    detected: bool
    effect_size: float
    alone: float
    memory: StoredEvidence | None


class SourceSets:
    """The sets of possible source priors of the versions that were last used."""

    def __init__(self) -> None:
        self._kept: dict[tuple[int, bool], SourceSet] = {}

    def of(self, version_id: int, model: SourceModel, outputs: bool) -> SourceSet:
        """Of a version, for posteriors or for predicted outputs."""
        key = version_id, outputs
        found = self._kept.pop(key, None) or SourceSet.of(model, outputs)
        self._kept[key] = found
        if len(self._kept) > KEPT:
            del self._kept[next(iter(self._kept))]
        return found


def tested(
    evidence: Evidence,
    sources: SourceSet,
    alert: AlertSpec,
    level: float,
    before: "Past",
) -> Tested:
    """Test a window that has a likelihood; ``before``: what came earlier in its stream."""
    one = window_test(evidence.likelihood, evidence.maximum, sources, level, alert.minimum_effect)
    plain = Tested(one.p_value, level, one.detected, one.effect_size, one.p_value, None)
    if alert.test != "always-valid":
        return plain
    process = EProcess(sources)
    state = process.update(before.state(process, alert), evidence.likelihood)
    p_value = min(1.0, exp(-state.highest))
    detected = p_value <= level and one.effect_size >= alert.minimum_effect
    since = before.since(alert)
    # An alert has used this evidence up; the next one needs evidence of its own.
    kept = process.start() if detected else state
    memory = StoredEvidence(version=before.version_id, since=since, state=kept.as_json())
    return replace(plain, p_value=p_value, detected=detected, memory=memory)


@dataclass(frozen=True)
class Past:
    """What a stream remembers, as a window that starts at ``start`` under a version finds it."""

    memory: StoredEvidence | None
    version_id: int
    start: int

    def fresh(self, alert: AlertSpec) -> bool:
        """Whether evidence begins anew: with another version, and with every period."""
        return self._valid(alert) is None

    def since(self, alert: AlertSpec) -> int:
        """When the evidence began."""
        found = self._valid(alert)
        return self.start if found is None else found.since

    def state(self, process: EProcess, alert: AlertSpec) -> EProcessState:
        """The evidence so far."""
        found = self._valid(alert)
        return process.start() if found is None else EProcessState.from_json(found.state)

    def _valid(self, alert: AlertSpec) -> StoredEvidence | None:
        if self.memory is None or self.memory.version != self.version_id:
            return None
        over = self.start >= self.memory.since + alert.seconds * MICROSECONDS
        return None if over else self.memory


def advice(
    model: SourceModel, outputs: bool, rows: int | None, level: float
) -> tuple[Warning, ...]:
    """What stands in the way of alarming at this level; ``rows`` of a window, where known."""
    known = model.output_validation_size if outputs else model.validation_size
    if rows is None:
        return budget.advice(known, 0, level)
    priors = model.output_priors if outputs else model.priors
    return budget.advice(known, rows, level, priors)


def takes_outputs(evidence: Evidence) -> bool:
    """Whether the rows are predicted outputs."""
    return isinstance(evidence.batch, OutputBatch)
