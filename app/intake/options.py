"""From what the wire asks of a batch to the core's request: one translation for every route."""

from collections.abc import Callable
from typing import Any, Protocol

from pydantic import BaseModel

from app.core.json_types import JsonObject
from app.core.prevalence.source import SourceModel
from app.estimation import Batch, IntervalOptions, Request, ShiftOptions
from app.estimation.request import Refit
from app.intake import parse
from app.schemas.requests import OptionsIn


class Refits(Protocol):
    """A version that was trained in the service, and can be refitted."""

    def refit(self, method: str, options: OptionsIn, batch: Batch | None) -> Refit | None:
        """Cde by refitting, where ``options`` ask for it; or why that cannot be."""


Part = Callable[[Any, SourceModel], dict[str, object]]
PARTS: dict[str, Part] = {
    "method": lambda given, _: {"method": given},
    "options": lambda given, source: {
        "em": parse.em_options(given),
        "bayes": parse.bayes_options(given, source.classes),
        "soft": given.soft,
    },
    "interval": lambda given, _: {"interval": IntervalOptions(**given.model_dump())},
    "shift": lambda given, _: {"shift": ShiftOptions(**given.model_dump())},
    "include": lambda given, _: {
        name: name in given for name in ("trace", "posteriors", "histogram")
    },
    "adjust": lambda given, _: {"only_if_shifted": given == "if-shifted"},
}
"""What each field of a request says in the core's."""


def asked(
    given: BaseModel,
    source: SourceModel,
    scoring: Refits | None = None,
    batch: Batch | None = None,
    **more: Any,
) -> Request:
    """What ``given`` asks of ``batch``; what its shape does not declare keeps its default."""
    fields: JsonObject = {}
    for name in PARTS.keys() & type(given).model_fields.keys():
        fields |= PARTS[name](getattr(given, name), source)
    options = getattr(given, "options", None)
    if scoring is not None and options is not None:
        fields["refit"] = scoring.refit(fields["method"], options, batch)
    return Request(**fields | more)
