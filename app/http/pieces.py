"""An answer in pieces, sent as they are: nothing is copied together first."""

from collections.abc import Mapping, Sequence

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from app.formats import Piece


class Pieces(Response):
    """An answer whose body is ``pieces``, one after another."""

    def __init__(
        self,
        pieces: Sequence[Piece],
        status_code: int = 200,
        headers: Mapping[str, str] | None = None,
        media_type: str | None = None,
    ) -> None:
        super().__init__(None, status_code, headers, media_type)
        self.pieces = pieces
        self.headers["content-length"] = str(sum(map(len, pieces)))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send them; each waits until the client has read most of those before."""
        start = {"type": "http.response.start", "status": self.status_code}
        await send({**start, "headers": self.raw_headers})
        for piece in self.pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
