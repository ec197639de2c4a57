"""The methods that are compared, on one source and many batches."""

from dataclasses import dataclass

import numpy as np

from app.core.arrays import Codes, Floats
from app.core.prevalence.estimators.confusion import ConfusionMatrix, acc_qp
from app.core.prevalence.matching import bandwidth
from app.core.prevalence.matching.exact import Kernels, Reference
from app.core.prevalence.matching.kernels import Kernel
from app.core.prevalence.matching.match import match_means
from app.core.prevalence.matching.random_features import FourierMap, Standard

METHODS = ("rffm", "soft rffm", "kmm-energy", "soft kmm-energy", "soft bbse+")
DIMENSION = 1000
FEW = 2000
"""Rows of either side that the exact energy kernel is given."""
ENERGY = Kernel("energy")


@dataclass(frozen=True)
class Source:
    """A source as every method has it; ``classifier``: fitted on one half, counted on the other."""

    standard: Standard
    drawn: FourierMap
    means: Floats
    reference: Reference
    classifier: object
    confusion: ConfusionMatrix

    @classmethod
    def of(cls, rows: Floats, labels: Codes, sigma: float | None = None) -> "Source":
        """From labelled rows; ``sigma``: the bandwidth, chosen by Δ_min where there is none."""
        from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis

        classes = int(labels.max()) + 1
        standard = Standard.of(rows, True)
        if sigma is None:
            few = bandwidth.sample(labels, classes, bandwidth.MOST_ROWS, 0)
            some = standard.apply(rows[few])
            sigma = bandwidth.choose(some, labels[few], classes, "delta-min", 0)
        drawn = FourierMap.of(rows.shape[1], DIMENSION, sigma, 0)
        means = drawn.class_means(rows, labels, classes, standard)
        few = bandwidth.sample(labels, classes, FEW, 0)
        reference = Reference.of(standard.apply(rows[few]), labels[few], classes, ENERGY)
        fitted = QuadraticDiscriminantAnalysis(reg_param=1e-3).fit(rows[::2], labels[::2])
        decided = fitted.predict(rows[1::2])
        confusion = ConfusionMatrix.of_decisions(labels[1::2], decided, classes)
        return cls(standard, drawn, means, reference, fitted, confusion)

    def estimates(self, batch: Floats) -> dict[str, Floats]:
        """Shares of the classes by every method."""
        classes = len(self.means)
        centre = np.full(classes, 1 / classes)
        mean = self.drawn.mean(batch, self.standard)
        some = batch[:: -(-len(batch) // FEW)]
        energy = Kernels.of(self.standard.apply(some), self.reference, ENERGY)
        decided = self.classifier.predict(batch)  # type: ignore[attr-defined]
        counts = np.bincount(decided, minlength=classes) / len(batch)
        conditional = self.confusion.conditional
        return {
            "rffm": match_means(self.means, mean, centre, False).prevalence,
            "soft rffm": match_means(self.means, mean, centre, True).prevalence,
            "kmm-energy": energy.match(centre, False).prevalence,
            "soft kmm-energy": energy.match(centre, True).prevalence,
            "soft bbse+": acc_qp(conditional, counts, centre, soft=True).prevalence,
        }
