import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from app.core.arrays import Floats
from app.core.prevalence.estimators.confusion import ConfusionMatrix, acc, acc_qp, decisions
from tests.golden import GOLDEN


def conditional(counts: list[list[float]]) -> Floats:
    return ConfusionMatrix(np.array(counts, float)).conditional


def half_squared_residual(M: Floats, p: Floats, v: Floats) -> float:
    return 0.5 * float(((M @ p - v) ** 2).sum())


class TestGolden:
    def test_t06_binary(self) -> None:
        entry = GOLDEN["T06_acc_binary"]
        M = conditional(entry["inputs"]["confusion_rows_actual"])
        np.testing.assert_allclose(M, entry["expected"]["M"], rtol=0, atol=1e-12)
        counts = np.array(entry["inputs"]["predicted_counts"], float)
        shares = counts / counts.sum()
        for method in (acc, acc_qp):
            result = method(M, shares, np.array([0.5, 0.5]))
            np.testing.assert_allclose(
                result.prevalence, entry["expected"]["prior"], rtol=0, atol=1e-12
            )

    @pytest.mark.parametrize("name", ["T07_acc_multiclass", "T08_acc_qp_multiclass"])
    def test_t07_t08_multiclass_in_the_right_orientation(self, name: str) -> None:
        entry = GOLDEN[name]
        M = conditional(entry["inputs"]["confusion_rows_actual"])
        for method in (acc, acc_qp):
            result = method(M, np.array(entry["inputs"]["v"]), np.full(4, 0.25))
            np.testing.assert_allclose(
                result.prevalence, entry["expected"]["prior"], rtol=0, atol=entry["tolerance"]
            )
            assert not result.inadmissible
            for wrong in entry["must_not_equal"].values():
                assert not np.allclose(result.prevalence, wrong, atol=1e-3)

    def test_t09_active_constraints(self) -> None:
        entry = GOLDEN["T09_acc_qp_active_a"]
        M = np.array(entry["inputs"]["M_columns_true_class"])
        v = np.array(entry["inputs"]["v"])
        source = np.full(3, 1 / 3)
        constrained = acc_qp(M, v, source)
        np.testing.assert_allclose(
            constrained.prevalence, entry["expected"]["qp_prior"], rtol=0, atol=1e-7
        )
        objective = half_squared_residual(M, constrained.prevalence, v)
        assert objective == pytest.approx(entry["expected"]["qp_objective_half_sq"], abs=1e-9)
        clipped = acc(M, v, source)
        assert clipped.raw is not None
        np.testing.assert_allclose(
            clipped.raw, entry["expected"]["unconstrained"], rtol=0, atol=1e-7
        )
        np.testing.assert_allclose(
            clipped.prevalence, entry["expected"]["clip_and_rescale"], rtol=0, atol=1e-7
        )
        assert clipped.inadmissible

    def test_t10_singular_gives_the_nearest_to_the_source(self) -> None:
        entry = GOLDEN["T10_acc_qp_singular"]
        expected = entry["expected"]
        M = conditional(entry["inputs"]["confusion_rows_actual"])
        v = np.array(entry["inputs"]["v"])
        uniform = acc_qp(M, v, np.full(4, 0.25))
        np.testing.assert_allclose(
            uniform.prevalence, expected["minimum_norm_solution"], rtol=0, atol=1e-6
        )
        assert uniform.unidentified
        for source in (np.array([0.1, 0.5, 0.2, 0.2]), np.array([0.32, 0.02, 0.33, 0.33])):
            result = acc_qp(M, v, source)
            assert result.status == "converged"
            np.testing.assert_allclose(M @ result.prevalence, expected["fitted_Mp"], atol=1e-8)
            objective = half_squared_residual(M, result.prevalence, v)
            assert objective == pytest.approx(expected["objective_half_sq"], abs=1e-9)
            for share, (low, high) in zip(
                result.prevalence,
                expected["interval_of_each_prior_over_the_solution_set"],
                strict=True,
            ):
                assert low - 1e-9 <= share <= high + 1e-9
            distance = np.linalg.norm(result.prevalence - source)
            assert distance <= np.linalg.norm(uniform.prevalence - source) + 1e-9


class TestOutputs:
    def test_published_reject_column_is_solved_by_least_squares(self) -> None:
        M = conditional([[7619, 333, 88], [513, 11333, 114]])
        shares = np.array([13540, 6257, 203]) / 20000
        result = acc(M, shares, np.array([0.4, 0.6]))
        assert result.raw is not None
        np.testing.assert_allclose(result.raw, [0.70085, 0.29952], rtol=0, atol=5e-6)
        assert result.prevalence.sum() == pytest.approx(1)
        assert result.inadmissible

    def test_fewer_outputs_than_classes(self) -> None:
        M = conditional([[9, 1], [1, 9], [5, 5]])
        source = np.array([0.2, 0.3, 0.5])
        result = acc_qp(M, np.array([0.5, 0.5]), source)
        assert result.status == "converged"
        np.testing.assert_allclose(M @ result.prevalence, [0.5, 0.5], atol=1e-8)
        assert result.unidentified == (0, 1, 2)

    def test_one_class(self) -> None:
        for method in (acc, acc_qp):
            result = method(np.ones((1, 1)), np.ones(1), np.ones(1))
            np.testing.assert_allclose(result.prevalence, [1.0])


def test_decisions_take_the_first_on_ties() -> None:
    np.testing.assert_array_equal(decisions(np.array([[0.5, 0.5], [0.1, 0.9]])), [0, 1])


def test_counts_of_decisions_have_rows_of_true_classes() -> None:
    labels, decided = np.array([0, 0, 1, 1, 1]), np.array([0, 1, 1, 1, 0])
    matrix = ConfusionMatrix.of_decisions(labels, decided, 2)
    np.testing.assert_array_equal(matrix.counts, [[1, 1], [1, 2]])


@st.composite
def problems(draw: st.DrawFn) -> tuple[Floats, Floats, Floats]:
    """Confusion matrices with empty columns and equal rows among them."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    classes, outputs = draw(st.integers(1, 7)), draw(st.integers(1, 8))
    counts = rng.integers(0, draw(st.integers(2, 50)), (classes, outputs)).astype(float)
    counts[:, 0] += counts.sum(axis=1) == 0
    if classes > 1 and draw(st.booleans()):
        counts[1] = 3 * counts[0]
    v = rng.dirichlet(np.full(outputs, 0.5))
    return ConfusionMatrix(counts).conditional, v, rng.dirichlet(np.ones(classes))


class TestProperties:
    @given(problems())
    @settings(max_examples=300, deadline=None)
    def test_acc_qp_is_certified(self, problem: tuple[Floats, Floats, Floats]) -> None:
        M, v, source = problem
        result = acc_qp(M, v, source)
        assert result.status == "converged"
        assert result.prevalence.min() >= 0
        assert result.prevalence.sum() == pytest.approx(1)

    @given(problems())
    @settings(max_examples=40, deadline=None)
    def test_acc_qp_against_slsqp(self, problem: tuple[Floats, Floats, Floats]) -> None:
        M, v, source = problem
        result = acc_qp(M, v, source)
        found = minimize(
            lambda p: half_squared_residual(M, p, v),
            source,
            jac=lambda p: M.T @ (M @ p - v),
            method="SLSQP",
            bounds=[(0, 1)] * len(source),
            constraints={"type": "eq", "fun": lambda p: p.sum() - 1},
            options={"ftol": 1e-14, "maxiter": 500},
        )
        assert half_squared_residual(M, result.prevalence, v) <= found.fun + 1e-9
