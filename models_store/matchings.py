"""What features are matched with, as JSON and arrays, and back. Raw features are not kept."""

from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.core.prevalence.matching.embedding import Embedding
from app.core.prevalence.matching.posterior_fit import Bins
from app.core.prevalence.matching.random_features import FourierMap, Standard
from app.core.prevalence.matching.version import Exact, Matching, MatchingOptions

Arrays = dict[str, NDArray[Any]]
LOADED = (
    "match_standard",
    "match_frequencies",
    "match_counts",
    "match_means",
    "match_axes",
    "match_spread",
    "bins_edges",
    "bins_counts",
)
EXACT = ("exact_rows", "exact_labels", "exact_gaussian", "exact_energy")
"""Standardised features and their kernels: read only where an exact kernel is asked for."""


def arrays(matching: Matching | None, bins: Bins | None) -> Arrays:
    """What is kept as arrays; axes and spread in single precision, which noise exceeds by far."""
    found: Arrays = {}
    if bins is not None:
        found |= {"bins_edges": bins.edges, "bins_counts": bins.counts}
    if matching is None:
        return found
    embedding, kept = matching.embedding, matching.exact_rows
    found["match_standard"] = np.stack([embedding.standard.centre, embedding.standard.scale])
    found["match_frequencies"] = embedding.map.frequencies
    found["match_counts"] = embedding.counts
    found["match_means"] = embedding.means
    if embedding.axes is not None and embedding.spread is not None:
        found["match_axes"] = embedding.axes.astype(np.float32)
        found["match_spread"] = embedding.spread.astype(np.float32)
    if kept is not None:
        found["exact_rows"], found["exact_labels"] = kept.rows, kept.labels.astype(np.int32)
        found["exact_gaussian"], found["exact_energy"] = kept.gaussian, kept.energy
    return found


def to_json(matching: Matching | None) -> dict[str, Any] | None:
    """The rest."""
    if matching is None:
        return None
    return {
        "options": asdict(matching.options),
        "names": list(matching.names),
        "bandwidth": matching.bandwidth,
        "exact": matching.exact,
    }


def from_json(content: dict[str, Any] | None, kept: Arrays) -> Matching | None:
    """What ``to_json`` and ``arrays`` said, without the rows of the exact kernels."""
    if content is None:
        return None
    axes, spread = kept.get("match_axes"), kept.get("match_spread")
    embedding = Embedding(
        standard=Standard(*kept["match_standard"]),
        map=FourierMap(kept["match_frequencies"]),
        counts=kept["match_counts"],
        means=kept["match_means"],
        axes=None if axes is None else axes.astype(np.float64),
        spread=None if spread is None else spread.astype(np.float64),
    )
    return Matching(
        options=MatchingOptions(**content["options"]),
        names=tuple(content["names"]),
        bandwidth=content["bandwidth"],
        embedding=embedding,
        exact=content["exact"],
    )


def bins(kept: Arrays) -> Bins | None:
    """The bins of the validation rows; None where there were too few rows."""
    if "bins_edges" not in kept:
        return None
    return Bins(kept["bins_edges"], kept["bins_counts"])


def exact(kept: Arrays) -> Exact:
    """The rows of the exact kernels."""
    labels = kept["exact_labels"].astype(np.intp)
    return Exact(kept["exact_rows"], labels, kept["exact_gaussian"], kept["exact_energy"])
