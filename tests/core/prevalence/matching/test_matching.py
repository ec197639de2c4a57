import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.kernel_approximation import RBFSampler
from sklearn.metrics.pairwise import euclidean_distances, rbf_kernel

from app.core.arrays import Codes, Floats
from app.core.prevalence.estimators.confusion import ConfusionMatrix, acc, acc_qp
from app.core.prevalence.matching import kernels, random_features
from app.core.prevalence.matching.bandwidth import sample
from app.core.prevalence.matching.embedding import Embedded, Embedding
from app.core.prevalence.matching.exact import Kernels, Reference
from app.core.prevalence.matching.kernels import Kernel, class_kernels, gram
from app.core.prevalence.matching.many import least_squares_many
from app.core.prevalence.matching.match import match_means, replicates
from app.core.prevalence.matching.random_features import FourierMap, Standard
from app.core.prevalence.numerics import simplex

UNIFORM = np.full(3, 1 / 3)
CENTRES = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0]])


def draw(seed: int, counts: list[int]) -> tuple[Floats, Codes]:
    labels = np.repeat(np.arange(len(counts)), counts)
    return np.random.default_rng(seed).normal(CENTRES[labels], 1.0), labels


def embedded(rows: Floats, labels: Codes, D: int = 400, sigma: float = 1.5) -> Embedding:
    standard = Standard.of(rows, scaling=False)
    return Embedding.of(rows, labels, 3, standard, FourierMap.of(2, D, sigma, 0))


