"""Row filters in the manner of SQL: ``country = 'BE' and (amount > 10 or note is null)``.

    filter  = both { "or" both }          both = term { "and" term }
    term    = "not" term | "(" filter ")" | column test
    test    = ("=" | "!=" | "<>" | "<" | "<=" | ">" | ">=") value
            | ["not"] "in" "(" value { "," value } ")" | "is" ["not"] "null"

Columns are words, or anything "in double quotes"; values are numbers, 'text', true and false; times
and dates are text in ISO 8601. A doubled quote stands for itself. Nothing is evaluated: the text
becomes a tree, and the tree a mask over columns (``conditions``). A missing value passes no test
but ``is null``, and ``not`` does not change that, as in SQL.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from app.core.errors import InvalidInput

LONGEST = 4096
DEEPEST = 32
MOST_VALUES = 1000
MOST_DIGITS = 60
Value = str | bool | int | Decimal

TOKEN = re.compile(
    r"""\s*(?:
    (?P<number>[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?)(?![\w.])
    |(?P<text>'(?:[^']|'')*')
    |(?P<quoted>"(?:[^"]|"")*")
    |(?P<word>[^\W\d]\w*)
    |(?P<sign><=|>=|<>|!=|=|<|>|\(|\)|,)
    |(?P<end>$)
    )""",
    re.VERBOSE | re.ASCII | re.DOTALL,
)
WORD = re.compile(r"[^\W\d]\w*", re.ASCII)
KEYWORDS = {"and", "or", "not", "in", "is", "null", "true", "false"}
SAME = {"<>": "!="}
TRUTH = {"true": True, "false": False}
OPERATORS = ("=", "!=", "<", "<=", ">", ">=")


def quoted(column: str) -> str:
    """A column's name as a filter takes it."""
    if WORD.fullmatch(column) and column.lower() not in KEYWORDS:
        return column
    doubled = column.replace('"', '""')
    return f'"{doubled}"'


@dataclass(frozen=True)
class Compare:
    """``column operator value``; ``place``: where it stands in the text, from 1."""

    column: str
    operator: str
    value: Value
    place: int


@dataclass(frozen=True)
class Membership:
    """Whether a column is one of ``values``."""

    column: str
    values: tuple[Value, ...]
    place: int


@dataclass(frozen=True)
class IsNull:
    """Whether a column has no value."""

    column: str
    place: int


@dataclass(frozen=True)
class Not:
    """What ``item`` is not."""

    item: "Node"


@dataclass(frozen=True)
class Both:
    """Whether all of the ``items`` hold."""

    items: tuple["Node", ...]


@dataclass(frozen=True)
class Either:
    """Whether one of the ``items`` holds."""

    items: tuple["Node", ...]


Node = Compare | Membership | IsNull | Not | Both | Either


def parse(text: str, at: str) -> Node:
    """The tree of a filter; ``InvalidInput`` at the pointer ``at``, with the place in the text."""
    if len(text) > LONGEST:
        raise InvalidInput.at(at, f"is longer than {LONGEST} characters")
    return _Parser(text, at).all()


def columns(node: Node) -> Iterator[tuple[str, int]]:
    """Columns that a filter tests, and where."""
    match node:
        case Not(item):
            yield from columns(item)
        case Both(items) | Either(items):
            for item in items:
                yield from columns(item)
        case _:
            yield node.column, node.place


