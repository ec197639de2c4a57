from typing import Any

import numpy as np
import pytest

from app.core.arrays import Codes, Floats
from app.core.prevalence.estimators.confusion import acc, acc_qp
from app.core.prevalence.matching.bandwidth import choose, without_diagonal
from app.core.prevalence.matching.exact import Kernels, Reference
from app.core.prevalence.matching.geometry import delta_min, lambda_min, radius
from app.core.prevalence.matching.kernels import Kernel, gram, squared_distances
from app.core.prevalence.matching.match import Match, match_means
from app.core.prevalence.matching.random_features import FourierMap, Standard
from tests.golden import GOLDEN


def stacked(groups: list[list[float]]) -> tuple[Floats, Codes]:
    rows = np.concatenate([np.array(group) for group in groups])[:, None]
    return rows, np.repeat(np.arange(len(groups)), [len(group) for group in groups])


def kernels(inputs: dict[str, Any], move: float = 0.0) -> Kernels:
    rows, labels = stacked(inputs["source"])
    kernel = Kernel(inputs["kernel"], inputs.get("sigma", 1.0))
    reference = Reference.of(rows + move, labels, len(inputs["source"]), kernel)
    return Kernels.of(np.array(inputs["target"])[:, None] + move, reference, kernel)


def matched(found: Kernels, soft: bool) -> Match:
    classes = found.rows.shape[1]
    return found.match(np.full(classes, 1 / classes), soft)


class TestExactKernels:
    @pytest.mark.parametrize("name", ["D01_kmm_gaussian", "D01_kmm_energy"])
    def test_d01(self, name: str) -> None:
        entry = GOLDEN[name]
        expected, exact = entry["expected"], {"rtol": 0, "atol": entry["tolerance"]}
        found = kernels(entry["inputs"])
        G = gram(found.reference.within, found.reference.labels)
        np.testing.assert_allclose(G, expected["G"], **exact)
        np.testing.assert_allclose(found.rows.mean(axis=0), expected["q"], **exact)
        hard, soft = matched(found, False), matched(found, True)
        np.testing.assert_allclose(hard.prevalence, expected["hard"], **exact)
        np.testing.assert_allclose(soft.prevalence, expected["soft"], **exact)
        assert 1 - soft.prevalence.sum() == pytest.approx(expected["alpha0_soft"], abs=2e-6)
        assert delta_min(G) == pytest.approx(expected["Delta_min"], abs=2e-6)
        assert lambda_min(G) == pytest.approx(expected["lambda_min"], abs=2e-6)
        wrong = entry["must_not_equal"]["hard_with_plus_q_as_printed"]
        assert not np.allclose(hard.prevalence, wrong, atol=1e-2)

    @pytest.mark.parametrize("move", [0.0, 10.0])
    def test_d02_contaminated(self, move: float) -> None:
        entry = GOLDEN["D02_contaminated_gaussian"]
        expected = entry["expected"]
        found = kernels(entry["inputs"], move)
        hard, soft = matched(found, False), matched(found, True)
        np.testing.assert_allclose(hard.prevalence, expected["hard"], rtol=0, atol=2e-6)
        np.testing.assert_allclose(soft.prevalence, expected["soft"], rtol=0, atol=2e-6)
        assert 1 - soft.prevalence.sum() == pytest.approx(expected["alpha0_soft"], abs=2e-6)

    def test_a_soft_energy_answer_moves_with_the_origin(self) -> None:
        inputs = {**GOLDEN["D02_contaminated_gaussian"]["inputs"], "kernel": "energy"}
        here, there = kernels(inputs), kernels(inputs, 10.0)
        hard = matched(here, False).prevalence
        np.testing.assert_allclose(matched(there, False).prevalence, hard, rtol=0, atol=1e-9)
        soft = matched(here, True).prevalence
        assert not np.allclose(matched(there, True).prevalence, soft, atol=1e-2)


class TestBbse:
    def test_d03_soft_is_hard_is_plain(self) -> None:
        entry = GOLDEN["D03_soft_bbse_is_bbse"]
        M = np.array(entry["inputs"]["M_columns_true_class"])
        v = np.array(entry["inputs"]["target_mean"])
        source = np.full(3, 1 / 3)
        for found in (
            acc(M, v, source).prevalence,
            acc_qp(M, v, source).prevalence,
            acc_qp(M, v, source, soft=True).prevalence,
            match_means(M.T, v, source, False).prevalence,
            match_means(M.T, v, source, True).prevalence,
        ):
            np.testing.assert_allclose(found, entry["expected"]["bbse"], rtol=0, atol=1e-9)


