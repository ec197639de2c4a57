"""Streams of rows for monitors, and waiting for what the service does by itself."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import numpy as np

from app.main import create_app
from app.settings import Settings
from priorshift_client import Client, Source
from priorshift_client.results import Floats
from tests.api.sources import CLASSES, scores, validation
from tests.conftest import served

START = datetime(2026, 3, 1, tzinfo=UTC)


def hour(number: float) -> datetime:
    return START + timedelta(hours=number)


def drawn(rows: int, share: float = 0.2, seed: int = 0) -> Floats:
    """Posteriors of rows of which this share is fraud; .2 is as in the validation set."""
    return scores(np.random.default_rng(seed), rows, share)[1]


def register(client: Client) -> None:
    """The model that is watched."""
    given = validation(4000)
    client.models.create("cards", CLASSES, Source(given["labels"], given["posteriors"]))


@contextmanager
def telling(url: str) -> Iterator[Client]:
    """A client of a service with the model, which sends events to this machine."""
    given = {"database_url": url, "key_secret": "x" * 40, "webhook_allowed_hosts": ["127.0.0.1"]}
    app = create_app(Settings.model_validate(given))
    with served(app) as opened, Client(str(opened.base_url)) as client:
        register(client)
        yield client
