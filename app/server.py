"""The server process: uvicorn, and what ends before it drains."""

import sys
from contextlib import suppress
from types import FrameType

import uvicorn
from fastapi import FastAPI

DRAIN_SECONDS = 20
STARTUP_FAILURE = 3
"""The exit status that uvicorn's own command has for it."""


class Server(uvicorn.Server):
    """Ends a running fit when it is told to stop: its caller gets 503 now, and asks another one."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """SIGTERM or SIGINT."""
        app = self.config.app
        assert isinstance(app, FastAPI)
        app.state.learners.close()
        super().handle_exit(sig, frame)


def run(app: FastAPI, host: str, port: int, log_level: str) -> None:
    """Serve until a signal; other requests have ``DRAIN_SECONDS`` to finish."""
    config = uvicorn.Config(
        app, host=host, port=port, log_level=log_level, timeout_graceful_shutdown=DRAIN_SECONDS
    )
    server = Server(config)
    with suppress(KeyboardInterrupt):
        server.run()
    if not server.started:
        sys.exit(STARTUP_FAILURE)
