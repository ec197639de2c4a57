"""What the wire costs: every format, in and out, beside an idiomatic FastAPI endpoint.

python -m benchmarks.wire [--rows 1000000] [--repeats 5]

Two server processes of one worker each, over loopback, the estimate included; times are of whole
requests, the least of the repeats and their spread. Formats take turns, so that what the machine
does meanwhile meets all of them.
"""

import argparse
import io
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import httpx
import numpy as np

from app.core.arrays import Floats
from app.formats import arrow
from benchmarks.bystander import draw
from benchmarks.memory import forget_peak, peak, resident
from benchmarks.report import heading, table
from benchmarks.service import Running, free_port, service

CLASSES = ("legit", "fraud")
SMALL = 100
SMALL_CLASSES = ("a", "b", "c")
Ask = Callable[[httpx.Client], httpx.Response]


@dataclass(frozen=True)
class Body:
    """A batch in one format."""

    content: bytes
    kind: str


def binary(rows: Floats, names: tuple[str, ...]) -> dict[str, Body]:
    """The rows as arrays."""
    array = io.BytesIO()
    np.save(array, rows)
    return {
        "NPY": Body(array.getvalue(), "application/x-npy"),
        "Arrow": tabular(arrow.ARROW, rows, names),
    }


def tabular(kind: str, rows: Floats, names: tuple[str, ...]) -> Body:
    """The rows as a table."""
    return Body(b"".join(arrow.encode(kind, names, rows)), kind)


def bodies(rows: Floats, names: tuple[str, ...]) -> dict[str, Body]:
    """The same rows in every format."""
    by_name = {name: column.tolist() for name, column in zip(names, rows.T, strict=True)}
    return {
        "JSON": Body(json.dumps({"posteriors": rows.tolist()}).encode(), "application/json"),
        "columnar JSON": Body(json.dumps({"posteriors": by_name}).encode(), "application/json"),
        **binary(rows, names),
        "Parquet": tabular(arrow.PARQUET, rows, names),
        "CSV": tabular(arrow.CSV, rows, names),
        "NDJSON": tabular(arrow.NDJSON, rows, names),
    }


@contextmanager
def idiomatic() -> Iterator[Running]:
    """The endpoint to compare with."""
    port = free_port()
    process = subprocess.Popen([sys.executable, "-m", "benchmarks.idiomatic", "--port", str(port)])
    base = f"http://127.0.0.1:{port}"
    try:
        for _ in range(600):
            try:
                httpx.get(f"{base}/openapi.json")
                break
            except httpx.TransportError:
                time.sleep(0.1)
        yield Running(base, port, process.pid)
    finally:
        process.terminate()
        process.wait()


def register(base: str, name: str, classes: tuple[str, ...]) -> str:
    """A version without calibration, so that both sides compute the same; its address."""
    priors = {c: 1.0 / len(classes) for c in classes} if len(classes) > 2 else {}
    priors = priors or {"legit": 0.8, "fraud": 0.2}
    body = {"name": name, "classes": list(classes), "source": {"priors": priors}}
    httpx.post(f"{base}/v1/models", json=body).raise_for_status()
    return f"{base}/v1/models/{name}/versions/1"


def post(url: str, body: Body, accept: str | None = None, encoding: str = "identity") -> Ask:
    """A request."""
    headers = {
        "content-type": body.kind,
        "accept": accept or "application/json",
        "accept-encoding": encoding,
    }
    return lambda client: client.post(url, content=body.content, headers=headers)


def timed(asks: dict[str, Ask], repeats: int) -> dict[str, list[float]]:
    """Seconds of each, in turns; the first turn is not counted."""
    seconds: dict[str, list[float]] = {name: [] for name in asks}
    with httpx.Client(timeout=600) as client:
        for turn in range(repeats + 1):
            for name, ask in asks.items():
                start = time.perf_counter()
                ask(client).raise_for_status()
                if turn:
                    seconds[name].append(time.perf_counter() - start)
    return seconds


