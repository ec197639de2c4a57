"""Every method of the thesis, and the default of this project, on the same scores.

The thesis's methods take posteriors as they are and the training shares as the source priors; the
confusion matrix and em-stop use out-of-fold posteriors. The default calibrates on them.
"""

from dataclasses import dataclass

import numpy as np

from app.core.arrays import Codes, Floats
from app.core.prevalence.adjustment.posteriors import adjust
from app.core.prevalence.estimators import em_stop
from app.core.prevalence.estimators.cde import cde_iterate
from app.core.prevalence.estimators.confusion import ConfusionMatrix, acc, acc_qp, decisions
from app.core.prevalence.estimators.em import em
from app.core.prevalence.likelihood.likelihood import Likelihood
from app.core.prevalence.measures import decision_quality, squared_error_sum
from app.core.prevalence.source import Source, ValidationSet, derive
from app.estimation import PosteriorBatch, Request, estimate
from benchmarks.thesis.protocol import Scores, shares

UNTRANSPOSED = "acc-qp, untransposed"
"""The programme with the matrix that the thesis's section 4.5 uses, for comparison."""
OWN_ROWS = "em-stop, own rows"
"""em-stop as the thesis seems to have run it (see ``paper.REMARKS``), for comparison."""
ADMISSIBLE = 1e-12


@dataclass(frozen=True)
class Answer:
    """Class shares, and the posteriors to decide by."""

    prevalence: Floats
    posteriors: Floats


@dataclass(frozen=True)
class Quality:
    """``total``: Σ (estimated − true)², ``mean``: that over the number of classes."""

    total: float
    mean: float
    f1: "F1"

    @classmethod
    def of(cls, answer: Answer, scores: Scores) -> "Quality":
        """Against the test rows."""
        total = squared_error_sum(scores.target, answer.prevalence)
        return cls(total, total / scores.classes, F1.of(scores.truth, answer.posteriors))


@dataclass(frozen=True)
class Solvable:
    """Whether M is singular; if it is not, whether the linear solution leaves the simplex.

    A sum other than one counts too; the thesis counts shares outside 0 to 1 only.
    """

    singular: bool
    inadmissible: bool


@dataclass(frozen=True)
class F1:
    """Of the decisions: mean over classes, plain and weighted by the true shares."""

    macro: float
    weighted: float

    @classmethod
    def of(cls, truth: Codes, posteriors: Floats) -> "F1":
        """Decisions on N × C posteriors against N labels."""
        classes = posteriors.shape[1]
        counts = ConfusionMatrix.of_decisions(truth, decisions(posteriors), classes).counts
        quality = decision_quality(counts)
        return cls(quality.macro_f1, float(shares(truth, classes) @ quality.f1))


def answers(scores: Scores) -> dict[str, Answer]:
    """By method; ``cde`` for two classes only."""
    rows, source = scores.posteriors, scores.source
    results = {"raw": Answer(source, rows), "cc": Answer(_counted(scores), rows)}
    moved = {**_inverted(scores), **_iterated(scores), "oracle-bayes": scores.target}
    for method, prevalence in moved.items():
        results[method] = Answer(prevalence, adjust(rows, source, prevalence)[0])
    results["default"] = _default(scores)
    return results


def solvable(scores: Scores) -> dict[str, Solvable]:
    """What becomes of the linear system in the right orientation and in the thesis's."""
    right = _matrix(scores)
    results = {}
    for name, conditional in (("acc", right), ("acc, untransposed", right.T)):
        solution = acc(conditional, _counted(scores), scores.source)
        raw = scores.source if solution.raw is None else solution.raw
        outside = bool((raw < -ADMISSIBLE).any() or (raw > 1 + ADMISSIBLE).any())
        off = outside or abs(float(raw.sum()) - 1) > 1e-9
        singular = bool(solution.unidentified)
        results[name] = Solvable(singular, off and not singular)
    return results


def _counted(scores: Scores) -> Floats:
    decided = decisions(scores.posteriors)
    return shares(decided, scores.classes)


def _matrix(scores: Scores) -> Floats:
    decided = decisions(scores.out_of_fold)
    return ConfusionMatrix.of_decisions(scores.labels, decided, scores.classes).conditional


def _inverted(scores: Scores) -> dict[str, Floats]:
    matrix, counted, source = _matrix(scores), _counted(scores), scores.source
    return {
        "acc": acc(matrix, counted, source).prevalence,
        "acc-qp": acc_qp(matrix, counted, source).prevalence,
        UNTRANSPOSED: acc_qp(matrix.T, counted, source).prevalence,
    }


def _iterated(scores: Scores) -> dict[str, Floats]:
    source = scores.source
    path = em(Likelihood.of(scores.posteriors, source), trace=True).trace
    assert path is not None
    step = em_stop.stop(path, source, scores.out_of_fold, scores.labels).step
    late = em_stop.stop(path, source, scores.refitted, scores.labels).step + 1
    steps = {"em": path[-1], "em-stop": path[step], OWN_ROWS: path[min(late, len(path) - 1)]}
    if scores.classes == 2:
        share = cde_iterate(scores.posteriors[:, 1], float(source[1])).prevalence
        steps["cde"] = np.array([1 - share, share])
    return steps


def _default(scores: Scores) -> Answer:
    """As a caller gets it who registers the out-of-fold posteriors and asks for nothing."""
    names = tuple(f"w{k}" for k in range(scores.classes))
    validation = ValidationSet(scores.labels, scores.out_of_fold)
    model = derive(Source(names, validation=validation))
    result = estimate(model, PosteriorBatch(scores.posteriors), Request(posteriors=True))
    assert result.posteriors is not None
    return Answer(result.prevalence, result.posteriors)
