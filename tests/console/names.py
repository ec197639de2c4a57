"""Names that somebody may give a class, a column, a file or a key."""

import unicodedata

NAMES = [
    "[unknown]",
    "[/nope]",
    "[bold]b[/bold]",
    ":smile:",
    "\x1b]0;owned\x07\x1b[2J\x1b[7m",
    "c1\x9b31mred",
    "two\nlines\r\tand\u2028more",
    "\u202egnp.exe\u2066",
    "n" * 200,
    "数据科学" * 20,
    "e\u0301\u200d\U0001f600\U000e0041",
]


def unseen(text: str) -> set[str]:
    """Characters that steer a terminal, the ends of lines aside."""
    kinds = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    allowed = "\n\u200c\u200d"
    return {c for c in text if unicodedata.category(c) in kinds and c not in allowed}
