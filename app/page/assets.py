"""Scripts and styles, our own and of packages: the few files that pages load, at their addresses.

The address carries the release and a digest of the files, so that browsers keep them for good.
"""

from collections.abc import Mapping
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

from fastapi import APIRouter, Request
from starlette.responses import Response
from starlette.staticfiles import StaticFiles

from app.release import RELEASE
from models_store.errors import NotFound

OWN = ("page.css", "page.js", "charts.js", "try.js", "icon.svg")
BOKEH = ("bokeh.min.js", "bokeh-api.min.js")
REFERENCE = ("swagger-ui-bundle.js", "swagger-ui.css", "redoc.standalone.js")
HERE = Path(__file__).parent / "static"
FOR_GOOD = "public, max-age=31536000, immutable"
FILES: Mapping[str, StaticFiles] = {
    **dict.fromkeys(OWN, StaticFiles(directory=HERE)),
    **dict.fromkeys(BOKEH, StaticFiles(packages=[("bokeh", "server/static/js")])),
    **dict.fromkeys(REFERENCE, StaticFiles(packages=[("fastapi_offline", "static")])),
}
"""Nothing else of these folders is served, and no list of them."""


def _edition() -> str:
    content = sha256(f"{version('bokeh')} {version('fastapi-offline')}".encode())
    for name in OWN:
        content.update((HERE / name).read_bytes())
    return f"{RELEASE}-{content.hexdigest()[:8]}"


EDITION = _edition()
router = APIRouter(include_in_schema=False)


def address(root: str, name: str) -> str:
    """Where a page finds a file."""
    assert name in FILES, name
    return f"{root}/static/{EDITION}/{name}"


@router.get("/static/{release}/{file}")
async def asset(release: str, file: str, request: Request) -> Response:
    """A file; of another edition than this one's, to be asked for again."""
    if file not in FILES:
        raise NotFound(f"there is no file {file[:80]!r}")
    answer = await FILES[file].get_response(file, request.scope)
    answer.headers["Cache-Control"] = FOR_GOOD if release == EDITION else "no-cache"
    return answer
