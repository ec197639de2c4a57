"""The memory of a process, in MB, as Linux counts it."""

from pathlib import Path


def resident(pid: int | str = "self") -> float:
    """What it has."""
    return _status(pid, "VmRSS")


def peak(pid: int | str = "self") -> float:
    """The most that it had since ``forget_peak``."""
    return _status(pid, "VmHWM")


def forget_peak(pid: int | str = "self") -> None:
    """Look for the peak from now on."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def _status(pid: int | str, name: str) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) / 1024
    raise ValueError(f"the process has no {name}")
