"""Webhooks by both clients, and deliveries as their receiver verifies them."""

import asyncio
import base64
import hashlib
import hmac
import time
from collections.abc import Callable, Mapping
from email.message import Message
from typing import Any

import pytest

from clients.python.tests.servers import hanging_up
from clients.python.tests.streams import drawn, hour, telling
from priorshift_client import (
    AlertSpec,
    AsyncClient,
    Client,
    Conflict,
    Delivery,
    InvalidInput,
    InvalidSignature,
    NotFound,
    PriorshiftError,
    Retries,
    UnexpectedAnswer,
    WindowSpec,
    verify,
)
from priorshift_client.webhooks import EventType
from tests.patience import until
from tests.webhooks.receivers import Received, Receiver, receiving

EVENTS: list[EventType] = ["alert.opened", "alert.acknowledged", "alert.closed"]
SECRET = "whsec_YW4gZXhhbXBsZSBvZiBzb21lIHRoaXJ0eSBieXRlcyE="
OTHER = "whsec_" + base64.b64encode(b"of somebody else").decode()


def arrived(receiver: Receiver, count: int) -> Received:
    """The last of so many deliveries."""
    until(lambda: len(receiver.got) >= count)
    return receiver.got[count - 1]


def shift(client: Client, monitor: str) -> None:
    """A window as always, and one of another population."""
    made = client.monitors.create(monitor, "cards", WindowSpec(rows=400), alert=AlertSpec())
    for k, share in enumerate((0.2, 0.6)):
        client.monitors.observe(made, drawn(400, share, k), observed_at=hour(k))


def test_an_alert_reaches_a_receiver_who_verifies_it(sqlite_url: str) -> None:
    with receiving() as receiver, telling(sqlite_url) as client:
        hook = client.webhooks.create(f"{receiver.base}/hook", EVENTS, monitors=["m"])
        assert hook.secret is not None
        assert hook.secret not in repr(hook)
        shift(client, "m")
        came = arrived(receiver, 1)
        event = verify(hook.secret, came.headers, came.body)
        (alert,) = client.alerts.list("m")
        assert (event.type, event.alert) == ("alert.opened", alert)
        client.alerts.acknowledge(alert)
        came = arrived(receiver, 2)
        assert verify(hook.secret, came.headers, came.body).type == "alert.acknowledged"

        def settled() -> list[Delivery] | None:
            found = list(client.webhooks.deliveries(hook, limit=1))
            return found if all(d.status == "delivered" for d in found) else None

        last, first = until(settled)
        assert (first.type, first.message) == ("alert.opened", event.message)
        assert [attempt.status for attempt in last.attempts] == [204]
        assert last.next_attempt_at is None

        altered = came.body.replace(b"acknowledged", b"closed", 1)
        moved = {**came.headers, "webhook-timestamp": str(int(time.time()) + 1)}
        renamed = {**came.headers, "webhook-id": first.message}
        late = time.time() + 301
        for headers, body, secret, now, said in [
            (came.headers, came.body, OTHER, None, "not signed"),
            (came.headers, altered, hook.secret, None, "altered"),
            (moved, came.body, hook.secret, None, "altered"),
            (renamed, came.body, hook.secret, None, "altered"),
            (came.headers, came.body, hook.secret, late, "seconds ago"),
            (came.headers, came.body, hook.secret, late - 700, "is the clock right"),
        ]:
            with pytest.raises(InvalidSignature, match=said):
                verify(secret, headers, body, now=now)
        assert verify(hook.secret, came.headers, came.body, tolerance=400, now=late)


def test_both_secrets_hold_after_a_rotation(sqlite_url: str) -> None:
    with receiving() as receiver, telling(sqlite_url) as client:
        old = client.webhooks.create(receiver.base, EVENTS)
        new = client.webhooks.rotate(old)
        assert new.secret_rotated_at is not None
        assert old.secret is not None
        assert new.secret is not None
        assert old.secret != new.secret
        told = client.webhooks.test(old.id)
        assert (told.type, told.status) == ("webhook.test", "pending")
        came = arrived(receiver, 1)
        for secret in (old.secret, new.secret):
            event = verify(secret, came.headers, came.body)
            assert (event.type, event.alert, event.message) == ("webhook.test", None, told.message)


