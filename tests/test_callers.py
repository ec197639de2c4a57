"""Who is remembered, for how long, and who is forgotten first."""

import time
from datetime import UTC, datetime, timedelta

from app.access.callers import Caller, Known


def caller(name: str, expires_at: datetime | None = None) -> Caller:
    return Caller(name, name, frozenset({"read"}), expires_at=expires_at)


def test_of_too_many_the_one_longest_unseen_goes() -> None:
    known = Known(3)
    for name in "abcadea":
        known.note(name.encode(), caller(name))
    found = [known.find(name.encode(), 60) for name in "abcde"]
    assert [who and who.name for who in found] == ["a", None, None, "d", "e"]


def test_nobody_is_believed_for_longer_than_said_or_than_the_key_lasts() -> None:
    known = Known()
    known.note(b"a", caller("a"))
    known.note(b"over", caller("over", datetime.now(UTC) - timedelta(seconds=1)))
    known.note(b"stands", caller("stands", datetime.now(UTC) + timedelta(hours=1)))
    assert known.find(b"a", 60) == caller("a")
    assert known.find(b"over", 60) is None
    assert known.find(b"stands", 60) is not None
    assert known.find(b"other", 60) is None
    time.sleep(0.02)
    assert known.find(b"a", 0.01) is None