class TestGeometry:
    @pytest.mark.parametrize(
        "name", ["D04_delta_min_two_classes_0.6", "D04_delta_min_two_classes_0.95"]
    )
    def test_d04_two_classes(self, name: str) -> None:
        entry = GOLDEN[name]
        a = entry["inputs"]["accuracy"]
        M = np.array([[a, 1 - a], [1 - a, a]])
        expected = entry["expected"]["Delta_min"]
        assert delta_min(M.T @ M) == pytest.approx(expected, abs=1e-12)
        assert 0.5 * float(((M[:, 0] - M[:, 1]) ** 2).sum()) == pytest.approx(expected, abs=1e-12)

    def test_d05_order_of_the_criteria(self) -> None:
        entry = GOLDEN["D05_delta_lambda"]
        G, expected = np.array(entry["inputs"]["G"]), entry["expected"]
        assert delta_min(G) == pytest.approx(expected["Delta_min"], abs=1e-10)
        assert lambda_min(G) == pytest.approx(expected["lambda_min"], abs=1e-10)
        augmented = delta_min(np.pad(G, (1, 0)))
        key = "Delta_min_of_augmented_gram_with_dummy"
        assert augmented == pytest.approx(expected[key], abs=1e-10)
        assert lambda_min(G) / 4 <= augmented <= lambda_min(G) <= delta_min(G)

    def test_d09_d10_radius(self) -> None:
        entry = GOLDEN["D10_theorem1_value"]
        given, expected = entry["inputs"], entry["expected"]
        found = radius(
            np.array(given["alpha"]),
            np.array(given["n_i"]),
            given["m"],
            given["delta"],
            given["C"],
            given["Delta_min"],
        )
        assert found == pytest.approx(expected["bound_sharp"], abs=1e-9)
        assert found < expected["bound_2"] < expected["bound_1"]
        # A class of a tenth of the rows with all the weight: the sum, not ‖w‖/√n.
        sizes = GOLDEN["D09_theorem1_second_bound"]
        source = 2 * (2 + np.sqrt(2 * np.log(4 / 0.05)))
        n = np.array(sizes["inputs"]["n_i"])
        without_batch = radius(np.array([1.0, 0.0]), n, 1e300, 0.05, 1.0, 1.0)
        sharper = sizes["expected"]["sharper_sum_alpha_over_sqrt_n_i"]
        assert without_batch / source == pytest.approx(sharper, abs=1e-12)


class TestBandwidth:
    @pytest.mark.parametrize("d", [1, 4])
    def test_d06_the_population_optimum(self, d: int) -> None:
        entry = GOLDEN[f"D06_bandwidth_population_{d}"]
        expected = entry["expected"]

        def closed(sigma: float) -> float:
            width = sigma**2 + 2
            return float(sigma / np.sqrt(width) * (1 - np.exp(-(d**2) / (2 * width))))

        assert closed(expected["sigma_star"]) == pytest.approx(expected["Delta_min_at_star"])
        assert closed(1.0) == pytest.approx(expected["Delta_min_at_sigma_1"])
        rng = np.random.default_rng(d)
        rows = rng.normal(np.repeat([0.0, d], 700), 1.0)[:, None]
        labels = np.repeat([0, 1], 700)
        sigma = choose(rows, labels, 2, "delta-min", 0)
        assert closed(sigma) > 0.97 * expected["Delta_min_at_star"]
        K = Kernel("gaussian", 1.0).of(rows, rows)
        sampled = delta_min(without_diagonal(K, labels))
        assert sampled == pytest.approx(expected["Delta_min_at_sigma_1"], abs=0.03)

    def test_d07_tiny_classes_do_not_draw_it_to_zero(self) -> None:
        entry = GOLDEN["D07_bandwidth_tiny_classes"]
        rows, labels = stacked(entry["inputs"]["source"])
        squares = squared_distances(rows, rows)
        belongs = np.eye(2)[labels] / 2
        without = []
        for sigma, value in zip(
            entry["inputs"]["sigmas"], entry["expected"]["Delta_min"], strict=True
        ):
            K = np.exp(-squares / (2 * sigma**2))
            assert delta_min(belongs.T @ K @ belongs) == pytest.approx(value, abs=1e-9)
            without.append(delta_min(without_diagonal(K, labels)))
        assert without[0] == pytest.approx(0.0, abs=1e-9)
        assert int(np.argmax(without)) == 3
        assert choose(rows, labels, 2, "delta-min", 0) > 0.5


class TestRandomFeatures:
    def test_d08_the_products_are_the_kernel(self) -> None:
        entry = GOLDEN["D08_rff"]
        given = entry["inputs"]
        features = FourierMap(np.array(given["omega"], np.float32))
        rows = np.array([given["x"], given["y"]])
        found = features.apply(rows).astype(float)
        assert features.dimension == given["D"]
        assert float(found[0] @ found[1]) == pytest.approx(entry["expected"]["kernel_xy"], abs=1e-6)
        assert float(found[0] @ found[0]) == pytest.approx(entry["expected"]["kernel_xx"], abs=1e-6)
        still = Standard(np.zeros(2), np.ones(2))
        np.testing.assert_allclose(features.mean(rows, still), found.mean(axis=0), atol=1e-6)

    @pytest.mark.parametrize("name", ["D01_kmm_gaussian", "D02_contaminated_gaussian"])
    @pytest.mark.parametrize("soft", [False, True])
    def test_near_the_exact_kernel(self, name: str, soft: bool) -> None:
        inputs, expected = GOLDEN[name]["inputs"], GOLDEN[name]["expected"]
        rows, labels = stacked(inputs["source"])
        standard = Standard.of(rows, scaling=False)
        features = FourierMap.of(1, 4000, 1.0, 0)
        means = features.class_means(rows, labels, 3, standard)
        batch = features.mean(np.array(inputs["target"])[:, None], standard)
        found = match_means(means, batch, np.full(3, 1 / 3), soft)
        wanted = expected["soft" if soft else "hard"]
        np.testing.assert_allclose(found.prevalence, wanted, rtol=0, atol=0.01)
