"""Words on a terminal: nothing in them steers it, and numbers beside them stay whole."""

import io
import json
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from app.console import show
from app.console.terminal import Terminal, plain, write_json
from tests.console.names import NAMES, unseen

ODD = st.text(st.characters(categories=["Cc", "Cf", "Cs", "Zl", "Zp", "L", "P", "Zs", "So", "Mn"]))


@given(ODD)
def test_plain_words_are_one_line_and_keep_what_can_be_seen(text: str) -> None:
    shown = plain(text)
    assert not unseen(shown)
    assert "\n" not in shown
    assert plain(shown) == shown
    seen = [c for c in text if not unseen(c) and c != "\n"]
    assert "".join(c if c in seen else c.encode("unicode_escape").decode() for c in text) == shown


@given(st.dictionaries(ODD, ODD | st.lists(ODD)), st.sampled_from(["utf-8", "ascii", "latin-1"]))
def test_json_means_the_same_and_steers_nothing(content: dict[str, Any], encoding: str) -> None:
    written = io.BytesIO()
    with pytest.MonkeyPatch.context() as patched:
        stream = io.TextIOWrapper(written, encoding)
        patched.setattr(sys, "stdout", stream)
        write_json(content)
        stream.flush()
    text = written.getvalue().decode(encoding)
    assert json.loads(text) == content
    assert not unseen(text)
    assert text.count("\n") == 1


def drawn(width: int, draw: Callable[[Terminal], None]) -> list[str]:
    """The lines that are drawn on a terminal so wide."""
    terminal = Terminal()
    terminal.width = width
    with terminal.capture() as capture:
        draw(terminal)
    return capture.get().splitlines()


@pytest.mark.parametrize("width", [60, 80, 200, 3000])
def test_numbers_stay_whole_beside_names_of_any_width(width: int) -> None:
    prevalence = [
        {"class": n, "source": k / 70, "counted": k / 71, "estimate": k / 73, "lower": k / 79,
         "upper": k / 83} for k, n in enumerate(NAMES, 1)
    ]  # fmt: skip
    estimate = {
        "model": "m", "version": 1, "size": 5, "method": "mle", "reason": "", "shift": None,
        "prevalence": prevalence, "warnings": [], "observed_at": None,
        "created_at": "2026-01-31T00:00:00",
    }  # fmt: skip
    named = ("source", "counted", "estimate", "lower", "upper")
    shares = [f"{row['estimate']:.4f}" for row in prevalence]
    alone = drawn(width, lambda terminal: show.estimate(terminal, estimate))
    for row in prevalence:
        assert any([f"{row[n]:.4f}" for n in named] == line.split()[-5:] for line in alone)
    listed = drawn(width, lambda terminal: show.history(terminal, [estimate, estimate]))
    side = drawn(
        width, lambda terminal: show.comparison(terminal, {"mle": estimate, "em": estimate})
    )
    for lines in (listed, side):
        assert all("\n".join(lines).count(share) == 2 for share in shares)
        assert all(name not in "".join(lines) for name in NAMES if unseen(name))
    assert max(map(cell_len, [*alone, *listed, *side])) <= width
