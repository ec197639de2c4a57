"""Requests that once hurt."""

import base64
import json
import threading
from typing import Any

import httpx
import jsonschema
import numpy as np
import pytest

from app.core.arrays import Floats
from tests.api.sources import CLASSES, COUNTED, register, scores, validation

JSON = {"content-type": "application/json"}


def cursor(*parts: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(parts).encode()).decode().rstrip("=")


class TestText:
    def test_no_character_ends_in_a_500(self, client: httpx.Client) -> None:
        address = register(client, "cards", COUNTED)
        bodies = [
            rb'{"predicted_counts": {"\ud800": 3}}',
            rb'{"posteriors": [[0.5, 0.5]], "columns": ["legit", "\udfff"]}',
            rb'{"predicted_counts": {"\u0000": 3}}',
            rb'{"predictions": ["\u0000"]}',
        ]
        for body in bodies:
            answer = client.post(f"{address}/estimates", content=body, headers=JSON)
            assert answer.status_code in (400, 422)
        for path in (
            "/v1/estimates/%00",
            "/v1/models/%00",
            "/v1/models/cards/versions/@%00",
            "/v1/models/cards/versions/%00",
            "/v1/models/cards/aliases/%00",
        ):
            assert client.get(path).status_code == 404
        for part in ("\ud800", "\u0000", "UPPER"):
            answer = client.get("/v1/models", params={"cursor": cursor(part)})
            assert answer.status_code == 422
        answer = client.post(
            "/v1/models/cards/versions/@%00/estimates",
            json={"posteriors": [[0.5, 0.5]]},
            headers={"Idempotency-Key": "k"},
        )
        assert answer.status_code == 404

    def test_pointers_are_escaped(self, client: httpx.Client) -> None:
        source = {"priors": {"a/b": 0.5, "c~d": 0.5}}
        address = register(client, "odd", source, classes=["a/b", "c~d"])
        answer = client.post(
            f"{address}/estimates", json={"predicted_counts": {"a/b": -1, "c~d": -1}}
        )
        pointers = [error["pointer"] for error in answer.json()["errors"]]
        assert pointers == ["/predicted_counts/a~1b", "/predicted_counts/c~0d"]

    def test_unusual_class_names_work(self, client: httpx.Client) -> None:
        names = ["__proto__", "😀", "a.b/c~d", " "]
        source = {"priors": dict.fromkeys(names, 0.25)}
        address = register(client, "odd", source, classes=names)
        answer = client.post(f"{address}/estimates", json={"posteriors": [[0.1, 0.2, 0.3, 0.4]]})
        assert [row["class"] for row in answer.json()["prevalence"]] == names

    def test_a_bare_source_is_pointed_at_where_it_is(self, client: httpx.Client) -> None:
        register(client, "cards", COUNTED)
        for content, place in (
            ({"priors": {"legit": 1}}, "/priors/fraud"),
            ({"source": {"priors": {"legit": 1}}}, "/source/priors/fraud"),
        ):
            answer = client.post("/v1/models/cards/versions", json=content)
            assert answer.json()["errors"][0]["pointer"] == place


