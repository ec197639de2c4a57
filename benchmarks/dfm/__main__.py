"""Feature matching under contamination: the paper's figure 1, and with --data its figure 2.

python -m benchmarks.dfm [--points 10000] [--repetitions 20] [--seed 1] [--picture FILE]
    [--data DIR]
"""

import argparse
from pathlib import Path

import numpy as np

from app.core.arrays import Floats
from benchmarks.charts import charts
from benchmarks.dfm import cytometry, gaussians
from benchmarks.dfm.gaussians import DIMENSIONS, NOISES, SHARES
from benchmarks.dfm.methods import DIMENSION, FEW, METHODS
from benchmarks.report import heading, table

RFFM, SOFT, _, SOFT_ENERGY, BBSE = range(5)


def main() -> None:
    """Print the tables, and write the picture."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--points", type=int, default=10_000)
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--picture", type=Path)
    parser.add_argument("--data", type=Path)
    arguments = parser.parse_args()
    errors = gaussians.errors(arguments.points, arguments.repetitions, arguments.seed)
    means = errors.mean(axis=(2, 3))
    if arguments.picture is not None:
        arguments.picture.write_text(
            charts(NOISES, METHODS, SHARES, means, "share of what is none of the classes")
        )
    print("# Matching features under contamination\n")
    print(heading("dfm"))
    print(
        f"Mean ‖â − a‖₂ over the five classes ± standard error. {arguments.points:,} labelled "
        f"rows and as many rows of\nthe classes in the batch; {len(DIMENSIONS)} dimensions "
        f"({', '.join(map(str, DIMENSIONS))}), {arguments.repetitions} repetitions each; D = "
        f"{DIMENSION}. The energy kernel\nis given {FEW:,} rows of either side; bbse+ counts "
        "decisions of a quadratic discriminant analysis.\n"
    )
    if arguments.picture is not None:
        print(f"![Error by share of noise]({arguments.picture.name})\n")
    for k, noise in enumerate(NOISES):
        print(f"## Noise: {noise}\n")
        lines = [_line(errors[k, e], share) for e, share in enumerate(SHARES)]
        print(table(["share", *METHODS], lines))
    print("## By dimension, at a share of 0.3\n")
    rows = [
        [noise, str(width), *[f"{v:.3f}" for v in errors[k, -1, j].mean(axis=0)]]
        for k, noise in enumerate(NOISES)
        for j, width in enumerate(DIMENSIONS)
    ]
    print(table(["noise", "d", *METHODS], rows))
    print("## What the paper says, one by one\n")
    print(table(["claim", "here", "holds"], claims(errors)))
    if arguments.data is not None:
        _cells(arguments.data)


def claims(errors: Floats) -> list[list[str]]:
    """Each claim of section 4.2, what was found, and whether it holds."""
    means = errors.mean(axis=(2, 3))
    clean = means[:, 0].max()
    rising = bool((means[:, -1] > means[:, 0]).all())
    lines = [
        _claim("without noise every method is excellent", f"at most {clean:.3f}", clean < 0.05),
        _claim("errors grow with the share of noise", "from 0 to 0.3", rising),
        _claim(
            "background noise: every error is about 0.1 at worst",
            f"at most {means[0].max():.3f}",
            bool(means[0].max() < 0.15),
        ),
    ]
    for k in range(3):
        gain = np.delete(errors[k, -1], SOFT, axis=-1).min(axis=-1) - errors[k, -1][..., SOFT]
        ratio = means[k, -1, SOFT] / np.delete(means[k, -1], SOFT).min()
        best = _above(errors[k, -1], SOFT)
        expected = k < 2
        claim = "soft rffm is significantly the best" if expected else "soft rffm has no such lead"
        words = f"{ratio:.2f} of the next best's error; ahead of all in {(gain > 0).mean():.0%}"
        lines.append(_claim(f"{NOISES[k]}: {claim}", words, best == expected))
    hurt = means[:, 0, SOFT].max() - means[:, 0, RFFM].max()
    lines.append(_claim("soft does no harm without noise", f"{hurt:+.4f}", bool(hurt < 0.005)))
    for name, j in (("bbse+", BBSE), ("kmm-energy", SOFT_ENERGY)):
        slope = means[1, -1, j] / SHARES[-1]
        words = f"error {slope:.2f} × share, far class"
        lines.append(_claim(f"soft {name} is not robust", words, bool(slope > 0.5)))
    return lines


def _above(errors: Floats, best: int) -> bool:
    """Whether a method beats each other one by more than two standard errors, paired."""
    flat = errors.reshape(-1, errors.shape[-1])
    for j in range(flat.shape[1]):
        gain = flat[:, j] - flat[:, best]
        if j != best and gain.mean() <= 2 * gain.std(ddof=1) / np.sqrt(len(gain)):
            return False
    return True


def _claim(claim: str, words: str, holds: bool) -> list[str]:
    return [claim, words, "yes" if holds else "no"]


def _line(errors: Floats, share: float) -> list[str]:
    flat = errors.reshape(-1, errors.shape[-1])
    spread = flat.std(axis=0, ddof=1) / np.sqrt(len(flat))
    cells = [f"{m:.3f} ± {s:.3f}" for m, s in zip(flat.mean(axis=0), spread, strict=True)]
    return [f"{share:g}", *cells]


def _cells(folder: Path) -> None:
    print("## T cells, one type missing from the source\n")
    print(
        "Mean ‖â − a‖₂ over pairs of patients of one laboratory, one the source, one the target "
        "(Stanford, Yale;\nthe paper had seven laboratories). Rarest type first.\n"
    )
    removals = cytometry.removals(folder)
    lines = []
    for removal in removals:
        flat = removal.errors
        spread = flat.std(axis=0, ddof=1) / np.sqrt(len(flat))
        cells = [f"{m:.3f} ± {s:.3f}" for m, s in zip(flat.mean(axis=0), spread, strict=True)]
        lines.append([removal.name, f"{removal.share:.3f}", *cells])
    print(table(["missing type", "its share", *METHODS], lines))


if __name__ == "__main__":
    main()