def large(ours: str, theirs: str, rows: int, repeats: int) -> list[list[str]]:
    """A million rows: the estimate alone, and the adjusted rows back."""
    requests = bodies(draw(np.random.default_rng(0), rows, 0.3)[1], CLASSES)
    asks: dict[str, Ask] = {
        "idiomatic, estimate": post(f"{theirs}/estimates", requests["JSON"]),
        "idiomatic, rows back": post(f"{theirs}/posteriors", requests["JSON"]),
        "NPY received and dropped": post(f"{theirs}/drop", requests["NPY"]),
    }
    for name, body in requests.items():
        asks[f"{name}, estimate"] = post(f"{ours}/estimates?keep=false", body)
        asks[f"{name}, rows back"] = post(f"{ours}/posteriors", body, body.kind)
    packed = post(f"{ours}/posteriors", requests["JSON"], encoding="zstd")
    asks["JSON, zstd rows back"] = packed
    seconds = timed(asks, repeats)
    lines = []
    for name, times in seconds.items():
        base = "rows back" if name.endswith("rows back") else "estimate"
        ratio = min(seconds[f"idiomatic, {base}"]) / min(times)
        sent = requests.get(name.partition(",")[0])
        size = "" if sent is None else f"{len(sent.content) / 1e6:.0f}"
        least, most = min(times) * 1000, max(times) * 1000
        lines.append([name, size, f"{least:.0f}", f"{most:.0f}", f"{ratio:.1f}"])
    return lines


def memory(ours: Running, rows: int) -> list[list[str]]:
    """What a body of ten classes adds to the server's resident memory, at most."""
    names = tuple("abcdefghij")
    exact = np.random.default_rng(2).dirichlet(np.ones(len(names)), rows)
    url = f"{register(ours.base, 'ten', names)}/estimates?keep=false"
    lines = []
    for what, values in (("", exact), (", every row rescaled", exact * (1 + 1e-7))):
        few, many = binary(values[:SMALL], names), binary(values, names)
        for kind in many:
            with httpx.Client(timeout=600) as client:
                post(url, few[kind])(client).raise_for_status()
                before = resident(ours.pid)
                forget_peak(ours.pid)
                post(url, many[kind])(client).raise_for_status()
            size = len(many[kind].content) / 2**20
            more = peak(ours.pid) - before
            lines.append([kind + what, f"{size:.0f}", f"{more:.0f}", f"{more / size:.2f}"])
    return lines


def small(ours: str, theirs: str, repeats: int) -> list[list[str]]:
    """A hundred rows of three classes: requests a second, one after another."""
    rows = np.random.default_rng(1).dirichlet(np.ones(3), SMALL)
    body = bodies(rows, SMALL_CLASSES)["JSON"]
    asks = {
        "idiomatic, echo": post(f"{theirs}/echo", body),
        "estimate with interval and test": post(f"{ours}/estimates?keep=false", body),
        "shift test": post(f"{ours}/shift-tests", body),
    }
    seconds = timed(asks, repeats * 100)
    return [
        [name, f"{np.median(times) * 1000:.2f}", f"{1 / np.median(times):.0f}"]
        for name, times in seconds.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    with service() as ours, idiomatic() as theirs:
        version = register(ours.base, "m", CLASSES)
        three = register(ours.base, "three", SMALL_CLASSES)
        lines = large(version, theirs.base, arguments.rows, arguments.repeats)
        grown = memory(ours, arguments.rows)
        few = small(three, theirs.base, arguments.repeats)
    print("# What the wire costs\n")
    print(heading("wire", ("numpy", "fastapi", "pydantic", "pysimdjson", "pyarrow", "uvicorn")))
    print(
        f"{arguments.rows} × 2, {arguments.repeats} repeats; "
        "ratio: idiomatic over this, of the least\n"
    )
    print(table(["request", "MB", "least ms", "most ms", "ratio"], lines))
    print(f"{arguments.rows} × 10, estimate\n")
    print(table(["request", "MiB", "more MiB resident", "of the body"], grown))
    print(f"{SMALL} × {len(SMALL_CLASSES)}, JSON, one connection\n")
    print(table(["request", "median ms", "requests a second"], few))


if __name__ == "__main__":
    main()
