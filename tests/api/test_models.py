import httpx
import pytest

from tests.api.sources import CLASSES, COUNTED, register


class TestCreate:
    def test_a_model_alone(self, client: httpx.Client) -> None:
        answer = client.post(
            "/v1/models", json={"name": "cards", "classes": ["legit", "fraud"], "description": "x"}
        )
        assert answer.status_code == 201
        assert answer.headers["location"] == "/v1/models/cards"
        shown = answer.json()
        assert shown["kind"] == "classifier"
        assert shown["versions"] == 0
        assert shown["version"] is None
        page = client.get("/v1/models/cards").json()
        assert {**shown, "version": None} == page

    def test_with_a_source_it_has_version_1(self, client: httpx.Client) -> None:
        address = register(client, "cards", COUNTED)
        assert client.get("/v1/models/cards").json()["versions"] == 1
        assert client.get(address).json()["version"] == 1

    def test_a_wrong_source_registers_nothing(self, client: httpx.Client) -> None:
        content = {"name": "cards", "classes": CLASSES, "source": {}}
        answer = client.post("/v1/models", json=content)
        assert answer.status_code == 422
        assert client.get("/v1/models/cards").status_code == 404

    def test_a_taken_name(self, client: httpx.Client) -> None:
        register(client, "cards", COUNTED)
        answer = client.post("/v1/models", json={"name": "cards", "classes": ["a", "b"]})
        assert answer.status_code == 409
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["type"] == "urn:priorshift:problem:already-exists"

    def test_class_order_is_as_registered(self, client: httpx.Client) -> None:
        classes = ["10", "0", "1"]
        client.post("/v1/models", json={"name": "ordered", "classes": classes})
        assert client.get("/v1/models/ordered").json()["classes"] == classes


class TestList:
    def test_pages_by_name(self, client: httpx.Client) -> None:
        names = ["a", "b", "c", "d", "e"]
        for name in reversed(names):
            client.post("/v1/models", json={"name": name, "classes": ["x", "y"]})
        seen: list[str] = []
        cursor: dict[str, str] = {}
        while True:
            page = client.get("/v1/models", params={"limit": "2", **cursor}).json()
            seen += [item["name"] for item in page["items"]]
            if page["next_cursor"] is None:
                break
            cursor = {"cursor": page["next_cursor"]}
        assert seen == names


class TestChange:
    def test_the_description(self, client: httpx.Client) -> None:
        register(client, "cards", COUNTED)
        answer = client.patch("/v1/models/cards", json={"description": "new"})
        assert answer.status_code == 200
        assert client.get("/v1/models/cards").json()["description"] == "new"

    def test_nothing_else(self, client: httpx.Client) -> None:
        register(client, "cards", COUNTED)
        answer = client.patch("/v1/models/cards", json={"classes": ["a"]})
        assert answer.status_code == 422
        assert client.get("/v1/models/cards").json()["classes"] == CLASSES


class TestDelete:
    def test_without_estimates(self, client: httpx.Client) -> None:
        register(client, "cards", COUNTED)
        client.put("/v1/models/cards/aliases/champion", json={"version": 1})
        assert client.delete("/v1/models/cards").status_code == 204
        assert client.get("/v1/models/cards").status_code == 404

    def test_with_estimates_only_by_force(self, client: httpx.Client) -> None:
        address = register(client, "cards", COUNTED)
        kept = client.post(f"{address}/estimates", json={"predicted_counts": {"fraud": 3}})
        assert kept.status_code == 201
        assert client.delete("/v1/models/cards").status_code == 409
        assert client.get(kept.headers["location"]).status_code == 200
        assert client.delete("/v1/models/cards", params={"force": "true"}).status_code == 204
        assert client.get(kept.headers["location"]).status_code == 404

    def test_a_name_used_again_has_nothing_of_the_old_model(self, client: httpx.Client) -> None:
        address = register(client, "cards", COUNTED)
        client.get(address)
        client.delete("/v1/models/cards")
        register(client, "cards", {"priors": {"legit": 0.5, "fraud": 0.5}})
        assert client.get(address).json()["priors"] == {"legit": 0.5, "fraud": 0.5}


class TestAliases:
    def test_point_to_a_version_and_move(self, client: httpx.Client) -> None:
        register(client, "cards", COUNTED)
        client.post(
            "/v1/models/cards/versions", json={"source": {"priors": {"legit": 0.5, "fraud": 0.5}}}
        )
        alias = "/v1/models/cards/aliases/champion"
        for version in (1, 2, 1):
            answer = client.put(alias, json={"version": version})
            assert answer.status_code == 200
            assert client.get(alias).json()["version"] == version
            found = client.get("/v1/models/cards/versions/@champion").json()
            assert found["version"] == version
        assert client.get("/v1/models/cards").json()["aliases"] == {"champion": 1}
        assert client.delete(alias).status_code == 204
        assert client.get(alias).status_code == 404
        assert client.delete(alias).status_code == 404
        assert client.get("/v1/models/cards/versions/@champion").status_code == 404

    def test_a_version_that_is_not_there(self, client: httpx.Client) -> None:
        register(client, "cards", COUNTED)
        answer = client.put("/v1/models/cards/aliases/champion", json={"version": 7})
        assert answer.status_code == 404
        assert "version 7" in answer.json()["detail"]


@pytest.mark.parametrize("path", ["/v1/models/none", "/v1/models/none/versions/1", "/v1/models/UP"])
def test_unknown_models(lasting: httpx.Client, path: str) -> None:
    answer = lasting.get(path)
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"
