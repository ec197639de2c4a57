"""The figures that the thesis prints, by learner and method.

A value per β, .1 to .9. What is known to be wrong with some of them is in ``REMARKS``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

BETAS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
LEARNERS = ("logistic", "forest")
LIKE = {"one-vs-rest": "logistic"}
"""Under which name the thesis has a learner."""
REMARKS = (
    "The mse printed in tables 7.3, 7.7 and 7.9 agrees with the mean over classes, that of table "
    "7.2 with the sum, as in the thesis's definition. Ours follow: the mean, in table 7.2 the sum.",
    "The error printed for base is not that of counting: it is the same for both learners and "
    "0.0003 at β = 0.9, where a classifier that never predicts a class is far off. It agrees with "
    "that of the training shares. It stands beside raw and cc. (The F1 of base is that of the "
    "classifier.)",
    "acc-qp is, in all likelihood, printed for the untransposed confusion matrix, counted in "
    "folds that were neither shuffled nor stratified; *untransposed* shows what the orientation "
    "alone does.",
    "em-stop is printed watching the rows that the model was fitted on (ours: out of fold), and "
    "seems to answer the mean of the posteriors at the best step, which is one step later: "
    "*em-stop, own rows*.",
    "The F1 printed agrees with the mean over classes weighted by their shares. Ours follows.",
    "The logistic regression printed agrees with one-vs-rest, scikit-learn's default before "
    "version 0.22, whose posteriors are no softmax.",
)


@dataclass(frozen=True)
class Printed:
    """A table: its title, the number of data sets it averages over, and its columns."""

    title: str
    sets: int
    columns: Mapping[tuple[str, str], tuple[float, ...]]

    def mean(self, learner: str, method: str, betas: Sequence[float]) -> float | None:
        """What is printed, mean over ``betas``; None where one of them is not printed."""
        column = self.columns.get((LIKE.get(learner, learner), method))
        if column is None or not set(betas) <= set(BETAS):
            return None
        return sum(column[BETAS.index(beta)] for beta in betas) / len(betas)


def _read(title: str, sets: int, methods: tuple[str, ...], figures: str) -> Printed:
    """A row per β: the methods with logistic regression, then with the forest."""
    names = [(learner, method) for learner in LEARNERS for method in methods]
    rows = [[float(figure) for figure in line.split()] for line in figures.strip().splitlines()]
    return Printed(title, sets, dict(zip(names, zip(*rows, strict=True), strict=True)))


RAW = (0.22732, 0.13337, 0.07989, 0.04752, 0.02811, 0.01561, 0.00805, 0.00311, 0.00081)

TABLE_7_2 = Printed("Table 7.2", 25, {(learner, "raw"): RAW for learner in LEARNERS})

TABLE_7_3 = _read(
    "Table 7.3",
    25,
    ("em", "em-stop", "base"),
    """
    0.07731 0.02451 0.08904 0.01344 0.02376 0.08969
    0.05242 0.01553 0.05177 0.00866 0.01072 0.05158
    0.04309 0.01225 0.03146 0.00588 0.00587 0.03168
    0.03720 0.01136 0.01895 0.00441 0.00385 0.01903
    0.03056 0.00904 0.01122 0.00351 0.00264 0.01121
    0.02747 0.00704 0.00616 0.00317 0.00210 0.00617
    0.02639 0.00684 0.00312 0.00275 0.00179 0.00312
    0.02334 0.00571 0.00123 0.00235 0.00164 0.00122
    0.02299 0.00563 0.00030 0.00215 0.00156 0.00030
    """,
)

TABLE_7_4 = _read(
    "Table 7.4",
    25,
    ("em", "em-stop", "oracle-bayes", "oracle", "base"),
    """
    0.5484 0.7302 0.7899 0.8442 0.7056 0.7656 0.7629 0.8219 0.8680 0.7076
    0.6346 0.7748 0.8215 0.8452 0.7722 0.8006 0.8125 0.8432 0.8676 0.7877
    0.6710 0.7897 0.8311 0.8451 0.8027 0.8201 0.8309 0.8515 0.8672 0.8200
    0.6931 0.7945 0.8356 0.8448 0.8184 0.8308 0.8397 0.8564 0.8682 0.8381
    0.7118 0.8028 0.8391 0.8458 0.8268 0.8392 0.8472 0.8609 0.8678 0.8496
    0.7248 0.8147 0.8409 0.8456 0.8327 0.8445 0.8515 0.8626 0.8676 0.8564
    0.7324 0.8153 0.8421 0.8455 0.8371 0.8474 0.8533 0.8646 0.8679 0.8615
    0.7389 0.8210 0.8431 0.8450 0.8405 0.8500 0.8548 0.8653 0.8669 0.8633
    0.7428 0.8234 0.8452 0.8457 0.8436 0.8526 0.8572 0.8668 0.8673 0.8657
    """,
)

TABLE_7_7 = _read(
    "Table 7.7",
    22,
    ("em-stop", "cc", "acc-qp"),
    """
    0.02308 0.09042 0.08148 0.02341 0.08835 0.05566
    0.01574 0.05137 0.03848 0.01046 0.05165 0.06136
    0.01277 0.03169 0.04630 0.00570 0.03162 0.03639
    0.01185 0.01907 0.04979 0.00365 0.01915 0.02310
    0.00917 0.01128 0.04751 0.00267 0.01125 0.01428
    0.00782 0.00618 0.04917 0.00210 0.00614 0.04607
    0.00605 0.00314 0.02037 0.00184 0.00316 0.01650
    0.00674 0.00122 0.04805 0.00153 0.00122 0.01631
    0.00622 0.00030 0.01960 0.00145 0.00030 0.01532
    """,
)

TABLE_7_9 = _read(
    "Table 7.9",
    11,
    ("cde", "em", "em-stop", "base"),
    """
    0.09565 0.06808 0.03461 0.14764 0.08924 0.01899 0.04335 0.15027
    0.07492 0.03246 0.01929 0.08572 0.04361 0.01272 0.01881 0.08533
    0.02956 0.02031 0.01220 0.05176 0.02509 0.00876 0.01025 0.05209
    0.02387 0.01155 0.00798 0.03136 0.01547 0.00626 0.00647 0.03122
    0.02272 0.00806 0.00605 0.01840 0.00993 0.00465 0.00412 0.01847
    0.02224 0.00815 0.00515 0.01014 0.00659 0.00444 0.00317 0.01016
    0.02202 0.00623 0.00389 0.00506 0.00507 0.00352 0.00255 0.00504
    0.02207 0.00619 0.00280 0.00199 0.00405 0.00296 0.00227 0.00200
    0.02194 0.00465 0.00239 0.00046 0.00332 0.00278 0.00220 0.00046
    """,
)
