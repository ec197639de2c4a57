"""Real receivers of webhooks, in threads of the test."""

import base64
import hashlib
import hmac
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.patience import patience


@dataclass(frozen=True)
class Received:
    """A request as it came."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def message(self) -> str:
        return self.headers["webhook-id"]

    @property
    def content(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(self.body)
        return content

    def verifies(self, secret: str) -> bool:
        """By the words of Standard Webhooks, written anew: nothing of the service's code."""
        key = base64.b64decode(secret.split("_", 1)[1])
        moment = self.headers["webhook-timestamp"]
        signed = f"{self.message}.{moment}.{self.body.decode()}".encode()
        expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
        listed = self.headers["webhook-signature"].split(" ")
        fresh = abs(time.time() - int(moment)) < patience(300)
        return fresh and any(hmac.compare_digest(f"v1,{expected}", given) for given in listed)


Answer = tuple[int, dict[str, str]]


class Receiver:
    """Keeps what comes; ``answers`` says with what status and headers."""

    def __init__(self, port: int, answers: Callable[[Received], Answer], scheme: str) -> None:
        self.base = f"{scheme}://127.0.0.1:{port}"
        self.port = port
        self.got: list[Received] = []
        self.answers = answers

    def take(self, received: Received) -> Answer:
        self.got.append(received)
        return self.answers(received)


@contextmanager
def receiving(
    answers: Callable[[Received], Answer] = lambda received: (204, {}),
    certificate: str | None = None,
) -> Iterator[Receiver]:
    """A receiver on a free port of 127.0.0.1."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            named = {name.lower(): value for name, value in self.headers.items()}
            status, headers = receiver.take(Received(self.path, named, body))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: Any, address: Any) -> None:
            pass  # a sender that hangs up

    server = Server(("127.0.0.1", 0), Handler)
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    scheme = "http" if certificate is None else "https"
    receiver = Receiver(server.server_address[1], answers, scheme)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def raw(serve: Callable[[socket.socket], None]) -> Iterator[str]:
    """A receiver that is no HTTP server: ``serve`` has the connection, until it is closed."""
    listener = socket.create_server(("127.0.0.1", 0))

    def run() -> None:
        try:
            while True:
                connection, _ = listener.accept()
                with connection:
                    connection.recv(65536)
                    serve(connection)
                    # Closed with a request half read, the answer could be lost to a reset.
                    connection.shutdown(socket.SHUT_WR)
                    while connection.recv(65536):
                        pass
        except OSError:
            pass

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(patience(10))
