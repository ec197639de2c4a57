"""An alert written is an alert sent: from rows to a receiver."""

import time

import httpx

from app.main import create_app
from app.settings import Settings
from tests.conftest import served
from tests.monitoring.streams import make, post, register, series
from tests.monitoring.test_monitors import at, drawn
from tests.patience import Deadline
from tests.webhooks.receivers import Receiver, receiving


def told(receiver: Receiver, count: int) -> list[dict[str, object]]:
    deadline = Deadline(20)
    while len(receiver.got) < count:
        assert not deadline.over(), f"{len(receiver.got)} of {count} arrived"
        time.sleep(0.01)
    return [received.content for received in receiver.got]


def watch(client: httpx.Client, receiver: Receiver) -> str:
    register(client)
    make(client, alert={"false_alarms": 1, "per": "P30D", "recovery": 1}, window={"rows": 400})
    events = ["alert.opened", "alert.acknowledged", "alert.closed"]
    body = {"url": f"{receiver.base}/hook", "events": events, "monitors": ["m"]}
    answer = client.post("/v1/webhooks", json=body)
    assert answer.status_code == 201, answer.text
    secret: str = answer.json()["secret"]
    return secret


def test_an_alert_is_told_from_its_opening_to_its_close(database_url: str) -> None:
    given = {"database_url": database_url, "key_secret": "x" * 40}
    settings = Settings.model_validate({**given, "webhook_allowed_hosts": ["127.0.0.1"]})
    with receiving() as receiver, served(create_app(settings)) as client:
        secret = watch(client, receiver)
        for hour, share in enumerate((0.2, 0.6)):
            post(client, drawn(400, share, hour), observed_at=at(hour))
        series(client, 2)
        (opened,) = told(receiver, 1)
        (alert,) = client.get("/v1/alerts").json()["items"]
        assert opened["type"] == "alert.opened"
        assert opened["data"] == {**alert, "prevalence": opened["data"]["prevalence"]}  # type: ignore[index]
        client.patch(f"/v1/alerts/{alert['id']}", json={"state": "acknowledged"})
        told(receiver, 2)
        post(client, drawn(400, 0.2, 7), observed_at=at(3))
        types = [event["type"] for event in told(receiver, 3)]
        assert types == ["alert.opened", "alert.acknowledged", "alert.closed"]
        assert all(received.verifies(secret) for received in receiver.got)