class TestKernels:
    @given(st.integers(0, 1000), st.floats(0.2, 5.0))
    @settings(deadline=None, max_examples=20)
    def test_gaussian_is_scikit_learns(self, seed: int, sigma: float) -> None:
        rows, labels = draw(seed, [5, 9, 4])
        x = rows[::2] + 0.1
        found, columns = class_kernels(x, rows, labels, 3, Kernel("gaussian", sigma))
        K = rbf_kernel(x, rows, gamma=1 / (2 * sigma**2))
        by_class = np.column_stack([K[:, labels == k].mean(axis=1) for k in range(3)])
        np.testing.assert_allclose(found, by_class, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(columns, K.mean(axis=0), rtol=1e-10, atol=1e-12)

    def test_energy_is_of_the_distances(self) -> None:
        rows, _ = draw(1, [4, 4, 4])
        norms = np.linalg.norm(rows, axis=1)
        wanted = norms[:, None] + norms - euclidean_distances(rows, rows)
        np.testing.assert_allclose(Kernel("energy").of(rows, rows), wanted, atol=1e-6)

    def test_blocks_do_not_matter(self, monkeypatch: pytest.MonkeyPatch) -> None:
        rows, labels = draw(2, [30, 20, 10])
        kernel = Kernel("gaussian", 1.0)
        whole = class_kernels(rows, rows, labels, 3, kernel)
        monkeypatch.setattr(kernels, "BLOCK", 7 * len(rows))
        parts = class_kernels(rows, rows, labels, 3, kernel)
        for a, b in zip(whole, parts, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)


class TestRandomFeatures:
    def test_tend_to_scikit_learns_kernel_and_beat_its_sampler(self) -> None:
        rows, _ = draw(3, [20, 20, 20])
        K = rbf_kernel(rows, gamma=1 / (2 * 1.5**2))
        ours, theirs = [], []
        for seed in range(20):
            features = FourierMap.of(2, 200, 1.5, seed).apply(rows)
            ours.append(np.mean((features @ features.T - K) ** 2))
            sampler = RBFSampler(gamma=1 / (2 * 1.5**2), n_components=200, random_state=seed)
            other = sampler.fit_transform(rows)
            theirs.append(np.mean((other @ other.T - K) ** 2))
        assert np.mean(ours) < 1.5 / 200
        assert np.mean(ours) < np.mean(theirs)

    def test_means_are_those_of_the_features_whatever_the_blocks(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        rows, _ = draw(4, [50, 50, 50])
        standard, features = Standard.of(rows, True), FourierMap.of(2, 64, 1.0, 0)
        whole = features.mean(rows, standard)
        np.testing.assert_allclose(
            whole, features.apply(standard.apply(rows)).mean(axis=0), rtol=0, atol=1e-6
        )
        monkeypatch.setattr(random_features, "BLOCK", 32 * 7)
        np.testing.assert_allclose(features.mean(rows, standard), whole, rtol=0, atol=1e-6)

    def test_far_rows_stay_finite(self) -> None:
        rows = np.array([[1e300, -1e300], [0.0, 1.0]])
        standard = Standard(np.zeros(2), np.ones(2))
        assert np.isfinite(FourierMap.of(2, 64, 1.0, 0).mean(rows, standard)).all()

    def test_the_dimension_is_even(self) -> None:
        with pytest.raises(ValueError, match="even"):
            FourierMap.of(2, 7, 1.0, 0)

    def test_a_constant_feature_is_only_centred(self) -> None:
        rows = np.column_stack([np.arange(4.0), np.full(4, 7.0)])
        np.testing.assert_allclose(Standard.of(rows, True).apply(rows)[:, 1], 0.0)


class TestMatch:
    @given(st.integers(0, 500), st.permutations([0, 1, 2]))
    @settings(deadline=None, max_examples=15)
    def test_order_and_repetition_of_rows_and_classes_do_not_matter(
        self, seed: int, order: list[int]
    ) -> None:
        rows, labels = draw(seed, [20, 15, 25])
        batch, _ = draw(seed + 1, [10, 30, 5])
        embedding = embedded(rows, labels, 64)
        kernel = Kernel("gaussian", 1.5)
        shuffled = np.random.default_rng(seed).permutation(len(rows))
        place = np.argsort(order)
        other = embedded(rows[shuffled], place[labels[shuffled]], 64)
        twice = np.concatenate([batch, batch])[::-1]
        for soft in (False, True):
            found = match_means(
                embedding.means, Embedded.of(batch, embedding).mean, UNIFORM, soft
            ).prevalence
            again = match_means(
                other.means, Embedded.of(twice, other).mean, UNIFORM, soft
            ).prevalence
            np.testing.assert_allclose(again, found[order], rtol=0, atol=1e-4)
            reference = Reference.of(rows, labels, 3, kernel)
            moved = Reference.of(rows[shuffled], place[labels[shuffled]], 3, kernel)
            exact = Kernels.of(batch, reference, kernel).match(UNIFORM, soft)
            repeated = Kernels.of(twice, moved, kernel).match(UNIFORM, soft)
            np.testing.assert_allclose(
                repeated.prevalence, exact.prevalence[order], rtol=0, atol=1e-8
            )
            assert repeated.distance == pytest.approx(exact.distance, abs=1e-6)

    @given(st.integers(0, 10_000), st.booleans())
    @settings(deadline=None, max_examples=40)
    def test_is_the_minimum_that_a_general_optimiser_finds(self, seed: int, soft: bool) -> None:
        rng = np.random.default_rng(seed)
        means, batch = rng.normal(size=(3, 6)), rng.normal(size=6)
        found = match_means(means, batch, UNIFORM, soft)
        assert found.status == "converged"

        def objective(a: Floats) -> float:
            return 0.5 * float(((a @ means - batch) ** 2).sum())

        sums = {"type": "ineq" if soft else "eq", "fun": lambda a: 1 - a.sum()}
        other = minimize(
            objective, UNIFORM, bounds=[(0, 1)] * 3, constraints=[sums], tol=1e-12, method="SLSQP"
        )
        assert objective(found.prevalence) <= other.fun + 1e-7
        assert found.prevalence.min() >= 0
        assert found.prevalence.sum() <= 1 + 1e-12
        assert found.distance == pytest.approx(np.sqrt(2 * objective(found.prevalence)), abs=1e-9)

    def test_a_vertex_and_a_stranger(self) -> None:
        rows, labels = draw(5, [200, 200, 200])
        embedding = embedded(rows, labels)
        own = Embedded.of(rows[labels == 1], embedding)
        found = match_means(embedding.means, own.mean, UNIFORM, True)
        np.testing.assert_allclose(found.prevalence, [0, 1, 0], atol=1e-6)
        strange = Embedded.of(rows + 40.0, embedding)
        assert match_means(embedding.means, strange.mean, UNIFORM, True).prevalence.sum() < 0.2

    def test_equal_classes_get_the_answer_nearest_to_the_source(self) -> None:
        rows, labels = draw(6, [40, 40, 40])
        means = embedded(rows, labels).means[[0, 1, 1]]
        source = np.array([0.2, 0.2, 0.6])
        found = match_means(means, 0.5 * means[0] + 0.5 * means[1], source, False)
        assert found.unidentified == (1, 2)
        np.testing.assert_allclose(found.prevalence, [0.5, 0.05, 0.45], atol=1e-4)


class TestMany:
    @given(st.integers(0, 10_000), st.booleans(), st.integers(1, 6))
    @settings(deadline=None, max_examples=40)
    def test_each_is_the_single_solution(self, seed: int, soft: bool, classes: int) -> None:
        rng = np.random.default_rng(seed)
        M = rng.normal(size=(8, classes + 2, classes))
        v = rng.normal(size=(8, classes + 2))
        centre = np.full(classes, 1 / classes)
        G, q = np.swapaxes(M, 1, 2) @ M, np.einsum("bkc,bk->bc", M, v)
        found = least_squares_many(G, q, centre, soft)
        single = [
            simplex.least_squares(*pair, centre, soft).values for pair in zip(M, v, strict=True)
        ]
        np.testing.assert_allclose(found, single, rtol=0, atol=1e-7)


class TestReplicates:
    """Means redrawn from normal distributions, against rows drawn again from the population."""

    @pytest.mark.parametrize("soft", [False, True])
    def test_spread_as_new_samples_do(self, soft: bool) -> None:
        counts, sizes = [150, 120, 130], [80, 160, 60]
        truth: list[Floats] = []
        for seed in range(150):
            rows, labels = draw(seed, counts)
            embedding = embedded(rows, labels, 200)
            batch, _ = draw(
                5000 + seed,
                list(np.random.default_rng(seed).multinomial(300, np.array(sizes) / 300)),
            )
            mean = Embedded.of(batch, embedding).mean
            truth.append(match_means(embedding.means, mean, UNIFORM, soft).prevalence)
        rows, labels = draw(1, counts)
        embedding = embedded(rows, labels, 200)
        batch, _ = draw(2, sizes)
        found = replicates(embedding, Embedded.of(batch, embedding), UNIFORM, soft, 0).shares
        wanted, got = np.std(truth, axis=0), found.std(axis=0)
        np.testing.assert_allclose(got, wanted, rtol=0.3)

    @pytest.mark.parametrize("soft", [False, True])
    def test_are_those_of_resampled_rows(self, soft: bool) -> None:
        rows, labels = draw(1, [150, 120, 130])
        batch, _ = draw(2, [80, 160, 60])
        strangers = np.random.default_rng(3).normal(12.0, 1.0, (40, 2))
        batch = np.concatenate([batch, strangers])
        embedding = embedded(rows, labels, 200)
        features = embedding.map.apply(embedding.standard.apply(rows)).astype(float)
        there = embedding.map.apply(embedding.standard.apply(batch)).astype(float)
        rng = np.random.default_rng(4)
        redrawn = []
        for _ in range(400):
            means = [
                rng.multinomial(n, np.full(n, 1 / n)) @ features[labels == k] / n
                for k, n in enumerate(np.bincount(labels))
            ]
            n = len(there)
            mean = rng.multinomial(n, np.full(n, 1 / n)) @ there / n
            redrawn.append(match_means(np.array(means), mean, UNIFORM, soft).prevalence)
        kernel = Kernel("gaussian", 1.5)
        standard = embedding.standard
        reference = Reference.of(standard.apply(rows), labels, 3, kernel)
        exact = Kernels.of(standard.apply(batch), reference, kernel)
        wanted = np.quantile(redrawn, [0.025, 0.5, 0.975], axis=0)
        for found in (
            replicates(embedding, Embedded.of(batch, embedding), UNIFORM, soft, 0),
            exact.replicates(UNIFORM, soft, 0),
        ):
            got = np.quantile(found.shares, [0.025, 0.5, 0.975], axis=0)
            np.testing.assert_allclose(got, wanted, rtol=0, atol=0.025)


class TestSample:
    def test_keeps_rare_classes_whole(self) -> None:
        labels = np.repeat([0, 1, 2], [5000, 3, 900])
        found = sample(labels, 3, 600, 0)
        counts = np.bincount(labels[found])
        assert counts[1] == 3
        assert counts[0] == counts[2] == 298
        assert gram(np.ones((3, 3)), np.arange(3)).shape == (3, 3)


class TestBbse:
    @given(st.integers(0, 10_000), st.booleans())
    @settings(deadline=None, max_examples=25)
    def test_decisions_as_features_are_adjusted_counts(self, seed: int, soft: bool) -> None:
        """Proposition 1: acc without, acc-qp with the constraint, on one-hot decisions."""
        rng = np.random.default_rng(seed)
        labels = np.repeat(np.arange(3), 40)
        decided = np.where(rng.random(120) < 0.7, labels, rng.integers(0, 3, 120))
        batch = rng.integers(0, 3, 50)
        onehot = np.eye(3)
        means = np.stack([onehot[decided[labels == k]].mean(axis=0) for k in range(3)])
        counts = np.bincount(batch, minlength=3) / 50
        confusion = ConfusionMatrix.of_decisions(labels, decided, 3).conditional
        found = match_means(means, onehot[batch].mean(axis=0), UNIFORM, soft).prevalence
        constrained = acc_qp(confusion, counts, UNIFORM, soft)
        np.testing.assert_allclose(found, constrained.prevalence, rtol=0, atol=1e-9)
        plain = acc(confusion, counts, UNIFORM)
        if not plain.inadmissible:
            np.testing.assert_allclose(found, plain.prevalence, rtol=0, atol=1e-9)
