"""JSON text read piece by piece by the parser of the standard library.

A parser keeps the interpreter to itself until it has read everything, and so does the collector of
garbage when it looks at the millions of lists that came out. Here it gets a piece at a time, so
that other requests go on between them, and what the values take in memory is counted meanwhile.
"""

import codecs
import gc
import json
import re

from app.core import deadline
from app.core.errors import InvalidInput, pointer
from app.core.json_types import JsonList, JsonValue
from app.formats.errors import TooLarge, Unparseable

PIECE = 1 << 17
"""Bytes that are read in one go, in about a millisecond."""
LONGEST_TEXT = 1 << 17
"""Characters of a text or a number as it is written; nothing that is taken has as many."""
LONGEST_NAME = 1_000
MOST_NAMES = 10_000
"""Names in one object."""
MOST_MEMORY = 1 << 30
"""Bytes that the values of a body may take."""
WEIGHTS = ((b",", 32), (b'"', 20), (b"[", 72), (b"{", 240))
"""What a value takes in memory, by what it is written with: a number, half a text, a list, …"""
LONGEST_ESCAPE = 12
DEEPEST = 16
"""Lists and objects in each other that are longer than a piece; what is sent has four."""
TOGETHER = 50_000
"""Items that are let go of in one go."""
GUESSES = 4
"""Commas that are tried as the end of an item."""
SPACE = re.compile(r"[ \t\n\r]*")
SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
BEFORE_COMMA = {"[": "]", "{": "}", '"': '"'}
"""The end of an item, by its start."""


TOO_MANY_DIGITS = "a whole number has more than 4,300 digits"
"""What Python's limit comes to."""


