"""The demonstration: a service, two classifiers on real data, two shifted batches."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import httpx
import numpy as np

from app.console.terminal import say
from app.core.arrays import AnyArray, Codes, Floats

BATCHES = Path("var/demo")
START_SECONDS = 60.0


@dataclass(frozen=True)
class Case:
    """A trained classifier's scores: out-of-fold for the source, hidden labels for the batch."""

    name: str
    description: str
    classes: list[str]
    labels: Codes
    posteriors: Floats
    batch: Floats
    truth: Codes


def run(port: int, keep_running: bool) -> int:
    """Run the demonstration; the exit status."""
    if port and _taken(port):
        say(f"port {port} is taken; end what listens there, or choose another --port")
        return 2
    with _database(keep_running) as url:
        # Who waits for a service that stays is to find the models there: they are made elsewhere.
        with service(url, free_port() if keep_running or not port else port) as (base, _):
            _demonstrate(base)
        if not keep_running:
            return 0
        with service(url, port or free_port()) as (base, process):
            say()
            say(f"The service is up at {base} (docs at {base}/docs). Ctrl-C ends it.")
            return _wait(process)


def _demonstrate(base: str) -> None:
    """Register the models with the service at ``base``, post the batches, say what comes back."""
    with httpx.Client(base_url=base, timeout=60) as client:
        for case in (_breast_cancer(), _digits()):
            _register(client, case)
            _show(client, case)
    _by_hand()


@contextmanager
def _database(keep: bool) -> Iterator[str]:
    """The configured database for a service that stays, a throwaway one otherwise."""
    if keep:
        url = os.environ.get("PRIORSHIFT_DATABASE_URL", "sqlite:///priorshift.db")
        if url.startswith("sqlite:///"):
            Path(url.removeprefix("sqlite:///")).parent.mkdir(parents=True, exist_ok=True)
        yield url
    else:
        with tempfile.TemporaryDirectory() as folder:
            yield f"sqlite:///{folder}/demo.db"


@contextmanager
def service(url: str, port: int) -> Iterator[tuple[str, "subprocess.Popen[bytes]"]]:
    """A migrated database and a server process on it, ready to answer."""
    environment = {**os.environ, "PRIORSHIFT_DATABASE_URL": url}
    command = [sys.executable, "-m", "app.cli"]
    subprocess.run([*command, "migrate"], env=environment, check=True, stdout=subprocess.DEVNULL)
    serve = [*command, "serve", "--port", str(port), "--log-level", "warning"]
    process = subprocess.Popen(serve, env=environment)
    try:
        base = f"http://127.0.0.1:{port}"
        _await_ready(base, process)
        yield base, process
    finally:
        process.terminate()
        process.wait(timeout=30)


def _await_ready(base: str, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise SystemExit(f"the service ended with status {process.returncode}")
        try:
            if httpx.get(f"{base}/readyz").status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.1)
    raise SystemExit("the service did not become ready")


def _taken(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def _wait(process: "subprocess.Popen[bytes]") -> int:
    def stop(signum: int, frame: FrameType | None) -> None:
        process.terminate()

    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)
    status = process.wait()
    return 0 if status in (0, -signal.SIGTERM) else status


def _breast_cancer() -> Case:
    from sklearn.datasets import load_breast_cancer
    from sklearn.ensemble import RandomForestClassifier

    data = load_breast_cancer()
    return _case(
        "breast-cancer",
        "random forest on scikit-learn's breast_cancer",
        [str(name) for name in data.target_names],
        RandomForestClassifier(n_estimators=100, random_state=0),
        data.data,
        data.target,
        np.array([0.7, 0.3]),
    )


def _digits() -> Case:
    from sklearn.datasets import load_digits
    from sklearn.naive_bayes import MultinomialNB

    data = load_digits()
    shares = np.array([0.04] * 8 + [0.6, 0.08])
    return _case(
        "digits",
        "naive Bayes on scikit-learn's digits",
        [str(name) for name in data.target_names],
        MultinomialNB(),
        data.data,
        data.target,
        shares,
    )


