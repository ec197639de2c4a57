"""A receiver of webhooks that fails half the time, and checks what it is told.

It fails at most five times for one message: a day has nine attempts.
"""

import base64
import hashlib
import hmac
import json
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MOST_FAILURES = 5


@dataclass
class Receiver:
    """What came: ids of alerts by event, how often in all, and what did not verify."""

    port: int = 0
    secret: str = ""
    events: dict[str, set[str]] = field(default_factory=dict)
    failures: dict[str, int] = field(default_factory=dict)
    attempts: int = 0
    forged: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, headers: dict[str, str], body: bytes) -> int:
        """The status of the answer."""
        with self._lock:
            self.attempts += 1
            if not verifies(self.secret, headers, body):
                self.forged += 1
                return 400
            failures = self.failures.get(headers["webhook-id"], 0)
            if failures < MOST_FAILURES and random.random() < 0.5:
                self.failures[headers["webhook-id"]] = failures + 1
                return 503
            event = json.loads(body)
            self.events.setdefault(event["type"], set()).add(event["data"]["id"])
            return 204


def verifies(secret: str, headers: dict[str, str], body: bytes) -> bool:
    """By the words of Standard Webhooks."""
    key = base64.b64decode(secret.partition("_")[2])
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    mine = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return any(hmac.compare_digest(mine, one) for one in headers["webhook-signature"].split(" "))


@contextmanager
def receiving() -> Iterator[Receiver]:
    """One on a free port of this machine."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            status = receiver.take({k.lower(): v for k, v in self.headers.items()}, body)
            self.send_response(status)
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
