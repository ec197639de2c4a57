"""Exact kernel matching from reference rows that are kept, for versions of not too many rows."""

from dataclasses import dataclass

import numpy as np

from app.core.arrays import Codes, Floats
from app.core.prevalence.matching.kernels import Kernel, class_kernels, gram, mean_kernel
from app.core.prevalence.matching.many import least_squares_many
from app.core.prevalence.matching.match import Match, groups, match_kernel, root
from app.core.prevalence.replicates import REPLICATES, Replicates


@dataclass(frozen=True)
class Reference:
    """n × d standardised rows with n labels, and the kernel of each with each class, n × C."""

    rows: Floats
    labels: Codes
    within: Floats

    @classmethod
    def of(cls, rows: Floats, labels: Codes, classes: int, kernel: Kernel) -> "Reference":
        """One pass over the n² pairs."""
        return cls(rows, labels, class_kernels(rows, rows, labels, classes, kernel)[0])


@dataclass(frozen=True)
class Kernels:
    """What one pass over a batch and the reference gives: N × C and n kernel means."""

    reference: Reference
    rows: Floats
    columns: Floats
    own: float

    @classmethod
    def of(cls, batch: Floats, reference: Reference, kernel: Kernel) -> "Kernels":
        """Of N × d standardised rows."""
        classes = reference.within.shape[1]
        products = class_kernels(batch, reference.rows, reference.labels, classes, kernel)
        return cls(reference, *products, mean_kernel(batch, kernel))

    def match(self, source: Floats, soft: bool) -> Match:
        """The mixture of the classes whose kernel mean is nearest to the batch's."""
        G = gram(self.reference.within, self.reference.labels)
        return match_kernel(G, self.rows.mean(axis=0), self.own, source, soft)

    def replicates(
        self, source: Floats, soft: bool, seed: int, count: int = REPLICATES
    ) -> Replicates:
        """Replicates of the shares, G and q redrawn by their linear expansion in both samples.

        Row j of class k moves G_kl and G_lk by its kernel with class l, and q_k by that with the
        batch; row i of the batch moves every q_k by its kernel with class k.
        """
        rng = np.random.default_rng(seed)
        labels = self.reference.labels
        classes = self.rows.shape[1]
        G0, q0 = gram(self.reference.within, labels), self.rows.mean(axis=0)
        joint = np.column_stack([self.reference.within, self.columns])
        roots = [_mean_root(joint[labels == k], joint) for k in range(classes)]
        batch = _mean_root(self.rows, self.rows)
        shares = np.empty((count, classes))
        for start, end in groups(count, 4 * classes**2):
            many = end - start
            q = q0 + rng.standard_normal((many, batch.shape[1])) @ batch.T
            G = np.tile(G0, (many, 1, 1))
            for k, L in enumerate(roots):
                moves = rng.standard_normal((many, L.shape[1])) @ L.T
                G[:, k] += moves[:, :-1]
                G[:, :, k] += moves[:, :-1]
                q[:, k] += moves[:, -1]
            shares[start:end] = least_squares_many(G, q, source, soft)
        return Replicates(shares, seed)


def _mean_root(rows: Floats, pooled: Floats) -> Floats:
    """An L with L Lᵀ the covariance of the mean of ``rows``; one row leans on the pooled spread."""
    centred, all_ = rows - rows.mean(axis=0), pooled - pooled.mean(axis=0)
    spread = (centred.T @ centred + all_.T @ all_ / len(all_)) / len(rows)
    return root(spread / len(rows))