class JsonReader:
    """One body, from its first byte to its last; ``most_rows``: items of a list."""

    def __init__(
        self,
        body: bytes | bytearray,
        decoder: json.JSONDecoder,
        most_rows: int | None = None,
        piece: int = PIECE,
    ) -> None:
        self._body, self._piece, self._most_rows = body, piece, most_rows
        self._scan = decoder.scan_once  # type: ignore[attr-defined]
        self._made = decoder.object_pairs_hook
        self._utf8 = codecs.getincrementaldecoder("utf-8")()
        self._read = len(codecs.BOM_UTF8) if body.startswith(codecs.BOM_UTF8) else 0
        self._text, self._place, self._before = "", 0, 0
        self._path: list[str] = []
        self._weight, self._odd_until, self._surrogates = 0, 0, False

    def value(self) -> JsonValue:
        """What the body holds; ``Unparseable``, ``InvalidInput``, ``TooLarge``, ``OutOfTime``."""
        try:
            found = self._value(0)
            self._skip()
        except RecursionError:
            raise Unparseable("the JSON is nested too deeply") from None
        if self._place < len(self._text):
            raise self._broken("Extra data")
        return found

    @property
    def _whole(self) -> bool:
        """Whether all that is left is in the window."""
        return self._read >= len(self._body)

    def _fill(self) -> None:
        """Let the window begin where reading is, and go on a piece further."""
        deadline.check()
        # JSON makes no cycles: the collector may leave it alone, until ``_payload`` ends.
        gc.freeze()
        start, self._read = self._read, min(self._read + self._piece, len(self._body))
        chunk = bytes(self._body[start : self._read])
        self._weight += sum(chunk.count(sign) * weight for sign, weight in WEIGHTS)
        if self._weight > MOST_MEMORY:
            raise TooLarge(
                f"the values of this JSON would take more than {MOST_MEMORY >> 20} MB of memory; "
                "send it in parts, or as an Arrow stream or NPY"
            )
        if not self._surrogates:
            overlap = max(start - 6, 0)
            self._surrogates = SURROGATE.search(self._body, overlap, self._read) is not None
        try:
            more = self._utf8.decode(chunk, self._whole)
        except UnicodeDecodeError:
            raise Unparseable("the body is not UTF-8") from None
        self._before += self._place
        self._text, self._place = self._text[self._place :] + more, 0

    def _value(self, depth: int) -> JsonValue:
        """The next value: in one go where the window holds it, in steps where it does not."""
        self._skip()
        opening = self._text[self._place : self._place + 1]
        while True:
            failure, at = "", self._place
            try:
                found, end = self._scan(self._text, self._place)
            except StopIteration as error:
                failure, at = "Expecting value", error.value
            except json.JSONDecodeError as error:
                failure, at = error.msg, error.pos
            except ValueError:
                raise Unparseable(TOO_MANY_DIGITS) from None
            else:
                # Of a number at the end of the window, like 1.5e+3, the rest may follow.
                if end < len(self._text) - 2 or self._whole:
                    return self._taken(found, end)
            ahead = len(self._text) - self._place
            if self._whole:
                raise self._broken(failure, at)
            if opening and opening in "[{":
                if ahead >= self._piece:
                    return self._stepped(opening, depth)
            elif ahead >= LONGEST_TEXT:
                cut = not failure or failure.startswith("Unterminated")
                if cut or at > len(self._text) - LONGEST_ESCAPE:
                    message = f"holds a text or number of more than {LONGEST_TEXT} characters"
                    raise self._refused(message)
                raise self._broken(failure, at)
            self._fill()

    def _taken(self, found: JsonValue, end: int) -> JsonValue:
        self._place = end
        if self._surrogates:
            require_text(found)
        return found

    def _stepped(self, opening: str, depth: int) -> object:
        """A list or object that is longer than a piece."""
        if depth == DEEPEST:
            raise RecursionError
        self._place += 1
        return self._object(depth + 1) if opening == "{" else self._list(depth + 1)

    def _object(self, depth: int) -> JsonValue:
        pairs: list[tuple[str, JsonValue]] = []
        if not self._ends("}"):
            while True:
                self._skip()
                if not self._text.startswith('"', self._place):
                    raise self._broken("Expecting property name enclosed in double quotes")
                name = self._value(depth)
                self._require(":")
                self._path.append(name)
                pairs.append((name, self._value(depth)))
                self._path.pop()
                if len(pairs) > MOST_NAMES or len(name) > LONGEST_NAME or self._ends("}"):
                    break
                self._require(",")
        assert self._made is not None
        return self._made(pairs)

    def _list(self, depth: int) -> list[object]:
        items: JsonList = []
        try:
            self._fill_list(items, depth)
        except Exception:
            let_go(items)
            raise
        return items

    def _fill_list(self, items: list[object], depth: int) -> None:
        if self._ends("]"):
            return
        while True:
            if not self._several(items):
                items.append(self._value(depth))
                if self._ends("]"):
                    return
                self._require(",")
            if self._most_rows is not None and len(items) > self._most_rows:
                message = f"has more than {self._most_rows} rows; send it in parts"
                raise self._refused(message)

    def _several(self, items: JsonList) -> bool:
        """Add the items that are in the window and end with a comma; False where there are none.

        Text that makes a list between brackets, and starts where an item starts, ends where an item
        ends: so any comma may be tried.
        """
        self._skip()
        if self._before + self._place < self._odd_until:
            return False
        if len(self._text) - self._place < self._piece // 2 and not self._whole:
            self._fill()
        text, start = self._text, self._place
        sign = BEFORE_COMMA.get(text[start : start + 1], "") + ","
        cut = len(text)
        for _ in range(GUESSES):
            cut = text.rfind(sign, start, cut)
            if cut < 0:
                break
            end = cut + len(sign) - 1
            found = self._between(text[start:end])
            if found:
                items += self._taken(found, end + 1)
                return True
        self._odd_until = self._before + len(text)
        return False

    def _between(self, text: str) -> list[object] | None:
        """The items of a list without its brackets; None if that is no list."""
        text = f"[{text}]"
        try:
            found, end = self._scan(text, 0)
        except (StopIteration, json.JSONDecodeError):
            return None
        except ValueError:
            raise Unparseable(TOO_MANY_DIGITS) from None
        return found if end == len(text) else None

    def _skip(self) -> None:
        """White space."""
        while True:
            match = SPACE.match(self._text, self._place)
            assert match is not None
            self._place = match.end()
            if self._place < len(self._text) or self._whole:
                return
            self._fill()

    def _ends(self, sign: str) -> bool:
        """Whether ``sign`` is next; it is passed."""
        self._skip()
        there = self._text.startswith(sign, self._place)
        self._place += there
        return there

    def _require(self, sign: str) -> None:
        if not self._ends(sign):
            raise self._broken(f"Expecting '{sign}' delimiter")

    def _broken(self, reason: str, at: int | None = None) -> Unparseable:
        place = self._before + (self._place if at is None else at)
        return Unparseable(f"the body is not JSON: {reason}: char {place}")

    def _refused(self, message: str) -> InvalidInput:
        return InvalidInput.at(pointer(*self._path), message)


def require_text(value: object) -> None:
    """``Unparseable`` for lone surrogates, which the parser lets through."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise Unparseable("the body holds a lone surrogate (\\ud800 to \\udfff)") from None


def let_go(value: object) -> None:
    """Empty what is long in a value that nobody needs any more.

    To free millions of lists at once keeps the interpreter for as long as a second.
    """
    if isinstance(value, dict):
        for item in value.values():
            let_go(item)
    elif isinstance(value, list) and len(value) > TOGETHER:
        while value:
            del value[-TOGETHER:]
