"""Every option and method on every route that declares it: used, or refused clearly.

The routes and their options are read from the service's own description, so that a new one is
asked too; what it needs besides is said in ``BODIES`` and ``WORDS``.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import httpx
import numpy as np
import pytest

from app.estimation.methods import ALIASES, METHODS
from app.estimation.solvers import OPTIONS
from tests.api.sources import CLASSES, register, scores, validation
from tests.api.trained import address, rows, train, training

VERSION = "/v1/models/{name}/versions/{version}"
ASKING = (f"{VERSION}/", "/v1/adaptations/")
"""Where routes that ask something of rows begin; others write what was asked as it is."""
ROWS = {"posteriors", "predictions", "predicted_counts", "features", "columns", "labels", "x", "y"}
"""What is given, and not asked of it."""
BATCH = scores(np.random.default_rng(3), 120, 0.5)[1].round(6).tolist()
TRUTH = [CLASSES[k] for k in scores(np.random.default_rng(3), 120, 0.5)[0]]
FEATURES, KNOWN = rows(60, CLASSES, seed=5)
HALF = {"legit": 0.5, "fraud": 0.5}
CELSIUS = np.column_stack([np.arange(60.0) % 31, np.arange(60.0) % 7]).round(3)
FEW = {"draws": 40, "burn_in": 10, "chains": 2}

Body = dict[str, Any]
POSTERIORS: Body = {"posteriors": BATCH}
BODIES: dict[str, list[Body]] = {
    "estimates": [
        POSTERIORS,
        *({**POSTERIORS, "interval": {"method": m}} for m in ("bootstrap", "profile")),
        {**POSTERIORS, "shift": {"reference": "bootstrap"}},
        {**POSTERIORS, "shift": {"significance": 1e-9}},
        {"features": FEATURES, "method": "cde"},
        *({**POSTERIORS, "method": method} for method in METHODS),
    ],
    "posteriors": [
        POSTERIORS,
        {**POSTERIORS, "target_priors": {"legit": 0.9, "fraud": 0.1}},
        {"features": FEATURES, "method": "cde"},
        *({**POSTERIORS, "method": method} for method in METHODS),
    ],
    "shift-tests": [
        POSTERIORS,
        {**POSTERIORS, "shift": {"reference": "bootstrap"}},
    ],
    "region-tests": [{**POSTERIORS, "priors": HALF}],
    "bias-adjustments": [
        {"intercepts": HALF, "target_priors": HALF},
        {**POSTERIORS, "intercepts": {"legit": 0.0, "fraud": 0.5}},
        *({**POSTERIORS, "intercepts": HALF, "method": method} for method in METHODS),
        {"intercepts": HALF, "features": FEATURES, "method": "cde"},
    ],
    "adjusted-models": [
        {"target_priors": HALF},
        *({"features": FEATURES, "method": method} for method in METHODS),
        {"features": FEATURES},
    ],
    "evaluations": [
        {**POSTERIORS, "labels": TRUTH},
        {**POSTERIORS, "labels": TRUTH, "interval": {"method": "bootstrap"}},
        {"features": FEATURES, "labels": KNOWN, "method": "cde"},
        *({**POSTERIORS, "labels": TRUTH, "method": method} for method in METHODS),
    ],
    "adaptations": [
        {"features": CELSIUS.tolist(), "include": ["posteriors"]},
        {"features": CELSIUS.tolist(), "second_test": "bootstrap"},
        {"x": CELSIUS[:, 0].tolist(), "y": (3 * CELSIUS[:, 0] + CELSIUS[:, 1]).tolist()},
        {
            "x": CELSIUS[:, 0].tolist(),
            "y": (3 * CELSIUS[:, 0] + CELSIUS[:, 1]).tolist(),
            "method": "gibbs",
            "options": FEW,
        },
    ],
    "predictions": [
        {"features": CELSIUS.tolist()},
        {"x": [1.0, 2.0], "y": [3.0, 4.0]},
    ],
}
TRAINED = {"adjusted-models"}
WORDS: dict[str, list[Any]] = {
    "method": ["acc"],
    "link": ["M1"],
    "options.prior": [{"legit": 30.0, "fraud": 1.0}],
    "target_priors": [{"legit": 0.8, "fraud": 0.2}],
    "priors": [{"legit": 0.8, "fraud": 0.2}],
    "intercepts": [{"legit": 0.0, "fraud": 1.0}],
    "reference": ["legit"],
    "costs": [[[0, 1], [5, 0]]],
    "segment": [{"country": "BE"}],
    "observed_at": ["2026-01-31T00:00:00Z"],
    "estimate": ["0" * 32],
    "deployment_labels": [["fraud"] * 30],
    "levels": [[0.3]],
    "options.spread": [2.0],
    "options.scale": [3.0],
    "options.burn_in": [11],
    "options.draws": [41],
    "options.chains": [3],
    "options.max_iterations": [2],
    "options.kappa": [9.0],
    "options.shape": [5.0],
    "shift.minimum_effect": [0.9],
    "shift.significance": [1e-12, 0.999999],
}
"""What to give where the description does not say enough."""
ITS_OWN = {method: [o for o, owners in OPTIONS.items() if method in owners] for method in METHODS}
"""Options that a method has, and that may leave an answer as it was all the same."""


@pytest.fixture(scope="module")
def shapes(lasting: httpx.Client) -> dict[str, list[dict[str, Any]]]:
    """The JSON bodies of every route that asks something, by the last part of its address."""
    described = lasting.get("/openapi.json").json()
    known = described["components"]["schemas"]
    found: dict[str, list[dict[str, Any]]] = {}
    for path, operations in described["paths"].items():
        if "post" not in operations or not path.startswith(ASKING):
            continue
        schema = operations["post"]["requestBody"]["content"]["application/json"]["schema"]
        some = [resolved(one, known) for one in schema.get("anyOf", [schema])]
        found[path.rpartition("/")[2]] = some
    return found


def resolved(schema: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """A schema with what it refers to in its place."""
    if "$ref" in schema:
        schema = known[schema["$ref"].rpartition("/")[2]]
    said = {k: v for k, v in schema.items() if k != "properties"}
    for word in ("anyOf", "allOf"):
        if word in schema:
            said[word] = [resolved(one, known) for one in schema[word]]
    if "properties" in schema:
        said["properties"] = {k: resolved(v, known) for k, v in schema["properties"].items()}
    return said


def options(shape: Mapping[str, Any], at: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """What a body may ask, by dotted names."""
    for name, schema in shape["properties"].items():
        if not at and name in ROWS:
            continue
        if "properties" in schema:
            yield from options(schema, f"{at}{name}.")
        else:
            yield f"{at}{name}", schema


def others(name: str, schema: Mapping[str, Any]) -> list[Any]:
    """Values other than the default."""
    if name in WORDS:
        return WORDS[name]
    for kind in schema.get("anyOf", [schema]):
        if "enum" in kind:
            return [value for value in kind["enum"] if value != schema.get("default")]
        if "const" in kind:
            return [kind["const"]]
        if kind.get("type") == "boolean":
            return [not schema.get("default", False)]
        if kind.get("type") == "array" and "enum" in kind.get("items", {}):
            return [[value] for value in kind["items"]["enum"]]
        if kind.get("type") == "array" and "const" in kind.get("items", {}):
            return [[kind["items"]["const"]]]
        if kind.get("type") == "integer":
            return [kind.get("minimum", 0) + 7]
        if kind.get("type") == "number":
            return [schema.get("default", 0.5) / 2 + 0.01]
    raise AssertionError(f"say in WORDS what {name} may be: {schema}")


def changed(body: Body, name: str, value: Any) -> Body:
    """The body with another value of an option."""
    copy: Body = json.loads(json.dumps(body))
    first, _, rest = name.partition(".")
    if rest:
        copy.setdefault(first, {})[rest] = value
    else:
        copy[first] = value
    return copy


def plain(answer: httpx.Response) -> Any:
    """An answer without what each has of its own."""
    content = answer.json()
    return {k: v for k, v in content.items() if k not in ("id", "created_at", "adaptation")}


@pytest.fixture(scope="module")
def versions(lasting: httpx.Client) -> dict[str, str]:
    """Addresses of versions that can serve much, by what they are for."""
    source = {"validation": validation(200), "matching": {"feature_map": "posteriors"}}
    mixture = {
        "proportions": [0.6, 0.4],
        "coefficients": [[0.0, 2.0], [9.0, 1.0]],
        "sigmas": [1.0, 2.0],
    }
    content: Body = {"name": "line", "kind": "regression-mixture"}
    content["source"] = {"parameters": mixture}
    assert lasting.post("/v1/models", json=content).status_code == 201
    labels = [CLASSES[int(row[0] > 12)] for row in CELSIUS]
    content = {"name": "tree", "kind": "versatile-tree", "classes": CLASSES}
    content["source"] = {"training": {"features": (CELSIUS / 2).tolist(), "labels": labels}}
    assert lasting.post("/v1/models", json=content).status_code == 201
    return {
        "posteriors": register(lasting, "full", source),
        "features": address(train(lasting, "trained", training())),
        "x": "/v1/models/line/versions/1",
        "tree": "/v1/models/tree/versions/1",
    }


class Route:
    """A route, and the address of the version that suits a body."""

    def __init__(self, client: httpx.Client, versions: dict[str, str], name: str) -> None:
        self.client, self.versions, self.name = client, versions, name
        self.adapted: dict[str, str] = {}

    def post(self, body: Body) -> httpx.Response:
        """The answer to a body."""
        path = f"{self.version(body)}/{self.name}"
        if self.name == "predictions":
            path = f"/v1/adaptations/{self._adaptation(body)}/predictions"
        query = "?keep=false" if self.name == "estimates" else ""
        return self.client.post(path + query, json=body)

    def version(self, body: Body) -> str:
        """Of its kind."""
        if self.name in ("adaptations", "predictions"):
            return self.versions["x" if "x" in body else "tree"]
        trained = "features" in body or self.name in TRAINED
        return self.versions["features" if trained else "posteriors"]

    def suits(self, shape: Mapping[str, Any], body: Body) -> bool:
        """Whether a body is of a shape."""
        return all(name in shape["properties"] for name in body)

    def _adaptation(self, body: Body) -> str:
        kind = "x" if "x" in body else "features"
        if kind not in self.adapted:
            sample = next(one for one in BODIES["adaptations"] if kind in one)
            answer = Route(self.client, self.versions, "adaptations").post(sample)
            self.adapted[kind] = answer.json()["id"]
        return self.adapted[kind]


@pytest.mark.parametrize("name", BODIES)
def test_every_option_is_used_or_refused(
    lasting: httpx.Client, versions: dict[str, str], shapes: dict[str, Any], name: str
) -> None:
    route = Route(lasting, versions, name)
    silent: list[str] = []
    for shape in shapes[name]:
        bodies = [body for body in BODIES[name] if route.suits(shape, body)]
        asked = [(body, route.post(body)) for body in bodies]
        bases = [(body, plain(answer)) for body, answer in asked if answer.is_success]
        assert bases
        for option, schema in options(shape):
            told = [
                (body, value, tells(route, body, base, option, value))
                for body, base in bases
                for value in others(option, schema)
                if changed(body, option, value) != body
            ]
            if not any(one for *_, one in told):
                silent.append(f"{option} is never used")
            silent += [
                f"{option} = {value} beside {[k for k in body if k not in ROWS]} of {method}"
                for body, value, one in told
                if not one and option.startswith("options.")
                for method in [body.get("method", "auto")]
                if option.partition(".")[2] not in ITS_OWN.get(method, ())
            ]
    assert not silent, silent


def tells(route: "Route", body: Body, base: Any, option: str, value: Any) -> bool:
    """Whether an option changes the answer, or is refused by its name or the route's reason."""
    answer = route.post(changed(body, option, value))
    if answer.is_success:
        return bool(plain(answer) != base)
    assert answer.status_code in (404, 409, 422), answer.text
    content = answer.json()
    assert len(content["detail"]) > 20
    assert answer.status_code == 409 or option.rpartition(".")[2] in answer.text, answer.text
    return True


