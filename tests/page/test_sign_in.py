"""Signing in with a key, what a session opens, and when it ends."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from app.access import sessions
from app.access.callers import ANYONE, KEY_FILE
from app.access.gate import Gate, Unauthenticated
from app.main import create_app
from app.settings import Settings
from models_store.engine import connect
from models_store.store import Store
from tests.api.test_access import ADMIN, SECRET, Guarded, bearer, cards, guarded_settings
from tests.conftest import served
from tests.patience import patience

BROWSER = {"Accept": "text/html,application/xhtml+xml", "Sec-Fetch-Site": "same-origin"}
COUNTS = {"predicted_counts": {"legit": 90, "fraud": 10}}


@pytest.fixture
def guarded(sqlite_url: str, tmp_path: Path) -> Iterator[Guarded]:
    settings = guarded_settings(sqlite_url, tmp_path)
    store = Store(connect(sqlite_url))
    with served(create_app(settings)) as client:
        yield Guarded(client, store, settings)
    store.close()


def sign_in(client: httpx.Client, key: str, **more: str) -> httpx.Response:
    form = {"key": key, **more}
    return client.post("/sign-in", data=form, headers=BROWSER)


@contextmanager
def browser(guarded: Guarded, key: str) -> Iterator[httpx.Client]:
    """Someone who signed in with ``key``."""
    with httpx.Client(base_url=guarded.client.base_url, headers=BROWSER) as client:
        assert sign_in(client, key).status_code == 303
        yield client


class TestSigningIn:
    def test_a_page_sends_who_has_no_key_to_the_form_and_back(self, guarded: Guarded) -> None:
        answer = guarded.client.get("/?cursor=WyJhIl0", headers=BROWSER)
        assert answer.status_code == 303
        assert answer.headers["location"] == "/sign-in?next=/%3Fcursor%3DWyJhIl0"
        form = guarded.client.get(answer.headers["location"], headers=BROWSER)
        assert form.status_code == 200
        assert 'name="next" value="/?cursor=WyJhIl0"' in form.text
        answer = sign_in(guarded.client, ADMIN, next="/?cursor=WyJhIl0")
        assert (answer.status_code, answer.headers["location"]) == (303, "/?cursor=WyJhIl0")
        assert guarded.client.get("/", headers=BROWSER).status_code == 200

    def test_programs_get_problems_as_ever(self, guarded: Guarded) -> None:
        answer = guarded.client.get("/")
        assert answer.status_code == 401
        assert answer.headers["content-type"] == "application/problem+json"
        assert guarded.client.get("/v1/models", headers=BROWSER).status_code == 401

    def test_the_cookie(self, guarded: Guarded) -> None:
        key = guarded.key("read")
        plain = sign_in(guarded.client, key).headers["set-cookie"]
        for part in ("priorshift=", "HttpOnly", "SameSite=strict", "Path=/", "Max-Age=43200"):
            assert part in plain
        assert "Secure" not in plain
        assert key not in plain
        assert key[:8] not in plain
        headers = {**BROWSER, "X-Forwarded-Proto": "https"}
        answer = guarded.client.post("/sign-in", data={"key": key}, headers=headers)
        assert answer.headers["set-cookie"].startswith("__Host-priorshift=")
        assert "Secure" in answer.headers["set-cookie"]

    @pytest.mark.parametrize("key", ["", "w" * 43, "ключ", "a\x00b", "x" * 5000])
    def test_what_is_no_key(self, guarded: Guarded, key: str) -> None:
        answer = sign_in(guarded.client, key)
        assert answer.status_code == (413 if len(key) > 4096 else 401)
        assert "set-cookie" not in answer.headers
        assert answer.headers["content-type"].startswith("text/html")

    @pytest.mark.parametrize(
        "after",
        ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)", "/\n"],
    )
    def test_never_sends_elsewhere(self, guarded: Guarded, after: str) -> None:
        answer = sign_in(guarded.client, ADMIN, next=after)
        assert (answer.status_code, answer.headers["location"]) == (303, "/")

    @pytest.mark.parametrize(
        "headers",
        [
            {"Sec-Fetch-Site": "cross-site"},
            {"Sec-Fetch-Site": "same-site"},
            {"Origin": "https://evil.example"},
            {"Origin": "null"},
            {},
        ],
    )
    def test_other_pages_cannot_sign_anyone_in_or_out(
        self, guarded: Guarded, headers: dict[str, str]
    ) -> None:
        for address in ("/sign-in", "/sign-out"):
            answer = guarded.client.post(address, data={"key": ADMIN}, headers=headers)
            assert answer.status_code == 403
            assert "set-cookie" not in answer.headers

    def test_without_keys_nobody_needs_to(self, lasting: httpx.Client) -> None:
        assert lasting.get("/", headers=BROWSER).status_code == 200
        answer = sign_in(lasting, "anything at all")
        assert answer.status_code == 303
        assert "set-cookie" not in answer.headers


class TestSessions:
    def test_opens_what_the_key_opens(self, guarded: Guarded) -> None:
        cards(guarded)
        cards(guarded, "other")
        with browser(guarded, guarded.key("read", models=["cards"])) as mine:
            shown = mine.get("/").text
            assert "cards" in shown
            assert "other" not in shown
            listed = mine.get("/v1/models").json()["items"]
            assert [item["name"] for item in listed] == ["cards"]
            answer = mine.post("/v1/models/cards/versions/1/estimates", json=COUNTS)
            assert answer.status_code == 403
            assert "lacks the scope estimate" in answer.json()["detail"]

    def test_a_key_without_read_sees_a_page_that_says_so(self, guarded: Guarded) -> None:
        with browser(guarded, guarded.key("estimate")) as mine:
            answer = mine.get("/")
        assert answer.status_code == 403
        assert "lacks the scope read" in answer.text
        assert answer.headers["content-type"].startswith("text/html")

    def test_writes_only_from_own_pages(self, guarded: Guarded) -> None:
        cards(guarded)
        address = "/v1/models/cards/versions/1/estimates"
        with browser(guarded, guarded.key("estimate")) as mine:
            mine.headers["Accept"] = "*/*"
            assert mine.post(address, json=COUNTS).status_code == 201
            host = mine.base_url.netloc.decode()
            del mine.headers["Sec-Fetch-Site"]
            for headers, status in (
                ({"Origin": f"http://{host}"}, 201),
                ({"Origin": "https://evil.example"}, 403),
                ({"Origin": "null"}, 403),
                ({"Sec-Fetch-Site": "cross-site"}, 403),
                ({}, 403),
            ):
                answer = mine.post(address, json=COUNTS, headers=headers)
                assert answer.status_code == status, headers

    def test_a_header_counts_before_a_cookie(self, guarded: Guarded) -> None:
        with browser(guarded, ADMIN) as mine:
            assert mine.get("/v1/models", headers=bearer("w" * 43)).status_code == 401

    def test_a_session_is_no_key(self, guarded: Guarded) -> None:
        with browser(guarded, ADMIN) as mine:
            text = mine.cookies["priorshift"]
        assert guarded.client.get("/v1/models", headers=bearer(text)).status_code == 401
        assert sign_in(guarded.client, text).status_code == 401

    def test_ends_with_its_key(self, guarded: Guarded) -> None:
        with browser(guarded, guarded.key("read")) as mine:
            assert mine.get("/").status_code == 200
            keys = guarded.client.get("/v1/api-keys", headers=bearer(ADMIN)).json()["items"]
            guarded.client.delete(f"/v1/api-keys/{keys[0]['id']}", headers=bearer(ADMIN))
            since = time.monotonic()
            while mine.get("/").status_code == 200:
                assert time.monotonic() - since < patience(1)
                time.sleep(0.02)
            assert mine.get("/").headers["location"] == "/sign-in?next=/"
            assert "session has ended" in mine.get("/v1/models").json()["detail"]

    def test_ends_with_another_key_in_the_file(self, guarded: Guarded) -> None:
        path = guarded.settings.admin_key_file
        assert path is not None
        gate = Gate(guarded.store, guarded.settings)
        session = gate.session(ADMIN)
        assert gate.caller(session) is KEY_FILE
        path.write_text("y" * 40)
        with pytest.raises(Unauthenticated, match="has ended"):
            Gate(guarded.store, guarded.settings).caller(session)

    def test_every_worker_reads_it(self, guarded: Guarded) -> None:
        with (
            browser(guarded, guarded.key("read")) as mine,
            served(create_app(guarded.settings)) as other,
        ):
            other.cookies = mine.cookies
            assert other.get("/").status_code == 200

    def test_where_a_file_has_the_only_key(self, sqlite_url: str, tmp_path: Path) -> None:
        settings = guarded_settings(sqlite_url, tmp_path).model_copy(update={"key_secret": None})
        with served(create_app(settings)) as client:
            assert sign_in(client, ADMIN).status_code == 303
            assert client.get("/", headers=BROWSER).status_code == 200

    def test_signing_out(self, guarded: Guarded) -> None:
        with browser(guarded, ADMIN) as mine:
            assert "Sign out" in mine.get("/").text
            answer = mine.post("/sign-out")
            assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in")
            assert mine.get("/").status_code == 303

    def test_what_was_signed_out_opens_nothing_in_any_worker(self, guarded: Guarded) -> None:
        """Nor does a copy of the cookie; other sessions of the key go on."""
        for key in (guarded.key("read"), ADMIN):
            with (
                browser(guarded, key) as mine,
                browser(guarded, key) as another,
                served(create_app(guarded.settings)) as other,
            ):
                copy = {"Cookie": f"priorshift={mine.cookies['priorshift']}"}
                for client in (guarded.client, other):
                    assert client.get("/v1/models", headers=copy).status_code == 200
                assert mine.post("/sign-out").status_code == 303
                for client in (guarded.client, other):
                    answer = client.get("/v1/models", headers=copy)
                    assert answer.status_code == 401
                    assert "session has ended" in answer.json()["detail"]
                assert another.get("/v1/models").status_code == 200
                # Once more: no mistake.
                again = guarded.client.post("/sign-out", headers={**BROWSER, **copy})
                assert again.status_code == 303

    def test_both_cookies_of_a_browser_end(self, guarded: Guarded) -> None:
        with browser(guarded, guarded.key("read")) as mine, browser(guarded, ADMIN) as secure:
            texts = [client.cookies["priorshift"] for client in (secure, mine)]
        both = f"__Host-priorshift={texts[0]}; priorshift={texts[1]}"
        answer = guarded.client.post("/sign-out", headers={**BROWSER, "Cookie": both})
        gone = answer.headers.get_list("set-cookie")
        assert [cookie.partition("=")[0] for cookie in gone] == ["__Host-priorshift", "priorshift"]
        assert ["Secure" in cookie for cookie in gone] == [True, False]
        for text in texts:
            copy = {"Cookie": f"priorshift={text}"}
            assert guarded.client.get("/v1/models", headers=copy).status_code == 401

    def test_what_is_no_session_leaves_nothing_behind(self, guarded: Guarded) -> None:
        genuine = sessions.signed(SECRET.encode(), "holder", 1).text
        forged = sessions.signed(b"another secret", "holder", 2**40).text
        for text in (genuine, forged, "nonsense", "9.a.b.c"):
            cookie = {"Cookie": f"priorshift={text}"}
            answer = guarded.client.post("/sign-out", headers={**BROWSER, **cookie})
            assert answer.status_code == 303
        with guarded.store.engine.connect() as connection:
            assert connection.exec_driver_sql("SELECT * FROM ended_sessions").all() == []

    def test_of_no_use_without_keys(self, store: Store) -> None:
        url = store.engine.url.render_as_string(hide_password=False)
        gate = Gate(store, Settings(database_url=url))
        assert gate.caller(sessions.Session("1.a.b")) is ANYONE


class TestSignature:
    SECRET = b"a secret of the server's own"

    def test_only_as_it_was_signed_and_until_it_ends(self) -> None:
        session = sessions.signed(self.SECRET, "holder", 1000)
        note = sessions.read(self.SECRET, session, 999.9)
        assert note is not None
        assert (note.holder, note.ends) == ("holder", 1000)
        assert sessions.read(self.SECRET, session, 1000.0) is None
        assert sessions.read(b"another secret", session, 1.0) is None

    def test_each_is_another(self) -> None:
        """Else to end one would end all that began in the same second."""
        found = {sessions.signed(self.SECRET, "holder", 1000) for _ in range(10)}
        notes = [sessions.read(self.SECRET, session, 1.0) for session in found]
        assert len({note.id for note in notes if note is not None}) == 10

    @pytest.mark.parametrize("place", range(0, 109, 5))
    def test_one_other_character_anywhere(self, place: int) -> None:
        text = sessions.signed(self.SECRET, "holder", 1000).text
        other = "0" if text[place] != "0" else "1"
        altered = text[:place] + other + text[place + 1 :]
        assert sessions.read(self.SECRET, sessions.Session(altered), 1.0) is None

    @pytest.mark.parametrize("text", ["", ".", "..", "1.holder.", "1" * 9999, "\xff.a.b", "1.a.b"])
    def test_what_is_no_session(self, text: str) -> None:
        assert sessions.read(self.SECRET, sessions.Session(text), 0.0) is None


def test_the_models_of_a_stored_key_are_those_of_its_session(guarded: Guarded) -> None:
    gate = Gate(guarded.store, guarded.settings)
    key = guarded.key("read", models=["cards"])
    assert gate.caller(gate.session(key)) == gate.caller(key)
