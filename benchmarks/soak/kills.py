"""kill -9, again and again, while clients write."""

import random
import threading
import time

from benchmarks.soak.ledger import Client, Verdict, judged
from benchmarks.soak.servers import Service


def killed(service: Service, times: int, clients: int = 8, seed: int = 0) -> Verdict:
    """Kill the service at random moments; then see what became of what it acknowledged."""
    rng = random.Random(seed)
    stop = threading.Event()
    writers = [Client(service.base, f"m{k}") for k in range(clients)]
    threads = [threading.Thread(target=writer.run, args=(stop,)) for writer in writers]
    service.start()
    service.ready()
    for thread in threads:
        thread.start()
    for _ in range(times):
        before = _written(writers)
        time.sleep(rng.uniform(0.2, 1.0))
        # On a busy machine nothing might have been written yet, and nothing could be lost.
        while _written(writers) < before + clients and all(map(threading.Thread.is_alive, threads)):
            time.sleep(0.01)
        service.stop()
        service.start()
        service.ready()
    stop.set()
    for thread in threads:
        thread.join()
    verdict = judged(service.base, writers)
    service.stop()
    return verdict


def _written(writers: list[Client]) -> int:
    return sum(len(writer.estimates) for writer in writers)
