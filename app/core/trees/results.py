"""What an adaptation says, as values."""

from dataclasses import dataclass
from typing import Literal

from app.core.trees.ks import KolmogorovSmirnov

Kind = Literal["none", "linear", "monotone"]


@dataclass(frozen=True)
class AttributeShift:
    """One attribute: whether it moved, and what explains it.

    ``attribute``: its name.
    ``first``: the test of the batch as it is; None for a categorical attribute.
    ``adjusted_p_value``: of that test after the correction; 1 for a categorical attribute.
    ``shifted``: whether that is below the significance.
    ``kind``: what was done to the thresholds.
    ``alpha``: of the map from training to batch, x' = α x + β, above zero; None where none was
        fitted.
    ``beta``: of that map, in the units of the attribute; None where none was fitted.
    ``second``: the test of the batch after that map; None where it was not made.
    ``attained_share``: with percentiles, that of the threshold where ties kept it furthest from the
        training share; None elsewhere.
    """

    attribute: str
    first: KolmogorovSmirnov | None
    adjusted_p_value: float
    shifted: bool
    kind: Kind
    alpha: float | None = None
    beta: float | None = None
    second: KolmogorovSmirnov | None = None
    attained_share: float | None = None

    @property
    def in_words(self) -> str:
        """Such as "temperature: ×1.8 + 32", in the units of the attribute."""
        if self.kind == "monotone":
            return f"{self.attribute}: monotone"
        if self.kind == "none":
            return f"{self.attribute}: unchanged"
        assert self.alpha is not None
        assert self.beta is not None
        sign = "−" if self.beta < 0 else "+"
        return f"{self.attribute}: ×{self.alpha:.4g} {sign} {abs(self.beta):.4g}"


@dataclass(frozen=True)
class ThresholdChange:
    """One deciding node.

    ``node``: its position in the tree.
    ``attribute``: whose threshold it has.
    ``source``: the threshold of the source tree.
    ``adapted``: the new one; −∞ where no value of the batch may go to the left.
    ``share``: R of the source threshold, the training share below it; None without percentiles.
    ``attained_share``: the share of the batch below the adapted one; None without percentiles.
    """

    node: int
    attribute: str
    source: float
    adapted: float
    share: float | None = None
    attained_share: float | None = None
