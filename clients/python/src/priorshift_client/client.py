"""The client that waits for its answers."""

import time
from collections.abc import Iterator
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
from priorshift_client.plans import Ends, Listens, Tells
from priorshift_client.retries import Retries
from priorshift_client.shells import Does, Lists
from priorshift_client.streams import heard
from priorshift_client.wire import Compression, answered, connection, failed

T = TypeVar("T")


class Group:
    """Operations on one kind of resource."""

    def __init__(self, runner: Listens) -> None:
        self._runner = runner

    def run(self, call: Call[T]) -> T:
        """The result of a call."""
        return self._runner.run(call)

    def listen(self, call: Call[T]) -> Iterator[T]:
        """What the events of a stream say."""
        return self._runner.listen(call)


class Models(Group):
    """``client.models``."""

    create = Does(models.create_model)
    get = Does(models.get_model)
    list = Lists(models.list_models)
    describe = Does(models.describe_model)
    delete = Does(models.delete_model)


class Versions(Group):
    """``client.versions``."""

    register = Does(versions.register_version)
    get = Does(versions.get_version)
    list = Lists(versions.list_versions)
    scorecard = Does(versions.get_scorecard)
    parameters = Does(versions.get_parameters)


class Aliases(Group):
    """``client.aliases``."""

    put = Does(models.put_alias)
    get = Does(models.get_alias)
    delete = Does(models.delete_alias)


class Estimates(Group):
    """``client.estimates``."""

    get = Does(history.get_estimate)


class Evaluations(Group):
    """``client.evaluations``."""

    get = Does(history.get_evaluation)
    list = Lists(history.list_evaluations)


class Jobs(Group):
    """``client.jobs``."""

    estimate = Does(jobs.estimate_dataset)
    register = Does(jobs.register_dataset)
    adjust = Does(jobs.adjust_dataset)
    get = Does(jobs.get_job)
    list = Lists(jobs.list_jobs)
    cancel = Does(jobs.cancel_job)
    follow = Tells(jobs.follow_job)
    wait = Ends(jobs.wait_for_job)
    estimates = Tells(jobs.estimates_of_job)


class Keys(Group):
    """``client.keys``, for administrators."""

    create = Does(access.create_key)
    list = Lists(access.list_keys)
    get = Does(access.get_key)
    revoke = Does(access.revoke_key)


class Monitors(Group):
    """``client.monitors``."""

    create = Does(monitors.create_monitor)
    get = Does(monitors.get_monitor)
    list = Lists(monitors.list_monitors)
    change = Does(monitors.change_monitor)
    delete = Does(monitors.delete_monitor)
    observe = Does(monitors.observe)
    windows = Lists(monitors.list_windows)
    rows = Does(monitors.get_rows)
    series = Does(monitors.get_series)
    series_csv = Does(monitors.get_series_csv)


class Alerts(Group):
    """``client.alerts``."""

    list = Lists(alerts.list_alerts)
    get = Does(alerts.get_alert)
    acknowledge = Does(alerts.acknowledge)
    close = Does(alerts.close)


class Webhooks(Group):
    """``client.webhooks``, for administrators."""

    create = Does(webhooks.create_webhook)
    list = Lists(webhooks.list_webhooks)
    get = Does(webhooks.get_webhook)
    change = Does(webhooks.change_webhook)
    delete = Does(webhooks.delete_webhook)
    rotate = Does(webhooks.rotate_secret)
    test = Does(webhooks.test_webhook)
    deliveries = Lists(webhooks.list_deliveries)


class Client:
    """A client of the service at ``base_url``; a context manager.

    ``timeout`` in seconds, of each wait for the network; trainings may take longer. ``retries``:
    how many more attempts a call gets that may be repeated, or a ``Retries``. ``compress="gzip"``
    for thin lines. ``transport`` is httpx's, for proxies and certificates of your own.
    """

    estimate = Does(batches.estimate)
    estimate_groups = Does(batches.estimate_groups)
    posteriors = Does(adjusting.posteriors)
    shift_test = Does(batches.shift_test)
    region_test = Does(batches.region_test)
    bias_adjustment = Does(adjusting.bias_adjustment)
    adjusted_model = Does(adjusting.adjusted_model)
    evaluate = Does(history.evaluate)
    history = Lists(history.history)
    audit = Lists(access.audit)
    health = Does(access.health)
    release = Does(access.release)

    def __init__(
        self,
        base_url: str,
        key: str | None = None,
        *,
        timeout: float = 60.0,
        retries: int | Retries = 3,
        compress: Compression | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._connection = connection(base_url, key, timeout, compress)
        self._retries = retries if isinstance(retries, Retries) else Retries(retries)
        self._http = httpx.Client(base_url=self._connection.base_url, transport=transport)
        self.models = Models(self)
        self.versions = Versions(self)
        self.aliases = Aliases(self)
        self.estimates = Estimates(self)
        self.evaluations = Evaluations(self)
        self.jobs = Jobs(self)
        self.keys = Keys(self)
        self.monitors = Monitors(self)
        self.alerts = Alerts(self)
        self.webhooks = Webhooks(self)

    def __repr__(self) -> str:
        return f"Client({str(self._connection)!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close its connections."""
        self._http.close()

    def run(self, call: Call[T]) -> T:
        """Send a call until it is answered, or not worth sending again."""
        for attempt in count():
            outcome = self._send(call)
            pause = self._retries.pause(call, outcome, attempt)
            if pause is None:
                return call.result(outcome)
            time.sleep(pause)
        raise AssertionError("unreachable")

    def listen(self, call: Call[T]) -> Iterator[T]:
        """What the events of a stream say, until it ends; it is opened once."""
        return heard(self._http, self._connection.request(call, self._http), call)

    def _send(self, call: Call[T]) -> Answer | TransportError:
        try:
            return answered(self._http.send(self._connection.request(call, self._http)))
        except (httpx.TransportError, httpx.DecodingError) as error:
            return failed(error, call)
