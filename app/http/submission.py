"""A request to a registered version: the one way from its bytes to what the core is asked.

In this order: the answer's format, the body, an answer given before under the same
Idempotency-Key, the shape, the version, the batch. The first that is wrong is what the caller
hears of.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar

from fastapi import Depends, Request
from pydantic import BaseModel

from app.core.arrays import Floats
from app.core.lazy import cached_property
from app.core.prevalence.source import SourceModel
from app.core.warnings import Warning
from app.estimation import Batch, SourceRows
from app.estimation import Request as CoreRequest
from app.formats import json
from app.formats.frame import Frame
from app.http.body import Body, Payload, Sent
from app.http.dependencies import ModelName, Selector
from app.http.idempotency import Once, OnceDep
from app.http.negotiation import accepted
from app.intake import options, parse
from app.schemas.requests import AdjustedModelIn, BatchIn
from app.services import Services, services_of
from app.serving.classifiers import Scoring
from models_store.records import VersionRecord

Shape = TypeVar("Shape", bound=BaseModel)


@dataclass(frozen=True)
class Submission(Generic[Shape]):
    """Checked input, and the version that it is for, which is looked up when it is needed.

    ``body``: what the caller sent, of its shape; ``frame``: the rows, where they came as a table;
    ``media_type``: of the answer.
    """

    body: Shape
    frame: Frame | None
    media_type: str
    model: str
    selector: str
    services: Services

    @cached_property
    def record(self) -> VersionRecord:
        """The version."""
        return self.services.store.version(self.model, self.selector)

    @property
    def source(self) -> SourceModel:
        """What is known of its classifier."""
        return self.record.source

    @property
    def classes(self) -> tuple[str, ...]:
        """Their names, in the version's order."""
        return self.record.source.classes

    @cached_property
    def scoring(self) -> Scoring:
        """Its classifier, where it was trained in the service."""
        return self.services.classifiers.of(self.record)

    @cached_property
    def rows(self) -> SourceRows:
        """Its validation rows, for the answers that need them."""
        return self.services.null_distributions.of(self.record)

    @cached_property
    def batch(self) -> Batch:
        """The rows that were sent."""
        return self.batch_of(self.frame)

    def batch_of(self, frame: Frame | None) -> Batch:
        """Some rows of the table that was sent."""
        assert isinstance(self.body, BatchIn)
        return parse.batch(self.body, self.source, self.scoring, frame)

    @cached_property
    def target(self) -> tuple[Floats | None, Batch | None, tuple[Warning, ...]]:
        """Stated target priors, or the batch to estimate them from, and what to say of them."""
        assert isinstance(self.body, AdjustedModelIn)
        return parse.target_or_batch(self.body, self.source, self.scoring)

    def request(self, batch: Batch | None, **more: Any) -> CoreRequest:
        """What is asked of ``batch``."""
        return options.asked(self.body, self.source, self.scoring, batch, **more)


@dataclass(frozen=True)
class Submitter:
    """Whoever asks a version something; ``once`` None: nothing is written."""

    http: Request
    model: str
    selector: str
    payload: Payload
    once: Once | None = None

    def batch(
        self,
        shape: type[Shape],
        query: Sequence[str] = (),
        offered: Sequence[str] = (json.MEDIA_TYPE,),
        replay: bool = True,
    ) -> Submission[Shape]:
        """A batch in any format, with its options; ``query``: parameters of the route itself."""
        media_type = accepted(self.http, offered)
        return self._checked(shape, self.payload.batch(query), media_type, replay)

    def json(self, shape: type[Shape]) -> Submission[Shape]:
        """A JSON body."""
        media_type = accepted(self.http, [json.MEDIA_TYPE])
        return self._checked(shape, Sent(self.payload.json()), media_type, replay=True)

    def _checked(
        self, shape: type[Shape], sent: Sent, media_type: str, replay: bool
    ) -> Submission[Shape]:
        if replay and self.once is not None:
            self.once.require_new()
        body = parse.envelope(shape, sent.content, sent.text)
        services = services_of(self.http)
        return Submission(body, sent.frame, media_type, self.model, self.selector, services)


async def _submitter(
    request: Request, name: ModelName, version: Selector, payload: Body
) -> Submitter:
    return Submitter(request, name, version, payload)


async def _writer(
    request: Request, name: ModelName, version: Selector, payload: Body, once: OnceDep
) -> Submitter:
    return Submitter(request, name, version, payload, once)


Submit = Annotated[Submitter, Depends(_submitter)]
SubmitOnce = Annotated[Submitter, Depends(_writer)]
"""Of routes that write."""
