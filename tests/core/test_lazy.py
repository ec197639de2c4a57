"""Values that are found once."""

from threading import Barrier, Thread

from app.core.lazy import cached_property
from tests.patience import patience


class Thing:
    """Something that is dear to find."""

    def __init__(self, barrier: Barrier | None = None) -> None:
        self.barrier, self.asked = barrier, 0

    @cached_property
    def value(self) -> int:
        """It."""
        self.asked += 1
        if self.barrier is not None:
            self.barrier.wait(patience(10))
        return 7


def test_a_value_is_found_once() -> None:
    thing = Thing()
    assert thing.value == thing.value == 7
    assert thing.asked == 1
    assert Thing.value.__doc__ == "It."


def test_threads_find_the_values_of_two_things_at_once() -> None:
    barrier = Barrier(2)
    things = [Thing(barrier), Thing(barrier)]
    threads = [Thread(target=lambda thing=thing: thing.value) for thing in things]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not barrier.broken
    assert [vars(thing)["value"] for thing in things] == [7, 7]
