"""Compressed bodies, inflated piece by piece and never beyond a limit."""

import zlib
from collections.abc import Callable, Iterable, Iterator

import zstandard

from app.formats.errors import TooLarge, Unparseable

GZIP = 31
"""zlib's window bits for a gzip stream."""
PIECE = 1 << 20
SLICE = 1 << 16
MOST_MEMBERS = 10_000
"""Every member costs a copy of the slice that it lies in; bgzip has one for each 64 KiB."""
LARGEST_WINDOW = 1 << 23
"""Memory that a zstd stream may ask for (RFC 8878 recommends to support this much)."""

Body = bytes | bytearray
Inflate = Callable[[Body, int], Iterator[bytes]]
"""The pieces of a body of at most so many bytes, none larger than ``PIECE``."""


def gzip(body: Body, limit: int) -> Iterator[bytes]:
    """Inflate gzip, members one after another; ``TooLarge`` beyond ``limit`` bytes."""
    return _bounded(_gzip(body), limit)


def zstd(body: Body, limit: int) -> Iterator[bytes]:
    """Inflate zstd, frames one after another; ``TooLarge`` beyond ``limit`` bytes."""
    return _bounded(_zstd(body), limit)


ENCODINGS: dict[str, Inflate] = {"gzip": gzip, "zstd": zstd}


def _bounded(parts: Iterable[bytes], limit: int) -> Iterator[bytes]:
    size = 0
    for part in parts:
        size += len(part)
        if size > limit:
            raise TooLarge(f"the body inflates to more than {limit} bytes; send it in parts")
        yield part


def _gzip(body: Body) -> Iterator[bytes]:
    stream = zlib.decompressobj(GZIP)
    members, place, given = 1, 0, b""
    while True:
        if not given:
            given = bytes(body[place : place + SLICE])
            place += SLICE
        if stream.eof:
            if not given:
                return
            stream = zlib.decompressobj(GZIP)
            members += 1
            if members > MOST_MEMBERS:
                raise Unparseable(f"the gzip stream has more than {MOST_MEMBERS} members")
        part = _inflated(stream, given)
        if part:
            yield part
        elif not given and not stream.eof:
            raise Unparseable("the gzip stream ends early")
        given = stream.unused_data if stream.eof else stream.unconsumed_tail


def _inflated(stream: "zlib._Decompress", given: bytes) -> bytes:
    try:
        return stream.decompress(given, PIECE)
    except zlib.error:
        raise Unparseable("the body is not gzip, as its content encoding says") from None


def _zstd(body: Body) -> Iterator[bytes]:
    inflater = zstandard.ZstdDecompressor(max_window_size=LARGEST_WINDOW)
    try:
        with inflater.stream_reader(body, read_across_frames=True) as stream:
            while part := stream.read(PIECE):
                yield part
    except zstandard.ZstdError:
        raise Unparseable("the body is not zstd, as its content encoding says") from None
