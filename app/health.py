"""Whether a service of this machine is ready.

Containers ask every few seconds: nothing is imported but what a request over HTTP needs.
"""

import os
import sys
from collections.abc import Sequence
from http.client import HTTPConnection, HTTPException

PORT = 8000
PATH = "/readyz"
SECONDS = 4.0
"""For each step: below the five that a container gives its health check."""
MOST_BYTES = 1 << 16


def asked(words: Sequence[str]) -> tuple[int, str] | None:
    """The port and the path that the words after ``health`` name.

    None where there is anything else: the command line tells what is wrong, or helps.
    """
    given = {"--port": os.environ.get("PRIORSHIFT_PORT") or str(PORT), "--path": PATH}
    pairs = [part for word in words for part in word.split("=", 1)]
    names, values = pairs[::2], pairs[1::2]
    if len(names) != len(values) or not set(names) <= set(given):
        return None
    given |= zip(names, values, strict=True)
    port, path = given["--port"], given["--path"]
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 1 << 16):
        return None
    return (int(port), path) if sound(path) else None


def sound(path: str) -> bool:
    """Whether a request line can hold the path."""
    return path.startswith("/") and path.isascii() and path.isprintable() and " " not in path


def check(port: int, path: str) -> int:
    """Print what is answered; the exit status, 0 where it is 200."""
    # No proxy that the environment names stands between this machine and itself.
    connection = HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        # Plain ASCII: nothing that answers here can steer a terminal.
        text = answer.read(MOST_BYTES).decode("ascii", "replace")
        text = "".join(char if " " <= char <= "~" else "?" for char in text)
    except (OSError, HTTPException) as error:
        sys.stderr.write(f"no answer: {error or type(error).__name__}\n")
        return 1
    finally:
        connection.close()
    sys.stdout.write(f"{text}\n")
    return 0 if answer.status == 200 else 1
