"""Programs of Debian that tests need, installed when they are missing."""

import os
import shutil
import subprocess

import pytest

APT = ("apt-get", "-qq", "-o", "DPkg::Lock::Timeout=120")


def program(package: str, *names: str) -> str:
    """The path of a program by one of these names, of ``package``.

    Where it cannot be installed, the test is skipped, and fails if CI is set.
    """
    found = _first(names)
    if found is None and os.geteuid() == 0 and shutil.which(APT[0]):
        for command in (["update"], ["install", "-y", "--no-install-recommends", package]):
            subprocess.run([*APT, *command], check=False, capture_output=True)
        found = _first(names)
    if found is None:
        reason = f"{names[0]} is missing and cannot be installed here: apt-get install {package}"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return found


def _first(names: tuple[str, ...]) -> str | None:
    return next(filter(None, map(shutil.which, names)), None)
