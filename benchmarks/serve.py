"""What small requests cost: CPU and requests a second, beside an idiomatic FastAPI endpoint.

python -m benchmarks.serve [--requests 2000] [--repeats 5]

A hundred rows of three classes as JSON. Every server is one process, the client another; CPU is
that of the server, from the system. Kinds of requests take turns, so that what the machine does
meanwhile meets all of them.
"""

import argparse
import asyncio
import os
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.report import heading, table
from benchmarks.service import service
from benchmarks.wire import SMALL, SMALL_CLASSES, bodies, idiomatic, register

TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Kind:
    """A request as bytes, and the server that it goes to."""

    port: int
    pid: int
    request: bytes


def processes(pid: int) -> list[int]:
    """A process and its children."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(one for child in children for one in processes(int(child)))]


def cpu(pid: int) -> float:
    """CPU seconds that a process and its children have used."""
    total = 0.0
    for one in processes(pid):
        fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        total += (int(fields[11]) + int(fields[12])) / TICK
    return total


async def ask(kind: Kind, count: int) -> None:
    """Requests one after another on one connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", kind.port)
    for _ in range(count):
        writer.write(kind.request)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        if not head.startswith((b"http/1.1 200", b"http/1.1 201", b"http/1.1 202")):
            raise RuntimeError(head.decode())
        length = head.partition(b"content-length:")[2].partition(b"\r\n")[0]
        await reader.readexactly(int(length))
    writer.close()
    await writer.wait_closed()


async def load(kind: Kind, count: int, connections: int) -> None:
    """The same on several connections at once."""
    await asyncio.gather(*(ask(kind, count // connections) for _ in range(connections)))


def measured(kind: Kind, count: int, connections: int) -> tuple[float, float]:
    """Requests a second, and CPU milliseconds of one."""
    before, began = cpu(kind.pid), time.perf_counter()
    asyncio.run(load(kind, count, connections))
    seconds, used = time.perf_counter() - began, cpu(kind.pid) - before
    return count / seconds, 1000 * used / count


def post(path: str, body: bytes) -> bytes:
    """A request with all that a client sends."""
    head = (
        f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
        f"accept: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def lines(
    kinds: dict[str, Kind], connections: int, arguments: argparse.Namespace
) -> list[list[str]]:
    """A row for each kind: medians, spread, and ratios to the idiomatic endpoint."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in kinds}
    for turn in range(arguments.repeats + 1):
        for name, kind in kinds.items():
            one = measured(kind, arguments.requests, connections)
            if turn:
                times[name].append(one)
    rates = {name: np.array([rate for rate, _ in each]) for name, each in times.items()}
    costs = {name: float(np.median([cost for _, cost in each])) for name, each in times.items()}
    rows = []
    for name, rate in rates.items():
        ratio = np.median(rate) / np.median(rates["idiomatic, estimate alone"])
        spread = f"{rate.min():.0f}–{rate.max():.0f}"
        echo = costs[name] / costs["idiomatic, echo"]
        cells = [f"{np.median(rate):.0f}", spread, f"{ratio:.2f}"]
        rows.append([name, *cells, f"{costs[name]:.2f}", f"{echo:.1f}"])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    rows = np.random.default_rng(1).dirichlet(np.ones(3), SMALL)
    body = bodies(rows, SMALL_CLASSES)["JSON"].content
    with service() as ours, idiomatic() as theirs:
        version = register(ours.base, "three", SMALL_CLASSES).removeprefix(ours.base)

        def our(path: str) -> Kind:
            return Kind(ours.port, ours.pid, post(f"{version}/{path}", body))

        kinds = {
            "idiomatic, echo": Kind(theirs.port, theirs.pid, post("/echo", body)),
            "idiomatic, estimate alone": Kind(theirs.port, theirs.pid, post("/estimates", body)),
            "shift test": our("shift-tests"),
            "adjusted rows": our("posteriors"),
            "estimate, interval, test": our("estimates?keep=false"),
            "the same, kept": our("estimates"),
        }
        tables = {n: lines(kinds, n, arguments) for n in (1, 8)}
    print("# What small requests cost\n")
    print(heading("serve", ("numpy", "fastapi", "pydantic", "uvicorn", "sqlalchemy")))
    for connections, times in tables.items():
        print(f"{connections} connection{'s' if connections > 1 else ''}\n")
        names = ["request", "a second", "spread", "idiomatic", "CPU ms", "CPU, echoes"]
        print(table(names, times))


if __name__ == "__main__":
    main()
