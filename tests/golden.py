"""Inputs with independently obtained answers; see data/golden.json for their sources."""

import json
from pathlib import Path
from typing import Any

GOLDEN: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parent / "data" / "golden.json").read_text()
)
