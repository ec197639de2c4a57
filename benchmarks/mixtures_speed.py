"""How fast links are fitted and posteriors drawn, beside a plain optimiser of the same likelihood.

python -m benchmarks.mixtures_speed [--starts 10] [--repeats 5] [--seed 1]

n* = 100 rows, p = 5, K = 3. The plain optimiser is SciPy's BFGS with numerical gradients on the
unconstrained numbers of every link (logarithms of scales, log-ratios of proportions), from as
many starts: the link at 1 and random ones. One core: set OPENBLAS_NUM_THREADS=1.
"""

import argparse
import warnings
from collections.abc import Callable
from time import perf_counter

import numpy as np
from scipy.optimize import minimize

from app.core.arrays import Floats
from app.core.mixtures.adapt import adapt, prepare
from app.core.mixtures.gibbs import sample
from app.core.mixtures.links import LINKS
from app.core.mixtures.mixture import RegressionMixture, check_mixture, log_density, log_joint
from app.core.mixtures.mstep import MStepProblem
from benchmarks.report import heading, table

PAPER = [name for name in LINKS if "additive" not in name]
SIZE, COVARIATES, COMPONENTS = 100, 5, 3
EQUAL = 1e-3
"""Log-likelihoods nearer than this are equal."""


def population(seed: int) -> tuple[RegressionMixture, Floats, Floats]:
    """A source, and rows of a target whose numbers are all 1.4 times the source's."""
    random = np.random.default_rng(seed)
    betas = random.normal(scale=3, size=(COMPONENTS, COVARIATES + 1))
    source = check_mixture([0.3, 0.3, 0.4], betas, [1.0, 1.5, 2.0])
    x = random.normal(size=(SIZE, COVARIATES))
    z = random.integers(COMPONENTS, size=SIZE)
    noise = source.sigmas[z] * random.normal(size=SIZE)
    return source, x, 1.4 * (source.means(x)[np.arange(SIZE), z] + noise)


def plain(
    source: RegressionMixture, x: Floats, y: Floats, name: str, starts: int, seed: int
) -> float:
    """The best log-likelihood of BFGS from ``starts`` starts."""
    _, problem = prepare(source, source.design(x), y, name)
    link = problem.structure.link
    groups = 1 if link.shared else source.components
    width = problem.features.shape[2]
    free_sigmas = source.components if link.sigma == "free" else 0
    free_shares = source.components - 1 if link.proportions else 0
    first = np.concatenate(
        [
            np.ones(groups * width),
            np.log(source.sigmas)[:free_sigmas],
            np.log(source.proportions / source.proportions[-1])[:free_shares],
        ]
    )
    if link.slopes == "free":
        theta = [np.linalg.lstsq(problem.features[0], b, rcond=None)[0] for b in source.means(x).T]
        first[: groups * width] = np.concatenate(theta)
    random = np.random.default_rng(seed)
    best = -np.inf
    for start in range(starts):
        at = first * np.exp(random.normal(scale=0.5, size=len(first))) if start else first
        if not len(at):
            return -_loss(at, problem, source, (groups, width))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            solution = minimize(_loss, at, args=(problem, source, (groups, width)), method="BFGS")
        best = max(best, -float(solution.fun))
    return best


def _loss(
    v: Floats, problem: MStepProblem, source: RegressionMixture, shape: tuple[int, int]
) -> float:
    link, (groups, width) = problem.structure.link, shape
    theta = v[: groups * width].reshape(1, groups, width)
    rest = v[groups * width :]
    sigmas, shares = source.sigmas[None], source.proportions[None]
    if link.sigma == "scaled":
        sigmas = np.maximum(theta[..., -1], problem.least_slope) * source.sigmas
    if link.sigma == "free":
        sigmas = np.maximum(np.exp(rest[: source.components]), problem.floor)[None]
        rest = rest[source.components :]
    if link.proportions:
        ratios = np.append(rest, 0.0)
        shares = np.exp(ratios - ratios.max())[None]
        shares = shares / shares.sum()
    return -float(log_density(log_joint(problem.y, problem.means(theta), sigmas, shares)).sum())


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--starts", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    print(heading("mixtures_speed", ("numpy", "scipy")))
    source, x, y = population(arguments.seed)
    rows, ours, theirs = [], 0.0, 0.0
    worse = 0
    for name in PAPER:
        begun = perf_counter()
        fitted = adapt(source, x, y, name, starts=arguments.starts, seed=arguments.seed).chosen
        between = perf_counter()
        other = plain(source, x, y, name, arguments.starts, arguments.seed)
        ended = perf_counter()
        ours, theirs = ours + between - begun, theirs + ended - between
        worse += fitted.log_likelihood < other - EQUAL
        floored = "yes" if not fitted.sound else ""
        rows.append(
            [
                name,
                f"{1000 * (between - begun):.1f}",
                f"{1000 * (ended - between):.0f}",
                f"{fitted.log_likelihood:.3f}",
                f"{other:.3f}",
                floored,
            ]
        )
    names = ["link", "ms", "BFGS ms", "log-likelihood", "of BFGS", "flagged"]
    print(table(names, rows))
    print(f"All 24 links: {ours:.3f} s, BFGS {theirs:.2f} s, {theirs / ours:.0f} times; ", end="")
    print(f"BFGS found more (by {EQUAL:g}) in {worse} links.\n")
    print(
        table(["what", "seconds (least, median, most)"], _repeated(source, x, y, arguments.repeats))
    )


def _repeated(source: RegressionMixture, x: Floats, y: Floats, repeats: int) -> list[list[str]]:
    jobs: dict[str, Callable[[], object]] = {
        "BIC of all links and the plain regression": lambda: adapt(source, x, y),
        "PRESS of the same": lambda: adapt(source, x, y, criterion="press"),
        "4 × 1,200 draws": lambda: sample(source, x, y),
    }
    rows = []
    for what, job in jobs.items():
        times = []
        for _ in range(repeats):
            begun = perf_counter()
            job()
            times.append(perf_counter() - begun)
        rows.append([what, f"{min(times):.3f}, {np.median(times):.3f}, {max(times):.3f}"])
    return rows


if __name__ == "__main__":
    main()
