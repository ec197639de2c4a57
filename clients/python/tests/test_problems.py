import pickle
import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest

from app.main import create_app
from app.settings import Settings
from clients.python.tests.servers import scripted
from priorshift_client import (
    Busy,
    Client,
    Conflict,
    Fault,
    Forbidden,
    InvalidInput,
    NotFound,
    Problem,
    Source,
    TooLarge,
    Unauthenticated,
    Unavailable,
)
from priorshift_client.errors import problem
from tests.api.sources import CLASSES
from tests.conftest import served

GOOD = [0.9, 0.1]
NAN = float("nan")


class TestInvalidInput:
    @pytest.mark.parametrize(
        ("batch", "rows"),
        [
            ([GOOD, [0.9], GOOD, [0.5, 0.4, 0.1]], (1, 3)),
            ([GOOD, [0.9, "0.1"], GOOD], (1,)),
            ([GOOD, [0.9, None]], (1,)),
            ([GOOD, [True, False]], (1,)),
            ([GOOD, 0.3], (1,)),
            ([GOOD, [NAN, 0.1]], (1,)),
            ([GOOD, [0.9, float("inf")], GOOD, [-0.1, 1.1]], (1, 3)),
            ([GOOD, GOOD, [0.9, 0.3]], (2,)),
            (np.array([GOOD, [0.9, "x"]], dtype=object), (1,)),
            (np.array([[True, False]]), (0,)),
            (["legit", "other", "fraud", 3], (1, 3)),
            (["legit", None, NAN], (1, 2)),
            (np.array([0, 1, 1]), (0, 1, 2)),
        ],
    )
    def test_it_names_the_rows(
        self, client: Client, cards: str, batch: object, rows: tuple[int, ...]
    ) -> None:
        with pytest.raises(InvalidInput) as raised:
            client.estimate(cards, batch)
        assert raised.value.rows == rows
        assert raised.value.error_count == len(rows)
        assert raised.value.type == "urn:priorshift:problem:invalid-input"
        assert all(fault.message for fault in raised.value.errors)

    def test_labels_in_json_do_not_change_that(self, client: Client, cards: str) -> None:
        rows = [GOOD] * 40
        for wrong in range(5, 35):
            rows[wrong] = [NAN, 1.0]
        with pytest.raises(InvalidInput) as raised:
            client.estimate(cards, rows, labels=[None] * 40)
        assert raised.value.rows == tuple(range(5, 25))
        assert raised.value.error_count == 30

    def test_a_wrong_width_is_told(self, client: Client, cards: str) -> None:
        for method in (client.estimate, client.posteriors, client.shift_test):
            with pytest.raises(InvalidInput, match="has 3 values, must have 2") as raised:
                method(cards, np.full((4, 3), 1 / 3))
            assert raised.value.rows == (0, 1, 2, 3)

    @pytest.mark.parametrize("batch", [[], np.zeros((0, 2)), {}, np.zeros(()), np.zeros((2, 2, 2))])
    def test_no_rows(self, client: Client, cards: str, batch: object) -> None:
        with pytest.raises(InvalidInput):
            client.estimate(cards, batch)

    @pytest.mark.parametrize("batch", ["legit", b"legit", 3, None])
    def test_what_is_no_batch(self, client: Client, cards: str, batch: object) -> None:
        with pytest.raises(TypeError, match="a batch is"):
            client.estimate(cards, batch)

    def test_unknown_options_are_told(self, client: Client, cards: str) -> None:
        with pytest.raises(InvalidInput) as raised:
            client.estimate(cards, [GOOD], interval={"level": 1.5})
        assert raised.value.errors[0].pointer == "/interval/level"
        with pytest.raises(InvalidInput):
            client.estimate(cards, [GOOD], columns=["legit", "other"])


