"""Whether to send a call again, and when."""

import random
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from priorshift_client.calls import Answer, Call
from priorshift_client.errors import TransportError

PASSING = (429, 503)


@dataclass(frozen=True)
class Retries:
    """At most ``most`` more attempts, ``first`` · 2^n seconds apart, never more than ``longest``.

    A Retry-After is waited out, up to ``longest``. Up to as much again as the exponential pause is
    added at random, so that callers who were refused together do not come back together.
    """

    most: int = 3
    first: float = 0.1
    longest: float = 20.0
    chance: random.Random = field(default_factory=random.Random, repr=False, compare=False)

    def pause(
        self, call: Call[Any], outcome: Answer | TransportError, attempt: int
    ) -> float | None:
        """Seconds before the next attempt; None if this was the last. Attempts count from 0."""
        if attempt >= self.most or not call.repeatable:
            return None
        if isinstance(outcome, Answer) and outcome.status not in PASSING:
            return None
        backoff = self.first * 2.0 ** min(attempt, 30)
        retry_after = _retry_after(outcome) if isinstance(outcome, Answer) else 0.0
        return float(min(max(retry_after, backoff) + self.chance.random() * backoff, self.longest))


def _retry_after(answer: Answer) -> float:
    """Seconds, from seconds or from a date; 0 where nothing readable is said."""
    value = answer.headers.get("retry-after", "").strip()
    if value.isascii() and value.isdigit():
        return float(value[:9])
    try:
        until = parsedate_to_datetime(value)
    except ValueError:
        return 0.0
    if until.tzinfo is None:
        until = until.replace(tzinfo=UTC)
    return max(0.0, (until - datetime.now(UTC)).total_seconds())
