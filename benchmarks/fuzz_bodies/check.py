"""What must come out of a body, whatever it is."""

import gc
import json as stdlib_json
import re
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import Response

from app.core.errors import InvalidInput, MethodUnavailable
from app.core.prevalence.source import SourceModel
from app.estimation import PosteriorBatch
from app.formats import json, table
from app.formats.errors import TooLarge, Unparseable, Unsupported
from app.formats.frame import Frame
from app.http.body import Payload
from app.http.content_encoding import ENCODINGS
from app.http.problems import problem, unprocessable
from app.intake import parse, training
from app.schemas.requests import EstimateIn, SourceIn
from benchmarks import memory
from benchmarks.fuzz_bodies.inputs import CLASSES, JSON, NAMES, Input, draw

INFLATED = 4_000_000
"""What a body may inflate to here, bytes."""
MOST_ROWS = 100_000
LONGEST_REFUSAL = 64_000
"""Bytes."""
OF_OBJECTS = re.compile(rb"<[\w.]+ object at 0x")
MOST_GROWTH = 600
"""MB."""
OTHERS = (Unparseable, TooLarge, Unsupported, MethodUnavailable)


@dataclass
class Report:
    """What came out of many inputs; ``growth``: of the process's memory, MB."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    failures: list[tuple[int, str]] = field(default_factory=list)
    seconds: float = 0.0
    slowest: float = 0.0
    slowest_number: int = -1
    growth: float = 0.0


class Levelled:
    """Scores features as a version with one numeric and one categorical column does."""

    features = NAMES

    def batch(self, values: Any, columns: Any) -> PosteriorBatch:
        """Even posteriors for rows that are in order."""
        rows = table.batch(values, columns, NAMES, self._levels, True)
        return PosteriorBatch(np.full((len(rows), 2), 0.5))

    def framed(self, frame: Frame) -> PosteriorBatch:
        """The same for those of a table."""
        rows = table.framed(frame, NAMES, self._levels, True)
        return PosteriorBatch(np.full((len(rows), 2), 0.5))

    @property
    def _levels(self) -> table.Levels:
        return {NAMES.index("two"): {"x": 0, "y": 1, 1.0: 2}}


def run(numbers: Iterable[int]) -> Report:
    """Try the inputs of these numbers."""
    report = Report()
    model = _model()
    memory.forget_peak()
    before = memory.resident()
    begin = time.perf_counter()
    for number in numbers:
        kind, message = draw(number)
        start = time.perf_counter()
        try:
            outcome = outcome_of(message, model)
        except Exception as error:
            outcome = "failure"
            report.failures.append((number, f"{type(error).__name__}: {str(error)[:200]}"))
        took = time.perf_counter() - start
        gc.unfreeze()
        if took > report.slowest:
            report.slowest, report.slowest_number = took, number
        report.counts[kind, outcome] += 1
    report.seconds = time.perf_counter() - begin
    report.growth = memory.peak() - before
    return report


def outcome_of(message: Input, model: SourceModel) -> str:
    """The documented error that the input gets, or ``accepted``; raises what must not happen."""
    try:
        body = message.body
        if message.encoding != "identity":
            body = b"".join(ENCODINGS[message.encoding](body, INFLATED))
            assert len(body) <= INFLATED
        _answer(Payload(body, message.media_type, message.query, MOST_ROWS), message.sent, model)
    except InvalidInput as error:
        _require_short(unprocessable(_request(), error.faults, error.count))
        return "InvalidInput"
    except OTHERS as error:
        _require_short(problem(_request(), 400, "refused", str(error)))
        return type(error).__name__
    return "accepted"


def _answer(payload: Payload, sent: str, model: SourceModel) -> None:
    if payload.media_type == JSON:
        _require_same(json.decode(payload.body), stdlib_json.loads(payload.body))
    if sent == "source":
        source = parse.envelope(SourceIn, payload.json())
        if training.training(source, CLASSES, "/source") is None:
            parse.source(source, CLASSES, "/source")
        return
    batch = payload.batch()
    envelope = parse.envelope(EstimateIn, batch.content, batch.text)
    parse.bayes_options(envelope.options, CLASSES)
    parse.batch(envelope, model, Levelled(), batch.frame)


def _require_same(content: Any, expected: Any) -> None:
    """Arrays are lists of rows of floats."""
    if isinstance(content, np.ndarray):
        assert content.tolist() == [[float(cell) for cell in row] for row in expected]
    elif isinstance(content, dict):
        assert list(content) == list(expected)
        for name, value in content.items():
            _require_same(value, expected[name])
    else:
        assert content == expected
        assert type(content) is type(expected)


def _require_short(answer: Response) -> None:
    """A problem document can say it, and it is not an echo of the body."""
    assert len(answer.body) <= LONGEST_REFUSAL, f"a refusal of {len(answer.body)} bytes"
    assert not OF_OBJECTS.search(bytes(answer.body)), "a refusal that shows Python's objects"


def _request() -> Request:
    return Request({"type": "http", "request_id": "0" * 32})


def _model() -> SourceModel:
    source = SourceIn.model_validate({"confusion_matrix": [[9, 1], [2, 8]]})
    return parse.derived(parse.source(source, CLASSES, ""), "")
