"""A job in the words of a command line, as the service takes it."""

from collections.abc import Callable, Sequence
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


def named(
    option: str,
    given: Sequence[str],
    name: str = "CLASS",
    cut: Callable[[str, str], tuple[str, str, str]] = str.rpartition,
) -> dict[str, str]:
    """``name=word`` each; ``ValueError`` for another, or a name twice.

    ``cut``: at which equals sign. A class may hold one, a column or a number hardly.
    """
    found: dict[str, str] = {}
    for text in given:
        key, mark, value = cut(text, "=")
        if not (mark and key and value):
            raise ValueError(f"{option} {text}: write {name}=VALUE")
        if key in found:
            raise ValueError(f"{option}: {key} is there twice")
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
