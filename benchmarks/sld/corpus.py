"""Documents as counts of words, and their weights."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from app.core.arrays import Codes, Floats

Counts = Any
"""A sparse matrix, documents × words (``csr_array``)."""


@dataclass(frozen=True)
class Corpus:
    """Labelled documents, none of them empty. ``counts``: documents × words."""

    name: str
    counts: Counts
    labels: Codes
    classes: int

    @classmethod
    def of(cls, name: str, counts: Counts, labels: Codes) -> "Corpus":
        """The documents that have words."""
        full = np.flatnonzero(np.diff(counts.indptr) > 0)
        kept = labels[full].astype(np.intp)
        return cls(name, counts[full], kept, int(kept.max()) + 1)


def newsgroups(folder: Path) -> Corpus:
    """20 newsgroups without headers, footers and quotes."""
    stored = np.load(folder / "newsgroups20_counts.npz", allow_pickle=False)
    parts = (stored["data"].astype(np.float64), stored["indices"], stored["indptr"])
    return Corpus.of("20 newsgroups", csr_array(parts, shape=stored["shape"]), stored["target"])


def synthetic(classes: int = 8, documents: int = 400, words: int = 300, seed: int = 0) -> Corpus:
    """Bags of about 20 words; every class has its own, overlapping word frequencies."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(words, 0.3), classes)
    common = rng.dirichlet(np.full(words, 1.0))
    rows = [
        rng.multinomial(rng.poisson(20) + 1, 0.3 * topic + 0.7 * common, documents)
        for topic in topics
    ]
    counts = csr_array(np.concatenate(rows).astype(np.float64))
    return Corpus.of("synthetic", counts, np.repeat(np.arange(classes), documents))


def inverse_document_frequency(counts: Counts) -> Floats:
    """ln(documents / documents with the word); zero for a word that occurs in none."""
    documents = counts.shape[0]
    holding = np.bincount(counts.indices, counts.data > 0, minlength=counts.shape[1])
    return np.where(holding > 0, np.log(documents / np.maximum(holding, 1)), 0.0)


def weighted(counts: Counts, idf: Floats) -> Counts:
    """(1 + ln count) · idf where a word occurs (eq. 13, its slip corrected), rows of length one."""
    weights = counts.copy()
    weights.data = (1.0 + np.log(weights.data)) * idf[weights.indices]
    length = np.sqrt(weights.power(2).sum(axis=1))
    weights.data /= np.repeat(np.where(length > 0, length, 1.0), np.diff(weights.indptr))
    return weights
