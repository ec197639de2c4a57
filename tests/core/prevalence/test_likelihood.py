import tracemalloc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from app.core.arrays import AnyFloats, Floats
from app.core.prevalence.calibration import Scaling
from app.core.prevalence.likelihood.likelihood import Likelihood

RNG = np.random.default_rng(5)
SOURCE = np.array([0.5, 0.3, 0.15, 0.05])
P = np.array([0.1, 0.2, 0.3, 0.4])
ROWS = RNG.dirichlet(np.ones(4), 50_000)
WEIGHTS = RNG.integers(0, 4, len(ROWS)).astype(np.float64)


def by_the_book(rows: Floats, weights: Floats, p: Floats) -> tuple[Floats, Floats, float]:
    """Multipliers, Hessian and gain with the whole ratio matrix in hand."""
    ratios = rows / SOURCE
    density = np.einsum("ik,k->i", ratios, p) / rows.sum(axis=1)
    tilted = ratios / rows.sum(axis=1)[:, None] / density[:, None]
    m = np.average(tilted, axis=0, weights=weights)
    hessian = np.einsum("i,ik,il->kl", weights, tilted, tilted) / weights.sum()
    return m, hessian, float(np.average(np.log(density), weights=weights))


class TestPasses:
    @pytest.mark.parametrize("count", [7, 20_000, 50_000])
    @pytest.mark.parametrize("weighted", [False, True])
    def test_against_the_ratio_matrix(self, count: int, weighted: bool) -> None:
        rows = ROWS[:count]
        weights = WEIGHTS[:count] if weighted else np.ones(count)
        likelihood = Likelihood.of(rows, SOURCE, weights if weighted else None)
        m, hessian, gain = by_the_book(rows, weights, P)
        assert likelihood.size == weights.sum()
        np.testing.assert_allclose(likelihood.multipliers(P), m, rtol=1e-12)
        found, with_hessian = likelihood.hessian(P)
        np.testing.assert_allclose(found, hessian, rtol=1e-11)
        np.testing.assert_allclose(with_hessian, m, rtol=1e-12)
        assert likelihood.gain(P) == pytest.approx(gain, rel=1e-11)
        steps = likelihood.gains_along(SOURCE, P, [1.0, 0.5])
        _, _, halfway = by_the_book(rows, weights, (SOURCE + P) / 2)
        np.testing.assert_allclose(steps, [gain, halfway], rtol=1e-10)

    def test_row_scale_does_not_matter(self) -> None:
        scaled = ROWS * RNG.uniform(0.5, 2.0, (len(ROWS), 1))
        plain, rescaled = Likelihood.of(ROWS, SOURCE), Likelihood.of(scaled, SOURCE)
        np.testing.assert_allclose(rescaled.multipliers(P), plain.multipliers(P), rtol=1e-12)
        assert rescaled.gain(P) == pytest.approx(plain.gain(P), rel=1e-11)

    def test_a_row_without_density_is_minus_infinity(self) -> None:
        likelihood = Likelihood.of(np.array([[1.0, 0.0], [0.5, 0.5]]), np.array([0.5, 0.5]))
        corner = np.array([0.0, 1.0])
        assert likelihood.gain(corner) == -np.inf
        assert likelihood.multipliers(corner)[0] == np.inf
        assert likelihood.gains_along(np.array([0.5, 0.5]), corner, [1.0])[0] == -np.inf


class TestWhatIsLeftOut:
    def test_rows_of_excluded_classes_and_of_no_weight(self) -> None:
        rows = np.array([[0.6, 0.4, 0.0], [0.0, 0.0, 1.0], [0.3, 0.3, 0.4], [0.1, 0.9, 0.0]])
        weights = np.array([2.0, 3.0, 1.0, 0.0])
        likelihood = Likelihood.of(rows, np.array([0.5, 0.5, 0.0]), weights)
        assert likelihood.size == 3
        assert likelihood.unsupported == 3
        alone = Likelihood.of(np.array([[0.6, 0.4], [0.6, 0.4], [0.5, 0.5]]), np.full(2, 0.5))
        p = np.array([0.2, 0.8])
        np.testing.assert_allclose(
            likelihood.multipliers(np.append(p, 0.0)), np.append(alone.multipliers(p), 0.0)
        )
        hessian, _ = likelihood.hessian(np.append(p, 0.0))
        np.testing.assert_allclose(hessian[:2, :2], alone.hessian(p)[0])
        assert not hessian[2].any()
        assert likelihood.gain(np.append(p, 0.0)) == pytest.approx(alone.gain(p))

    def test_rows_of_almost_no_mass(self) -> None:
        rows = np.array([[1e-310, 3e-310, 1.0], [0.5, 0.5, 0.0]])
        likelihood = Likelihood.of(rows, np.array([0.5, 0.5, 0.0]))
        assert likelihood.size == 2
        assert np.isfinite(likelihood.multipliers(np.array([1.0, 0.0, 0.0]))).all()


class Chunks:
    """An iterable that can be read again, and counts how often it was."""

    def __init__(self, parts: list[Floats]) -> None:
        self.parts, self.reads = parts, 0

    def __iter__(self) -> Iterator[Floats]:
        self.reads += 1
        return iter(self.parts)


