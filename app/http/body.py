"""The body of a request: read within the limit, decoded by its media type."""

import asyncio
import gc
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
from anyio.to_thread import run_sync
from fastapi import Depends, Request

from app.core import deadline
from app.core.errors import Faults, InvalidInput, pointer
from app.core.json_types import JsonObject
from app.formats import arrow, json, media_types, npy
from app.formats.errors import TooLarge, Unsupported
from app.formats.frame import Frame
from app.formats.json_reader import PIECE, let_go
from app.http.content_encoding import ENCODINGS, Inflate
from app.http.problems import TooSlow
from app.operations.admission import Admission
from app.services import services_of
from app.settings import Settings

CONVINCING = 1 << 20
"""Bytes that have come when the declared length of a body is believed, and set aside."""


@dataclass(frozen=True)
class Sent:
    """A batch as it was sent.

    ``text``: the scalars of ``content`` are strings from the query, since the body holds rows only.
    ``frame``: the body, where it is a table of named columns.
    """

    content: JsonObject
    text: bool = False
    frame: Frame | None = None


@dataclass(frozen=True)
class Payload:
    """Raw bytes, their media type, and the query parameters in order."""

    body: bytes | bytearray
    media_type: str
    query: tuple[tuple[str, str], ...]
    max_rows: int = 5_000_000
    max_bytes: int = 128 * 1024 * 1024
    decoded: list[dict[str, object]] = field(default_factory=list)
    """What ``json`` found, to be let go of."""

    def json(self, query: Sequence[str] = ()) -> dict[str, object]:
        """The body as a JSON object; no query parameters but those named are taken."""
        self._require(json.MEDIA_TYPE)
        self.only_query(query)
        content = json.decode(self.body, self.max_rows)
        self.decoded.append(content)
        _require_rows(content, self.max_rows)
        return content

    def batch(self, query: Sequence[str] = ()) -> Sent:
        """A batch: its envelope, and its table where it came as one.

        ``query``: parameters that belong to the route and not to the envelope.
        """
        self._require(*media_types.NAMES)
        if self.media_type == json.MEDIA_TYPE:
            return Sent(self.json(query))
        refuse_unknown([(k, v) for k, v in self.query if k in query], query)
        envelope = _nested([(k, v) for k, v in self.query if k not in query])
        if "posteriors" in envelope:
            raise InvalidInput.at("/posteriors", "is the body; do not repeat it in the query")
        if self.media_type == npy.MEDIA_TYPE:
            kind = _kind(envelope)
            envelope[kind] = npy.decode(self.body, pointer(kind))
            _require_rows(envelope, self.max_rows)
            return Sent(envelope, text=True)
        limits = arrow.Limits(self.max_rows, self.max_bytes)
        read = media_types.BY_NAME[self.media_type].read
        assert read is not None
        return Sent(envelope, True, read(self.body, limits))

    def only_query(self, names: Sequence[str]) -> None:
        """Refuse query parameters that would be ignored."""
        refuse_unknown(self.query, names)

    def _require(self, *media_types: str) -> None:
        if self.media_type not in media_types:
            shown = (self.media_type or "none")[:100]
            taken = ", ".join(media_types)
            raise Unsupported(f"the content type is {shown}; this address accepts {taken}")


def _kind(envelope: dict[str, object]) -> str:
    """What an array without names holds: posteriors, or what ``rows`` says."""
    kind = envelope.pop("rows", "posteriors")
    if kind not in ("posteriors", "features"):
        raise InvalidInput.at("/query/rows", "must be posteriors or features")
    if kind in envelope:
        raise InvalidInput.at(f"/{kind}", "is the body; do not repeat it in the query")
    return str(kind)


def _require_rows(content: dict[str, object], most: int, at: str = "") -> None:
    """``InvalidInput`` for lists and arrays of more than ``most`` rows, wherever they stand."""
    for name, value in content.items():
        place = at + pointer(name)
        if isinstance(value, dict):
            _require_rows(value, most, place)
        elif isinstance(value, list | np.ndarray) and len(value) > most:
            message = f"has {len(value)} rows, at most {most} are allowed; send it in parts"
            raise InvalidInput.at(place, message)


def refuse_unknown(query: Sequence[tuple[str, str]], names: Sequence[str]) -> None:
    """``InvalidInput`` for query parameters that are not among ``names``, or come twice."""
    known = f"takes {', '.join(names)}" if names else "takes no query parameters"
    faults, seen = Faults(), set()
    for name, _ in query:
        if name not in names:
            message = f"is not a parameter here; this address {known}"
            faults.add(pointer("query", name), message)
        elif name in seen:
            faults.add(pointer("query", name), "is given twice; give it once")
        seen.add(name)
    faults.raise_if_any()


