"""What is deployed, as it is read."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parent.parent.parent
PROMETHEUS = ROOT / "deploy" / "prometheus"
RULES = PROMETHEUS / "rules" / "priorshift.yml"
GRAFANA = ROOT / "deploy" / "grafana"
DASHBOARD: dict[str, Any] = json.loads((GRAFANA / "dashboards" / "priorshift.json").read_text())
PANELS: list[dict[str, Any]] = DASHBOARD["panels"]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())


def read(path: Path) -> dict[str, Any]:
    """A YAML file."""
    found: dict[str, Any] = yaml.safe_load(path.read_text())
    return found


def expressions() -> Iterator[tuple[str, str]]:
    """Every query of the dashboard, with its panel's title."""
    for panel in PANELS:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"]


def rules() -> list[dict[str, Any]]:
    """Every rule."""
    return [rule for group in read(RULES)["groups"] for rule in group["rules"]]


def metrics(text: str) -> set[str]:
    """The names of the service's metrics in an expression, of a histogram without what follows."""
    found = re.findall(r"(?<![:\w])priorshift_\w+", text)
    return {re.sub(r"_(bucket|count|sum)$", "", name) for name in found}
