"""When adjusting to the estimated priors helps, by the protocol of the SLD reassessment.

python -m benchmarks.sld [--data DIR] [--trials 75] [--seed 1]

Esuli, Molinari and Sebastiani (2020): training sets and batches at random priors, four learners,
with and without calibration. Without DIR the documents are made up.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import warnings
from pathlib import Path

from benchmarks.report import heading
from benchmarks.sld.corpus import newsgroups, synthetic
from benchmarks.sld.outcome import BINS, trials
from benchmarks.sld.protocol import FOLDS
from benchmarks.sld.tables import details, quartiles, summary

SIZES = {2: 500, 5: 1000, 10: 1000, 20: 1000}
"""Documents to train on, and in the batch, by number of classes."""
SMALL = {2: 150, 5: 150}
"""Without DIR."""

TEXT = """\
The protocol of Esuli, Molinari and Sebastiani (2020) on {corpus}: training set and batch have
priors of their own, drawn as normalised uniforms, and no document in common; two classes are one
against the rest, more are chosen at random in every trial. Weights are (1 + log count) · idf,
cosine-normalised; learners are scikit-learn's at their defaults. Calibrations are fitted on
{folds}-fold out-of-fold scores of the training set: *Platt* as in the paper (a sigmoid of each
class's score, rescaled), *BCTS* is the default of this project. *EM* is the paper's: it stops at a
mean absolute step below 1e-6 or after 1,000 iterations. *Exact* is the certified maximum of the
same likelihood. Both start from the class frequencies of the training set.

{counts}

*Reduction*: 1 − mean error after / mean error before, over all trials and learners, ± half its 95 %
interval over trials; negative is worse. NAE is that of the shares; before: classified and counted.
Brier score, calibration error (CE) and refinement error (RE) are those of the posteriors, in ten
{bins} bins that keep ties together: at an optimum with a share of exactly zero whole columns tie,
which moves error from CE to RE and leaves the Brier score. The paper's figures are those of its
isomerous tables (RCV1, 1,000 documents, calibration by Platt). *Gap*: the most that the mean
log-likelihood can still lack, the largest of all runs.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder with newsgroups20_counts.npz")
    parser.add_argument("--trials", type=int, default=75, help="at each number of classes")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    # A class with fewer documents than folds, which the protocol brings with it.
    warnings.filterwarnings("ignore", "The least populated class", UserWarning)
    corpus = synthetic() if arguments.data is None else newsgroups(arguments.data)
    sizes = SMALL if arguments.data is None else SIZES
    measured = [
        trials(corpus, n, size, arguments.trials, arguments.seed) for n, size in sizes.items()
    ]
    counts = "; ".join(
        f"{some.classes} classes: {some.count} trials, {some.size} + {some.size} documents, priors "
        f"drawn again {some.redrawn} times for want of documents"
        for some in measured
    )
    print("# Adjusting texts of many classes\n")
    print(heading("sld"))
    print(TEXT.format(corpus=corpus.name, folds=FOLDS, counts=counts + ".", bins=BINS))
    print("## Reductions\n")
    print(summary(measured))
    print("## By amount of shift\n")
    print(quartiles(measured))
    for some in measured:
        print(f"## {some.classes} classes\n")
        print(details(some))


if __name__ == "__main__":
    main()