def only(*names: str) -> Any:
    """A route's dependency that refuses query parameters other than ``names``."""

    async def check(request: Request) -> None:
        refuse_unknown(request.query_params.multi_items(), names)

    return Depends(check)


async def _payload(request: Request) -> AsyncIterator[Payload]:
    """The body, when it is this request's turn to compute; from then on its time runs."""
    services = services_of(request)
    settings, admission = services.settings, services.admission
    inflate = _inflater(request)
    body = HeldBody(admission)
    try:
        await body.read(request, settings)
        if inflate is not None:
            async with admission.inflating.turn():
                await body.replace(inflate(body.content, settings.max_inflated_bytes))
        async with admission.lane(len(body.content)).turn():
            deadline.begin(settings.request_seconds)
            media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
            query = tuple(request.query_params.multi_items())
            limits = settings.max_rows, settings.max_inflated_bytes
            payload = Payload(body.content, media_types.canonical(media_type), query, *limits)
            try:
                yield payload
            finally:
                if len(body.content) >= PIECE:
                    await run_sync(_let_go, payload)
    finally:
        body.release()


def _let_go(payload: Payload) -> None:
    """Free what reading it made, and kept from the collector of garbage."""
    for content in payload.decoded:
        let_go(content)
    gc.unfreeze()


def _inflater(request: Request) -> Inflate | None:
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding == "identity":
        return None
    if encoding not in ENCODINGS:
        known = " and ".join(ENCODINGS)
        raise Unsupported(f"the content encoding {encoding[:40]} is not known; {known} are")
    return ENCODINGS[encoding]


@dataclass
class HeldBody:
    """A body in memory, counted until it is released."""

    admission: Admission
    content: bytes | bytearray = b""
    _counted: int = 0

    async def read(self, request: Request, settings: Settings) -> None:
        """Read within the limits of size and time."""
        limit = settings.max_body_bytes
        too_large = TooLarge(f"the body is larger than {limit} bytes; send it in parts")
        declared = request.headers.get("content-length", "")
        length = int(declared) if declared.isdecimal() else 0
        if length > limit:
            raise too_large
        content, size = bytearray(), 0
        try:
            async with asyncio.timeout(settings.body_seconds):
                async for part in request.stream():
                    start, size = size, size + len(part)
                    if size > limit:
                        raise too_large
                    self._count(size)
                    if CONVINCING <= start == len(content) < length:
                        # All that is to come, in one piece of memory that nothing has to move.
                        whole = bytearray(length)
                        whole[:start] = content
                        content = whole
                    content[start:size] = part
        except TimeoutError:
            message = f"the body did not arrive within {settings.body_seconds:g} seconds"
            raise TooSlow(message) from None
        self.content = content

    async def replace(self, parts: Iterator[bytes]) -> None:
        """Hold its inflated form instead; while it grows, both."""
        content = bytearray()
        while part := await run_sync(next, parts, b""):
            self._count(len(self.content) + len(content) + len(part))
            content += part
        self.content = content
        self._count(len(content))

    def release(self) -> None:
        """It is not needed any more."""
        self._count(0)

    def _count(self, size: int) -> None:
        more = size - self._counted
        if more > 0:
            self.admission.hold(more)
        else:
            self.admission.free(-more)
        self._counted = size


Body = Annotated[Payload, Depends(_payload, scope="function")]
"""Let go of when the handler is done: a turn does not last until a slow client has read."""

REPEATED = {"columns", "include"}
BY_CLASS = ("target_priors", "priors", "options.prior")
"""Numbers keyed by class, ``options.prior.legit=2``; a class may hold dots."""


def _nested(query: Sequence[tuple[str, str]]) -> JsonObject:
    """``interval.level=0.9`` as {"interval": {"level": "0.9"}}; a name repeated is an error."""
    envelope: JsonObject = {}
    for name, value in query:
        if name in REPEATED:
            envelope.setdefault(name, []).append(value)
            continue
        keyed = next((known for known in BY_CLASS if name.startswith(f"{known}.")), None)
        *parents, key = name.split(".", 1) if keyed is None else keyed.split(".")
        if keyed is not None:
            parents, key = [*parents, key], name.removeprefix(f"{keyed}.")
        place: Any = envelope
        for parent in parents:
            place = place.setdefault(parent, {}) if isinstance(place, dict) else place
        if not isinstance(place, dict) or key in place:
            raise InvalidInput.at(pointer("query", name), "is given twice; give it once")
        place[key] = value if keyed is None else _number(value)
    return envelope


def _number(value: str) -> float | str:
    """A number of a query; anything else is left for the check."""
    try:
        return float(value)
    except ValueError:
        return value
