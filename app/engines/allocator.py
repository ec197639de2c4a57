"""Memory that a worker keeps between the chunks of a pass.

A pass makes and drops arrays of a quarter of a megabyte by the thousand. Where malloc returns them
to the system each time, as a Dask nanny tells it to, every one is zeroed and mapped anew, and a
pass takes three times as long.
"""

import ctypes
from functools import cache

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
TRIM_ABOVE = 64 * 1024 * 1024
LARGEST = 16 * 1024 * 1024


@cache
def keep_memory() -> bool:
    """Have glibc keep some memory at hand, once per process; False for another allocator."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return bool(mallopt(M_MMAP_THRESHOLD, LARGEST) and mallopt(M_TRIM_THRESHOLD, TRIM_ABOVE))
