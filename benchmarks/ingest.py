"""How fast observations are taken, beside plain estimates that are kept.

python -m benchmarks.ingest [--requests 1000] [--repeats 5]

A hundred rows of two classes as JSON, eight connections, one server process on SQLite. The monitors
have windows of a thousand rows, so that every tenth post closes one: its estimate, its test and its
place in the history are part of what is measured.
"""

import argparse

import httpx
import numpy as np
from scipy.special import expit

from benchmarks.report import heading, table
from benchmarks.serve import Kind, measured, post
from benchmarks.service import service
from benchmarks.wire import bodies

CLASSES = ("legit", "fraud")
CONNECTIONS = 8


def scores(
    rows: int, seed: int
) -> tuple[list[str], np.ndarray[tuple[int, ...], np.dtype[np.float64]]]:
    """Labels and posteriors of a classifier that is right at a share of .1."""
    rng = np.random.default_rng(seed)
    y = rng.random(rows) < 0.1
    z = 3.0 * rng.normal(np.where(y, 1.5, -1.5), 1.0) + np.log(1 / 9)
    return [CLASSES[int(k)] for k in y], np.column_stack([expit(-z), expit(z)])


def prepare(base: str) -> None:
    """The model, and a monitor for each kind of window."""
    labels, posteriors = scores(4000, 0)
    source = {"validation": {"labels": labels, "posteriors": posteriors.tolist()}}
    with httpx.Client(base_url=base, timeout=60) as http:
        model = {"name": "cards", "classes": list(CLASSES), "source": source}
        http.post("/v1/models", json=model).raise_for_status()
        windows = {"rows": {"rows": 1000}, "hours": {"duration": "PT1H"}}
        for name, window in windows.items():
            body = {"name": name, "model": "cards", "window": window, "alert": {}}
            http.post("/v1/monitors", json=body).raise_for_status()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    body = bodies(scores(100, 1)[1], CLASSES)["JSON"].content
    with service() as running:
        prepare(running.base)
        paths = {
            "estimate, kept": "/v1/models/cards/versions/1/estimates",
            "observations, windows of 1,000 rows": "/v1/monitors/rows/observations",
            "observations, windows of an hour": "/v1/monitors/hours/observations",
        }
        kinds = {n: Kind(running.port, running.pid, post(p, body)) for n, p in paths.items()}
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in kinds}
        for turn in range(arguments.repeats + 1):
            for name, kind in kinds.items():
                one = measured(kind, arguments.requests, CONNECTIONS)
                if turn:
                    times[name].append(one)
    print("# How fast observations are taken\n")
    print(heading("ingest", ("numpy", "fastapi", "uvicorn", "sqlalchemy")))
    rows = []
    base = np.median([rate for rate, _ in times["estimate, kept"]])
    for name, each in times.items():
        rates = np.array([rate for rate, _ in each])
        cost = np.median([cost for _, cost in each])
        spread = f"{rates.min():.0f}–{rates.max():.0f}"
        ratio = f"{np.median(rates) / base:.2f}"
        rows.append([name, f"{np.median(rates):.0f}", spread, ratio, f"{cost:.2f}"])
    print(table(["request", "a second", "spread", "of the first", "CPU ms"], rows))


if __name__ == "__main__":
    main()
