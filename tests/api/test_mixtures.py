"""Mixtures of regressions over HTTP: registered, carried to another population, asked."""

from typing import Any

import httpx
import numpy as np
import pytest
from scipy.stats import norm

PARAMETERS: dict[str, Any] = {
    "proportions": [0.4, 0.6],
    "coefficients": [[1.0, 2.0], [-2.0, 0.5]],
    "sigmas": [0.3, 0.5],
}


def drawn(seed: int, rows: int, factor: float = 1.0) -> tuple[list[list[float]], list[float]]:
    """Rows of the mixture above, its slopes and deviations times ``factor``."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-3, 3, rows)
    k = (rng.random(rows) < 0.6).astype(int)
    betas = np.array(PARAMETERS["coefficients"])
    sigmas = factor * np.array(PARAMETERS["sigmas"])
    y = betas[k, 0] + factor * betas[k, 1] * x + rng.normal(0, sigmas[k])
    return x[:, None].tolist(), y.tolist()


def register(client: httpx.Client, name: str, source: dict[str, Any]) -> httpx.Response:
    body = {"name": name, "kind": "regression-mixture", "source": source}
    return client.post("/v1/models", json=body)


@pytest.fixture(scope="module")
def version(lasting: httpx.Client) -> str:
    answer = register(lasting, "city", {"parameters": PARAMETERS})
    assert answer.status_code == 201, answer.text
    return "/v1/models/city/versions/1"


class TestRegistering:
    def test_parameters_are_kept_as_sent(self, lasting: httpx.Client, version: str) -> None:
        page = lasting.get(version).json()
        assert {name: page[name] for name in PARAMETERS} == PARAMETERS
        assert (page["kind"], page["components"], page["degree"]) == ("regression-mixture", 2, 1)
        assert page["fit"] is None
        assert lasting.get("/v1/models/city").json()["classes"] == []
        again = lasting.post("/v1/models/city/versions", json={"parameters": PARAMETERS})
        assert again.status_code == 200
        assert again.json() == page

    def test_rows_are_fitted(self, lasting: httpx.Client) -> None:
        x, y = drawn(1, 400)
        answer = register(lasting, "fitted", {"x": x, "y": y, "components": [1, 3], "seed": 3})
        assert answer.status_code == 201, answer.text
        page = answer.json()["version"]
        assert page["components"] == 2
        order = np.argsort(page["proportions"])
        np.testing.assert_allclose(
            np.array(page["coefficients"])[order], PARAMETERS["coefficients"], atol=0.2
        )
        assert page["fit"]["status"] == "converged"
        assert [one["components"] for one in page["fit"]["tried"]] == [1, 2, 3]
        assert page["fit"]["seed"] == 3
        assert page["fit"]["rows"] == 400

    @pytest.mark.parametrize(
        ("source", "place"),
        [
            ({}, "/source/x"),
            ({"parameters": {**PARAMETERS, "sigmas": [0.3]}}, "/source/parameters/sigmas"),
            ({"parameters": {**PARAMETERS, "sigmas": [0.3, -1]}}, "/source/parameters/sigmas"),
            (
                {"parameters": {**PARAMETERS, "proportions": [0.4, 0.4]}},
                "/source/parameters/proportions",
            ),
            (
                {"parameters": {**PARAMETERS, "coefficients": [[1, 2], [3]]}},
                "/source/parameters/coefficients/1",
            ),
            ({"parameters": PARAMETERS, "x": [[1]]}, "/source/x"),
            ({"x": [[1], [2]], "y": [1], "components": 1}, "/source/y"),
            ({"x": [[1], ["a"]], "y": [1, 2], "components": 1}, "/source/x/1"),
            ({"x": [[1], [2]], "y": [1, None], "components": 1}, "/source/y/1"),
            ({"x": [[1], [2]], "y": [1, 2], "components": 5}, "/source/x"),
            ({"x": [[1], [2]], "y": [1, 2], "components": [1, 2, 3]}, "/source/components"),
            (
                {"x": [1] * 20_000, "y": [1] * 20_000, "components": 20, "starts": 100},
                "/source/starts",
            ),
            (
                {"x": [[1, 2], [2, 3], [3, 5]], "y": [1, 2, 3], "components": 1, "degree": 2},
                "/source/degree",
            ),
            ({"parameters": {**PARAMETERS, "sigma": [1]}}, "/source/parameters/sigma"),
        ],
    )
    def test_what_is_wrong_is_placed(
        self, lasting: httpx.Client, source: dict[str, Any], place: str
    ) -> None:
        answer = register(lasting, "wrong", source)
        assert answer.status_code == 422, answer.text
        assert answer.json()["errors"][0]["pointer"] == place
        assert lasting.get("/v1/models/wrong").status_code == 404

    def test_it_has_no_classes(self, lasting: httpx.Client) -> None:
        body = {"name": "wrong", "kind": "regression-mixture", "classes": ["a", "b"]}
        answer = lasting.post("/v1/models", json=body)
        assert answer.json()["errors"][0]["pointer"] == "/classes"


class TestAdapting:
    def test_few_rows_find_the_link(self, lasting: httpx.Client, version: str) -> None:
        x, y = drawn(2, 30, factor=1.5)
        answer = lasting.post(f"{version}/adaptations", json={"x": x, "y": y, "link": "M2a"})
        assert answer.status_code == 201, answer.text
        found = answer.json()
        assert found["link"]["name"] == "M2a"
        (factor,) = found["link"]["parameters"]["slopes"]
        assert factor == pytest.approx(1.5, abs=0.1)
        np.testing.assert_allclose(
            found["coefficients"],
            [[1.0, 2.0 * factor], [-2.0, 0.5 * factor]],
        )
        np.testing.assert_allclose(np.sum(found["responsibilities"], axis=1), 1)
        assert len(found["links"]) == 1
        assert lasting.get(f"/v1/adaptations/{found['id']}").json() == found

    def test_the_best_of_all_links(self, lasting: httpx.Client, version: str) -> None:
        x, y = drawn(3, 60, factor=1.5)
        for criterion in ("bic", "press"):
            body = {"x": x, "y": y, "criterion": criterion, "options": {"seed": 5}}
            found = lasting.post(f"{version}/adaptations", json=body).json()
            assert found["criterion"] == criterion
            assert len(found["links"]) == 27
            (chosen,) = [one for one in found["links"] if one["chosen"]]
            assert chosen["name"] == found["link"]["name"]
            sound = [
                one
                for one in found["links"]
                if not {"variance-floor", "few-rows"} & set(one["warnings"])
            ]
            assert chosen[criterion] == min(one[criterion] for one in sound)
            assert found["link"]["name"] != "M1"
            assert found["seed"] == 5

    def test_predictions_are_those_of_the_density(
        self, lasting: httpx.Client, version: str
    ) -> None:
        x, y = drawn(4, 40)
        found = lasting.post(f"{version}/adaptations", json={"x": x, "y": y, "link": "M1"}).json()
        address = f"/v1/adaptations/{found['id']}/predictions"
        said = lasting.post(address, json={"x": [[0.5], [-1.0]], "y": [2.0, 0.0]}).json()
        means = np.array([[2.0, -1.75], [-1.0, -2.5]])
        np.testing.assert_allclose(said["component_means"], means)
        shares, sigmas = np.array(PARAMETERS["proportions"]), np.array(PARAMETERS["sigmas"])
        np.testing.assert_allclose(said["mean"], means @ shares)
        density = norm.pdf([[2.0], [0.0]], means, sigmas) @ shares
        np.testing.assert_allclose(said["log_density"], np.log(density))
        assert said["levels"] == [0.05, 0.5, 0.95]
        for mean, row in zip(means, said["quantiles"], strict=True):
            reached = [norm.cdf(q, mean, sigmas) @ shares for q in row]
            np.testing.assert_allclose(reached, said["levels"], atol=1e-9)
        plain = lasting.post(address, json={"x": [0.5], "levels": [0.1]}).json()
        assert plain["log_density"] is None
        assert len(plain["quantiles"][0]) == 1

    def test_draws_from_the_posterior(self, lasting: httpx.Client, version: str) -> None:
        x, y = drawn(5, 60, factor=1.5)
        options = {"draws": 400, "burn_in": 100, "seed": 7, "spread": [4, 1.0], "level": 0.99}
        body = {"x": x, "y": y, "method": "gibbs", "options": options}
        found = lasting.post(f"{version}/adaptations", json=body).json()
        again = lasting.post(f"{version}/adaptations", json=body).json()
        assert found["coefficients"] == again["coefficients"]
        np.testing.assert_allclose(found["coefficients"], [[1.0, 3.0], [-2.0, 0.75]], atol=0.35)
        numbers = {one["name"]: one for one in found["numbers"]}
        slope = numbers["coefficients/0/1"]
        assert slope["lower"] < 3 < slope["upper"]
        assert slope["split_rhat"] < 1.05
        assert slope["effective_size"] > 100
        assert found["warnings"] == []
        address = f"/v1/adaptations/{found['id']}/predictions"
        said = lasting.post(address, json={"x": [2.0], "y": [7.0]}).json()
        low, _, high = said["quantiles"][0]
        assert low < said["mean"][0] < high
        assert np.sum(said["probabilities"]) == pytest.approx(1)
        wider = lasting.post(f"{version}/adaptations", json={**body, "x": x[:6], "y": y[:6]}).json()
        few = {one["name"]: one for one in wider["numbers"]}["coefficients/0/1"]
        assert few["upper"] - few["lower"] > slope["upper"] - slope["lower"]

    @pytest.mark.parametrize(
        ("options", "place"),
        [
            ({"draws": 100_000, "chains": 64}, "/options/draws"),
            ({"spread": "wide"}, "/options/spread/0"),
            ({"spread": [1, "a"]}, "/options/spread/1"),
            ({"spread": [[1, 2], [3]]}, "/options/spread/1"),
            ({"spread": [[1, 2], [2, 1]]}, "/options/spread"),
            ({"spread": [1, 2, 3]}, "/options/spread"),
            ({"scale": [1, -1]}, "/options/scale"),
            ({"shape": 0}, "/options/shape"),
            ({"kappa": -1}, "/options/kappa"),
            ({"level": 1}, "/options/level"),
        ],
    )
    def test_wrong_priors(
        self, lasting: httpx.Client, version: str, options: dict[str, Any], place: str
    ) -> None:
        body = {"x": [[1], [2]], "y": [1, 2], "method": "gibbs", "options": options}
        answer = lasting.post(f"{version}/adaptations", json=body)
        assert answer.status_code == 422, answer.text
        assert answer.json()["errors"][0]["pointer"] == place

    @pytest.mark.parametrize(
        ("body", "place"),
        [
            ({"x": [[1]], "y": [1], "method": "gibbs", "link": "M1"}, "/link"),
            ({}, "/x"),
            ({"x": [[1]], "y": [1, 2]}, "/y"),
            ({"x": [[1, 2]], "y": [1]}, "/x"),
            ({"x": [[1]], "y": ["a"]}, "/y/0"),
            ({"x": [[1]], "y": [1], "link": "M9"}, "/link"),
            ({"x": [[1]], "y": [1], "criterion": "aic"}, "/criterion"),
            ({"x": [[1]] * 501, "y": [1] * 501, "criterion": "press"}, "/criterion"),
            ({"x": [[1]], "y": [1], "options": {"starts": 0}}, "/options/starts"),
            ({"x": [1] * 10_001, "y": [1] * 10_001}, "/x"),
        ],
    )
    def test_what_is_wrong_is_placed(
        self, lasting: httpx.Client, version: str, body: dict[str, Any], place: str
    ) -> None:
        answer = lasting.post(f"{version}/adaptations", json=body)
        assert answer.status_code == 422, answer.text
        assert answer.json()["errors"][0]["pointer"] == place

    def test_wrong_predictions(self, lasting: httpx.Client, version: str) -> None:
        x, y = drawn(4, 40)
        found = lasting.post(f"{version}/adaptations", json={"x": x, "y": y, "link": "M1"}).json()
        address = f"/v1/adaptations/{found['id']}/predictions"
        for body, place in (
            ({"x": [[1, 2]]}, "/x"),
            ({"x": [[1]], "y": [1, 2]}, "/y"),
            ({"x": [[1]], "levels": [0.5, 1.0]}, "/levels/1"),
            ({"x": [[1]], "features": [[1]]}, "/features"),
        ):
            answer = lasting.post(address, json=body)
            assert answer.status_code == 422
            assert answer.json()["errors"][0]["pointer"] == place
