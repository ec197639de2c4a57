"""What a person sees where a program would read a problem document."""

from collections.abc import Mapping
from urllib.parse import quote

from fastapi import Request
from starlette.datastructures import Headers
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.http.problems import MEDIA_TYPE
from app.page.render import page, root_of
from app.page.sign_in import LONGEST_ADDRESS

MACHINES = ("/v1/", "/static/", "/livez", "/readyz", "/version", "/metrics", "/openapi.json")
TITLES: Mapping[int, str] = {
    403: "This key may not do that",
    404: "There is nothing here",
    405: "This page does not take that",
    421: "This service does not know this name",
    422: "Something in the address is wrong",
    429: "Too much at once",
    500: "Something went wrong",
    503: "Not available just now",
}


class Pages:
    """Turns problems into pages for browsers, and sends those without a key to sign in."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if not _wants_page(scope):
            await self.app(scope, receive, send)
            return
        replaced = False

        async def watched(message: Message) -> None:
            nonlocal replaced
            if message["type"] == "http.response.start":
                replaced = Headers(raw=message["headers"]).get("content-type") == MEDIA_TYPE
                if replaced:
                    answer = _shown(Request(scope), message)
                    await answer(scope, receive, send)
            if not replaced:
                await send(message)

        await self.app(scope, receive, watched)


def _wants_page(scope: Scope) -> bool:
    if scope["type"] != "http" or scope["path"].startswith(MACHINES):
        return False
    return "text/html" in Headers(scope=scope).get("accept", "")


def _shown(request: Request, message: Message) -> Response:
    status: int = message["status"]
    if status == 401:
        query = f"?{request.url.query}" if request.url.query else ""
        back = quote(request.url.path.removeprefix(root_of(request)) + query, safe="/")
        if len(back) > LONGEST_ADDRESS:
            back = "/"
        return RedirectResponse(f"{root_of(request)}/sign-in?next={back}", 303)
    detail = request.scope.get("detail", "")
    answer = page(
        request,
        "problem.html",
        status,
        title=TITLES.get(status, "This did not work"),
        detail=detail,
        request_id=request.scope["request_id"],
    )
    given = Headers(raw=message["headers"])
    for name in ("allow", "retry-after"):
        if name in given:
            answer.headers[name] = given[name]
    for cookie in given.getlist("set-cookie"):
        answer.headers.append("set-cookie", cookie)
    return answer
