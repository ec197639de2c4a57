import json

import numpy as np
import pytest
from scipy.special import logsumexp

from app.core.arrays import Floats
from app.core.prevalence.likelihood.likelihood import Likelihood
from app.core.prevalence.source import Source, SourceModel, derive
from app.core.prevalence.watching.eprocess import EProcess, EProcessState
from app.core.prevalence.watching.null_bound import null_bound
from app.core.prevalence.watching.source_set import SourceSet
from tests.core.prevalence.watching.examples import draw, registered

TWO, THREE = np.array([0.95, 0.05]), np.array([0.7, 0.2, 0.1])


def likelihood_of(model: SourceModel, rows: Floats) -> Likelihood:
    return Likelihood.of(rows, model.priors, calibration=model.calibration)


def simulated(
    rng: np.random.Generator, process: EProcess, model: SourceModel, shares: Floats, batches: int
) -> EProcessState:
    state = process.start()
    for _ in range(batches):
        _, rows = draw(rng, 100, shares, 2.0, THREE if len(shares) == 3 else TWO)
        state = process.update(state, likelihood_of(model, rows))
    return state


class TestNulls:
    @pytest.mark.parametrize("source", [TWO, THREE])
    @pytest.mark.parametrize("n", [100, 3000])
    def test_is_above_the_likelihood_everywhere_on_the_set_and_not_by_much(
        self, source: Floats, n: int
    ) -> None:
        rng = np.random.default_rng(1)
        model, _, _ = registered(rng, n, source, 2.0)
        sources = SourceSet.of(model)
        bound = null_bound(sources)
        for shares in (source, rng.dirichlet(np.ones(len(source)))):
            _, rows = draw(rng, 1000, shares, 2.0, source)
            likelihood = likelihood_of(model, rows)
            g = model.calibration.apply(rows) / model.priors
            largest = bound.largest(bound.sums(g @ sources.basis, np.ones(1000)))
            inside = rng.dirichlet(n / 2 * model.priors + 1e-3, 3000)
            inside = inside[[sources.distance(p) <= sources.limit for p in inside]]
            found = max(1000 * likelihood.gain(p) for p in inside)
            assert found <= largest + 1e-9
            if n == 3000:
                assert largest - found < 0.15 * abs(largest) + 0.3


class TestEProcess:
    def test_two_classes_by_hand(self) -> None:
        """Against the definition: products of mixtures, over the largest likelihood on a grid."""
        rng = np.random.default_rng(2)
        model, _, _ = registered(rng, 2000, TWO, 2.0)
        process = EProcess(SourceSet.of(model))
        low, high = process.sources.interval
        state, past = process.start(), list[Floats]()
        numerator = np.zeros(0)
        for t in range(6):
            _, rows = draw(rng, 100, np.array([0.88, 0.12]), 2.0, TWO)
            past.append(rows)
            bets = process._alternatives(state)
            likelihood = likelihood_of(model, rows)
            gains = np.array([100 * likelihood.gain(p) for p in bets])
            if t == 0:
                numerator = np.full(len(bets), 1 / len(bets))
            else:
                share = 1 / (t + 1)
                numerator = (1 - share) * numerator + share * numerator.sum() / len(bets)
            numerator = numerator * np.exp(gains)
            state = process.update(state, likelihood)
            whole = likelihood_of(model, np.concatenate(past))
            largest = max(
                whole.size * whole.gain(np.array([1 - q, q])) for q in np.linspace(low, high, 501)
            )
            assert state.log_e == pytest.approx(np.log(numerator.sum()) - largest, abs=2e-3)
        assert logsumexp(state.log_weights) == pytest.approx(np.log(numerator.sum()))

    @pytest.mark.parametrize("source", [TWO, THREE])
    def test_finds_a_shift_and_not_without(self, source: Floats) -> None:
        rng = np.random.default_rng(3)
        model, _, _ = registered(rng, 5000, source, 2.0)
        process = EProcess(SourceSet.of(model, source_level=0.02))
        still = simulated(rng, process, model, source, 150)
        assert process.p_value(still) > 0.05
        moved = 0.5 * source + 0.5 / len(source)
        assert process.p_value(simulated(rng, process, model, moved, 20)) < 0.03

    def test_finds_a_shift_that_comes_late(self) -> None:
        rng = np.random.default_rng(4)
        model, _, _ = registered(rng, 5000, TWO, 2.0)
        process = EProcess(SourceSet.of(model))
        state = simulated(rng, process, model, TWO, 300)
        waited = 0
        while not process.detected(state, 0.01) and waited < 100:
            waited += 1
            _, rows = draw(rng, 100, np.array([0.9, 0.1]), 2.0, TWO)
            state = process.update(state, likelihood_of(model, rows))
        assert 3 < waited < 40

    def test_the_state_goes_through_json(self) -> None:
        rng = np.random.default_rng(5)
        model, _, _ = registered(rng, 500, THREE, 2.0)
        process = EProcess(SourceSet.of(model))
        state = simulated(rng, process, model, THREE, 3)
        again = EProcessState.from_json(json.loads(json.dumps(state.as_json())))
        _, rows = draw(rng, 100, THREE, 2.0, THREE)
        likelihood = likelihood_of(model, rows)
        assert process.update(again, likelihood).log_e == process.update(state, likelihood).log_e

    def test_priors_without_rows_are_a_point(self) -> None:
        model = derive(Source(("a", "b"), priors=TWO))
        process = EProcess(SourceSet.of(model))
        state = simulated(np.random.default_rng(6), process, model, np.array([0.8, 0.2]), 10)
        assert process.p_value(state) == pytest.approx(np.exp(-state.highest))
        assert state.highest > 7

    def test_an_empty_batch_changes_nothing(self) -> None:
        model, _, _ = registered(np.random.default_rng(7), 500, TWO, 2.0)
        process = EProcess(SourceSet.of(model))
        empty = Likelihood.of_outputs(np.eye(2), model.priors, np.zeros(2))
        state = process.start()
        assert process.update(state, empty) is state
