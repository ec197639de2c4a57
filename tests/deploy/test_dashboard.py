"""The dashboard as Grafana reads it: of its own panels, about metrics that there are."""

import re
from itertools import combinations
from typing import Any

import jsonschema
import pytest

from tests.deploy.files import (
    COMPOSE,
    DASHBOARD,
    GRAFANA,
    PANELS,
    ROOT,
    expressions,
    metrics,
    read,
    rules,
)

SOURCE = read(GRAFANA / "provisioning/datasources/prometheus.yml")["datasources"][0]
PROVIDER = read(GRAFANA / "provisioning/dashboards/priorshift.yml")["providers"][0]
TEXT = {"type": "string", "minLength": 1}
USES = {
    "type": "object",
    "required": ["type", "uid"],
    "properties": {"type": {"const": SOURCE["type"]}, "uid": {"const": SOURCE["uid"]}},
}
PLACE = {
    "type": "object",
    "required": ["x", "y", "w", "h"],
    "additionalProperties": {"type": "integer", "minimum": 0, "maximum": 1000},
}
TARGET = {
    "type": "object",
    "required": ["refId", "datasource", "expr", "legendFormat"],
    "properties": {"refId": TEXT, "datasource": USES, "expr": TEXT},
}
PANEL = {
    "type": "object",
    "required": ["id", "type", "title", "gridPos"],
    "properties": {
        "id": {"type": "integer", "minimum": 1},
        "type": {"enum": ["row", "stat", "timeseries"]},
        "title": TEXT,
        "gridPos": PLACE,
        "targets": {"type": "array", "minItems": 1, "items": TARGET},
        "datasource": USES,
    },
    "if": {"properties": {"type": {"const": "row"}}},
    "else": {"required": ["targets", "datasource", "fieldConfig", "options"]},
}
VARIABLE = {
    "type": "object",
    "required": ["name", "type", "query", "datasource", "refresh"],
    "properties": {"type": {"const": "query"}, "datasource": USES},
}
SCHEMA = {
    "type": "object",
    "required": ["uid", "title", "schemaVersion", "panels", "templating", "time", "refresh"],
    "properties": {
        "uid": {"type": "string", "pattern": "^[a-z-]{1,40}$"},
        "title": TEXT,
        "schemaVersion": {"type": "integer", "minimum": 36},
        "panels": {"type": "array", "minItems": 1, "items": PANEL},
        "templating": {
            "type": "object",
            "properties": {"list": {"type": "array", "items": VARIABLE}},
        },
    },
}


def test_it_is_a_dashboard() -> None:
    jsonschema.validate(DASHBOARD, SCHEMA)
    ids = [panel["id"] for panel in PANELS]
    assert len(ids) == len(set(ids))
    for panel in PANELS:
        letters = [target["refId"] for target in panel.get("targets", ())]
        assert len(letters) == len(set(letters))
    assert "id" not in DASHBOARD, "Grafana gives it"
    assert "__inputs" not in DASHBOARD, "nobody is there to be asked"


def test_panels_lie_beside_each_other() -> None:
    def cells(panel: dict[str, Any]) -> set[tuple[int, int]]:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24
        columns, lines = range(at["x"], at["x"] + at["w"]), range(at["y"], at["y"] + at["h"])
        return {(x, y) for x in columns for y in lines}

    for one, other in combinations(PANELS, 2):
        assert not cells(one) & cells(other), (one["title"], other["title"])


def test_what_is_repeated_has_its_line_for_itself() -> None:
    repeated = [panel for panel in PANELS if "repeat" in panel]
    assert [(panel["repeat"], panel["gridPos"]["w"]) for panel in repeated] == [("class", 24)]


def test_what_is_styled_by_name_has_that_name() -> None:
    for panel in PANELS:
        names = {target["legendFormat"] for target in panel.get("targets", ())}
        for override in panel.get("fieldConfig", {}).get("overrides", ()):
            assert override["matcher"]["options"] in names
            for given in override["properties"]:
                if given["id"] == "custom.fillBelowTo":
                    assert given["value"] in names


def test_variables_are_declared_and_used() -> None:
    declared = [variable["name"] for variable in DASHBOARD["templating"]["list"]]
    queries = " ".join(expression for _, expression in expressions())
    used = set(re.findall(r"\$(\w+)", queries)) - {"__rate_interval"}
    assert used == set(declared)


def test_every_metric_is_one_that_the_manual_explains() -> None:
    table = (ROOT / "README.md").read_text()
    explained = set(re.findall(r"`(priorshift_\w+)`", table))
    shown = metrics(" ".join(expression for _, expression in expressions()))
    watched = metrics(" ".join(str(rule["expr"]) for rule in rules()))
    assert shown | watched <= explained
    hidden = {"priorshift_alerts_acknowledged"}
    assert explained - hidden <= shown, "the dashboard leaves something out"


class TestCompose:
    services = COMPOSE["services"]

    def mounted(self, service: str) -> dict[str, str]:
        found = [volume.split(":") for volume in self.services[service]["volumes"]]
        return {parts[1]: parts[0] for parts in found}

    def test_what_is_provisioned_is_mounted(self) -> None:
        mounts = self.mounted("grafana")
        assert mounts["/etc/grafana/provisioning"] == "./deploy/grafana/provisioning"
        assert mounts[PROVIDER["options"]["path"]] == "./deploy/grafana/dashboards"
        home = self.services["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
        assert home == f"{PROVIDER['options']['path']}/priorshift.json"
        assert self.mounted("prometheus")["/etc/prometheus"] == "./deploy/prometheus"
        assert SOURCE["url"] == "http://prometheus:9090"

    def test_prometheus_finds_the_service_and_its_key(self) -> None:
        job = read(ROOT / "deploy/prometheus/prometheus.yml")["scrape_configs"][0]
        assert job["static_configs"] == [{"targets": ["app:8000"]}]
        path = job["authorization"]["credentials_file"]
        assert path.removeprefix("/run/secrets/") in self.services["prometheus"]["secrets"]

    @pytest.mark.parametrize("name", ["prometheus", "grafana"])
    def test_they_are_asked_for_and_held_short(self, name: str) -> None:
        service = self.services[name]
        assert service["profiles"] == ["observability"]
        assert re.fullmatch(r"[\w/.-]+:v?\d+\.\d+\.\d+", service["image"])
        assert "mem_limit" in service
