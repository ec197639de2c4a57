"""Codes of warnings: what is told, kept and documented are the same."""

import json
import pickle
from pathlib import Path

import pytest

from app.core.warnings import Warning, WarningCode
from app.schemas import presenters

ROOT = Path(__file__).parents[2]


def test_the_table_of_the_readme_is_made_from_the_codes() -> None:
    section = (ROOT / "README.md").read_text().split("\n## Warnings\n")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    assert rows == [f"| `{code}` | {code.meaning} |" for code in WarningCode]


def test_codes_are_in_order_and_named_after_themselves() -> None:
    assert sorted(WarningCode) == list(WarningCode)
    for code in WarningCode:
        assert code.name == code.upper().replace("-", "_")


def test_a_code_is_its_text() -> None:
    told = Warning(WarningCode.SMALL_BATCH, "gather more rows")
    (shown,), (kept,) = presenters.warnings([told]), presenters.stored_warnings([told])
    for part in (shown, kept):
        assert json.dumps(part.model_dump(mode="json")) == (
            '{"code": "small-batch", "message": "gather more rows"}'
        )
    assert f"{told.code}" == "small-batch"
    assert "small-batch" in {WarningCode.SMALL_BATCH}


def test_a_code_of_another_release_stays_as_it_is() -> None:
    code = WarningCode("of-another-release")
    assert (code, code.meaning) == ("of-another-release", "")
    assert pickle.loads(pickle.dumps(code)) == code
    assert code not in list(WarningCode)
    with pytest.raises(ValueError, match="7 is not a valid"):
        WarningCode(7)  # type: ignore[arg-type]