def test_webhooks_are_changed_and_deleted(sqlite_url: str) -> None:
    with telling(sqlite_url) as client:
        hooks = [
            client.webhooks.create(f"https://hooks.example.com/{k}", EVENTS[k:], models=["cards"])
            for k in range(3)
        ]
        listed = list(client.webhooks.list(limit=2))
        assert [hook.id for hook in listed] == [hook.id for hook in reversed(hooks)]
        assert listed[0].secret is None
        changed = client.webhooks.change(hooks[0], models=None, description="d", disabled=True)
        assert (changed.models, changed.description, changed.disabled) == (None, "d", True)
        assert changed.events == tuple(EVENTS)
        changed = client.webhooks.change(hooks[0].id, events=EVENTS[:1], monitors=["m"])
        assert client.webhooks.get(hooks[0].id) == changed
        assert (changed.events, changed.monitors) == (("alert.opened",), ("m",))
        assert (changed.url, changed.disabled) == (hooks[0].url, True)
        with pytest.raises(Conflict, match="disabled"):
            client.webhooks.test(changed)
        client.webhooks.delete(changed)
        with pytest.raises(NotFound):
            client.webhooks.get(changed.id)
        wrong: list[tuple[Callable[[Any], Any], type[PriorshiftError], str]] = [
            (lambda w: w.create("http://hooks.example.com", EVENTS), InvalidInput, "https"),
            (lambda w: w.create("https://10.0.0.1/", EVENTS), InvalidInput, "/url"),
            (
                lambda w: w.create("https://hooks.example.com", ["alert.new"]),
                InvalidInput,
                "events",
            ),
            (lambda w: w.create("https://hooks.example.com", []), InvalidInput, "events"),
            (lambda w: list(w.deliveries("nobody")), NotFound, "nobody"),
        ]
        for work, error, said in wrong:
            with pytest.raises(error, match=said):
                work(client.webhooks)


def test_without_waiting(sqlite_url: str) -> None:
    async def work(base: str, receiver: Receiver) -> None:
        async with AsyncClient(base) as client:
            hook = await client.webhooks.create(receiver.base, EVENTS)
            hook = await client.webhooks.rotate(hook)
            await client.webhooks.change(hook, description="d")
            assert [(await client.webhooks.get(hook.id)).description] == ["d"]
            told = await client.webhooks.test(hook)
            came = await asyncio.to_thread(arrived, receiver, 1)
            assert hook.secret is not None
            assert verify(hook.secret, came.headers, came.body).message == told.message
            assert [d.id async for d in client.webhooks.deliveries(hook)] == [told.id]
            assert [found.id async for found in client.webhooks.list()] == [hook.id]
            await client.webhooks.delete(hook)

    with receiving() as receiver, telling(sqlite_url) as opened:
        asyncio.run(work(str(opened._connection), receiver))


NOW = 1_795_838_400
BODY = b'{"type":"alert.opened","timestamp":"2026-11-28T04:00:00+00:00","data":{"id":"5b1c"}}'
HEADERS = {
    "webhook-id": "msg_0f6a",
    "webhook-timestamp": str(NOW),
    "webhook-signature": "v1,oYGKjW25SU4HF6hmqFBT2RNApFiwtdU8LauOLEoNWps=",
}


def signed(body: bytes) -> dict[str, str]:
    """Headers by the words of Standard Webhooks, written anew."""
    key = base64.b64decode(SECRET.removeprefix("whsec_"))
    mac = hmac.new(key, f"msg_0f6a.{NOW}.".encode() + body, hashlib.sha256).digest()
    return {**HEADERS, "webhook-signature": f"v1,{base64.b64encode(mac).decode()}"}


