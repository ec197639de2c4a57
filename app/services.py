"""What the application is made of: one of each, made from the settings, shared by all requests."""

from dataclasses import dataclass, field
from datetime import datetime
from threading import Event
from typing import Protocol

import httpx
from fastapi import Request

from app.access.gate import Gate
from app.jobs.runner import JobRunner
from app.metrics import Metrics
from app.monitoring.window_closing import KIND, Closer
from app.operations.admission import Admission, Twins
from app.operations.housekeeping import Housekeeping
from app.operations.monitor_standings import MonitorStandings, watch_pool
from app.operations.tasks import TaskRunner
from app.serving.classifiers import Classifiers
from app.serving.null_distributions import NullDistributions
from app.settings import Settings
from app.training.process import Trainer
from app.webhooks.addresses import Allowed
from app.webhooks.deliver import Deliver
from app.webhooks.sending import Sender
from models_store import schema
from models_store.engine import connect
from models_store.store import Store, UnitOfWork


class JobQueue(Protocol):
    """Whoever runs the jobs that are asked for."""

    def queue(self, unit: UnitOfWork, id: str, at: datetime) -> None:
        """Add the task of a new job."""


@dataclass(frozen=True)
class Services:
    """``head``: the database revision that this release needs.

    ``followers``: streams of jobs' progress under way; ``ending``: set when the server stops.
    """

    settings: Settings
    store: Store
    gate: Gate
    metrics: Metrics
    admission: Admission
    standings: MonitorStandings
    sender: Sender
    classifiers: Classifiers
    null_distributions: NullDistributions
    jobs: JobQueue
    tasks: TaskRunner
    housekeeping: Housekeeping
    head: str = field(default_factory=schema.head)
    twins: Twins = field(default_factory=Twins)
    followers: set[object] = field(default_factory=set)
    ending: Event = field(default_factory=Event)

    @classmethod
    def of(cls, settings: Settings) -> "Services":
        """As the settings have them; nothing runs before ``start``."""
        engine = connect(
            settings.database_url, settings.database_pool_size, settings.database_busy_seconds
        )
        store = Store(engine, settings.version_cache_bytes, settings.selection_seconds)
        trainer = Trainer(settings.training_seconds, settings.training_wait_seconds)
        metrics = Metrics()
        watch_pool(engine, metrics)
        gate = Gate(store, settings)
        sender = Sender(Allowed.of(settings.webhook_allowed_hosts), httpx.create_ssl_context())
        null_distributions = NullDistributions(store)
        closer = Closer(store, null_distributions, metrics)
        deliver = Deliver(store, sender, gate.secret, metrics.attempted)
        jobs = JobRunner(store, settings, null_distributions)
        lanes = [closer.lane(), deliver.lane(), jobs.lane()]
        return cls(
            settings=settings,
            store=store,
            gate=gate,
            metrics=metrics,
            admission=Admission(settings, metrics),
            standings=MonitorStandings(store, KIND),
            sender=sender,
            classifiers=Classifiers(store, trainer, settings.version_cache_bytes),
            null_distributions=null_distributions,
            jobs=jobs,
            tasks=TaskRunner(store, lanes, metrics.waiting),
            housekeeping=Housekeeping(store, settings.retain_estimates_days, gate.settle),
        )

    def start(self) -> None:
        """Begin what runs in the background."""
        self.housekeeping.start()
        self.tasks.start()

    def close(self) -> None:
        """End it, and let go of the database."""
        self.tasks.close()
        self.housekeeping.close()
        self.classifiers.close()
        self.store.close()


def services_of(request: Request) -> Services:
    """Of the application that a request came to."""
    services: Services = request.app.state.services
    return services
