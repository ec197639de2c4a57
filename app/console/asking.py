"""A job in the words of a command line, as the service takes it."""

from collections.abc import Sequence
from typing import Any


def model(text: str) -> dict[str, Any]:
    """``cards``, ``cards@champion`` or ``cards@3``; the first means the latest version."""
    name, mark, which = text.partition("@")
    if mark and not which:
        raise ValueError(f"--model {text}: name an alias or a version after the @")
    if not mark or which == "latest":
        return {"model": name}
    if which.isascii() and which.isdigit():
        return {"model": name, "version": int(which)}
    return {"model": name, "alias": which}


def named(option: str, given: Sequence[str]) -> dict[str, str]:
    """``class=word`` each; ``ValueError`` for another, or a class twice."""
    found: dict[str, str] = {}
    for text in given:
        # A class may hold an equals sign, a column or a number hardly.
        name, mark, value = text.rpartition("=")
        if not (mark and name and value):
            raise ValueError(f"{option} {text}: write CLASS=VALUE")
        if name in found:
            raise ValueError(f"{option}: {name} is there twice")
        found[name] = value
    return found


def segment(given: Sequence[str]) -> dict[str, str]:
    """``key=value`` each; ``ValueError`` for another, or a key twice."""
    found: dict[str, str] = {}
    for text in given:
        key, mark, value = text.partition("=")
        if not (mark and key and value):
            raise ValueError(f"--segment {text}: write KEY=VALUE")
        if key in found:
            raise ValueError(f"--segment: {key} is there twice")
        found[key] = value
    return found


def priors(text: str) -> dict[str, float]:
    """``legit=0.95,fraud=0.05``."""
    given = named("--target-priors", text.split(","))
    try:
        return {name: float(value) for name, value in given.items()}
    except ValueError:
        raise ValueError(f"--target-priors {text}: write CLASS=SHARE,CLASS=SHARE") from None


def stated(**given: Any) -> dict[str, Any]:
    """What was given, without what was not."""
    return {name: value for name, value in given.items() if value not in (None, [], {})}
