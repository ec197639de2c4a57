"""What a caller takes: Accept and Accept-Encoding."""

from collections.abc import Mapping, Sequence

from fastapi import Request

from app.formats import json
from app.http.problems import NotAcceptable


def require_json(request: Request) -> None:
    """``NotAcceptable`` where the caller does not take JSON."""
    accepted(request, [json.MEDIA_TYPE])


def accepted(request: Request, offered: Sequence[str]) -> str:
    """The best of the ``offered`` media types for the request's Accept, or ``NotAcceptable``."""
    header = request.headers.get("accept", "*/*") or "*/*"
    ranked: list[tuple[float, int, str]] = []
    wanted = qualities(header)
    for position, media_type in enumerate(offered):
        quality = _quality(media_type, wanted)
        if quality > 0:
            ranked.append((-quality, position, media_type))
    if not ranked:
        raise NotAcceptable(f"answers come as {' or '.join(offered)}")
    return min(ranked)[2]


def qualities(header: str) -> Mapping[str, float]:
    """How much each of a list of things is wanted, 0 to 1; what cannot be read is not wanted."""
    wanted: dict[str, float] = {}
    for part in header.split(","):
        name, *parameters = [piece.strip().lower() for piece in part.split(";")]
        quality = 1.0
        for parameter in parameters:
            if parameter.startswith("q="):
                try:
                    quality = float(parameter[2:])
                except ValueError:
                    quality = 0.0
        wanted[name] = quality
    return wanted


def _quality(media_type: str, wanted: Mapping[str, float]) -> float:
    group = media_type.partition("/")[0]
    for media_range in (media_type, f"{group}/*", "*/*"):
        if media_range in wanted:
            return wanted[media_range]
    return 0.0
