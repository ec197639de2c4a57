"""What a server does besides answering: it drops what is too old, and tells when the database goes.

Every process does it for itself, in a thread. Nothing is lost or done twice when two of them meet:
to drop what is gone already drops nothing.
"""

import random
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from app.logs import log
from models_store.errors import Unavailable
from models_store.store import Store

EVERY_SECONDS = 60.0
FIRST_SECONDS = 0.5
"""Before the database is asked again when it did not answer; twice as long each time."""
LONGEST_SECONDS = 30.0
DELIVERY_DAYS = 30
BATCH = 500
"""Rows that one transaction drops, so that nobody waits long for it."""


class Housekeeping:
    """Keeps estimates for ``retain_days`` (None: for ever), answers to retries for a day.

    Deliveries of webhooks it keeps for ``DELIVERY_DAYS``. ``settle`` writes what could not be
    written while the database was away.
    """

    def __init__(
        self, store: Store, retain_days: int | None, settle: Callable[[], None] = lambda: None
    ) -> None:
        self._store = store
        self._settle = settle
        self._retain_days = retain_days
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="housekeeping", daemon=True)

    def start(self) -> None:
        """Begin, without waiting for it."""
        self._thread.start()

    def close(self) -> None:
        """End after the transaction under way."""
        self._stopped.set()
        self._thread.join()

    def sweep(self, now: datetime) -> int:
        """Drop everything that is too old; how many estimates that were."""
        dropped = 0
        while not self._stopped.is_set():
            estimates, others = self._batch(now)
            dropped += estimates
            if estimates < BATCH and others < BATCH:
                break
        if dropped:
            log.info("pruned", estimates=dropped, older_than_days=self._retain_days)
        return dropped

    def _batch(self, now: datetime) -> tuple[int, int]:
        settled = now - timedelta(days=DELIVERY_DAYS)
        oldest = None if self._retain_days is None else now - timedelta(days=self._retain_days)
        with self._store.read() as unit:
            stale = unit.idempotency.stale(now)
            old = oldest is not None and unit.estimates.any_before(oldest)
            sent = unit.webhooks.any_before(settled)
            over = unit.sessions.any_over(now)
        if not (stale or old or sent or over):
            return 0, 0
        with self._store.write() as unit:
            answers = unit.idempotency.prune(now, BATCH)
            deliveries = unit.webhooks.prune(settled, BATCH)
            sessions = unit.sessions.prune(now, BATCH)
            estimates = 0 if oldest is None else unit.estimates.prune(oldest, BATCH)
        return estimates, max(answers, deliveries, sessions)

    def _run(self) -> None:
        pause, reachable = 0.0, True
        while not self._stopped.wait(pause):
            try:
                self._settle()
                self.sweep(datetime.now(UTC))
            except Unavailable as error:
                pause = min(2 * pause, LONGEST_SECONDS) if not reachable else FIRST_SECONDS
                if reachable:
                    log.warning("database unavailable", reason=str(error))
                reachable = False
                continue
            except Exception as error:
                log.error("housekeeping failed", exc_info=error)
            if not reachable:
                log.info("database available again")
            reachable, pause = True, EVERY_SECONDS * random.uniform(0.5, 1.5)  # noqa: S311