class TestSizes:
    @pytest.mark.parametrize("depth", [25, 300, 900])
    def test_deep_metadata(self, client: httpx.Client, depth: int) -> None:
        register(client, "cards", COUNTED)
        nested = b'{"a":' * depth + b"1" + b"}" * depth
        body = b'{"priors": {"legit": 0.4, "fraud": 0.6}, "metadata": ' + nested + b"}"
        answer = client.post("/v1/models/cards/versions", content=body, headers=JSON)
        assert answer.status_code in (400, 422)

    def test_many_faults_are_not_collected(self, lasting: httpx.Client) -> None:
        address = register(lasting, "sizes", COUNTED)
        many = [1] * 60_000
        for part in (
            {"segment": {f"k {k}": "x" for k in many}},
            {"segment": {f"k {k}": "x" for k in range(30_000)}},
            {"include": many},
            {"columns": many},
            {f"field{k}": 1 for k in range(30_000)},
        ):
            content = {"posteriors": [[0.5, 0.5]], **part}
            answer = lasting.post(f"{address}/estimates", json=content)
            assert answer.status_code in (413, 422)
            assert len(answer.json().get("errors", [])) <= 20
        answer = lasting.post("/v1/models", json={"name": "new", "classes": many})
        assert answer.json()["error_count"] == 1

    @pytest.mark.parametrize(
        "source",
        [
            {"priors": {"legit": 1, "fraud": 1e-308}},
            {"priors": {"legit": 1, "fraud": 5e-324}},
            {"class_counts": {"legit": 2**53, "fraud": 1}},
            {"class_counts": {"legit": 1e299, "fraud": 1e-299}},
            {"class_counts": {"legit": 10.5, "fraud": 3}},
        ],
    )
    def test_priors_too_small_to_mean_anything(
        self, client: httpx.Client, source: dict[str, Any]
    ) -> None:
        content = {"name": "tiny", "classes": CLASSES, "source": source}
        assert client.post("/v1/models", json=content).status_code == 422

    def test_very_long_em_on_a_large_batch(self, lasting: httpx.Client) -> None:
        address = register(lasting, "long", {"priors": {"legit": 0.5, "fraud": 0.5}})
        content = {
            "posteriors": [[0.5, 0.5]] * 5,
            "method": "em",
            "options": {"max_iterations": 100_000},
        }
        assert lasting.post(f"{address}/estimates", json=content).status_code == 201
        content = {**content, "include": ["trace"]}
        assert lasting.post(f"{address}/estimates", json=content).status_code == 201

    def test_npy_dimensions_beyond_everything(self, lasting: httpx.Client) -> None:
        address = register(lasting, "npy", COUNTED)
        for shape in ("(99999999999999999999, 0)", "(0, 99999999999999999999)"):
            header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}"
            padded = header.ljust(117) + "\n"
            body = b"\x93NUMPY\x01\x00" + len(padded).to_bytes(2, "little") + padded.encode()
            answer = lasting.post(
                f"{address}/estimates",
                content=body,
                headers={"content-type": "application/x-npy"},
            )
            assert answer.status_code == 422


