"""The application: nothing global, everything from the settings."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from threading import Event

import httpx
from fastapi import FastAPI

from app import openapi
from app.access.gate import Gate
from app.api import (
    adaptations,
    alerts,
    api_keys,
    batches,
    estimates,
    evaluations,
    health,
    jobs,
    models,
    monitors,
    observations,
    parameters,
    series,
    versions,
    webhooks,
    windows,
)
from app.hostnames import Own
from app.http import hosts, middleware, problems, scopes
from app.http.admission import Pool
from app.http.idempotency import Twins
from app.jobs.runner import Jobs
from app.logs import log
from app.metrics import Metrics
from app.monitoring.window_closing import KIND, Closer
from app.operations.housekeeping import Housekeeping
from app.operations.monitor_standings import Standings, watch_pool
from app.operations.tasks import Runner
from app.page.errors import Pages
from app.page.site import PAGES
from app.release import RELEASE
from app.schemas import jobs as job_schemas
from app.schemas import monitors as monitor_schemas
from app.serving.classifiers import Learners
from app.serving.null_distributions import Nulls
from app.settings import Settings, configured
from app.training.process import Trainer
from app.webhooks.addresses import Allowed
from app.webhooks.deliver import Deliver
from app.webhooks.sending import Sender
from models_store import schema
from models_store.engine import connect
from models_store.store import Store


def create_app(settings: Settings | None = None, host: str = "127.0.0.1") -> FastAPI:
    """The service on ``settings``, from the environment by default; it is to listen on ``host``."""
    settings = settings or configured()
    engine = connect(
        settings.database_url, settings.database_pool_size, settings.database_busy_seconds
    )
    store = Store(engine, settings.version_cache_bytes, settings.selection_seconds)
    trainer = Trainer(settings.training_seconds, settings.training_wait_seconds)
    learners = Learners(store, trainer, settings.version_cache_bytes)

    metrics = Metrics()
    watch_pool(engine, metrics)
    gate = Gate(store, settings)
    housekeeping = Housekeeping(store, settings.retain_estimates_days, gate.settle)
    sender = Sender(Allowed.of(settings.webhook_allowed_hosts), httpx.create_ssl_context())
    nulls = Nulls(store)
    closer = Closer(store, nulls, metrics)
    deliver = Deliver(store, sender, gate.secret, metrics.attempted)
    work = Jobs(store, settings, nulls)
    runner = Runner(store, [closer.lane(), deliver.lane(), work.lane()], metrics.waiting)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        log.info("started", release=RELEASE, database=engine.dialect.name)
        housekeeping.start()
        runner.start()
        yield
        runner.close()
        housekeeping.close()
        learners.close()
        store.close()
        log.info("stopped")

    app = FastAPI(
        title="Priorshift",
        summary="Prevalence estimation under prior probability shift",
        version=RELEASE,
        lifespan=lifespan,
        redirect_slashes=False,
        docs_url=None,
        redoc_url=None,
    )
    app.state.settings = settings
    app.state.gate = gate
    app.state.metrics = metrics
    app.state.standings = Standings(store, KIND)
    app.state.pool = Pool(settings, metrics)
    app.state.sender = sender
    app.state.twins = Twins()
    app.state.store = store
    app.state.nulls = nulls
    app.state.jobs = work
    app.state.followers = set()
    app.state.ending = Event()
    app.state.learners = learners
    app.state.head = schema.head()
    problems.install(app)
    openapi.install(app, monitor_schemas, job_schemas)
    routes = list(app.router.routes)
    # Routes are tried in this order: first what is asked every second.
    resources = (health, estimates, batches, models, versions, parameters, evaluations)
    watching = (observations, monitors, series, windows, alerts)
    for module in (*resources, *watching, jobs, adaptations, api_keys, webhooks, *PAGES):
        app.include_router(module.router)
        routes.extend(module.router.routes)
    app.add_middleware(scopes.Door, routes=scopes.check(routes), gate=gate)
    own = Own.of(host, settings.allowed_hosts)
    app.add_middleware(hosts.Hosts, own=own, origins=settings.cors_origins, gate=gate)
    middleware.install(app, settings.cors_origins, metrics, Pages)
    return app