def message(headers: Mapping[str, str]) -> Message:
    held = Message()
    for name, value in headers.items():
        held[name] = value
    return held


@pytest.mark.parametrize(
    "headers",
    [
        HEADERS,
        {name.title(): value for name, value in HEADERS.items()},
        {**HEADERS, "webhook-signature": f"v1a,x v1,AAAA {HEADERS['webhook-signature']}"},
        message(HEADERS),
    ],
)
@pytest.mark.parametrize("now", [NOW - 300, NOW + 300])
def test_headers_as_servers_have_them(headers: Any, now: float) -> None:
    event = verify(SECRET + "\n", headers, bytearray(BODY), now=now)
    assert (event.type, event.data, event.message) == ("alert.opened", {"id": "5b1c"}, "msg_0f6a")
    with pytest.raises(UnexpectedAnswer, match="holds no alert"):
        event.alert  # noqa: B018


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"webhook-id": ""}, "webhook-id is missing"),
        ({"webhook-timestamp": "now"}, "no time"),
        ({"webhook-timestamp": "٣"}, "no time"),
        ({"webhook-timestamp": "9" * 5000}, "no time"),
        ({"webhook-signature": ""}, "webhook-signature is missing"),
        ({"webhook-signature": " "}, "not signed"),
        ({"webhook-signature": HEADERS["webhook-signature"][3:]}, "not signed"),
        ({"webhook-signature": HEADERS["webhook-signature"].replace("v1", "v2")}, "not signed"),
        ({"webhook-signature": "v1,é\udcff"}, "not signed"),
        ({"webhook-id": "msg_\udcff"}, "altered"),
    ],
)
def test_what_is_not_signed_is_refused(change: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidSignature, match=said):
        verify(SECRET, {**HEADERS, **change}, BODY, now=NOW)


@pytest.mark.parametrize("now", [NOW - 301, NOW + 301, float("nan")])
def test_what_is_not_of_now_is_refused(now: float) -> None:
    with pytest.raises(InvalidSignature, match="seconds"):
        verify(SECRET, HEADERS, BODY, now=now)


@pytest.mark.parametrize("secret", ["", "whsec_", "YW4=", "whsec_YW4gZXh", "whsec_Ã¼"])
def test_a_secret_that_is_none_is_not_shown(secret: str) -> None:
    with pytest.raises(ValueError, match="a secret is whsec_ and base64") as raised:
        verify(secret, HEADERS, BODY, now=NOW)
    assert "YW4" not in str(raised.value)


def test_a_body_that_was_parsed_cannot_be_verified() -> None:
    with pytest.raises(TypeError, match="the bytes that came, not dict"):
        verify(SECRET, HEADERS, {"type": "alert.opened"}, now=NOW)  # type: ignore[arg-type]


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"type": 1, "timestamp": "x", "data": {}}'])
def test_what_is_signed_but_no_event_is_told(body: bytes) -> None:
    with pytest.raises(UnexpectedAnswer, match="no event"):
        verify(SECRET, signed(body), body, now=NOW)


def test_a_secret_whose_answer_was_lost_is_made_anew(sqlite_url: str) -> None:
    """What is sent again makes no other webhook, and does not show what was shown."""
    with telling(sqlite_url) as client:
        port = int(str(client).rpartition(":")[2].rstrip("/')"))
        soon = Retries(most=3, first=0.001, longest=0.01)
        url = "https://93.184.215.14/"
        with hanging_up(port, times=1) as line, Client(line, retries=soon) as shaky:
            hook = shaky.webhooks.create(url, EVENTS, idempotency_key="hook")
            assert [warning.code for warning in hook.warnings] == ["shown-once"]
            assert hook.secret is None
        assert [found.id for found in client.webhooks.list()] == [hook.id]
        turned = client.webhooks.rotate(hook, idempotency_key="turn")
        again = client.webhooks.rotate(hook, idempotency_key="turn")
        assert turned.secret is not None
        assert (again.id, again.secret) == (turned.id, None)