def _case(
    name: str,
    description: str,
    classes: list[str],
    learner: Any,
    features: AnyArray,
    labels: Codes,
    shares: Floats,
) -> Case:
    """Train on half of the rows; draw the batch from the other half, at other shares."""
    from sklearn.model_selection import cross_val_predict, train_test_split

    known, hidden, known_labels, hidden_labels = train_test_split(
        features, labels, test_size=0.5, random_state=1, stratify=labels
    )
    posteriors = cross_val_predict(learner, known, known_labels, cv=5, method="predict_proba")
    learner.fit(known, known_labels)
    rows = _draw(hidden_labels, shares)
    return Case(
        name,
        description,
        classes,
        known_labels,
        posteriors,
        learner.predict_proba(hidden[rows]),
        hidden_labels[rows],
    )


def _draw(labels: Codes, shares: Floats) -> Codes:
    """As many rows as possible, none twice, with these class shares."""
    rng = np.random.default_rng(7)
    available = np.bincount(labels, minlength=len(shares))
    counts = np.floor(shares * (available / shares).min()).astype(int)
    picked = [
        rng.choice(np.flatnonzero(labels == k), count, replace=False)
        for k, count in enumerate(counts)
    ]
    return np.concatenate(picked)


def _register(client: httpx.Client, case: Case) -> None:
    """Model and version; both may be there from an earlier run."""
    model = {"name": case.name, "classes": case.classes, "description": case.description}
    created = client.post("/v1/models", json=model)
    if created.status_code != 409:
        created.raise_for_status()
    validation = {
        "labels": [case.classes[k] for k in case.labels],
        "posteriors": case.posteriors.tolist(),
    }
    source = {"source": {"validation": validation}}
    client.post(f"/v1/models/{case.name}/versions", json=source).raise_for_status()


def _show(client: httpx.Client, case: Case) -> None:
    """Post the batch, print what comes back beside the hidden truth."""
    BATCHES.mkdir(parents=True, exist_ok=True)
    body = json.dumps({"posteriors": case.batch.tolist()})
    (BATCHES / f"{case.name}.json").write_text(body)
    address = f"/v1/models/{case.name}/versions/latest"
    headers = {"content-type": "application/json"}
    answer = client.post(f"{address}/estimates", content=body, headers=headers)
    answer.raise_for_status()
    estimate = answer.json()
    truth = np.bincount(case.truth, minlength=len(case.classes)) / len(case.truth)

    say()
    say(f"{case.name}: {case.description}, {estimate['size']} unlabelled rows")
    say(f"  {'class':<12}{'source':>9}{'counted':>9}{'estimate':>10}{'truth':>9}")
    for row, share in zip(estimate["prevalence"], truth, strict=True):
        say(
            f"  {row['class']:<12}{row['source']:>9.3f}{row['counted']:>9.3f}"
            f"{row['estimate']:>10.3f}{share:>9.3f}"
        )
    for column in ("counted", "estimate"):
        error = sum(
            abs(row[column] - t) for row, t in zip(estimate["prevalence"], truth, strict=True)
        )
        say(f"  total variation from the truth, {column}: {error / 2:.3f}")
    say(f"  method: {estimate['method']} ({estimate['reason']})")
    shift = estimate["shift"]
    say(
        f"  shift test: LR {shift['statistic']:.1f} / {shift['scale']:.2f}, "
        f"{shift['degrees_of_freedom']} df, p = {shift['p_value']:.1e}, "
        f"{'detected' if shift['detected'] else 'not detected'}"
    )
    adjusted = client.post(f"{address}/posteriors", content=body, headers=headers)
    adjusted.raise_for_status()
    before = float((case.batch.argmax(axis=1) == case.truth).mean())
    after = np.array(adjusted.json()["posteriors"]).argmax(axis=1)
    say(
        f"  accuracy of the decisions: {before:.3f} before, "
        f"{float((after == case.truth).mean()):.3f} after adjusting"
    )
    for warning in estimate["warnings"]:
        say(f"  warning {warning['code']}: {warning['message']}")


def _by_hand() -> None:
    say()
    say("The same by hand, with the service of `make run`:")
    say("  curl -s -H 'content-type: application/json' -d @var/demo/breast-cancer.json \\")
    say("    http://127.0.0.1:8000/v1/models/breast-cancer/versions/latest/estimates")
