"""What may stand in a name, and when two names are one: the one place that decides.

A name is what programs compare and people read: of a class, an output, a column, a segment, a key.
It is kept in Unicode's normal form C, so that é is one letter however it was typed, and holds no
character that nobody sees: controls, line and paragraph separators, bidirectional marks and
overrides, zero-width characters, soft hyphens, variation selectors, blank fillers, lone surrogates.
The two joiners may stand where writing needs them: after a virama, and ZWNJ between Arabic letters
(RFC 5892, A.1 and A.2). ``named`` is that rule, ``worded`` the one for descriptions, which may have
lines, joiners and selectors, and are kept as they came.

What was kept before these rules stays, and is found by its own spelling and by that in form C:
``Spellings``.
"""

import re
import unicodedata
from collections.abc import Sequence
from itertools import pairwise

JOINERS = "\u200c\u200d"
VISIBLE = frozenset(
    "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"
)
"""Signs of category Cf that are drawn."""
BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u2800\u3164\ufe00-\ufe0f\uffa0\ufff0-\ufff8"
    "\U000e0000-\U000e0fff]"
)
"""What is not drawn, of other categories."""
UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
DIRECTIONS = re.compile("[\u202a-\u202e\u2066-\u2069]")
CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
VIRAMA = 9
"""The combining class of viramas."""


def named(text: str) -> str:
    """The name, in normal form C; ``ValueError`` for what nobody sees."""
    if text.isascii() and text.isprintable():
        return text
    place = next((k for k in range(len(text)) if _unseen(text, k)), None)
    if place is not None:
        raise ValueError(f"holds {_called(text[place])} at character {place + 1}; leave it out")
    return unicodedata.normalize("NFC", text)


def worded(text: str) -> str:
    """The text as it is; ``ValueError`` for controls, lone surrogates and directions."""
    match = CONTROL.search(text) or DIRECTIONS.search(text)
    if match is not None:
        where = f"at character {match.start() + 1}"
        raise ValueError(f"holds {_called(match[0])} {where}; leave it out")
    return text


def composed(text: str) -> str:
    """Normal form C, of a label that is compared with names."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def spellings(text: str) -> tuple[str, ...]:
    """As it is, in form C, and decomposed: how it may have been kept."""
    forms = (text, composed(text), unicodedata.normalize("NFD", text))
    return tuple(dict.fromkeys(forms))


def visible(text: str) -> str:
    r"""For a message or a terminal: what nobody sees as ``\u202e``."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escaped(c) if _unseen(text, k) else c for k, c in enumerate(text))


class Spellings:
    """Positions of names; another normal form of a name stands for it, unless it is a name too."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names
        self.exact = {name: k for k, name in enumerate(names)}
        forms = sorted((composed(name), k) for name, k in self.exact.items())
        several = {one for (one, _), (two, _) in pairwise(forms) if one == two}
        self._composed = {form: k for form, k in forms if form not in several}

    def find(self, text: str) -> int | None:
        """The position of the name that this is; None if it is none."""
        place = self.exact.get(text)
        return self._composed.get(composed(text)) if place is None else place

    def index(self) -> dict[str, int]:
        """The position of each name, as it is spelled and in normal form C."""
        return {**self._composed, **self.exact}

    def respelled(self, texts: Sequence[str]) -> list[str]:
        """Texts, those that are names as the names are spelled; the others as they are."""
        places = [(text, self.find(text)) for text in texts]
        return [text if place is None else self.names[place] for text, place in places]


def merged(levels: Sequence[str]) -> tuple[tuple[str, ...], list[int]]:
    """Levels in form C, each once, and where each of the given ones is among them."""
    places: dict[str, int] = {}
    positions = [places.setdefault(composed(level), len(places)) for level in levels]
    return tuple(places), positions


def _unseen(text: str, place: int) -> bool:
    character = text[place]
    if character in JOINERS:
        return not _joins(text, place)
    if character in VISIBLE:
        return False
    return unicodedata.category(character) in UNSEEN or BLANK.match(character) is not None


def _joins(text: str, place: int) -> bool:
    """Whether a joiner stands where it changes what is drawn."""
    before, after = text[:place][-1:], text[place + 1 :][:1]
    if not before:
        return False
    if unicodedata.combining(before) == VIRAMA:
        return True
    arabic = [bool(c) and unicodedata.bidirectional(c) in ("AL", "NSM") for c in (before, after)]
    return text[place] == "\u200c" and all(arabic)


def _called(character: str) -> str:
    kinds = {"Cc": "a control character", "Cs": "a lone surrogate"}
    other = kinds.get(unicodedata.category(character), "which is not drawn")
    return f"U+{ord(character):04X} ({unicodedata.name(character, other)})"


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
