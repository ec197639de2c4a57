"""Everything that must survive, and what became of it, as tables.

python -m benchmarks.soak [--kills 100] [--streams 120] [--outages 10] [--minutes 10]

Takes about half an hour with these; a part of it is left out with a count of 0.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.report import heading, table
from benchmarks.soak.disk import Answered, NoMount, full, read_only
from benchmarks.soak.kills import killed
from benchmarks.soak.load import Load, loaded
from benchmarks.soak.outages import interrupted
from benchmarks.soak.servers import Postgres, Service, faults, migrated
from benchmarks.soak.streams import watched


def kills(folder: Path, postgres: Postgres, times: int) -> list[list[str]]:
    """A row for each kind of database."""
    rows = []
    urls = {"SQLite": f"sqlite:///{folder / 'kills.db'}", "PostgreSQL": postgres.url}
    for name, url in urls.items():
        began = time.monotonic()
        verdict = killed(Service(migrated(url)), times)
        wrong = [*verdict.lost, *verdict.doubled, *verdict.refused, *faults(url)]
        rows.append(
            [
                name,
                str(times),
                str(verdict.versions),
                str(verdict.estimates),
                str(verdict.retried),
                str(len(verdict.lost)),
                str(len(verdict.doubled)),
                "; ".join(wrong[:3]) or "none",
                f"{time.monotonic() - began:.0f}",
            ]
        )
    return rows


def streams(folder: Path, postgres: Postgres, seconds: float) -> list[list[str]]:
    """A row for each kind of database."""
    rows = []
    # PostgreSQL's has been used by what came before; the monitors are to be alone in it.
    urls = {"SQLite": f"sqlite:///{folder / 'streams.db'}", "PostgreSQL": postgres.another()}
    for name, url in urls.items():
        result = watched(migrated(url), seconds)
        numbers = (
            result.kills,
            result.posts,
            result.retried,
            result.accepted,
            result.late,
            result.windows,
            result.alerts,
            result.attempts,
        )
        wrong = [*result.wrong, *faults(url)]
        rows.append([name, *map(str, numbers), "; ".join(wrong[:3]) or "none"])
    return rows


def outages(postgres: Postgres, times: int) -> list[list[str]]:
    """What happened while the database was stopped and started."""
    service = Service(migrated(postgres.url))
    with service.running():
        result = interrupted(service, postgres, times)
    seconds = np.array(result.seconds)
    counts = ", ".join(f"{name}: {count}" for name, count in sorted(result.statuses.items()))
    return [
        ["outages", str(times)],
        ["answers", counts],
        ["failures of what needs no database", str(result.stateless_failures)],
        ["wrong answers", str(len(result.wrong))],
        ["not ready while it was down", f"{result.not_ready} of {times}"],
        [
            "seconds to the last failure after its return",
            f"median {np.median(seconds):.2f}, most {seconds.max():.2f}",
        ],
        ["connections afterwards", str(result.connections)],
    ]


def latencies(load: Load) -> list[list[str]]:
    """A row for each endpoint, milliseconds."""
    rows = []
    for name, seconds in sorted(load.seconds.items()):
        p50, p99 = 1000 * np.quantile(seconds, [0.5, 0.99])
        rows.append([name, str(len(seconds)), f"{p50:.1f}", f"{p99:.1f}"])
    return rows


def disks(folder: Path) -> list[list[str]]:
    """A row for each thing that can be wrong with a disk."""
    answers: dict[str, Answered] = {}
    try:
        answers = {"full": full(folder / "full"), "read-only": read_only(folder / "read-only")}
    except NoMount as error:
        return [["all", str(error), "", "", ""]]
    return [
        [
            name,
            f"{one.status}: {one.detail}",
            f"{one.there} of {one.acknowledged}",
            str(one.reads),
            "yes" if one.recovered else "no",
        ]
        for name, one in answers.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--outages", type=int, default=10)
    parser.add_argument("--streams", type=float, default=120.0, help="seconds, of each database")
    parser.add_argument("--minutes", type=float, default=10.0)
    arguments = parser.parse_args()
    print("# What survives\n")
    print(heading("soak", ("sqlalchemy", "psycopg", "uvicorn")))
    with tempfile.TemporaryDirectory(prefix="ps") as name:
        folder = Path(name)
        postgres = Postgres(folder)
        if arguments.kills:
            print("## kill -9, with eight clients that register and estimate\n")
            columns = ["database", "kills", "versions", "estimates", "asked again", "lost"]
            columns += ["twice", "faults", "s"]
            print(table(columns, kills(folder, postgres, arguments.kills)), flush=True)
        if arguments.streams:
            print("## Monitors: kill -9 of one of three workers, or all, every five seconds\n")
            columns = ["database", "kills", "posts", "asked again", "rows", "late", "windows"]
            columns += ["alerts", "deliveries tried", "faults"]
            print(table(columns, streams(folder, postgres, arguments.streams)), flush=True)
        if arguments.outages:
            print("## PostgreSQL stopped and started, with eight clients\n")
            print(table(["", ""], outages(postgres, arguments.outages)), flush=True)
        postgres.close()
        if arguments.minutes:
            print(f"## {arguments.minutes:g} minutes of mixed load, eight clients, SQLite\n")
            service = Service(migrated(f"sqlite:///{folder / 'load.db'}"))
            with service.running():
                load = loaded(service, 60 * arguments.minutes)
            print(table(["request", "asked", "p50 ms", "p99 ms"], latencies(load)))
            memory = load.memory
            third = 2 * len(memory) // 3
            print(
                f"Resident memory: {memory[0]:.0f} MB at first, {memory[third]:.0f} after two "
                f"thirds, {memory[-1]:.0f} at the end; within the last third "
                f"{100 * load.growth:+.1f} %. "
                f"Open files: {load.files[third]}, then {load.files[-1]}. "
                f"Failures: {len(load.failures)}.\n",
                flush=True,
            )
        print("## The disk\n")
        print(table(["disk", "answer", "still there", "reads", "recovered"], disks(folder)))


if __name__ == "__main__":
    main()
