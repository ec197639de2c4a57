"""Where events are sent, what came of it, and the events themselves."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from priorshift_client.errors import UnexpectedAnswer
from priorshift_client.monitoring import Alert
from priorshift_client.reading import read
from priorshift_client.results import Warning

EventType = Literal["alert.opened", "alert.acknowledged", "alert.closed"]


@dataclass(frozen=True)
class Webhook:
    """A webhook. ``secret``: what its receiver verifies with, in the answer that made it only.

    ``models``, ``monitors``: None for all. ``reason``: why the service itself disabled it.
    """

    id: str
    url: str
    events: tuple[str, ...]
    models: tuple[str, ...] | None
    monitors: tuple[str, ...] | None
    description: str
    disabled: bool
    reason: str | None
    created_at: datetime
    updated_at: datetime
    secret_rotated_at: datetime | None
    secret: str | None = field(default=None, repr=False)
    warnings: tuple[Warning, ...] = ()


@dataclass(frozen=True)
class Attempt:
    """An attempt: the status of the answer, or why there was none."""

    at: datetime
    status: int | None
    error: str | None
    milliseconds: float


@dataclass(frozen=True)
class Delivery:
    """An event for a webhook; ``message``: its header webhook-id, the same in every attempt.

    ``status``: pending, delivered, failed or cancelled.
    """

    id: str
    message: str
    type: str
    status: str
    created_at: datetime
    next_attempt_at: datetime | None
    attempts: tuple[Attempt, ...]


@dataclass(frozen=True)
class Event:
    """What a receiver is told; ``message`` is the same should it come again."""

    type: str
    timestamp: datetime
    data: dict[str, Any] = field(repr=False)
    message: str = ""

    @property
    def alert(self) -> Alert | None:
        """The alert that it tells of, with the classes that moved most; None of other events."""
        if not self.type.startswith("alert."):
            return None
        try:
            return read(Alert, self.data)
        except (KeyError, TypeError, ValueError) as error:
            raise UnexpectedAnswer(f"{self.type} holds no alert: {error!r}") from error
