"""Compressed bodies, inflated piece by piece and never beyond a limit."""

import zlib
from collections.abc import Callable

import zstandard

from app.api.problems import TooLarge, Unparseable

GZIP = 31
"""zlib's window bits for a gzip stream."""
PIECE = 1 << 20
LARGEST_WINDOW = 1 << 23
"""Memory that a zstd stream may ask for (RFC 8878 recommends to support this much)."""

Inflate = Callable[[bytes, int], bytes]


def gzip(body: bytes, limit: int) -> bytes:
    """Inflate gzip, members one after another; ``TooLarge`` beyond ``limit`` bytes."""
    parts: list[bytes] = []
    size = 0
    while body:
        stream = zlib.decompressobj(GZIP)
        while not stream.eof:
            try:
                part = stream.decompress(body, PIECE)
            except zlib.error:
                raise Unparseable("the body is not gzip, as its content encoding says") from None
            body = stream.unconsumed_tail
            size += len(part)
            _require(size, limit)
            parts.append(part)
            if not part and not body and not stream.eof:
                raise Unparseable("the gzip stream ends early")
        body = stream.unused_data
    return b"".join(parts)


def zstd(body: bytes, limit: int) -> bytes:
    """Inflate zstd, frames one after another; ``TooLarge`` beyond ``limit`` bytes."""
    parts: list[bytes] = []
    size = 0
    inflater = zstandard.ZstdDecompressor(max_window_size=LARGEST_WINDOW)
    try:
        with inflater.stream_reader(body, read_across_frames=True) as stream:
            while part := stream.read(PIECE):
                size += len(part)
                _require(size, limit)
                parts.append(part)
    except zstandard.ZstdError:
        raise Unparseable("the body is not zstd, as its content encoding says") from None
    return b"".join(parts)


ENCODINGS: dict[str, Inflate] = {"gzip": gzip, "zstd": zstd}


def _require(size: int, limit: int) -> None:
    if size > limit:
        raise TooLarge(f"the body inflates to more than {limit} bytes; send it in parts")