class TestWhatComesIn:
    @pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
    @pytest.mark.parametrize("order", ["C", "F"])
    def test_types_and_orders(self, kind: type[np.floating[Any]], order: str) -> None:
        rows: AnyFloats = ROWS.astype(kind)
        given = Likelihood.of(np.asfortranarray(rows) if order == "F" else rows, SOURCE)
        cast = Likelihood.of(rows.astype(np.float64), SOURCE)
        np.testing.assert_allclose(given.multipliers(P), cast.multipliers(P), rtol=1e-12)
        np.testing.assert_allclose(given.hessian(P)[0], cast.hessian(P)[0], rtol=1e-12)

    @pytest.mark.parametrize("split_weights", [False, True])
    def test_chunks_are_the_array(self, split_weights: bool) -> None:
        cuts = [1, 10, 30_000]
        chunks = Chunks(np.split(ROWS, cuts))
        heavy = WEIGHTS + 1.0
        weights = np.split(heavy, cuts) if split_weights else heavy
        parts, whole = Likelihood.of(chunks, SOURCE, weights), Likelihood.of(ROWS, SOURCE, heavy)
        assert parts.size == whole.size
        np.testing.assert_allclose(parts.multipliers(P), whole.multipliers(P), rtol=1e-12)
        np.testing.assert_allclose(parts.hessian(P)[0], whole.hessian(P)[0], rtol=1e-12)
        assert parts.gain(P) == pytest.approx(whole.gain(P), rel=1e-12)
        assert chunks.reads == 4

    def test_rows_of_chunks_are_left_out_too(self) -> None:
        parts = Likelihood.of(np.split(ROWS, [9, 777]), SOURCE, WEIGHTS)
        whole = Likelihood.of(ROWS, SOURCE, WEIGHTS)
        np.testing.assert_allclose(parts.multipliers(P), whole.multipliers(P), rtol=1e-12)
        assert parts.gain(P) == pytest.approx(whole.gain(P), rel=1e-12)

    @pytest.mark.parametrize("tidy", [True, False])
    def test_the_census_is_taken_while_the_rows_are_read(self, tidy: bool) -> None:
        chunks = Chunks(np.split(ROWS if tidy else ROWS * (ROWS[:, :1] < 0.9), 5))
        before, counted = Likelihood.of(chunks, SOURCE), Likelihood.of(chunks, SOURCE)
        assert before.census.tidy == tidy
        chunks.reads = 0
        read = counted.summed(lambda blocks: sum(len(block) for block, _ in blocks))
        assert chunks.reads == (1 if tidy else 3)
        assert read == counted.size
        assert counted.census == before.census
        assert chunks.reads == (1 if tidy else 3)

    def test_an_iterator_is_refused(self) -> None:
        with pytest.raises(TypeError, match="several times"):
            Likelihood.of(iter([ROWS]), SOURCE)

    @pytest.mark.parametrize("count", [1000, 50_000])
    def test_calibrated_within_the_blocks(self, count: int) -> None:
        calibration = Scaling("bcts", np.full(4, 0.7), np.array([0.2, -0.1, 0.3, -0.4]), 1e-300)
        inside = Likelihood.of(ROWS[:count].astype(np.float32), SOURCE, None, calibration)
        rows = calibration.apply(ROWS[:count].astype(np.float32).astype(np.float64))
        before = Likelihood.of(rows, SOURCE)
        np.testing.assert_allclose(inside.multipliers(P), before.multipliers(P), rtol=1e-12)
        assert inside.gain(P) == pytest.approx(before.gain(P), rel=1e-10)

    def test_calibrated_steeply(self) -> None:
        calibration = Scaling("bcts", np.full(4, 500.0), np.array([0.2, -0.1, 0.3, -0.4]), 1e-300)
        source = np.array([0.5, 0.3, 0.2, 0.0])
        inside = Likelihood.of(ROWS[:500], source, None, calibration)
        before = Likelihood.of(calibration.apply(ROWS[:500]), source)
        p = np.array([0.2, 0.3, 0.5, 0.0])
        assert inside.unsupported == before.unsupported
        np.testing.assert_allclose(inside.multipliers(p), before.multipliers(p), rtol=1e-9)
        assert inside.gain(p) == pytest.approx(before.gain(p), rel=1e-9)

    def test_every_nth_row(self) -> None:
        strided = Likelihood.of(ROWS, SOURCE, WEIGHTS).strided(7)
        np.testing.assert_array_equal(
            strided.multipliers(P),
            Likelihood.of(ROWS[::7].copy(), SOURCE, WEIGHTS[::7].copy()).multipliers(P),
        )


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_memory_stays_small(kind: type[np.floating[Any]]) -> None:
    rows = np.tile(ROWS, (40, 1)).astype(kind)
    tracemalloc.start()
    likelihood = Likelihood.of(rows, SOURCE)
    likelihood.multipliers(P)
    likelihood.hessian(P)
    likelihood.gain(P)
    likelihood.gains_along(SOURCE, P, [1.0, 0.5, 0.1])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10e6 < rows.nbytes
