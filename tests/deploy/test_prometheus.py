"""A real Prometheus: it accepts the rules, scrapes two workers, and answers the dashboard."""

import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from benchmarks.filled import fill
from tests.deploy.files import DASHBOARD, PROMETHEUS, RULES, expressions, metrics, read, rules
from tests.end_to_end.processes import free_port, ready
from tests.packages import program
from tests.patience import patience, until
from tests.webhooks.receivers import Receiver, receiving

ADMIN = "a" * 40
CHOSEN = {"monitor": "payments", "segment": "BE", "class": "(legit|fraud)"}
RATE = "10s"
"""What Grafana would put in for four scrapes and more."""


def promtool(*arguments: str | Path) -> None:
    command = [program("prometheus", "promtool"), *map(str, arguments)]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout + found.stderr


def test_the_rules_are_sound() -> None:
    promtool("check", "rules", RULES)


def test_the_configuration_is_sound() -> None:
    promtool("check", "config", "--syntax-only", PROMETHEUS / "prometheus.yml")


def test_the_rules_fire_when_they_should() -> None:
    path = Path(__file__).parent / "rules.yml"
    promtool("test", "rules", path)
    alerts = {rule["alert"] for rule in rules() if "alert" in rule}
    assert len(alerts) > 8
    text = path.read_text()
    assert all(alert in text for alert in alerts)


