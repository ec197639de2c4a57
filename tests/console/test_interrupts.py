"""Ctrl-C where nobody is ready for it, and where somebody is."""

import signal
from collections.abc import Iterator

import pytest

from app.console.interrupts import Interrupts


@pytest.fixture(autouse=True)
def usual() -> Iterator[None]:
    """As in a process of its own, whatever runs the tests."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupt() -> None:
    signal.raise_signal(signal.SIGINT)


def test_one_waits_until_it_is_felt() -> None:
    done: list[str] = []
    with Interrupts() as interrupts:
        interrupt()
        done.append("asked")
        with pytest.raises(KeyboardInterrupt), interrupts.felt():
            done.append("never")
        with interrupts.felt():
            done.append("followed")
    assert done == ["asked", "followed"]


def test_it_is_felt_at_once_in_the_block_and_kept_after_it() -> None:
    with Interrupts() as interrupts:
        with pytest.raises(KeyboardInterrupt), interrupts.felt():
            interrupt()
        interrupt()
        with pytest.raises(KeyboardInterrupt), interrupts.felt():
            pass


def test_the_second_leaves() -> None:
    with Interrupts():
        interrupt()
        with pytest.raises(KeyboardInterrupt):
            interrupt()


def test_all_is_as_before_when_it_is_over() -> None:
    with Interrupts():
        interrupt()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with pytest.raises(KeyboardInterrupt):
        interrupt()


def test_who_ignores_it_goes_on_to_ignore_it() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with Interrupts() as interrupts, interrupts.felt():
        interrupt()
    with Interrupts():
        interrupt()
        interrupt()
