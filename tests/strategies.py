"""Random problems for property tests."""

import numpy as np
from hypothesis import strategies as st

from app.core.arrays import Floats


@st.composite
def simplex(draw: st.DrawFn, classes: int, smallest: float = 0.0) -> Floats:
    """A point of the simplex, no entry below about ``smallest``."""
    weights = draw(
        st.lists(st.floats(smallest, 1.0), min_size=classes, max_size=classes).filter(
            lambda values: sum(values) > 1e-3
        )
    )
    point = np.array(weights)
    shares: Floats = point / point.sum()
    return shares


@st.composite
def posterior_rows(draw: st.DrawFn, classes: int, largest: int = 12) -> Floats:
    """1 to ``largest`` rows of posteriors, exact zeros among them."""
    rows = draw(st.integers(1, largest))
    return np.array([draw(simplex(classes)) for _ in range(rows)])
