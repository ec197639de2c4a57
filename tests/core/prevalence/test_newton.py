import numpy as np
import pytest

from app.core.arrays import Floats
from app.core.prevalence.estimators.newton import Climb
from app.core.prevalence.likelihood.likelihood import Likelihood

SOURCE = np.full(8, 1 / 8)
ROWS = np.random.default_rng(41).dirichlet(np.linspace(0.5, 1.5, 8), 40_000)


def rough(p: Floats) -> Floats:
    """The Hessian of every fiftieth row."""
    return Likelihood.of(ROWS[::50], SOURCE).hessian(p)[0]


class TestAFrugalClimb:
    def test_makes_more_of_a_hessian_of_few_rows(self) -> None:
        likelihood = Likelihood.of(ROWS, SOURCE)
        start = Climb(likelihood).to_the_top(SOURCE, 1e-2, 30)[0].p
        frugal = Climb(likelihood, rough(start), frugal=True)
        strict = Climb(likelihood, rough(start))
        for climb in (frugal, strict):
            assert climb.to_the_top(start, 1e-9, 30)[0].gap <= 1e-9
        assert frugal.passes.hessian == strict.passes.hessian
        assert frugal.passes.gradient < strict.passes.gradient

    def test_learns_what_the_multipliers_did(self) -> None:
        climb = Climb(Likelihood.of(ROWS, SOURCE), rough(SOURCE), frugal=True)
        here = climb.evaluate(SOURCE)
        there = climb.evaluate(SOURCE * here.m / (SOURCE @ here.m))
        climb._learn(here, there)
        assert climb.model is not None
        found = climb.model @ (there.p - here.p)
        assert found == pytest.approx(here.m - there.m, rel=1e-9, abs=1e-12)
        assert np.linalg.eigvalsh(climb.model).min() > 0
