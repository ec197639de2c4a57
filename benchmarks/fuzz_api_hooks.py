"""What schemathesis does to its requests here: half of the batches and sources fit a model.

Nothing drawn from a JSON schema sums to one, so that no batch would get past the first check. Of
what is to be refused, some has names and texts of a length that nobody draws. Besides what
schemathesis checks, no refusal may be long.
"""

import atexit
import io
import os
import zlib
from collections import Counter
from typing import Any

import numpy as np
import schemathesis
from hypothesis import strategies as st

from app.formats import arrow
from benchmarks.fuzz_api import SAMPLES
from benchmarks.report import table

ANSWERS: Counter[tuple[str, int]] = Counter()
BATCH = ("posteriors", "predictions", "predicted_counts", "features")
METHODS = ("auto", "em", "mle", "acc", "acc-qp", "pacc-qp", "bayes", "cde", "cc", "pcc", "em-stop")
ROWS = [[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]]
LABELS = ["a", "b", "b"]
PRIORS = {"a": 0.3, "b": 0.7}
SOURCES: tuple[dict[str, Any], ...] = (
    {"priors": PRIORS, "metadata": {"any": ["thing"]}},
    {"class_counts": {"a": 3, "b": 4}, "confusion_matrix": [[2, 1], [1, 3]]},
    {"validation": {"labels": LABELS * 10, "posteriors": ROWS * 10}, "calibration": "platt"},
    {"validation": {"labels": LABELS * 20, "posteriors": ROWS * 20}, "calibration": "isotonic"},
)
FITTING: dict[str, Any] = {
    "columns": ["b", "a"],
    "target_priors": PRIORS,
    "priors": PRIORS,
    "intercepts": {"a": 0.5, "b": -1.0},
    "costs": [[0, 1], [5, 0]],
}


LONG: tuple[dict[str, Any], ...] = (
    {"x" * 100_000: 1},
    {"\x01/" * 450: {"~" * 900: "\x02" * 50_000}},
    {"method": "/" * 60_000, "unknown": 1},
    {f"{'é' * 900}{n}": n for n in range(45)},
)
LONGEST = 64_000
"""Bytes of a refusal."""
ADAPTING = {
    "machines": ("strategy", "correction", "second_test", "seed", "include"),
    "city": ("link", "criterion", "method"),
}


def _good_bodies() -> None:
    """Tables and arrays that are some: bytes at random never are."""
    rows = np.array(ROWS)
    array = io.BytesIO()
    np.save(array, rows)
    bodies = {kind: b"".join(arrow.encode(kind, ("a", "b"), rows)) for kind in arrow.KINDS}
    bodies["application/x-npy"] = array.getvalue()
    for kind, body in bodies.items():
        schemathesis.openapi.media_type(kind, st.just(body))


_good_bodies()


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    """Make the batch fit, where it was meant to be good; make it long, where it was not."""
    if case.meta is None:
        return
    path = case.operation.path
    draw = zlib.crc32(repr(case.body).encode())
    if not case.meta.generation.mode.is_positive:
        if isinstance(case.body, dict) and draw % 5 == 0:
            case.body = {**case.body, **LONG[draw // 5 % len(LONG)]}
        return
    if case.method.upper() != "POST" or not isinstance(case.body, dict) or draw % 2:
        return
    if "adaptations" in path:
        adapted(case, draw // 2)
    elif "{version}" in path:
        case.body = fitted(case.body, draw // 2, truth="evaluations" in path)
    elif path.endswith("/versions"):
        case.body = {"source": SOURCES[draw // 2 % len(SOURCES)]}
    elif path == "/v1/models":
        case.body["classes"] = ["a", "b"]
        case.body["source"] = SOURCES[draw // 2 % len(SOURCES)]


def adapted(case: Any, draw: int) -> None:
    """A sample that fits one of the other models, or rows that its adaptation predicts."""
    name = tuple(SAMPLES)[draw % len(SAMPLES)]
    rows = dict(SAMPLES[name])
    kept = {key: value for key, value in case.body.items() if key in ADAPTING[name]}
    if "{id}" in case.operation.path:
        case.path_parameters["id"] = os.environ[f"FUZZ_{name.upper()}"]
        kept = {}
        if draw % 3:
            rows.pop("y", None)
    else:
        case.path_parameters["name"] = name
        case.path_parameters["version"] = "1"
    case.body = {**kept, **rows}


def fitted(body: dict[str, Any], draw: int, truth: bool) -> dict[str, Any]:
    """The same wishes, for rows that are some."""
    kept = {name: value for name, value in body.items() if name not in BATCH}
    fits = {name: FITTING[name] for name in kept if name in FITTING}
    if "labels" in kept or truth:
        fits["labels"] = LABELS
    if truth and draw % 3 == 0:
        return {**kept, **fits, "estimate": os.environ["FUZZ_ESTIMATE"]}
    if "method" in kept:
        fits["method"] = METHODS[draw % len(METHODS)]
    if "options" in kept:
        fits["options"] = {}
    if "target_priors" in kept and draw % 2:
        return {**kept, **fits}
    kept.pop("estimate", None)
    rows = {"predictions": LABELS} if draw % 5 == 0 else {"posteriors": ROWS}
    if "predictions" in rows:
        fits.pop("columns", None)
        kept.pop("columns", None)
    return {**kept, **fits, **rows}


@schemathesis.hook
def after_call(context: Any, case: Any, response: Any) -> None:
    """Count the answers."""
    ANSWERS[case.operation.label, response.status_code] += 1


@schemathesis.check
def short_refusal(context: Any, response: Any, case: Any) -> None:
    """What is refused is not sent back."""
    if 400 <= response.status_code < 500 and len(response.content) > LONGEST:
        raise AssertionError(f"a refusal of {len(response.content)} bytes")


@atexit.register
def tell() -> None:
    """How often each route gave each status."""
    routes = sorted({route for route, _ in ANSWERS})
    statuses = sorted({status for _, status in ANSWERS})
    counts = [[str(ANSWERS[route, status]) for status in statuses] for route in routes]
    lines = [[route, *cells] for route, cells in zip(routes, counts, strict=True)]
    print(table(["answers", *map(str, statuses)], lines))
