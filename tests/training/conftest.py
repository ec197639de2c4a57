"""One thread for what is fitted in the test's own process."""

from collections.abc import Iterator

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """More would fight each other on a busy machine."""
    with threadpool_limits(1):
        yield
