"""Have the priors shifted? The likelihood-ratio test of the source priors.

LR = 2 N (ℓ(p̂) − ℓ(p0)) (Saerens, Latinne and Decaestecker 2002, section 4). Chi-square with
C − 1 degrees of freedom holds only if the classifier's mean posterior on the source equals p0
exactly. Where p0 was estimated on n labelled rows, the score's variance is (1/N + 1/n) instead
of 1/N times the information, so LR / (1 + N/n) is compared.
"""

from dataclasses import dataclass, replace
from typing import Literal

from app.core.prevalence.numerics.chi_square import upper_tail

Reference = Literal["chi-square", "scaled-chi-square", "bootstrap"]


@dataclass(frozen=True)
class ShiftTest:
    """Whether the priors of a batch's population differ from the source's.

    ``statistic``: 2N · gain ≥ 0.
    ``scale``: the divisor 1 + N/n; one without a validation set.
    ``degrees_of_freedom``: of the chi-square references.
    ``p_value``: of statistic / scale under ``reference``.
    ``raw_p_value``: of the statistic itself under chi-square.
    ``reference``: what the statistic is compared with.
    ``significance``: as asked for.
    ``minimum_effect``: as asked for.
    ``effect_size``: total variation between source priors and estimate, in [0, 1].
    ``detected``: p_value < significance (≤ where p is by resampling) and effect_size ≥
        minimum_effect.
    ``raw_false_alarm_rate``: how often the raw test on uncalibrated posteriors would alarm without
        a shift; None where nobody can tell.
    ``seed``: of a p-value by resampling; None for others.
    ``replicates``: of a p-value by resampling; None for others.
    """

    statistic: float
    scale: float
    degrees_of_freedom: int
    p_value: float
    raw_p_value: float
    reference: Reference
    significance: float
    minimum_effect: float
    effect_size: float
    detected: bool
    raw_false_alarm_rate: float | None = None
    seed: int | None = None
    replicates: int | None = None


def likelihood_ratio_test(
    gain: float,
    size: float,
    degrees_of_freedom: int,
    effect_size: float,
    validation_size: float | None,
    significance: float = 0.05,
    minimum_effect: float = 0.0,
    raw_false_alarm_rate: float | None = None,
) -> ShiftTest:
    """Test from the mean log-likelihood ``gain`` of the estimate on ``size`` rows.

    ``validation_size``: the n rows on which the source priors were estimated, None where they
    are taken as exact.
    """
    statistic = 2.0 * size * gain
    scale = 1.0 if validation_size is None else 1.0 + size / validation_size
    p_value = upper_tail(statistic / scale, degrees_of_freedom)
    return ShiftTest(
        statistic=statistic,
        scale=scale,
        degrees_of_freedom=degrees_of_freedom,
        p_value=p_value,
        raw_p_value=upper_tail(statistic, degrees_of_freedom),
        reference="chi-square" if validation_size is None else "scaled-chi-square",
        significance=significance,
        minimum_effect=minimum_effect,
        effect_size=effect_size,
        detected=p_value < significance and effect_size >= minimum_effect,
        raw_false_alarm_rate=raw_false_alarm_rate,
    )


def with_p_value(test: ShiftTest, p_value: float, seed: int, replicates: int) -> ShiftTest:
    """The same test with a p-value by resampling."""
    return replace(
        test,
        p_value=p_value,
        reference="bootstrap",
        detected=p_value <= test.significance and test.effect_size >= test.minimum_effect,
        seed=seed,
        replicates=replicates,
    )
