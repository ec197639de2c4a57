"""A training set and a batch at priors of their own, and what four learners say of the batch."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.special import expit, softmax

from app.core.arrays import Codes, Floats
from app.core.prevalence.calibration import fit
from app.core.prevalence.measures import normalised_absolute_error
from benchmarks.sld.corpus import Corpus, Counts, inverse_document_frequency, weighted

Calibrated = Literal["none", "platt", "bcts"]

CALIBRATIONS: tuple[Calibrated, ...] = ("none", "platt", "bcts")
FITTED = CALIBRATIONS[1:]
"""Of a learner without posteriors of its own."""
FEWEST = 2
"""Training documents of a class, so that the rest of every fold has one."""
FOLDS = 5


@dataclass(frozen=True)
class Trial:
    """Rows of a corpus to train on and to estimate, with labels 0 … classes − 1.

    ``redrawn``: priors that asked for more documents of a class than there are.
    """

    training: Codes
    training_labels: Codes
    batch: Codes
    labels: Codes
    classes: int
    redrawn: int

    @property
    def source(self) -> Floats:
        """Class frequencies of the training set."""
        return _frequencies(self.training_labels, self.classes)

    @property
    def truth(self) -> Floats:
        """Class frequencies of the batch."""
        return _frequencies(self.labels, self.classes)

    @property
    def shift(self) -> float:
        """NAE between the two, the training set's taken as the true ones (eq. 12)."""
        return normalised_absolute_error(self.source, self.truth)


def _frequencies(labels: Codes, classes: int) -> Floats:
    shares: Floats = np.bincount(labels, minlength=classes) / len(labels)
    return shares


def normalised_uniforms(classes: int, rng: np.random.Generator) -> Floats:
    """Random priors as in the paper: not uniform on the simplex, skewed ones are rare."""
    drawn = rng.random(classes)
    shares: Floats = drawn / drawn.sum()
    return shares


def trial(corpus: Corpus, classes: int, size: int, rng: np.random.Generator) -> Trial:
    """``size`` documents to train on and as many others to estimate.

    Two classes are one against the rest, more are a random choice.
    """
    groups = _groups(corpus, classes, rng)
    available = np.array([len(group) for group in groups])
    redrawn = -1
    training = batch = available
    while (training + batch > available).any():
        redrawn += 1
        training = np.maximum(rng.multinomial(size, normalised_uniforms(classes, rng)), FEWEST)
        batch = rng.multinomial(size, normalised_uniforms(classes, rng))
    shuffled = [rng.permutation(group) for group in groups]
    ends = zip(shuffled, training, batch, strict=True)
    rows = [(some[:first], some[first : first + second]) for some, first, second in ends]
    codes = np.arange(classes)
    return Trial(
        np.concatenate([first for first, _ in rows]),
        np.repeat(codes, training),
        np.concatenate([second for _, second in rows]),
        np.repeat(codes, batch),
        classes,
        redrawn,
    )


def _groups(corpus: Corpus, classes: int, rng: np.random.Generator) -> list[Codes]:
    """Rows of each class of the trial."""
    chosen = rng.choice(corpus.classes, classes if classes > 2 else 1, replace=False)
    groups = [np.flatnonzero(corpus.labels == k) for k in chosen]
    if classes == 2:
        groups.append(np.flatnonzero(corpus.labels != chosen[0]))
    return groups


@dataclass(frozen=True)
class Scores:
    """N × C posteriors of a learner, and the scores that Platt's sigmoid takes."""

    posteriors: Floats
    platt: Floats


@dataclass(frozen=True)
class Scored:
    """What a learner says: of the training set, out-of-fold, and of the batch."""

    learner: str
    training: Scores
    batch: Scores
    calibrations: tuple[Calibrated, ...]


def learners(seed: int) -> dict[str, Any]:
    """The paper's four, at scikit-learn's defaults (the linear SVM is one against the rest)."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import MultinomialNB
    from sklearn.svm import LinearSVC

    return {
        "naive Bayes": MultinomialNB(),
        "logistic regression": LogisticRegression(max_iter=1000),
        "SVM": LinearSVC(),
        "random forest": RandomForestClassifier(random_state=seed),
    }


def scored(corpus: Corpus, trial: Trial, seed: int) -> Iterator[Scored]:
    """Train each learner; the features are weighted by the training set's frequencies."""
    counts = corpus.counts[trial.training]
    idf = inverse_document_frequency(counts)
    seen = np.flatnonzero(idf)
    features = weighted(counts[:, seen], idf[seen])
    others = weighted(corpus.counts[trial.batch][:, seen], idf[seen])
    for name, learner in learners(seed).items():
        held_out = _out_of_fold(learner, features, trial.training_labels, seed)
        learner.fit(features, trial.training_labels)
        batch = _scores(learner, others)
        yield Scored(name, held_out, batch, CALIBRATIONS if _gives_posteriors(learner) else FITTED)


def _out_of_fold(learner: Any, features: Counts, labels: Codes, seed: int) -> Scores:
    from sklearn.model_selection import StratifiedKFold

    classes = int(labels.max()) + 1
    posteriors, platt = np.empty((2, len(labels), classes))
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    for rest, held in folds.split(features, labels):
        scores = _scores(learner.fit(features[rest], labels[rest]), features[held])
        posteriors[held], platt[held] = scores.posteriors, scores.platt
    return Scores(posteriors, platt)


def _gives_posteriors(learner: Any) -> bool:
    return hasattr(learner, "predict_proba")


def _scores(learner: Any, features: Counts) -> Scores:
    """Platt's sigmoid takes decision values where there are any, like scikit-learn."""
    if not hasattr(learner, "decision_function"):
        posteriors = learner.predict_proba(features)
        return Scores(posteriors, posteriors)
    values = learner.decision_function(features)
    if values.ndim == 1:
        values = np.column_stack([-values, values])
    if _gives_posteriors(learner):
        return Scores(learner.predict_proba(features), values)
    return Scores(softmax(values, axis=1), values)


def calibrated(raw: Scored, labels: Codes, method: Calibrated) -> Floats:
    """Calibrated posteriors of the batch, N × C; the fit is on the out-of-fold scores."""
    if method == "platt":
        # The fit takes log-odds of what it is given: those of expit(s) are s.
        map_ = fit("platt", expit(raw.training.platt), labels)
        return map_.apply(expit(raw.batch.platt))
    return fit(method, raw.training.posteriors, labels).apply(raw.batch.posteriors)
