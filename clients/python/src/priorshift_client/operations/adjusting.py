"""Adjusted posteriors and intercepts."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from priorshift_client.batches import Batch, batch_of
from priorshift_client.bodies import JSON, NPY, array_of, batch_body, json_body, json_content
from priorshift_client.calls import Answer, Call, ask, into, place
from priorshift_client.options import MethodOptions, ShiftOptions
from priorshift_client.reading import read
from priorshift_client.registry import SoftmaxModel
from priorshift_client.results import BiasAdjustment, Posteriors, Warning
from priorshift_client.rows import labels as listed_labels
from priorshift_client.rows import listed, matrix


def posteriors(
    model: str,
    batch: Any,
    version: int | str = "latest",
    method: str = "auto",
    *,
    target_priors: Mapping[str, float] | None = None,
    adjust: Literal["always", "if-shifted"] = "always",
    costs: Any = None,
    shift: ShiftOptions | None = None,
    options: MethodOptions | None = None,
    labels: Iterable[str | None] | None = None,
    columns: Iterable[str] | None = None,
) -> Call[Posteriors]:
    """Adjust rows to stated target priors or, without them, to the estimate of these rows.

    ``costs`` (rows true classes, columns decided ones) adds decisions. Rows come back in the order
    of the model's classes, which ``columns`` of the answer names.
    """
    data = batch_of(batch, columns)
    content = {
        "method": method,
        "target_priors": target_priors,
        "adjust": adjust,
        "costs": None if costs is None else _costs(costs),
        "shift": shift,
        "options": options,
        "labels": None if labels is None else listed_labels(labels),
    }
    textual = costs is not None or data.field == "predicted_counts"
    where = place("models", model, "versions", version, "posteriors")
    return ask(where, batch_body(data, content), _posteriors, JSON if textual else NPY)


def bias_adjustment(
    model: str,
    intercepts: Mapping[str, float],
    batch: Any = None,
    version: int | str = "latest",
    method: str = "auto",
    *,
    target_priors: Mapping[str, float] | None = None,
    reference: str | None = None,
    options: MethodOptions | None = None,
    labels: Iterable[str | None] | None = None,
    columns: Iterable[str] | None = None,
) -> Call[BiasAdjustment]:
    """Adjust the intercepts of a softmax model to stated priors, or to the estimate of a batch."""
    data = None if batch is None else batch_of(batch, columns)
    content = {
        "intercepts": intercepts,
        "target_priors": target_priors,
        "reference": reference,
        "method": method,
        "options": options,
        "labels": None if labels is None else listed_labels(labels),
        **({} if data is None else _content(data)),
    }
    where = place("models", model, "versions", version, "bias-adjustments")
    return ask(where, json_body(content), into(BiasAdjustment))


def adjusted_model(
    model: str,
    batch: Any = None,
    version: int | str = "latest",
    method: str = "auto",
    *,
    target_priors: Mapping[str, float] | None = None,
    options: MethodOptions | None = None,
    labels: Iterable[str | None] | None = None,
    columns: Iterable[str] | None = None,
) -> Call[SoftmaxModel]:
    """Adjust the softmax model that the service trained: to stated priors or to a batch."""
    data = None if batch is None else batch_of(batch, columns)
    content = {
        "target_priors": target_priors,
        "method": method,
        "options": options,
        "labels": None if labels is None else listed_labels(labels),
        **({} if data is None else _content(data)),
    }
    where = place("models", model, "versions", version, "adjusted-models")
    return ask(where, json_body(content), into(SoftmaxModel))


def _content(batch: Batch) -> dict[str, Any]:
    return {batch.field: json_content(batch), "columns": batch.columns}


def _costs(costs: Any) -> list[list[float]]:
    rows = costs if hasattr(costs, "dtype") else list(costs)
    return listed(matrix(rows, "/costs"), "/costs")


def _posteriors(answer: Answer) -> Posteriors:
    """From NPY and its headers, or from JSON."""
    if not answer.headers.get("content-type", "").startswith(NPY):
        content = answer.json()
        return read(Posteriors, {**content, "array": content["posteriors"]})
    warnings = answer.headers.get("priorshift-warnings", "")
    codes = [code.strip() for code in warnings.split(",") if code.strip()]
    stated = answer.headers.get("priorshift-target-priors")
    target = None if stated is None else {str(k): float(v) for k, v in json.loads(stated).items()}
    method = answer.headers.get("priorshift-method")
    return Posteriors(
        array_of(answer.body),
        None if target is None else tuple(target),
        None if method in (None, "stated") else method,
        target,
        tuple(Warning(code) for code in codes),
    )
