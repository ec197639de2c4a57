"""Which version a selector meant a moment ago, so that not every request asks the database."""

import threading
from collections.abc import Collection
from time import monotonic

MOST = 10_000


class Selections:
    """Ids of versions by model and selector, believed for ``seconds``.

    What this process changes it forgets at once; what another process changes is seen after
    ``seconds`` at the latest.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._found: dict[tuple[str, str], tuple[int, float]] = {}
        self._lock = threading.Lock()

    def get(self, model: str, selector: str) -> int | None:
        """The id, if it was looked up not long ago."""
        version_id, until = self._found.get((model, selector), (None, 0.0))
        return version_id if monotonic() < until else None

    def last(self, model: str, selector: str) -> int | None:
        """The id that was found last, however long ago."""
        return self._found.get((model, selector), (None,))[0]

    def put(self, model: str, selector: str, version_id: int, asked: float) -> None:
        """Believe what the database said to a question ``asked`` (monotonic seconds)."""
        with self._lock:
            if len(self._found) >= MOST:
                self._found.clear()
            self._found[model, selector] = version_id, asked + self._seconds

    def forget(self, models: Collection[str]) -> None:
        """These models have changed."""
        if models:
            with self._lock:
                self._found = {key: v for key, v in self._found.items() if key[0] not in models}