class TestOthers:
    def test_not_found(self, client: Client) -> None:
        with pytest.raises(NotFound) as raised:
            client.models.get("nobody")
        assert raised.value.status == 404
        assert raised.value.instance.startswith("urn:priorshift:request:")
        assert raised.value.type == "urn:priorshift:problem:not-found"

    def test_conflict(self, client: Client, cards: str) -> None:
        with pytest.raises(Conflict, match="exists"):
            client.models.create(cards, CLASSES)

    def test_too_large(self, client: Client, cards: str) -> None:
        with pytest.raises(TooLarge):
            client.estimate(cards, np.full((200_000, 2), 0.5))

    @pytest.mark.parametrize(("status", "kind"), [(429, Busy), (503, Unavailable), (418, Problem)])
    def test_from_any_server(self, status: int, kind: type[Problem]) -> None:
        with scripted((status, {}, b"")) as server, Client(server.base, retries=0) as client:
            with pytest.raises(kind) as raised:
                client.models.get("m")
            assert type(raised.value) is kind

    def test_a_problem_with_parts_nobody_knows(self) -> None:
        body = b"""{"title": "t", "detail": "d", "new": 1,
                    "errors": [{"pointer": "/a", "message": "m", "row": 3, "hint": "h"}]}"""
        found = problem(422, body)
        assert isinstance(found, InvalidInput)
        assert found.errors == (Fault("/a", "m", 3),)
        assert (found.rows, found.type, found.error_count) == ((3,), "about:blank", 1)

    def test_they_travel_between_processes(self) -> None:
        sent = InvalidInput(422, "t", "d", "urn:x", "/v1", (Fault("/a", "m", 3),), 30)
        came = pickle.loads(pickle.dumps(sent))
        assert (type(came), came.rows, came.error_count, str(came)) == (InvalidInput, (3,), 30, "d")


class TestKeys:
    ADMIN = "a" * 40

    @pytest.fixture
    def closed(self, workspace: Path, sqlite_template: Path, tmp_path: Path) -> Iterator[str]:
        """The address of a service that needs keys."""
        shutil.copy(sqlite_template, tmp_path / "keys.db")
        (tmp_path / "admin").write_text(self.ADMIN)
        (tmp_path / "secret").write_text("s" * 40)
        settings = Settings(
            database_url=f"sqlite:///{tmp_path / 'keys.db'}",
            admin_key_file=tmp_path / "admin",
            key_secret_file=tmp_path / "secret",
        )
        with served(create_app(settings)) as opened:
            yield str(opened.base_url)

    def test_keys_open_and_are_revoked(self, closed: str) -> None:
        with Client(closed) as nobody, pytest.raises(Unauthenticated):
            nobody.models.get("cards")
        with Client(closed, self.ADMIN) as admin:
            made = admin.keys.create("reader", ["read"], expires_at="2999-01-01T00:00:00Z")
            assert made.key is not None
            assert made.key not in repr(made)
            with Client(closed, made.key) as reader:
                assert list(reader.models.list()) == []
                with pytest.raises(Forbidden, match="scope"):
                    reader.models.create("cards", CLASSES)
            assert [key.name for key in admin.keys.list(limit=1)] == ["reader"]
            assert admin.keys.get(made.id).key is None
            admin.keys.revoke(made.id)
            assert admin.keys.get(made.id).revoked_at is not None
            admin.models.create("cards", CLASSES, Source(priors={"legit": 0.9, "fraud": 0.1}))
            trail = list(admin.audit(limit=2))
            assert trail[0].action == "POST /v1/models"
            assert {entry.key_name for entry in trail} == {"admin-key-file"}

    def test_no_secret_is_shown(self) -> None:
        client = Client("http://user:hidden@127.0.0.1:1/prefix", self.ADMIN, retries=0)
        shown = repr(client) + repr(vars(client))
        assert repr(client) == "Client('http://127.0.0.1:1/prefix')"
        assert self.ADMIN not in shown
        with client, pytest.raises(Exception, match="GET /readyz") as raised:
            client.health()
        assert self.ADMIN not in repr(raised.value) + str(raised.value)
        assert "hidden" not in repr(raised.value)

    @pytest.mark.parametrize("key", ["", "a b", "line\n", "ключ"])
    def test_a_key_that_is_none_is_refused_unseen(self, key: str) -> None:
        with pytest.raises(ValueError, match="no key has") as raised:
            Client("http://127.0.0.1", key)
        assert not key or key not in str(raised.value)

    @pytest.mark.parametrize("base", ["127.0.0.1:8000", "ftp://x", "/v1", ""])
    def test_an_address_that_is_none(self, base: str) -> None:
        with pytest.raises(ValueError, match="base_url"):
            Client(base)


def test_a_prefix_of_a_proxy_is_kept() -> None:
    with scripted((200, {}, b'{"status": "ready"}')) as server:
        for base in (f"{server.base}/priors", f"{server.base}/priors/"):
            with Client(base) as client:
                client.health()
        assert [path for _, path, _, _ in server.seen] == ["/priors/readyz"] * 2
    assert httpx.URL(server.base).port
