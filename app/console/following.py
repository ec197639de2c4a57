"""A job that goes on elsewhere, followed through whatever happens on the way there."""

import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from time import monotonic, sleep
from urllib.parse import quote

import httpx

from app.console.interrupts import Interrupts
from app.console.progress import JobDisplay
from app.console.service import NotNow, RequestRefused, Service, Unreachable, ask
from app.console.terminal import Terminal
from app.core.json_types import JsonObject

LOOK_SECONDS = 1.0
"""Between looks at a job without a stream, and tries to reach a service that is gone."""
PATIENCE_SECONDS = 600.0
"""How long a service may be gone before it is given up."""

LEAVING = "the job goes on; priorshift job follow"

Job = JsonObject
News = Iterator[Job | None]
"""A job whenever it changes, the last time when it is over; None while nobody answers."""


class Left(Exception):
    """Who followed a job has gone; the job goes on."""


def address(id: str) -> str:
    """Of a job."""
    return f"/v1/jobs/{quote(id, safe='')}"


def over(job: Job) -> bool:
    """Whether nothing more comes of it."""
    return job["finished_at"] is not None


def news(service: Service, id: str) -> News:
    """Of a job, from the stream of its events, and by asking where that ends early.

    A service that is gone is waited for; ``Unreachable`` after ``PATIENCE_SECONDS``.
    """
    answered, streams = monotonic(), True
    while True:
        try:
            job = ask(service, "GET", address(id)).json()
        except (Unreachable, NotNow):
            if monotonic() - answered > PATIENCE_SECONDS:
                raise
            yield None
        else:
            yield job
            if over(job):
                return
            heard = False
            for job in service.events(f"{address(id)}/events") if streams else ():
                heard = True
                yield job
                if over(job):
                    return
            # A stream that says nothing is held back by something between.
            answered, streams = monotonic(), heard
        sleep(LOOK_SECONDS)


def follow(
    of: Callable[[], News],
    service: Service,
    id: str,
    interrupts: Interrupts,
    leaving: str = LEAVING,
) -> Job:
    """The job once it is over, shown meanwhile; Ctrl-C asks, ``Left`` if it is to go on alone."""
    console = Terminal(stderr=True)
    while True:
        try:
            with interrupts.felt(), JobDisplay(console, id) as display:
                for job in of():
                    display.update(job)
            assert job is not None
            return job
        except KeyboardInterrupt:
            choice = _choice(console, interrupts)
        if choice == "d":
            raise Left(f"{leaving} {id}")
        if choice == "c":
            cancel(service, id)


def cancel(service: Service, id: str) -> httpx.Response | None:
    """Have it end; None where it is over already."""
    with suppress(RequestRefused):
        return ask(service, "DELETE", address(id))
    return None


def _choice(console: Terminal, interrupts: Interrupts) -> str:
    """c, d, or another letter to go on; whoever cannot be asked, or has had enough, detaches."""
    if not (sys.stdin.isatty() and console.is_terminal):
        return "d"
    try:
        with interrupts.felt():
            console.print("cancel the job (c), detach from it (d), or go on (Enter)? ", end="")
            return input().strip().lower()[:1]
    except (KeyboardInterrupt, EOFError):
        console.print()
        return "d"
