"""One request and how its answer is read: everything but sending."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar
from urllib.parse import quote
from uuid import uuid4

from priorshift_client.bodies import Body, text
from priorshift_client.errors import TransportError, UnexpectedAnswer, problem
from priorshift_client.reading import read

T = TypeVar("T")
Query = tuple[tuple[str, str], ...]
JSON = "application/json"
LONGEST_KEY = 255


@dataclass(frozen=True)
class Answer:
    """What came back; header names are in lower case."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)

    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


@dataclass(frozen=True)
class Call(Generic[T]):
    """A request. ``repeatable``: sending it twice does no more than sending it once.

    ``patience``: seconds that its answer may take, however impatient the client is.
    """

    method: str
    path: str
    read: Callable[[Answer], T] = field(repr=False)
    query: Query = ()
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes | None = field(default=None, repr=False)
    repeatable: bool = False
    patience: float = 0.0

    def result(self, outcome: Answer | TransportError) -> T:
        """What the answer says; raises what is wrong."""
        if isinstance(outcome, TransportError):
            raise outcome
        if outcome.status >= 400:
            raise problem(outcome.status, outcome.body)
        try:
            if outcome.status >= 300:
                raise ValueError("redirects are not followed")
            return self.read(outcome)
        except (KeyError, TypeError, ValueError) as error:
            message = f"{self.method} {self.path}: status {outcome.status}, but {error!r}"
            raise UnexpectedAnswer(message) from error


@dataclass(frozen=True)
class Page(Generic[T]):
    """Some items of a list, and where the next ones begin."""

    items: tuple[T, ...]
    next_cursor: str | None


@dataclass(frozen=True)
class Listing(Generic[T]):
    """A list that comes in pages."""

    path: str
    kind: type[T]
    query: Query = ()

    def page(self, cursor: str | None) -> Call[Page[T]]:
        """The call for the page that begins at ``cursor``."""
        after = () if cursor is None else (("cursor", cursor),)
        return get(self.path, self._read, (*self.query, *after))

    def _read(self, answer: Answer) -> Page[T]:
        content = answer.json()
        items = tuple(read(self.kind, item) for item in content["items"])
        return Page(items, content["next_cursor"])


def get(path: str, read: Callable[[Answer], T], query: Query = ()) -> Call[T]:
    """A GET."""
    return Call("GET", path, read, query, {"Accept": JSON}, repeatable=True)


def ask(
    path: str, body: Body, read: Callable[[Answer], T], accept: str = JSON, query: Query = ()
) -> Call[T]:
    """A POST that writes nothing."""
    return change("POST", path, body, read, query, {"Accept": accept}, repeatable=True)


def write(
    path: str,
    body: Body | None,
    read: Callable[[Answer], T],
    idempotency_key: str | None,
    patience: float = 0.0,
) -> Call[T]:
    """A POST that writes, once, whatever happens on the way."""
    key = uuid4().hex if idempotency_key is None else idempotency_key
    if not (0 < len(key) <= LONGEST_KEY and key.isascii() and key.isprintable()):
        raise ValueError(f"an idempotency key has 1 to {LONGEST_KEY} plain characters")
    call = change("POST", path, body, read, (), {"Idempotency-Key": key}, repeatable=True)
    return replace(call, patience=patience)


def show_once(
    path: str, body: Body | None, read: Callable[[Answer], T], idempotency_key: str | None
) -> Call[T]:
    """A POST whose answer holds a secret; it is repeatable with a key, and then says it once."""
    if idempotency_key is None:
        return change("POST", path, body, read)
    return write(path, body, read, idempotency_key)


def change(
    method: str,
    path: str,
    body: Body | None,
    read: Callable[[Answer], T],
    query: Query = (),
    headers: Mapping[str, str] | None = None,
    repeatable: bool = False,
) -> Call[T]:
    """Any other call; it is sent once unless it is ``repeatable``."""
    sent = {"Accept": JSON, **(headers or {})}
    if body is None:
        return Call(method, path, read, query, sent, None, repeatable)
    sent["Content-Type"] = body.media_type
    return Call(method, path, read, (*query, *body.query), sent, body.content, repeatable)


def into(kind: type[T]) -> Callable[[Answer], T]:
    """Reads a JSON answer into a dataclass."""
    return lambda answer: read(kind, answer.json())


def nothing(answer: Answer) -> None:
    """Reads an answer that says no more than its status."""


def place(*segments: str | int) -> str:
    """An address under /v1; each segment stays one segment."""
    parts = ["v1"]
    for segment in map(str, segments):
        if segment in ("", ".", ".."):
            raise ValueError(f"{segment!r} cannot be a name")
        parts.append(quote(segment, safe="@"))
    return "/" + "/".join(parts)


def query(**values: Any) -> Query:
    """Query parameters; those that are None are left out."""
    return tuple((name, text(value)) for name, value in values.items() if value is not None)
