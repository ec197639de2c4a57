"""What the lists of kept things share: identities, cursors by time, checked parameters."""

import re
from datetime import datetime

from app.http.dependencies import bad_cursor, decode_cursor
from app.schemas.requests import Timestamp
from app.schemas.validation import checked
from models_store.errors import NotFound

IDENTITY = "[0-9a-f]{32}"


def identity(id: str, what: str) -> str:
    """An identity as this service makes them, or ``NotFound``."""
    if re.fullmatch(IDENTITY, id) is None:
        raise NotFound(f"there is no {what} {id[:80]!r}")
    return id


def before_number(cursor: str | None) -> tuple[datetime, int] | None:
    """The same where things are numbered."""
    place = decode_cursor(cursor, 2)
    if place is None:
        return None
    if re.fullmatch("[0-9]{1,15}", place[1]) is None:
        raise bad_cursor()
    return checked(Timestamp, place[0], "/query/cursor"), int(place[1])


def before(cursor: str | None) -> tuple[datetime, str] | None:
    """The moment and identity that a cursor stands for."""
    place = decode_cursor(cursor, 2)
    if place is None:
        return None
    if re.fullmatch(IDENTITY, place[1]) is None:
        raise bad_cursor()
    return checked(Timestamp, place[0], "/query/cursor"), place[1]
