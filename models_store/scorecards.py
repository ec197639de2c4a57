"""Scorecards as JSON and back."""

from dataclasses import replace
from typing import Any

import numpy as np

from app.core.prevalence.scorecard import Score, Scorecard


def encode(card: Scorecard) -> dict[str, Any]:
    """A scorecard as JSON; an error that does not exist as null."""
    scores = [
        {
            "method": score.method,
            "errors": [None if np.isnan(error) else error for error in score.errors.tolist()],
            "brier": score.brier,
            "reason": score.reason,
        }
        for score in card.scores
    ]
    return {**vars(card), "scores": scores}


def decode(content: dict[str, Any]) -> Scorecard:
    """The scorecard of ``encode``."""
    scores = tuple(
        Score(
            score["method"],
            np.array(score["errors"], np.float64),
            score["brier"],
            score["reason"],
        )
        for score in content["scores"]
    )
    card = Scorecard(**{**content, "scores": scores})
    return replace(card, sizes=tuple(card.sizes), priors=tuple(card.priors))