class TestIdempotency:
    def test_concurrent_creations_agree(self, client: httpx.Client) -> None:
        answers: list[httpx.Response] = []
        content = {"name": "cards", "classes": CLASSES, "source": COUNTED}

        def post() -> None:
            headers = {"Idempotency-Key": "same"}
            answers.append(client.post("/v1/models", json=content, headers=headers))

        threads = [threading.Thread(target=post) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert {answer.status_code for answer in answers} == {201}
        assert len({answer.content for answer in answers}) == 1

    def test_a_replay_never_speaks_of_what_is_gone(self, client: httpx.Client) -> None:
        headers = {"Idempotency-Key": "k"}
        register(client, "cards", COUNTED)
        source = {"source": {"priors": {"legit": 0.5, "fraud": 0.5}}}
        first = client.post("/v1/models/cards/versions", json=source, headers=headers)
        client.delete("/v1/models/cards")
        assert (
            client.post("/v1/models/cards/versions", json=source, headers=headers).status_code
            == 404
        )
        client.post("/v1/models", json={"name": "cards", "classes": CLASSES})
        again = client.post("/v1/models/cards/versions", json=source, headers=headers)
        assert again.status_code == 201
        assert "idempotency-replayed" not in again.headers
        assert client.get(again.headers["location"]).status_code == 200
        assert first.headers["location"] != again.headers["location"]


class TestWarnings:
    def test_what_was_rescaled_at_registration_is_told(self, client: httpx.Client) -> None:
        given = validation()
        given["posteriors"][3] = [0.9, 0.1009]
        source = {"validation": given, "priors": {"legit": 0.8, "fraud": 0.2005}}
        shown = client.get(register(client, "cards", source)).json()
        codes = {warning["code"] for warning in shown["warnings"]}
        assert {"renormalised-validation", "renormalised-priors"} <= codes

    def test_reversed_columns_are_noticed(self, client: httpx.Client) -> None:
        given = validation()
        given["posteriors"] = [row[::-1] for row in given["posteriors"]]
        shown = client.get(register(client, "cards", {"validation": given})).json()
        assert "scores-reversed" in [warning["code"] for warning in shown["warnings"]]

    def test_permuted_columns_are_the_same_version(self, client: httpx.Client) -> None:
        rng = np.random.default_rng(0)
        names = ["a", "b", "c"]
        labels, rows = rng.integers(0, 3, 200), rng.dirichlet(np.ones(3), 200)
        order = [2, 0, 1]

        def given(values: Floats, columns: list[str]) -> dict[str, Any]:
            content = {"labels": [names[k] for k in labels], "posteriors": values.tolist()}
            return {"validation": {**content, "columns": columns}}

        register(client, "m", given(rows, names), classes=names)
        moved = given(rows[:, order], [names[k] for k in order])
        answer = client.post("/v1/models/m/versions", json={"source": moved})
        assert answer.status_code == 200

    def test_counts_of_classes_without_an_output(self, client: httpx.Client) -> None:
        source = {
            "confusion_matrix": [[8, 2], [1, 9], [5, 5]],
            "outputs": ["a", "other"],
        }
        address = register(client, "m", source, classes=["a", "b", "c"])
        answer = client.post(
            f"{address}/estimates", json={"predicted_counts": {"a": 3, "other": 7}}
        )
        assert [row["counted"] for row in answer.json()["prevalence"]] == [1.0, None, None]
        refused = client.post(
            f"{address}/estimates", json={"predicted_counts": {"a": 3}, "method": "cc"}
        )
        assert refused.status_code == 409


class TestQueriesAndFormats:
    @pytest.mark.parametrize(
        ("verb", "path"),
        [
            ("GET", "/v1/models?limt=3"),
            ("GET", "/v1/models?limit=1&limit=2"),
            ("GET", "/v1/models/cards?x=1"),
            ("GET", "/v1/models/cards/versions/1?x=1"),
            ("DELETE", "/v1/models/cards?forse=true"),
            ("POST", "/v1/models/cards/versions/1/estimates?keep=false&keep=true"),
            ("GET", "/v1/estimates?segment.a=1&segment.a=2"),
        ],
    )
    def test_nothing_is_ignored(self, client: httpx.Client, verb: str, path: str) -> None:
        register(client, "cards", COUNTED)
        body = {"posteriors": [[0.5, 0.5]]} if verb == "POST" else None
        answer = client.request(verb, path, json=body)
        assert answer.status_code == 422
        assert client.get("/v1/models/cards").status_code == 200

    @pytest.mark.parametrize("path", ["estimates", "shift-tests", "region-tests"])
    def test_json_only_answers_say_so(self, lasting: httpx.Client, path: str) -> None:
        answer = lasting.post(
            f"/v1/models/none/versions/1/{path}",
            json={"posteriors": [[0.5, 0.5]]},
            headers={"accept": "application/x-npy"},
        )
        assert answer.status_code == 406

    def test_a_trailing_slash_is_not_found(self, lasting: httpx.Client) -> None:
        assert lasting.get("/v1/models/").status_code == 404


class TestDescription:
    def test_real_answers_match_their_schemas(self, client: httpx.Client) -> None:
        description = client.get("/openapi.json").json()

        def check(answer: httpx.Response, verb: str, path: str) -> None:
            responses = description["paths"][path][verb]["responses"]
            media = responses[str(answer.status_code)]["content"]
            kind = answer.headers["content-type"]
            schema = {**media[kind]["schema"], "components": description["components"]}
            jsonschema.validate(answer.json(), schema)

        model = {"name": "cards", "classes": CLASSES, "source": {"validation": validation()}}
        version = "/v1/models/{name}/versions/{version}"
        address = "/v1/models/cards/versions/1"
        rows = scores(np.random.default_rng(0), 30, 0.3)[1].tolist()
        check(client.post("/v1/models", json=model), "post", "/v1/models")
        check(client.post("/v1/models", json=model), "post", "/v1/models")
        check(client.post("/v1/models", content=b"{", headers=JSON), "post", "/v1/models")
        check(client.get("/v1/models"), "get", "/v1/models")
        check(client.get("/v1/models/cards"), "get", "/v1/models/{name}")
        check(client.get(address), "get", version)
        for kind in ("estimates", "posteriors", "shift-tests"):
            answer = client.post(f"{address}/{kind}", json={"posteriors": rows})
            check(answer, "post", f"{version}/{kind}")
        check(client.get("/v1/estimates"), "get", "/v1/estimates")
        check(client.get("/v1/estimates?x=1"), "get", "/v1/estimates")
        check(client.get("/v1/estimates/none"), "get", "/v1/estimates/{id}")
        check(client.get("/readyz"), "get", "/readyz")
