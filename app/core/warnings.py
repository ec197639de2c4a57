"""What the service decided for the caller, or what the caller should doubt."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from app.core.errors import LONGEST_MESSAGE, clipped


class WarningCode(StrEnum):
    """What a warning is about; ``meaning``: what to do, as the table in README.md has it."""

    meaning: str

    def __new__(cls, code: str, meaning: str = "") -> Self:
        """A member: its text is the code."""
        member = str.__new__(cls, code)
        member._value_ = code
        member.meaning = meaning
        return member

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        """A code that another release has kept: it stays as it is, without a meaning."""
        if not isinstance(value, str):
            return None
        member = str.__new__(cls, value)
        member._name_ = member._value_ = value
        member.meaning = ""
        return member

    APPROXIMATE_INTERVAL = (
        "approximate-interval",
        "the batch is large: ends near zero come from a quadratic approximation",
    )
    BLIND_TO_THE_UNKNOWN = (
        "blind-to-the-unknown",
        "soft `acc-qp` cannot see what is none of the classes: match features with `rffm`",
    )
    BLOCKS_SHIFTS = (
        "blocks-shifts",
        "`em-stop` stops early where the shift is real: use `mle` with calibration",
    )
    BOUNDARY_SOURCE = (
        "boundary-source",
        "a source prior is close to zero, where chi-square is too cautious: the shift test "
        "resampled the validation set",
    )
    CALIBRATION_NOT_COMPARED = (
        "calibration-not-compared",
        "`auto` could not cross-validate, a class has a single row: `bcts` was taken. Register "
        "more rows of it",
    )
    CALIBRATION_REGULARISED = (
        "calibration-regularised",
        "the validation set is separable or its scores do not vary: register more rows",
    )
    CALIBRATION_TAKEN_AS_EXACT = (
        "calibration-taken-as-exact",
        "intervals leave out the error of a `platt` or `isotonic` calibration: `bcts` carries "
        "its own",
    )
    CDE_CYCLE = (
        "cde-cycle",
        "`cde` did not settle; the mean of its cycle is given",
    )
    CHAINS_APART = (
        "chains-apart",
        "draws from a posterior have not come together: ask for more `draws`, or a longer "
        "`burn_in`",
    )
    COARSE_RESAMPLING = (
        "coarse-resampling",
        "resampling cannot show p-values this small; the scaled chi-square decided",
    )
    CONSTANT_ATTRIBUTE = (
        "constant-attribute",
        "all values of an attribute are equal, in training or in the batch: check where they "
        "come from",
    )
    DECREASING_MAP = (
        "decreasing-map",
        "a decreasing map explains an attribute's shift, which thresholds cannot represent: "
        "turn its sign before sending it",
    )
    EMPTY_COMPONENT = (
        "empty-component",
        "a component of a mixture holds less than one row: ask for fewer",
    )
    ESCAPED_NAMES = (
        "escaped-names",
        "names that a spreadsheet would take for formulas begin with an apostrophe in this CSV,"
        " and only there; the service and `name_of` of its client read them back",
    )
    FEW_LABELS = (
        "few-labels",
        "the class shares come from fewer than 30 labels: label more rows",
    )
    FEW_ROWS = (
        "few-rows",
        "fewer rows than a link has numbers to find: send more, or ask for a smaller link",
    )
    FEW_VALUES = (
        "few-values",
        "too few values of an attribute for percentiles; its thresholds stayed",
    )
    FEWER_FOLDS = (
        "fewer-folds",
        "a class has fewer rows than there were to be folds: send more of it",
    )
    IMPOSSIBLE_ROWS = (
        "impossible-rows",
        "rows are certain of classes that the target priors exclude; they got the target priors",
    )
    IMPUTED = (
        "imputed",
        "missing values of the batch were filled with medians and most frequent levels",
    )
    IMPUTED_TRAINING = (
        "imputed-training",
        "missing values of the training rows were filled with medians and most frequent levels",
    )
    INADMISSIBLE = (
        "inadmissible",
        "the linear solution had shares outside 0 … 1: prefer `acc-qp`",
    )
    LABELS_UNUSED = (
        "labels-unused",
        "`cc`, `acc`, `acc-qp` and `pacc-qp` cannot use labels of a batch: use `mle`, into "
        "which labels enter",
    )
    LATE_ROWS = (
        "late-rows",
        "rows belong to windows that are closed, and count nowhere: raise the monitor's `grace`",
    )
    LEVEL_OUT_OF_REACH = (
        "level-out-of-reach",
        "windows are too small for a monitor's budget: no window, or none without the rarest "
        "class, can raise an alert",
    )
    LITTLE_SHIFT = (
        "little-shift",
        "no shift was detected: adjusting posteriors to the estimate may do more harm than "
        'good. `"adjust": "if-shifted"` leaves them at the source priors',
    )
    MANY_CLASSES = (
        "many-classes",
        "more than 5 classes, and no calibration or fewer than 50 validation rows of one of "
        "them: adjusted posteriors may be worse than raw ones",
    )
    NO_DATA_ROOTS = (
        "no-data-roots",
        "a key for some models opens no data root unless it says so: name them in `roots`, if "
        "it is for jobs",
    )
    NO_HISTOGRAM = (
        "no-histogram",
        "there are no scores to count, or more than 50 classes of them",
    )
    NO_INTERVAL = (
        "no-interval",
        "this method has none, or a bootstrap would take too long at this size: ask for another"
        " method or kind",
    )
    NO_SHIFT_TEST = (
        "no-shift-test",
        "predicted outputs need a confusion matrix for the test; features that no classifier "
        "scored have none",
    )
    NO_TRACE = (
        "no-trace",
        "a trace was asked of a method that has none: use `em`",
    )
    NO_VALIDATION_SET = (
        "no-validation-set",
        "the source priors of a monitor are taken as exact, so that the budget of false alarms "
        "does not hold",
    )
    NO_VALUES = (
        "no-values",
        "no row has a value of an attribute; its thresholds stayed",
    )
    NOT_CONVERGED = (
        "not-converged",
        "fits ended before they had converged: raise `max_iter`, or lower `C`",
    )
    NOT_FISHER_CONSISTENT = (
        "not-fisher-consistent",
        "`cde` misses the truth even with perfect posteriors: use `mle` or `acc-qp`",
    )
    NOT_IDENTIFIABLE = (
        "not-identifiable",
        "these classes cannot be told apart; the answer nearest to the source priors is given",
    )
    NOT_PRIOR_SHIFT = (
        "not-prior-shift",
        "no class shares explain the batch (`fit`): something else has changed, a new kind of "
        "case, say. Or, by posteriors, the validation rows were scored out of fold, by other "
        'models than the batch. Doubt every share; `rffm` with `"soft": true` says how much is '
        "none of the classes",
    )
    OPTIONS_UNUSED = (
        "options-unused",
        "options were given that the method, which was left to the service, has not: name a "
        "method that has them, or leave them out",
    )
    OUTPUT_SHIFT_AMBIGUOUS = (
        "output-shift-ambiguous",
        "changed shares and changed attributes explain the batch equally well: send "
        "`target_priors` or `deployment_labels`",
    )
    OUTPUT_SHIFT_UNSETTLED = (
        "output-shift-unsettled",
        "thresholds and class shares did not settle together: send `target_priors` if you know "
        "them",
    )
    PRIORS_DISAGREE = (
        "priors-disagree",
        "the priors that you stated are not those of the validation set, which are used",
    )
    PRIORS_FROM_CONFUSION_MATRIX = (
        "priors-from-confusion-matrix",
        "no priors were given; row totals of the confusion matrix are used",
    )
    PRIORS_NOT_IN_HEADER = (
        "priors-not-in-header",
        "the answer is binary and has too many classes for the header: ask for JSON",
    )
    RAW_SHIFT_TEST = (
        "raw-shift-test",
        "without a validation set the test alarms on every large batch: register one",
    )
    RENORMALISED = (
        "renormalised",
        "rows summed to 1 within 1e-3 but not within 1e-6, and were rescaled",
    )
    RENORMALISED_PRIORS = (
        "renormalised-priors",
        "stated priors did not sum to 1 within 1e-6 and were rescaled",
    )
    RENORMALISED_VALIDATION = (
        "renormalised-validation",
        "the same for rows of the validation set",
    )
    SCORES_REVERSED = (
        "scores-reversed",
        "higher scores mean lower chances in the validation set: check that labels and columns "
        "belong together",
    )
    SHOWN_ONCE = (
        "shown-once",
        "the secret was in the first answer to this `Idempotency-Key`, and is not shown again: "
        "make another if it is lost",
    )
    SKIPPED_ROWS = (
        "skipped-rows",
        'rows or files of a data set were wrong and left out, as `on_error: "skip"` asks: the '
        "message names the first",
    )
    SMALL_BATCH = (
        "small-batch",
        "fewer than 100 rows: the interval says more than the estimate",
    )
    SMALL_VALIDATION_SET = (
        "small-validation-set",
        "fewer than ten validation rows per row of a window: the source is so uncertain that "
        "only larger shifts raise an alert",
    )
    SOLVER = (
        "solver",
        "the quadratic programme was not solved: do not rely on this estimate",
    )
    STALE_SELECTION = (
        "stale-selection",
        "the database cannot be reached: the version is the one that `latest`, the alias or the"
        " number meant when it last answered",
    )
    STOPPED_SHORT = (
        "stopped-short",
        "the search stopped before the maximum: use `mle`, or lower `options.tolerance`",
    )
    UNCALIBRATED = (
        "uncalibrated",
        "there is no validation set; or the mean posterior misses the label frequency by more "
        "than three standard errors on it: register one, with calibration `bcts`",
    )
    UNCORRECTED = (
        "uncorrected",
        "`cc` and `pcc` carry the source priors into the estimate",
    )
    UNIDENTIFIED_LINK = (
        "unidentified-link",
        "the source does not let a number of the link be found (a coefficient of it is zero); "
        "it stays at 1",
    )
    UNKNOWN_LEVELS = (
        "unknown-levels",
        "values of categorical columns that training never saw were ignored; train again if "
        "there are many",
    )
    UNPREDICTED_OUTPUTS = (
        "unpredicted-outputs",
        "the confusion matrix never predicts a class: its share cannot be told from counts",
    )
    UNSUPPORTED_ROWS = (
        "unsupported-rows",
        "rows are impossible under the source model; they were left out",
    )
    VALIDATION_TOO_SMALL = (
        "validation-too-small",
        "fewer than 50 validation rows, or 4 of a class: methods could not be tried on them, "
        "and estimates rest on little",
    )
    VARIANCE_FLOOR = (
        "variance-floor",
        "a component runs through its rows, and only a floor keeps its variance from zero: ask "
        "for fewer components, or send more rows",
    )


@dataclass(frozen=True)
class Warning:
    """Something that the caller of an answer should know; cut to a length.

    ``code``: stable, for programs.
    ``message``: tells people what to do.
    """

    code: WarningCode
    message: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", clipped(self.message, LONGEST_MESSAGE))
