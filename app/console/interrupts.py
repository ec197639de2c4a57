"""Ctrl-C at a bad moment: kept until somebody is ready for it."""

import signal
from types import FrameType
from typing import Any, Self


class Interrupts:
    """Within it Ctrl-C is felt in the blocks of ``felt``; elsewhere the first one waits for those.

    Whoever presses it twice while nobody is ready wants to leave at once, and does.
    """

    def __init__(self) -> None:
        self._kept = False
        self._before = signal.getsignal(signal.SIGINT)

    def __enter__(self) -> Self:
        self.keep()
        return self

    def __exit__(self, *error: object) -> None:
        self._set(self._before)

    def felt(self) -> "Felt":
        """A block in which Ctrl-C is ``KeyboardInterrupt``; one that was kept is, at its start."""
        return Felt(self)

    def feel(self) -> None:
        """From now on."""
        self._set(self._before)
        if self._kept:
            self.keep()
            self._kept = False
            raise KeyboardInterrupt

    def keep(self) -> None:
        """From now on."""
        self._set(self._keep)

    def _set(self, handler: Any) -> None:
        # Who was started with the signal ignored, as behind nohup, goes on to ignore it.
        if self._before is signal.default_int_handler:
            signal.signal(signal.SIGINT, handler)

    def _keep(self, number: int, frame: FrameType | None) -> None:
        if self._kept:
            raise KeyboardInterrupt
        self._kept = True


class Felt:
    """See ``Interrupts.felt``. No generator: an interrupt could leave it half way."""

    def __init__(self, interrupts: Interrupts) -> None:
        self._interrupts = interrupts

    def __enter__(self) -> None:
        self._interrupts.feel()

    def __exit__(self, *error: object) -> None:
        self._interrupts.keep()