@dataclass(frozen=True)
class Watched:
    """A Prometheus that scrapes a service, and clients of both."""

    prometheus: httpx.Client
    service: httpx.Client
    receiver: Receiver

    def ask(self, path: str, **query: str) -> Any:
        answer = self.prometheus.get(f"/api/v1/{path}", params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()["data"]

    def values(self, expression: str) -> list[float]:
        """The numbers that an expression gives now."""
        found = self.ask("query", query=expression)["result"]
        numbers = [float(series["value"][1]) for series in found]
        return [number for number in numbers if math.isfinite(number)]


@pytest.fixture(scope="module")
def executable() -> str:
    return program("prometheus", "prometheus")


@pytest.fixture(scope="module")
def watched(
    executable: str,
    workspace: Path,
    sqlite_template: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Watched]:
    folder = tmp_path_factory.mktemp("prometheus")
    database = folder / "service.db"
    database.write_bytes(sqlite_template.read_bytes())
    (folder / "admin-key").write_text(ADMIN)
    ports = free_port(), free_port()
    bases = [f"http://127.0.0.1:{port}" for port in ports]
    with receiving() as receiver, serving(folder, ports[0]) as process:
        ready(bases[0], process)
        headers = {"Authorization": f"Bearer {ADMIN}"}
        with httpx.Client(base_url=bases[0], headers=headers, timeout=patience(60)) as service:
            key = service.post("/v1/api-keys", json={"name": "prometheus", "scopes": ["read"]})
            (folder / "metrics-key").write_text(key.json()["key"] + "\n")
            body = {"url": receiver.base, "events": ["alert.opened"]}
            assert service.post("/v1/webhooks", json=body).status_code == 201
            with scraping(executable, folder, ports), httpx.Client(base_url=bases[1]) as prometheus:
                fill(service)
                yield Watched(prometheus, service, receiver)


def serving(folder: Path, port: int) -> "subprocess.Popen[bytes]":
    """The service with two workers; ends with the block."""
    environment = {
        **os.environ,
        "PRIORSHIFT_DATABASE_URL": f"sqlite:///{folder / 'service.db'}",
        "PRIORSHIFT_ADMIN_KEY_FILE": str(folder / "admin-key"),
        "PRIORSHIFT_KEY_SECRET": "a secret of the server's own",
        "PRIORSHIFT_WEBHOOK_ALLOWED_HOSTS": '["127.0.0.1"]',
    }
    command = [sys.executable, "-m", "app.cli", "serve", "--port", str(port), "--workers", "2"]
    return Ended([*command, "--log-level", "error"], env=environment)


def scraping(executable: str, folder: Path, ports: tuple[int, int]) -> "subprocess.Popen[bytes]":
    """Prometheus as deployed, but every second, and with the key that was made just now."""
    configured = read(PROMETHEUS / "prometheus.yml")
    configured["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    configured["rule_files"] = [str(PROMETHEUS / path) for path in configured["rule_files"]]
    job = configured["scrape_configs"][0]
    job["authorization"]["credentials_file"] = str(folder / "metrics-key")
    job["static_configs"] = [{"targets": [f"127.0.0.1:{ports[0]}"]}]
    (folder / "prometheus.yml").write_text(yaml.safe_dump(configured))
    options = {
        "config.file": folder / "prometheus.yml",
        "storage.tsdb.path": folder / "data",
        "web.listen-address": f"127.0.0.1:{ports[1]}",
        "log.level": "error",
    }
    return Ended([executable, *(f"--{name}={value}" for name, value in options.items())])


class Ended(subprocess.Popen[bytes]):
    """A process that the end of its block ends."""

    def __exit__(self, *about: Any) -> None:
        self.terminate()
        super().__exit__(*about)


def filled_in(expression: str) -> str:
    """As Grafana sends it."""
    text = expression.replace("$__rate_interval", RATE)
    for name, value in CHOSEN.items():
        text = text.replace(f"${name}", value)
    assert "$" not in text
    return text


def test_prometheus_answers_every_query_of_the_dashboard(watched: Watched) -> None:
    until(lambda: bool(watched.receiver.got), what="the alert's event")
    missing = dict.fromkeys(filled_in(expression) for _, expression in expressions())
    assert len(missing) > 25

    def all_answer() -> bool:
        # Rates and quantiles need requests between two scrapes.
        body = {"posteriors": [[0.9, 0.1]], "columns": ["legit", "fraud"]}
        watched.service.post("/v1/models/cards/versions/1/estimates?keep=false", json=body)
        for expression in list(missing):
            if watched.values(expression):
                del missing[expression]
        return not missing

    try:
        until(all_answer, what="an answer to every query")
    except AssertionError:
        pytest.fail("nothing answers " + "\n".join(missing))


def test_variables_have_what_is_chosen(watched: Watched) -> None:
    for variable in DASHBOARD["templating"]["list"]:
        query = variable["query"]["query"]
        assert query == variable["definition"]
        selector, _, label = query.removeprefix("label_values(")[:-1].rpartition(", ")
        found = watched.ask(f"label/{label}/values", **{"match[]": filled_in(selector)})
        chosen = CHOSEN[variable["name"]].strip("()").split("|")
        assert set(chosen) <= set(found), variable["name"]


def test_what_it_scrapes_is_what_the_service_says(watched: Watched) -> None:
    said = watched.service.get("/v1/monitors/payments/series?segment=BE").json()
    own = 'monitor="payments",segment="BE",class="fraud"'

    expected = {
        f"priorshift_prevalence_ratio{{{own}}}": said["estimate"]["fraud"][-1],
        'priorshift_webhook_attempts_total{outcome="delivered"}': 1,
        'priorshift_alerts_open{monitor="payments"}': 1,
        "priorshift_workers": 2,
        "priorshift_ready": 1,
    }
    for expression, value in expected.items():
        until(partial(gives, watched, expression, value), what=expression)
    # Whichever worker answers, nothing goes to and fro.
    for change in (
        "changes(priorshift_prevalence_ratio[4s])",
        "changes(priorshift_alerts_open[4s])",
        "changes(priorshift_queue_limit[4s])",
        "resets(priorshift_estimates_total[4s])",
    ):
        until(partial(still, watched, change), what=change)


def gives(watched: Watched, expression: str, value: float) -> bool:
    return watched.values(expression) == [value]


def still(watched: Watched, change: str) -> bool:
    """Whether there were scrapes, and nothing changed."""
    found = watched.values(change)
    scraped = watched.values("count_over_time(priorshift_workers[4s])")
    return scraped >= [4] and bool(found) and not any(found)


def test_every_target_and_rule_is_well_and_nothing_alarms(watched: Watched) -> None:
    found = [rule for group in watched.ask("rules")["groups"] for rule in group["rules"]]
    assert {rule["name"] for rule in found} == {r.get("alert", r.get("record")) for r in rules()}
    # A scrape of a busy machine may take more than the second that it has here.
    until(partial(well, watched), what="targets and rules that are well")


def well(watched: Watched) -> bool:
    targets = {target["health"] for target in watched.ask("targets")["activeTargets"]}
    groups = watched.ask("rules")["groups"]
    evaluated = {rule["health"] for group in groups for rule in group["rules"]}
    return targets == {"up"} and evaluated == {"ok"} and not watched.values("ALERTS")


def test_every_metric_that_is_used_is_scraped(watched: Watched) -> None:
    text = json.dumps([*dict(expressions()).values(), *(rule["expr"] for rule in rules())])
    scraped = watched.ask("label/__name__/values")
    assert metrics(text) <= metrics(" ".join(scraped))