class _Parser:
    """One token ahead, one function for each rule."""

    def __init__(self, text: str, at: str) -> None:
        self.text = text
        self.at = at
        self._after = 0
        self._next()

    def all(self) -> Node:
        node = self._either(0)
        if self.kind != "end":
            raise self._wrong("must end here, or go on with and, or")
        return node

    def _either(self, depth: int) -> Node:
        if depth > DEEPEST:
            raise self._wrong(f"is nested more than {DEEPEST} deep")
        items = [self._both(depth)]
        while self._take("or"):
            items.append(self._both(depth))
        return items[0] if len(items) == 1 else Either(tuple(items))

    def _both(self, depth: int) -> Node:
        items = [self._term(depth)]
        while self._take("and"):
            items.append(self._term(depth))
        return items[0] if len(items) == 1 else Both(tuple(items))

    def _term(self, depth: int) -> Node:
        turned = False
        while self._take("not"):
            turned = not turned
        if self._take("("):
            node = self._either(depth + 1)
            self._expect(")")
        else:
            node = self._test()
        return Not(node) if turned else node

    def _test(self) -> Node:
        place = self.place
        column = self._column()
        if self.token in OPERATORS:
            operator = self.token
            self._next()
            return Compare(column, operator, self._value(), place)
        if self._take("is"):
            turned = self._take("not")
            self._expect("null")
            node: Node = IsNull(column, place)
        else:
            turned = self._take("not")
            self._expect("in", "=, !=, <, <=, >, >=, in or is")
            node = Membership(column, self._values(), place)
        return Not(node) if turned else node

    def _column(self) -> str:
        if self.kind != "word" and self.kind != "quoted":
            raise self._wrong("must be a column")
        name = self.token
        self._next()
        return name

    def _values(self) -> tuple[Value, ...]:
        self._expect("(")
        values = [self._value()]
        while self._take(","):
            if len(values) == MOST_VALUES:
                raise self._wrong(f"must not list more than {MOST_VALUES} values")
            values.append(self._value())
        self._expect(")")
        return tuple(values)

    def _value(self) -> Value:
        kind, token = self.kind, self.token
        if kind == "text":
            found: Value = token
        elif kind == "number":
            found = self._number(token)
        elif kind == "keyword" and token in TRUTH:
            found = TRUTH[token]
        elif (kind, token) == ("keyword", "null"):
            raise self._wrong("is null, which equals nothing; write: is null")
        else:
            raise self._wrong("must be a number, 'text' in single quotes, true or false")
        self._next()
        return found

    def _number(self, token: str) -> int | Decimal:
        if len(token) > MOST_DIGITS:
            raise self._wrong(f"is a number of more than {MOST_DIGITS} characters")
        number = Decimal(token)
        if abs(number) > Decimal("1e300"):
            raise self._wrong("is a number beyond 1e300")
        whole = number.is_finite() and number == number.to_integral_value()
        return int(number) if whole and abs(number) < Decimal("1e40") else number

    def _take(self, token: str) -> bool:
        found = self.kind in ("keyword", "sign") and self.token == token
        if found:
            self._next()
        return found

    def _expect(self, token: str, words: str | None = None) -> None:
        if not self._take(token):
            raise self._wrong(f"must be {words or token}")

    def _next(self) -> None:
        match = TOKEN.match(self.text, self._after)
        if match is None:
            start = len(self.text) - len(self.text[self._after :].lstrip())
            self.kind, self.token, self.place = "unknown", self.text[start : start + 1], start + 1
            quote = self.token in ("'", '"')
            message = "opens a quote that is not closed" if quote else "is not understood"
            raise self._wrong(message)
        kind = match.lastgroup
        assert kind is not None
        token = match[kind]
        self.place, self._after = match.start(kind) + 1, match.end()
        if kind == "word" and token.lower() in KEYWORDS:
            kind, token = "keyword", token.lower()
        elif kind in ("text", "quoted"):
            token = token[1:-1].replace(token[0] * 2, token[0])
        self.kind, self.token = kind, SAME.get(token, token) if kind == "sign" else token

    def _wrong(self, message: str) -> InvalidInput:
        return wrong(self.at, self.place, message, self.token)


def wrong(at: str, place: int, message: str, shown: str = "") -> InvalidInput:
    """An error at a place in the text of a filter."""
    what = f" {shown[:40]!r}" if shown else ""
    return InvalidInput.at(at, f"at character {place}:{what} {message}")
