"""Deadlines that follow the machine: a second of an idle one may be twenty beside others.

Every time that a test waits for, or allows, goes through here. It is given in seconds of an idle
machine, and is longer by as much as a small process takes longer now.
"""

import subprocess
import sys
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PROBE = (sys.executable, "-c", "import asyncio")
USUAL_SECONDS = 0.1
"""What the probe takes on an idle machine."""
FRESH_SECONDS = 30.0
"""Between measurements."""

_measured, _slowest = -FRESH_SECONDS, 1.0


def slowness() -> float:
    """How many times longer than on an idle machine things take; the most seen so far, from 1."""
    global _measured, _slowest
    if time.monotonic() >= _measured + FRESH_SECONDS:
        began = time.monotonic()
        subprocess.run(PROBE, check=True)
        _measured = time.monotonic()
        _slowest = max(_slowest, (_measured - began) / USUAL_SECONDS)
    return _slowest


def patience(seconds: float) -> float:
    """How long what takes at most ``seconds`` on an idle machine may take here and now."""
    return seconds * slowness()


class Deadline:
    """``seconds`` of an idle machine from now on; measured once they are over, not before."""

    def __init__(self, seconds: float) -> None:
        self._began, self._seconds = time.monotonic(), seconds

    def over(self) -> bool:
        """Whether there was time enough, however busy the machine."""
        spent = time.monotonic() - self._began
        return spent > self._seconds and spent > patience(self._seconds)


def until(
    look: Callable[[], T | None], seconds: float = 60.0, what: object = "it did not happen"
) -> T:
    """What ``look`` finds, as soon as it is true."""
    deadline = Deadline(seconds)
    while True:
        found = look()
        if found:
            return found
        assert not deadline.over(), what
        time.sleep(0.01)
