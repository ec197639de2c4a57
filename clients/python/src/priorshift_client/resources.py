"""The table of operations: which resource has which, and which function builds each.

Both clients have them all, the one that waits and the one that is awaited.
"""

from typing import Generic, TypeVar

from priorshift_client.methods import AnyRunner, Resource, finish, iterate, paginate, request
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
from priorshift_client.retries import Retries
from priorshift_client.wire import Compression, Connection, connect

Transport = TypeVar("Transport")


class Models(Resource[AnyRunner]):
    """``client.models``."""

    create = request(models.create_model)
    get = request(models.get_model)
    list = paginate(models.list_models)
    describe = request(models.describe_model)
    delete = request(models.delete_model)


class Versions(Resource[AnyRunner]):
    """``client.versions``."""

    register = request(versions.register_version)
    get = request(versions.get_version)
    list = paginate(versions.list_versions)
    scorecard = request(versions.get_scorecard)
    parameters = request(versions.get_parameters)


class Aliases(Resource[AnyRunner]):
    """``client.aliases``."""

    put = request(models.put_alias)
    get = request(models.get_alias)
    delete = request(models.delete_alias)


class Estimates(Resource[AnyRunner]):
    """``client.estimates``."""

    get = request(history.get_estimate)


class Evaluations(Resource[AnyRunner]):
    """``client.evaluations``."""

    get = request(history.get_evaluation)
    list = paginate(history.list_evaluations)


class Jobs(Resource[AnyRunner]):
    """``client.jobs``."""

    estimate = request(jobs.estimate_dataset)
    register = request(jobs.register_dataset)
    adjust = request(jobs.adjust_dataset)
    get = request(jobs.get_job)
    list = paginate(jobs.list_jobs)
    cancel = request(jobs.cancel_job)
    follow = iterate(jobs.follow_job)
    wait = finish(jobs.wait_for_job)
    estimates = iterate(jobs.estimates_of_job)


class Keys(Resource[AnyRunner]):
    """``client.keys``, for administrators."""

    create = request(access.create_key)
    list = paginate(access.list_keys)
    get = request(access.get_key)
    revoke = request(access.revoke_key)


class Monitors(Resource[AnyRunner]):
    """``client.monitors``."""

    create = request(monitors.create_monitor)
    get = request(monitors.get_monitor)
    list = paginate(monitors.list_monitors)
    change = request(monitors.change_monitor)
    delete = request(monitors.delete_monitor)
    observe = request(monitors.observe)
    windows = paginate(monitors.list_windows)
    rows = request(monitors.get_rows)
    series = request(monitors.get_series)
    series_csv = request(monitors.get_series_csv)


class Alerts(Resource[AnyRunner]):
    """``client.alerts``."""

    list = paginate(alerts.list_alerts)
    get = request(alerts.get_alert)
    acknowledge = request(alerts.acknowledge)
    close = request(alerts.close)


class Webhooks(Resource[AnyRunner]):
    """``client.webhooks``, for administrators."""

    create = request(webhooks.create_webhook)
    list = paginate(webhooks.list_webhooks)
    get = request(webhooks.get_webhook)
    change = request(webhooks.change_webhook)
    delete = request(webhooks.delete_webhook)
    rotate = request(webhooks.rotate_secret)
    test = request(webhooks.test_webhook)
    deliveries = paginate(webhooks.list_deliveries)


class BaseClient(Resource[AnyRunner], Generic[AnyRunner, Transport]):
    """What both clients are made of and do."""

    estimate = request(batches.estimate)
    estimate_groups = request(batches.estimate_groups)
    posteriors = request(adjusting.posteriors)
    shift_test = request(batches.shift_test)
    region_test = request(batches.region_test)
    bias_adjustment = request(adjusting.bias_adjustment)
    adjusted_model = request(adjusting.adjusted_model)
    evaluate = request(history.evaluate)
    history = paginate(history.history)
    audit = paginate(access.audit)
    health = request(access.health)
    release = request(access.release)

    def __init__(
        self,
        base_url: str,
        key: str | None = None,
        *,
        timeout: float = 60.0,
        retries: int | Retries = 3,
        compress: Compression | None = None,
        transport: Transport | None = None,
    ) -> None:
        self._connection = connect(base_url, key, timeout, compress)
        policy = retries if isinstance(retries, Retries) else Retries(retries)
        runner = self._open(self._connection, policy, transport)
        super().__init__(runner)
        self.models, self.versions = Models(runner), Versions(runner)
        self.aliases, self.estimates = Aliases(runner), Estimates(runner)
        self.evaluations, self.jobs = Evaluations(runner), Jobs(runner)
        self.keys, self.monitors = Keys(runner), Monitors(runner)
        self.alerts, self.webhooks = Alerts(runner), Webhooks(runner)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self._connection)!r})"

    def _open(
        self, connection: Connection, retries: Retries, transport: Transport | None
    ) -> AnyRunner:
        """Open the connections of httpx."""
        raise NotImplementedError
