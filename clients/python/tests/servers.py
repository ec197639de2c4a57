"""Small real servers that stand in the way: one that refuses first, one that hangs up."""

import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Scripted:
    """Answers in order, the last one for ever; and the requests that came."""

    answers: Sequence[tuple[int, dict[str, str], bytes]]
    seen: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)
    base: str = ""


@contextmanager
def scripted(*answers: tuple[int, dict[str, str], bytes], delay: float = 0.0) -> Iterator[Scripted]:
    """A server that answers as it is told, after ``delay`` seconds."""
    script = Scripted(answers)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            at = min(len(script.seen), len(script.answers) - 1)
            script.seen.append((self.command, self.path, headers, body))
            status, extra, content = script.answers[at]
            time.sleep(delay)
            self.send_response(status)
            for name, value in {**extra, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            with suppress(ConnectionError):
                self.end_headers()
                self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
        setattr(Handler, f"do_{method}", Handler.handle_any)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        script.base = f"http://127.0.0.1:{server.server_port}"
        yield script
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def hanging_up(port: int, times: int) -> Iterator[str]:
    """A line to the service at ``port`` that is cut ``times`` after the request went through."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(0.05)
    left, stop = [times], threading.Event()
    lines: list[socket.socket] = []
    threads: list[threading.Thread] = []

    def serve(caller: socket.socket) -> None:
        with caller, socket.create_connection(("127.0.0.1", port)) as service, suppress(OSError):
            lines.extend((caller, service))
            pump = threading.Thread(target=_pump, args=(caller, service))
            threads.append(pump)
            pump.start()
            answer = service.recv(65536)
            if left[0] > 0:
                left[0] -= 1
                caller.shutdown(socket.SHUT_RDWR)
                return
            while answer:
                caller.sendall(answer)
                answer = service.recv(65536)

    def accept() -> None:
        while not stop.is_set():
            with suppress(TimeoutError):
                caller, _ = listener.accept()
                threads.append(threading.Thread(target=serve, args=(caller,)))
                threads[-1].start()

    thread = threading.Thread(target=accept)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        stop.set()
        thread.join()
        listener.close()
        for line in lines:
            with suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)
        for one in threads:
            one.join()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
