"""Hostile and broken clients, each until its time is over; they count what they get."""

import asyncio
import gzip
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass

import zstandard

JSON = "application/json"
CONNECTIONS = 1_000
CLIENTS = 16
MEMBER = 1_000_000
"""Bytes that a gzip member inflates to."""
DRIP = 1.0
"""Seconds between two drops."""
PATH = "/v1/models/m/versions/1/estimates?keep=false"


@dataclass(frozen=True)
class Target:
    """A port of this machine, a key, and when to stop."""

    port: int
    key: str
    until: float

    def on(self) -> bool:
        """Whether there is time left."""
        return time.time() < self.until

    def head(self, size: int | str, media_type: str = JSON, more: str = "") -> bytes:
        """The head of a batch."""
        return (
            f"POST {PATH} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self.key}\r\n"
            f"Content-Type: {media_type}\r\nContent-Length: {size}\r\n{more}\r\n"
        ).encode()


Got = Counter[str]
Says = Callable[[Target], bytes]
Attack = Callable[[Target], Coroutine[None, None, Got]]


async def nothing(target: Target) -> Got:
    """Peace, for comparison."""
    await asyncio.sleep(max(target.until - time.time(), 0))
    return Counter()


def _dripping(first: Says, drop: bytes) -> Attack:
    """A thousand connections that send ``first``, then ``drop`` once a second."""

    async def one(target: Target, got: Got) -> None:
        while target.on():
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", target.port)
            except OSError:
                got["no connection"] += 1
                await asyncio.sleep(DRIP)
                continue
            got["connections"] += 1
            answer = asyncio.ensure_future(reader.read())
            try:
                writer.write(first(target))
                while target.on() and not answer.done():
                    writer.write(drop)
                    await asyncio.wait([answer], timeout=DRIP)
                if answer.done():
                    got[_status(answer.result())] += 1
            except OSError:
                got["cut off"] += 1
            finally:
                answer.cancel()
                writer.close()

    async def all_of_them(target: Target) -> Got:
        got: Got = Counter()
        await asyncio.gather(*(one(target, got) for _ in range(CONNECTIONS)))
        return got

    return all_of_them


def _repeated(*requests: Says, clients: int = CLIENTS) -> Attack:
    """Clients that send these one after another, each on a connection of its own."""

    async def one(target: Target, got: Got) -> None:
        turn = 0
        while target.on():
            turn += 1
            got[await _exchange(target, requests[turn % len(requests)](target))] += 1

    async def all_of_them(target: Target) -> Got:
        got: Got = Counter()
        await asyncio.gather(*(one(target, got) for _ in range(clients)))
        return got

    return all_of_them


async def _exchange(target: Target, content: bytes) -> str:
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", target.port)
    except OSError:
        return "no connection"
    try:
        writer.write(content)
        answer = await asyncio.wait_for(reader.readline(), 60)
        return _status(answer)
    except OSError:
        return "cut off"
    except TimeoutError:
        return "no answer"
    finally:
        writer.close()


def _status(line: bytes) -> str:
    return line.split()[1].decode() if line.startswith(b"HTTP/1.1 ") else "cut off"


def _whole(body: bytes, media_type: str = JSON, more: str = "") -> Says:
    return lambda target: target.head(len(body), media_type, more) + body


def _bomb(encoding: str) -> Says:
    content = b" " * 200_000_000
    packed = gzip.compress(content) if encoding == "gzip" else zstandard.compress(content)
    return _whole(packed, more=f"Content-Encoding: {encoding}\r\n")


