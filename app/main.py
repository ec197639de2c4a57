"""The application: nothing global, everything from the settings."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from app import openapi
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
from app.http import hosts, idempotency, middleware, problems, scopes
from app.logs import log
from app.page.errors import Pages
from app.page.site import PAGES
from app.release import RELEASE
from app.schemas import jobs as job_schemas
from app.schemas import monitors as monitor_schemas
from app.services import Services
from app.settings import Settings, configured


def create_app(settings: Settings | None = None, host: str = "127.0.0.1") -> FastAPI:
    """The service on ``settings``, from the environment by default; it is to listen on ``host``."""
    settings = settings or configured()
    services = Services.of(settings)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        log.info("started", release=RELEASE, database=services.store.engine.dialect.name)
        services.start()
        yield
        services.close()
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
    app.state.services = services
    problems.install(app)
    idempotency.install(app)
    openapi.install(app, monitor_schemas, job_schemas)
    routes = list(app.router.routes)
    # Routes are tried in this order: first what is asked every second.
    resources = (health, estimates, batches, models, versions, parameters, evaluations)
    watching = (observations, monitors, series, windows, alerts)
    for module in (*resources, *watching, jobs, adaptations, api_keys, webhooks, *PAGES):
        app.include_router(module.router)
        routes.extend(module.router.routes)
    app.add_middleware(scopes.Door, routes=scopes.check(routes), gate=services.gate)
    own = Own.of(host, settings.allowed_hosts)
    app.add_middleware(hosts.Hosts, own=own, origins=settings.cors_origins, gate=services.gate)
    middleware.install(app, settings.cors_origins, services.metrics, Pages)
    return app
