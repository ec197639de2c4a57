"""Servers that are killed while they deliver: every event arrives, and verifies."""

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial

import httpx

from models_store.engine import connect
from models_store.store import Store
from tests.end_to_end.processes import free_port, ready
from tests.patience import patience, until
from tests.webhooks.receivers import Answer, Received, receiving

SERVE = """
from app.cli import main
from app.webhooks import deliver
deliver.LEASE_SECONDS, deliver.SCHEDULE = %s, (0.1,) * 8
main()
"""
"""The service in a hurry: a lease that is over within the patience of a test."""
EVENTS = 60


def serve(url: str) -> tuple[str, "subprocess.Popen[bytes]"]:
    port = free_port()
    environment = {
        **os.environ,
        "PRIORSHIFT_DATABASE_URL": url,
        "PRIORSHIFT_KEY_SECRET": "a secret of the server's own",
        "PRIORSHIFT_WEBHOOK_ALLOWED_HOSTS": '["127.0.0.1"]',
    }
    command = [
        sys.executable,
        "-c",
        SERVE % patience(3.0),
        "serve",
        "--port",
        str(port),
        "--log-level",
        "error",
    ]
    process = subprocess.Popen(command, env=environment)
    return f"http://127.0.0.1:{port}", process


def publish(store: Store, numbers: Sequence[int]) -> None:
    with store.write() as unit:
        for number in numbers:
            unit.webhooks.publish("alert.opened", {"number": number}, datetime.now(UTC))


def more_than(got: Sequence[Received], number: int) -> bool:
    return len(got) > number


def test_kills_lose_no_event(database_url: str) -> None:
    refused: set[str] = set()

    def every_other(received: Received) -> Answer:
        time.sleep(0.1)
        if received.message in refused:
            return 200, {}
        refused.add(received.message)
        return (200 if len(refused) % 2 else 500), {}

    store = Store(connect(database_url))
    processes = [serve(database_url) for _ in range(2)]
    for server in processes:
        ready(*server)
    with receiving(every_other) as receiver:
        body = {"url": receiver.base, "events": ["alert.opened"]}
        answer = httpx.post(f"{processes[0][0]}/v1/webhooks", json=body, timeout=patience(30))
        made = answer.json()
        try:
            for killed in range(2):
                enough = len(receiver.got) + 10
                publish(store, range(killed * EVENTS // 2, (killed + 1) * EVENTS // 2))
                until(partial(more_than, receiver.got, enough))
                processes[killed][1].kill()
                processes[killed][1].wait()
                processes[killed] = serve(database_url)
                ready(*processes[0])
            place = f"{processes[0][0]}/v1/webhooks/{made['id']}/deliveries"

            def statuses() -> set[str]:
                answer = httpx.get(place, params={"limit": 200}, timeout=patience(30))
                items = answer.json()["items"]
                assert len(items) == EVENTS
                return {item["status"] for item in items}

            until(lambda: statuses() == {"delivered"})
        finally:
            for _, process in processes:
                process.kill()
                process.wait()
            store.close()
    assert {received.content["data"]["number"] for received in receiver.got} == set(range(EVENTS))
    assert all(received.verifies(made["secret"]) for received in receiver.got)
