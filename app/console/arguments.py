"""Words of a command line as the service takes them."""

from collections.abc import Callable, Sequence
from typing import Any


def parse_model(text: str) -> dict[str, object]:
    """``cards``, ``cards@champion`` or ``cards@3``; the first means the latest version."""
    name, mark, which = text.partition("@")
    if mark and not which:
        raise ValueError(f"--model {text}: name an alias or a version after the @")
    if not mark or which == "latest":
        return {"model": name}
    if which.isascii() and which.isdigit():
        return {"model": name, "version": int(which)}
    return {"model": name, "alias": which}


def parse_pairs(
    option: str,
    texts: Sequence[str],
    name: str = "CLASS",
    cut: Callable[[str, str], tuple[str, str, str]] = str.rpartition,
) -> dict[str, str]:
    """``name=word`` each; ``ValueError`` for another, or a name twice.

    ``cut``: at which equals sign. A class may hold one, a column or a number hardly.
    """
    values: dict[str, str] = {}
    for text in texts:
        key, mark, value = cut(text, "=")
        if not (mark and key and value):
            raise ValueError(f"{option} {text}: write {name}=VALUE")
        if key in values:
            raise ValueError(f"{option}: {key} is there twice")
        values[key] = value
    return values


def parse_priors(text: str | None) -> dict[str, float] | None:
    """``legit=0.95,fraud=0.05``."""
    if text is None:
        return None
    shares = parse_pairs("--target-priors", text.split(","))
    try:
        return {name: float(value) for name, value in shares.items()}
    except ValueError:
        raise ValueError(f"--target-priors {text}: write CLASS=SHARE,CLASS=SHARE") from None


def drop_missing(**values: Any) -> dict[str, Any]:
    """What there is, without what was left out."""
    return {name: value for name, value in values.items() if value not in (None, [], {})}
