"""A version: what its classifier confuses, what each method is worth, and what each needs."""

import json
from collections.abc import Sequence
from typing import Annotated

import numpy as np
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from app.core.errors import InvalidInput
from app.http.body import only
from app.http.dependencies import ModelName, Selector, StoreDep
from app.kinds import registry as kinds
from app.kinds.registry import KINDS
from app.page import reliability
from app.page.methods import NEEDS
from app.page.render import page
from app.schemas import presenters
from app.schemas.models import VersionOut
from models_store.records import VersionRecord

MOST_CELLS = 30
"""Rows and columns of a confusion matrix that is shown whole."""
MOST_CONFUSIONS = 20
router = APIRouter(include_in_schema=False)


@router.get("/models/{name}/versions/{version}", dependencies=[only("class")])
def version_page(
    name: ModelName,
    version: Selector,
    request: Request,
    store: StoreDep,
    class_name: Annotated[str | None, Query(alias="class", max_length=200)] = None,
) -> Response:
    """A version of a model of any kind."""
    with store.read() as unit:
        if unit.models.get(name).kind in KINDS:
            other = kinds.version(unit.sources.get(name, version))
            text = json.dumps(other, indent=2, ensure_ascii=False)
            return page(request, "other_version.html", version=other, text=text)
        record = unit.versions.get(name, version)
        shown = _class(record, class_name)
        curves = reliability.curves(unit, record, record.source.classes.index(shown))
    found = record.source.scorecard
    card = None if found is None else presenters.scorecard(record, found)
    scores = [] if card is None else [s for s in card.methods if s.mean_absolute_error is not None]
    version_out = presenters.version(record)
    return page(
        request,
        "version.html",
        version=version_out,
        confusion=_confusion(version_out),
        confusions=_confusions(version_out),
        card=card,
        scores=[
            {"method": s.name, "error": s.mean_absolute_error, "spread": s.standard_error}
            for s in scores
        ],
        by_name={score.name: score for score in scores},
        metadata=json.dumps(record.metadata, indent=2, ensure_ascii=False),
        needs=NEEDS,
        shown=shown,
        curves=curves,
    )


def _class(record: VersionRecord, asked: str | None) -> str:
    """The class whose calibration is shown: the one asked for, else the rarest."""
    classes = record.source.classes
    if asked is not None and asked not in classes:
        raise InvalidInput.at("/query/class", "is not a class of this model")
    return asked or classes[int(record.source.priors.argmin())]


def _confusion(version: VersionOut) -> list[dict[str, object]] | None:
    """Rows of the heat map, each with its cells' counts and shares; None where it is too large."""
    counts = version.confusion_matrix
    if counts is None or max(len(counts), len(version.outputs)) > MOST_CELLS:
        return None
    return [
        {"name": name, "cells": _cells(row)}
        for name, row in zip(version.classes, counts, strict=True)
    ]


def _cells(row: Sequence[float]) -> list[tuple[float, float]]:
    total = sum(row) or 1.0
    return [(count, count / total) for count in row]


def _confusions(version: VersionOut) -> list[tuple[str, str, float, float]] | None:
    """Of a large matrix, the most frequent mistakes; None where all of it is shown."""
    if version.confusion_matrix is None or _confusion(version) is not None:
        return None
    counts = np.array(version.confusion_matrix)
    totals = counts.sum(axis=1)
    mistakes = counts.copy()
    for k, name in enumerate(version.classes):
        if name in version.outputs:
            mistakes[k, version.outputs.index(name)] = 0
    order = np.argsort(-mistakes, axis=None, kind="stable")[:MOST_CONFUSIONS]
    found = []
    for place in order.tolist():
        k, j = divmod(place, mistakes.shape[1])
        if mistakes[k, j] > 0:
            share = float(mistakes[k, j] / totals[k])
            found.append((version.classes[k], version.outputs[j], float(mistakes[k, j]), share))
    return found
