import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from app.core.learners.trained import Trained, Training
from app.training import process
from app.training.procedures import learn
from app.training.process import (
    Trainer,
    TrainingBusy,
    TrainingError,
    TrainingRefused,
    TrainingStopped,
    TrainingTooLong,
)
from tests.end_to_end.processes import runs
from tests.patience import patience, until
from tests.training.data import training

SLOW = training("random-forest", rows=4000, n_estimators=1000)


def running(trainer: Trainer) -> "subprocess.Popen[bytes]":
    """The worker, once it runs."""
    return until(lambda: trainer._process)


def failing(trainer: Trainer, asked: Training, act: Callable[[], None]) -> TrainingError:
    """The error of a training during which ``act`` is done."""
    caught: list[TrainingError] = []

    def run() -> None:
        try:
            trainer.learn(asked)
        except TrainingError as error:
            caught.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    running(trainer)
    act()
    thread.join()
    return caught[0]


def test_the_result_is_that_of_the_work() -> None:
    asked = training("gradient-boosting", classes=3)
    found, expected = Trainer().learn(asked), learn(asked)
    np.testing.assert_array_equal(found.posteriors, expected.posteriors)
    one, other = (Trained.of_arrays(f.arrays).posteriors(asked.table) for f in (found, expected))
    np.testing.assert_array_equal(one, other)
    assert found.folds == expected.folds


def test_what_cannot_be_fitted_is_said_in_words() -> None:
    asked = training()
    with pytest.raises(TrainingRefused, match="cannot be fitted"):
        Trainer().learn(replace(asked, labels=np.zeros_like(asked.labels)))


def test_the_time_is_limited() -> None:
    trainer = Trainer(seconds=0.3)
    with pytest.raises(TrainingTooLong, match=r"longer than 0\.3 seconds"):
        trainer.learn(SLOW)
    assert trainer._process is None


def test_closing_ends_the_worker_and_starts_no_other() -> None:
    trainer = Trainer()
    error = failing(trainer, SLOW, trainer.close)
    assert isinstance(error, TrainingStopped)
    assert "stopping" in str(error)
    with pytest.raises(TrainingStopped):
        trainer.learn(training())


def test_a_worker_that_dies_is_reported() -> None:
    trainer = Trainer()
    error = failing(trainer, SLOW, lambda: running(trainer).kill())
    assert isinstance(error, TrainingStopped)
    assert "by signal 9" in str(error)


def test_only_one_fits_and_few_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "MOST_WAITING", 1)
    trainer = Trainer(wait_seconds=patience(0.5))
    waited: list[float] = []

    def wait() -> None:
        began = time.monotonic()
        with pytest.raises(TrainingBusy), trainer.turn():
            pass
        waited.append(time.monotonic() - began)

    with trainer.turn():
        threads = [threading.Thread(target=wait) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert max(waited) >= 0.5
    assert sorted(waited)[1] < patience(0.4)
    with trainer.turn():
        pass


def test_a_killed_service_leaves_no_worker() -> None:
    script = (
        "import threading, time\n"
        "from app.training.process import Trainer\n"
        "from tests.training.test_process import SLOW, running\n"
        "trainer = Trainer()\n"
        "threading.Thread(target=trainer.learn, args=(SLOW,)).start()\n"
        "print(running(trainer).pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    service = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, cwd=process.ROOT
    )
    assert service.stdout is not None
    pid = int(service.stdout.readline())
    time.sleep(0.5)
    assert runs(pid)
    service.send_signal(signal.SIGKILL)
    service.wait()
    service.stdout.close()
    until(lambda: not runs(pid))


def test_the_worker_sees_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRIORSHIFT_DATABASE_URL", "postgresql://user:secret@host/name")
    monkeypatch.setenv("PGPASSWORD", "secret")
    assert "secret" not in str(process._environment())
