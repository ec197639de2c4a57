"""Against server processes that are killed and started again."""

import threading

import numpy as np

from priorshift_client import Client, Retries, Source
from tests.api.sources import CLASSES
from tests.end_to_end.test_restart import Server
from tests.patience import patience

ROWS = np.array([[0.9, 0.1], [0.2, 0.8]])


def test_a_server_killed_meanwhile_is_not_noticed(sqlite_url: str) -> None:
    server = Server(sqlite_url)
    acknowledged: list[str | None] = []
    stop = threading.Event()

    patient = Retries(most=round(patience(40)), first=0.2, longest=0.5)

    def work() -> None:
        with Client(server.base, retries=patient) as client:
            while not stop.is_set():
                acknowledged.append(client.estimate("cards", ROWS, method="em").id)

    worker = threading.Thread(target=work)
    with server.running(), Client(server.base) as client:
        client.models.create("cards", CLASSES, Source(priors={"legit": 0.9, "fraud": 0.1}))
        worker.start()
        while len(acknowledged) < 5:
            assert worker.is_alive()
            stop.wait(0.01)
    before = len(acknowledged)
    with server.running(), Client(server.base) as client:
        while len(acknowledged) < before + 5:
            assert worker.is_alive()
            stop.wait(0.01)
        stop.set()
        worker.join()
        kept = [estimate.id for estimate in client.history("cards")]
    assert sorted(map(str, kept)) == sorted(map(str, acknowledged))
