"""Every kind of document: its format, and how rows without a number are read."""

from datetime import UTC, datetime
from typing import Any

import pytest

from app.schemas import presenters
from app.stored.adaptations import StoredAdaptation
from app.stored.alerts import StoredAlert
from app.stored.document import Damaged, Document, LaterFormat
from app.stored.estimates import StoredEstimate
from app.stored.evaluations import StoredEvaluation
from app.stored.jobs import StoredJobRequest, StoredJobResult, StoredProgress
from app.stored.monitors import StoredMonitor
from app.stored.streams import StoredStream
from tests.stored.examples import (
    ADAPTATION,
    ALERT,
    ESTIMATE,
    EVALUATION,
    EVIDENCE,
    MONITOR,
    PROGRESS,
)

ROWS: list[tuple[type[Document], dict[str, Any]]] = [
    (StoredEstimate, ESTIMATE),
    (StoredEvaluation, EVALUATION),
    (StoredMonitor, MONITOR),
    (StoredAlert, ALERT),
    (StoredAdaptation, ADAPTATION),
    (StoredStream, {}),
    (StoredStream, {"detected": 1, "calm": 0, "evidence": {}}),
    (StoredStream, {"detected": 1, "calm": 0, "evidence": EVIDENCE}),
    (StoredJobRequest, {"request": {"kind": "estimate"}, "version": 1, "roots": ["a"]}),
    (StoredProgress, PROGRESS),
    (StoredJobResult, {}),
    (StoredJobResult, {"errors": [{"pointer": "/dataset", "message": "holds no rows"}]}),
    (StoredJobResult, {"rows": 1, "skipped_rows": 0, "warnings": [], "version": 2}),
]
each_row = pytest.mark.parametrize(("kind", "row"), ROWS)


def test_every_document_is_here() -> None:
    assert {kind for kind, _ in ROWS} == set(Document.__subclasses__())


@each_row
def test_a_row_without_a_number_is_written_anew_and_reads_the_same(
    kind: type[Document], row: dict[str, Any]
) -> None:
    kept = kind.read(row)
    written = kept.written()
    assert written["format"] == kind.FORMAT == 2
    assert kind.read(written) == kept


@each_row
def test_a_later_format_is_refused(kind: type[Document], row: dict[str, Any]) -> None:
    with pytest.raises(LaterFormat, match=rf"{kind.NAME} .* format 3; .* up to 2: upgrade"):
        kind.read({**row, "format": 3})


@pytest.mark.parametrize("number", ["2", 0, -1, 1.0, None, True])
@each_row
def test_a_format_is_a_number(kind: type[Document], row: dict[str, Any], number: object) -> None:
    with pytest.raises(Damaged, match=f"{kind.NAME} is kept in the format"):
        kind.read({**row, "format": number})


def test_what_no_release_wrote_is_told_apart() -> None:
    with pytest.raises(Damaged, match="an estimate is kept in format 1, but not as that"):
        StoredEstimate.read(ESTIMATE | {"size": "many"})


def test_a_stream_before_its_first_window_remembers_nothing() -> None:
    assert StoredStream.read({}) == StoredStream(detected=0, calm=0, evidence=None)
    assert StoredStream.read({"detected": 2, "calm": 0, "evidence": {}}).evidence is None


def test_evidence_keeps_its_numbers_as_they_are() -> None:
    kept = StoredStream.read({"evidence": EVIDENCE}).evidence
    assert kept is not None
    assert repr(kept.state) == repr(EVIDENCE["state"])


def test_times_of_an_alert_are_told_as_they_always_were() -> None:
    shown = presenters.kept_alert(StoredAlert.read(ALERT))
    assert shown == ALERT
    at = datetime(2026, 2, 4, 9, tzinfo=UTC)
    changed = StoredAlert.read(ALERT).model_copy(update={"state": "closed", "closed_at": at})
    shown = presenters.kept_alert(StoredAlert.read(changed.written()))
    assert shown == {**ALERT, "state": "closed", "closed_at": "2026-02-04T09:00:00+00:00"}


def test_what_a_kind_tells_of_an_adaptation_stands_between_the_rest() -> None:
    kept = StoredAdaptation.read(ADAPTATION)
    assert kept.result == {"method": "em", "components": 2}
    assert list(kept.flat().items()) == list(ADAPTATION.items())


def test_evaluations_of_early_releases_name_no_interval() -> None:
    early = {name: value for name, value in EVALUATION.items() if name != "interval"}
    for row in (early, EVALUATION):
        assert presenters.kept_evaluation(StoredEvaluation.read(row)) == row