def test_every_route_that_asks_is_asked_here(shapes: dict[str, Any]) -> None:
    assert set(shapes) == set(BODIES)


@pytest.mark.parametrize("method", [*METHODS, *ALIASES])
def test_every_method_that_a_version_says_it_serves(
    lasting: httpx.Client, versions: dict[str, str], shapes: dict[str, Any], method: str
) -> None:
    """On every route that takes a method and a batch, by the version's own page."""
    canonical = ALIASES.get(method, method)
    for name, some in shapes.items():
        if not any({"method", "posteriors"} <= set(shape["properties"]) for shape in some):
            continue
        route = Route(lasting, versions, name)
        body = next(one for one in BODIES[name] if "features" in one or "posteriors" in one)
        page = lasting.get(route.version(body)).json()
        (known,) = [one for one in page["methods"] if one["name"] == canonical]
        answer = route.post({**body, "method": method})
        if known["available"]:
            assert answer.is_success, (name, answer.text)
            assert answer.json()["method"] == canonical
        else:
            assert answer.status_code == 409, name
            assert known["reason"] in answer.json()["detail"]


def test_the_same_option_means_the_same_on_every_route(
    lasting: httpx.Client, versions: dict[str, str]
) -> None:
    """Soft shares, refused where the method has none and used where it has."""
    for name in ("estimates", "posteriors", "bias-adjustments", "adjusted-models", "evaluations"):
        route = Route(lasting, versions, name)
        body = next(b for b in BODIES[name] if b.get("method") == "mle")
        answer = route.post(changed(body, "options.soft", True))
        assert answer.status_code == 422, name
        assert answer.json()["errors"][0]["pointer"] == "/options/soft"
    for name in ("estimates", "posteriors", "bias-adjustments", "adjusted-models", "evaluations"):
        route = Route(lasting, versions, name)
        body = next(b for b in BODIES[name] if b.get("method") == "acc-qp")
        answer = route.post(changed(body, "options.soft", True))
        assert answer.is_success, answer.text
        assert "blind-to-the-unknown" in answer.text
