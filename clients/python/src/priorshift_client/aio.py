"""The client that is awaited, on asyncio."""

import asyncio
from collections.abc import AsyncGenerator
from itertools import count
from types import TracebackType
from typing import Self, TypeVar

import httpx

from priorshift_client.calls import Answer, Call
from priorshift_client.errors import TransportError
from priorshift_client.operations import (
    access,
    adjusting,
    alerts,
    batches,
    history,
    jobs,
    models,
    monitors,
    versions,
    webhooks,
)
from priorshift_client.plans import EndsAsync, ListensAsync, TellsAsync
from priorshift_client.retries import Retries
from priorshift_client.shells import DoesAsync, ListsAsync
from priorshift_client.streams import heard_async
from priorshift_client.wire import Compression, answered, connection, failed

T = TypeVar("T")


class AsyncGroup:
    """Operations on one kind of resource."""

    def __init__(self, runner: ListensAsync) -> None:
        self._runner = runner

    async def run(self, call: Call[T]) -> T:
        """The result of a call."""
        return await self._runner.run(call)

    def listen(self, call: Call[T]) -> AsyncGenerator[T, None]:
        """What the events of a stream say."""
        return self._runner.listen(call)


class AsyncModels(AsyncGroup):
    """``client.models``."""

    create = DoesAsync(models.create_model)
    get = DoesAsync(models.get_model)
    list = ListsAsync(models.list_models)
    describe = DoesAsync(models.describe_model)
    delete = DoesAsync(models.delete_model)


class AsyncVersions(AsyncGroup):
    """``client.versions``."""

    register = DoesAsync(versions.register_version)
    get = DoesAsync(versions.get_version)
    list = ListsAsync(versions.list_versions)
    scorecard = DoesAsync(versions.get_scorecard)
    parameters = DoesAsync(versions.get_parameters)


class AsyncAliases(AsyncGroup):
    """``client.aliases``."""

    put = DoesAsync(models.put_alias)
    get = DoesAsync(models.get_alias)
    delete = DoesAsync(models.delete_alias)


class AsyncEstimates(AsyncGroup):
    """``client.estimates``."""

    get = DoesAsync(history.get_estimate)


class AsyncEvaluations(AsyncGroup):
    """``client.evaluations``."""

    get = DoesAsync(history.get_evaluation)
    list = ListsAsync(history.list_evaluations)


class AsyncJobs(AsyncGroup):
    """``client.jobs``."""

    estimate = DoesAsync(jobs.estimate_dataset)
    register = DoesAsync(jobs.register_dataset)
    adjust = DoesAsync(jobs.adjust_dataset)
    get = DoesAsync(jobs.get_job)
    list = ListsAsync(jobs.list_jobs)
    cancel = DoesAsync(jobs.cancel_job)
    follow = TellsAsync(jobs.follow_job)
    wait = EndsAsync(jobs.wait_for_job)
    estimates = TellsAsync(jobs.estimates_of_job)


class AsyncKeys(AsyncGroup):
    """``client.keys``, for administrators."""

    create = DoesAsync(access.create_key)
    list = ListsAsync(access.list_keys)
    get = DoesAsync(access.get_key)
    revoke = DoesAsync(access.revoke_key)


class AsyncMonitors(AsyncGroup):
    """``client.monitors``."""

    create = DoesAsync(monitors.create_monitor)
    get = DoesAsync(monitors.get_monitor)
    list = ListsAsync(monitors.list_monitors)
    change = DoesAsync(monitors.change_monitor)
    delete = DoesAsync(monitors.delete_monitor)
    observe = DoesAsync(monitors.observe)
    windows = ListsAsync(monitors.list_windows)
    rows = DoesAsync(monitors.get_rows)
    series = DoesAsync(monitors.get_series)
    series_csv = DoesAsync(monitors.get_series_csv)


class AsyncAlerts(AsyncGroup):
    """``client.alerts``."""

    list = ListsAsync(alerts.list_alerts)
    get = DoesAsync(alerts.get_alert)
    acknowledge = DoesAsync(alerts.acknowledge)
    close = DoesAsync(alerts.close)


class AsyncWebhooks(AsyncGroup):
    """``client.webhooks``, for administrators."""

    create = DoesAsync(webhooks.create_webhook)
    list = ListsAsync(webhooks.list_webhooks)
    get = DoesAsync(webhooks.get_webhook)
    change = DoesAsync(webhooks.change_webhook)
    delete = DoesAsync(webhooks.delete_webhook)
    rotate = DoesAsync(webhooks.rotate_secret)
    test = DoesAsync(webhooks.test_webhook)
    deliveries = ListsAsync(webhooks.list_deliveries)


class AsyncClient:
    """``Client`` with methods to be awaited, and lists for ``async for``."""

    estimate = DoesAsync(batches.estimate)
    estimate_groups = DoesAsync(batches.estimate_groups)
    posteriors = DoesAsync(adjusting.posteriors)
    shift_test = DoesAsync(batches.shift_test)
    region_test = DoesAsync(batches.region_test)
    bias_adjustment = DoesAsync(adjusting.bias_adjustment)
    adjusted_model = DoesAsync(adjusting.adjusted_model)
    evaluate = DoesAsync(history.evaluate)
    history = ListsAsync(history.history)
    audit = ListsAsync(access.audit)
    health = DoesAsync(access.health)
    release = DoesAsync(access.release)

    def __init__(
        self,
        base_url: str,
        key: str | None = None,
        *,
        timeout: float = 60.0,
        retries: int | Retries = 3,
        compress: Compression | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._connection = connection(base_url, key, timeout, compress)
        self._retries = retries if isinstance(retries, Retries) else Retries(retries)
        self._http = httpx.AsyncClient(base_url=self._connection.base_url, transport=transport)
        self.models = AsyncModels(self)
        self.versions = AsyncVersions(self)
        self.aliases = AsyncAliases(self)
        self.estimates = AsyncEstimates(self)
        self.evaluations = AsyncEvaluations(self)
        self.jobs = AsyncJobs(self)
        self.keys = AsyncKeys(self)
        self.monitors = AsyncMonitors(self)
        self.alerts = AsyncAlerts(self)
        self.webhooks = AsyncWebhooks(self)

    def __repr__(self) -> str:
        return f"AsyncClient({str(self._connection)!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close its connections."""
        await self._http.aclose()

    async def run(self, call: Call[T]) -> T:
        """Send a call until it is answered, or not worth sending again."""
        for attempt in count():
            outcome = await self._send(call)
            pause = self._retries.pause(call, outcome, attempt)
            if pause is None:
                return call.result(outcome)
            await asyncio.sleep(pause)
        raise AssertionError("unreachable")

    def listen(self, call: Call[T]) -> AsyncGenerator[T, None]:
        """What the events of a stream say, until it ends; it is opened once."""
        return heard_async(self._http, self._connection.request(call, self._http), call)

    async def _send(self, call: Call[T]) -> Answer | TransportError:
        try:
            return answered(await self._http.send(self._connection.request(call, self._http)))
        except (httpx.TransportError, httpx.DecodingError) as error:
            return failed(error, call)