def _packed(opening: str, item: str, closing: str) -> Says:
    """JSON of 120 MB, ``item`` again and again, in gzip; its members repeat, so it is made fast."""
    many = item.encode() * (MEMBER // len(item.encode()))
    members = [gzip.compress(opening.encode()), gzip.compress(many) * 120]
    body = b"".join([*members, gzip.compress((item + closing).encode())])
    return _whole(body, more="Content-Encoding: gzip\r\n")


def _npy(shape: str) -> Says:
    text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header = text + b" " * (117 - len(text)) + b"\n"
    body = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + b"\0" * 64
    return _whole(body, "application/x-npy")


def _wrong_key(target: Target) -> bytes:
    key = os.urandom(16).hex()
    head = f"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n\r\n"
    return head.encode()


def _line(*lines: str) -> Says:
    return lambda target: "\r\n".join((*lines, "", "")).encode()


async def slow_readers(target: Target) -> Got:
    """Large answers that nobody reads."""
    rows = json.dumps({"posteriors": [[0.25, 0.75]] * 400_000}).encode()
    path = PATH.replace("estimates?keep=false", "posteriors").encode()
    content = (target.head(len(rows)) + rows).replace(PATH.encode(), path)
    got: Got = Counter()
    writers = []

    async def one() -> None:
        while target.on():
            reader, writer = await asyncio.open_connection("127.0.0.1", target.port, limit=1000)
            writers.append(writer)
            try:
                writer.write(content)
                got[_status(await asyncio.wait_for(reader.readline(), 60))] += 1
            except (OSError, TimeoutError):
                got["cut off"] += 1

    await asyncio.gather(*(one() for _ in range(4)))
    for writer in writers:
        writer.close()
    return got


ROW = ",".join(["0.5"] * 1_000_000)
ATTACKS: dict[str, Attack] = {
    "none": nothing,
    "1,000 connections, headers dripping": _dripping(
        lambda target: b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX-A: ", b"b"
    ),
    "1,000 connections, bodies dripping": _dripping(lambda target: target.head(100_000), b" "),
    "1,000 connections, bodies dripping, no key": _dripping(
        lambda target: target.head(100_000).replace(target.key.encode(), b"wrong"), b" "
    ),
    "1,000 connections, empty lines dripping": _dripping(
        lambda target: b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n", b"\r\n"
    ),
    "forged headers": _repeated(
        lambda target: target.head(99_999_999_999),
        lambda target: target.head("-5"),
        lambda target: target.head("1" * 5000),
        lambda target: target.head(5) + b"{" * 100_000,
        lambda target: target.head(5, more="Transfer-Encoding: chunked\r\n") + b"fffffffff\r\n{}",
        _npy("(1000000000000, 2)"),
        _npy("(4, 2)"),
        _line("GET /livez HTTP/1.1", "Host: x", "Host: y", "Accept: " + "*/*," * 9000),
        _line("GET /livez HTTP/9.9", "Host: x"),
    ),
    "endless headers": _repeated(
        lambda target: b"GET /livez HTTP/1.1\r\n" + b"X-A: b\r\n" * 50_000
    ),
    "bombs, 200 kB of gzip or zstd": _repeated(_bomb("gzip"), _bomb("zstd"), clients=64),
    "names of 120 MB": _repeated(
        _packed('{"', "a", '": 1}'),
        _packed('{"segment": {"', "/", '": "a"}}'),
        _packed('{"predicted_counts": {"', "\\u0000", '": 1}}'),
        clients=8,
    ),
    "texts and numbers of 120 MB": _repeated(
        _packed('{"method": "', "a", '"}'),
        _packed('{"predictions": ["', "\\n", '"]}'),
        _packed('{"columns": "\U0001f600', "a", '"}'),
        _packed('{"posteriors": [[', "9", "]]}"),
        _packed('{"posteriors": [[0.', "1", "]]}"),
        clients=8,
    ),
    "JSON of 40,000,000 values": _repeated(
        _packed('{"predictions": [{}', ",{}", "]}"),
        _packed('{"segment": {"a":1', ',"a":1', "}}"),
        _packed('{"features": [[]', ",[]", "]}"),
        _packed('{"predictions": [999', ",999", "]}"),
        clients=8,
    ),
    "4,000,000 faults": _repeated(
        _packed('{"posteriors": [[0.5, 0.5]', ", [0.5, 0.25, 0.125, 0.125]", "]}"),
        _packed('{"features": [[0.5]', ', ["one", "two", null, 0.5]', "]}"),
        _packed('{"predictions": ["a"', ', "a class that it has not"', "]}"),
        clients=8,
    ),
    "JSON 100,000 levels deep": _repeated(
        _whole(b'{"posteriors":' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
        _whole(b'{"a":' * 100_000 + b"1" + b"}" * 100_000),
    ),
    "a row of 1,000,000 columns": _repeated(
        _whole(f'{{"posteriors": [[{ROW}]]}}'.encode()),
        _whole(f'{{"predictions": [{ROW}]}}'.encode()),
        clients=4,
    ),
    "wrong keys": _repeated(_wrong_key, clients=64),
    "answers that nobody reads": slow_readers,
}
