"""Wrong trainings and wrong batches of features: named, never a 500, and nothing is fitted."""

import json
import random
from typing import Any

import httpx
import numpy as np
import pytest

from app.training.process import Trainer, TrainingRefused
from tests.api.sources import CLASSES, COUNTED, register, validation
from tests.api.trained import address, rows, train, training

LABELS = ["legit", "fraud"] * 5
NUMBERS = [[float(i), float(i % 3)] for i in range(10)]
SMALL = {"features": NUMBERS, "labels": LABELS, "learner": "naive-bayes"}
DEEP: Any = 1
for _ in range(50):
    DEEP = [DEEP]


def changed(row: int, cells: Any) -> list[Any]:
    """The numbers with another row."""
    return [cells if i == row else given for i, given in enumerate(NUMBERS)]


WRONG: dict[str, tuple[dict[str, Any], str, str]] = {
    "not an object": ({}, "/features", "required"),
    "no rows": ({"features": []}, "/features", "holds no rows"),
    "no list": ({"features": {"a": 1}}, "/features", "list of rows"),
    "null": ({"features": None}, "/features", "list of rows"),
    "no columns": ({"features": [[]] * 10}, "/features", "no columns"),
    "scalars": ({"features": [1.0] * 10}, "/features/0", "must be a list"),
    "ragged": ({"features": changed(7, [1.0])}, "/features/7", "has 1 values, must have 2"),
    "string": ({"features": changed(3, [1.0, "a"])}, "/features/3", 'column x1 is "a"'),
    "boolean": ({"features": changed(3, [True, 1.0])}, "/features/3", "column x0 is true"),
    "null cell": ({"features": changed(3, [None, 1.0])}, "/features/3", "column x0 is null"),
    "nested": ({"features": changed(3, [[1.0], 1.0])}, "/features/3", "a list"),
    "deep": ({"features": changed(3, [DEEP, 1.0])}, "/features/3", "a list"),
    "too large": ({"features": changed(3, [1e31, 1.0])}, "/features/3", "between"),
    "huge integer": ({"features": changed(3, [10**400, 1.0])}, "/features/3", "between"),
    "width": ({"features": [[0.0] * 1001] * 10}, "/features", "at most 1000"),
    "all null": (
        {"features": [[None, row[1]] for row in NUMBERS], "missing": "impute"},
        "/features",
        "column x0 has no value",
    ),
    "null rows": ({"features": [None] * 10, "missing": "impute"}, "/features/0", "list"),
    "negative counts": (
        {"features": changed(3, [-1.0, 1.0]), "parameters": {"distribution": "multinomial"}},
        "/features/3",
        "negative",
    ),
    "few labels": ({"labels": LABELS[:9]}, "/labels", "9 labels for 10 rows"),
    "unknown label": ({"labels": ["other", *LABELS[1:]]}, "/labels/0", "is not one of"),
    "label type": ({"labels": [1, *LABELS[1:]]}, "/labels/0", "not a string"),
    "labels null": ({"labels": None}, "/labels", "list of strings"),
    "one class": ({"labels": ["legit"] * 10}, "/labels", "fewer than two rows of fraud"),
    "one row": ({"labels": ["legit"] * 9 + ["fraud"]}, "/labels", "fewer than two rows of fraud"),
    "learner": ({"learner": "perceptron"}, "/learner", "Input should be"),
    "learner null": ({"learner": None}, "/learner", "Input should be"),
    "parameters": ({"parameters": []}, "/parameters", "dictionary"),
    "parameter": ({"parameters": {"gamma": 1}}, "/parameters/gamma", "takes distribution, alpha"),
    "parameter type": ({"parameters": {"alpha": "1"}}, "/parameters/alpha", "must be a number"),
    "trees": (
        {"learner": "random-forest", "parameters": {"n_estimators": 10**9}},
        "/parameters/n_estimators",
        "from 1 to 1000",
    ),
    "many parameters": ({"parameters": {str(i): 1 for i in range(21)}}, "/parameters", "at most"),
    "folds": ({"folds": 1}, "/folds", "greater than or equal to 2"),
    "many folds": ({"folds": 21}, "/folds", "less than or equal to 20"),
    "folds type": ({"folds": 2.5}, "/folds", "integer"),
    "seed": ({"seed": -1}, "/seed", "greater than or equal to 0"),
    "missing": ({"missing": "drop"}, "/missing", "Input should be"),
    "names": ({"feature_names": ["a"]}, "/features/0", "has 2 values, must have 1"),
    "repeated names": ({"feature_names": ["a", "a"]}, "/feature_names/1", "repeats"),
    "empty name": ({"feature_names": ["a", ""]}, "/feature_names/1", "at least 1"),
    "long name": ({"feature_names": ["a", "b" * 201]}, "/feature_names/1", "at most 200"),
    "NUL in a name": ({"feature_names": ["a", "\0"]}, "/feature_names/1", "U+0000"),
    "categorical": ({"categorical": ["x2"]}, "/categorical/0", "is not a column"),
    "categorical twice": ({"categorical": ["x0", "x0"]}, "/categorical/1", "repeats"),
    "categorical type": ({"categorical": [0]}, "/categorical/0", "string"),
    "level type": (
        {"features": changed(3, [True, 1.0]), "categorical": ["x0"]},
        "/features/3",
        "string of at most 200",
    ),
    "level object": (
        {"features": changed(3, [{"a": 1}, 1.0]), "categorical": ["x0"]},
        "/features/3",
        "string of at most 200",
    ),
    "level null": (
        {"features": changed(3, [None, 1.0]), "categorical": ["x0"]},
        "/features/3",
        "column x0 is null",
    ),
    "long level": (
        {"features": changed(3, ["x" * 201, 1.0]), "categorical": ["x0"]},
        "/features/3",
        "string of at most 200",
    ),
    "levels": (
        {
            "features": [[str(i)] for i in range(1001)],
            "labels": (LABELS * 101)[:1001],
            "categorical": ["x0"],
        },
        "/categorical",
        "1001 levels",
    ),
    "unknown field": ({"target": "x"}, "/target", "not permitted"),
}


@pytest.fixture
def no_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    def learn(self: Trainer, asked: Any) -> Any:
        raise TrainingRefused("was right after all")

    monkeypatch.setattr(Trainer, "learn", learn)


@pytest.fixture(scope="module")
def model(lasting: httpx.Client) -> str:
    content = {"name": "empty", "classes": CLASSES}
    assert lasting.post("/v1/models", json=content).status_code == 201
    return "/v1/models/empty/versions"


@pytest.fixture(scope="module")
def trained(lasting: httpx.Client) -> str:
    return address(train(lasting, "bayes", training("naive-bayes")))


@pytest.mark.usefixtures("no_fit")
class TestTraining:
    @pytest.mark.parametrize("name", list(WRONG))
    def test_is_refused_at_its_place(self, lasting: httpx.Client, model: str, name: str) -> None:
        change, where, message = WRONG[name]
        asked = {**SMALL, **change} if change else {"learner": "naive-bayes"}
        answer = lasting.post(
            model,
            content=json.dumps({"source": {"training": asked}}),
            headers={"content-type": "application/json"},
        )
        assert answer.status_code == 422, answer.text
        first = answer.json()["errors"][0]
        assert first["pointer"] == f"/source/training{where}"
        assert message in first["message"]

    @pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "1e400"])
    def test_numbers_that_are_none(self, lasting: httpx.Client, model: str, text: str) -> None:
        body = json.dumps({"training": SMALL}).replace("[0.0, 0.0]", f"[0.0, {text}]")
        headers = {"content-type": "application/json"}
        answer = lasting.post(model, content=body, headers=headers)
        assert answer.status_code == (422 if text == "1e400" else 400)

    @pytest.mark.parametrize(
        "other",
        [
            {"validation": validation(20)},
            {"priors": {"legit": 0.5, "fraud": 0.5}},
            {"class_counts": {"legit": 5, "fraud": 5}},
            {"confusion_matrix": [[1, 0], [0, 1]]},
            {"outputs": CLASSES},
        ],
    )
    def test_excludes_what_comes_out_of_it(
        self, lasting: httpx.Client, model: str, other: dict[str, Any]
    ) -> None:
        answer = lasting.post(model, json={"training": SMALL, **other})
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["pointer"] == f"/{next(iter(other))}"
        assert "leave it out" in answer.json()["detail"]

    def test_needs_two_classes(self, lasting: httpx.Client) -> None:
        one = {**SMALL, "labels": ["a"] * 10}
        content = {"name": "single", "classes": ["a"], "source": {"training": one}}
        answer = lasting.post("/v1/models", json=content)
        assert answer.status_code == 422
        assert "at least two classes" in answer.json()["detail"]

    @pytest.mark.parametrize(
        ("limit", "message"),
        [("MOST_NUMBERS", "rows × 2 encoded columns"), ("MOST_WEIGHTS", "2 encoded columns × 2")],
    )
    def test_is_bounded(
        self,
        lasting: httpx.Client,
        model: str,
        monkeypatch: pytest.MonkeyPatch,
        limit: str,
        message: str,
    ) -> None:
        monkeypatch.setattr(f"app.intake.training.{limit}", 3)
        answer = lasting.post(model, json={"training": SMALL})
        assert answer.status_code == 422
        assert message in answer.json()["detail"]

    def test_of_an_unknown_model_is_404(self, lasting: httpx.Client) -> None:
        answer = lasting.post("/v1/models/none/versions", json={"training": SMALL})
        assert answer.status_code == 404


class TestFeatures:
    @pytest.mark.parametrize(
        ("features", "where", "message"),
        [
            ([], "/features", "no rows"),
            ({}, "/features", "list of rows"),
            ("a", "/features", "list of rows"),
            ([[1.0]], "/features/0", "has 1 values, must have 2"),
            ([[1.0, "BE"], [1.0, "BE", 2]], "/features/1", "has 3 values"),
            ([["BE", 1.0]], "/features/0", 'column amount is "BE"'),
            ([[None, "BE"]], "/features/0", "column amount is null"),
            ([[1.0, None]], "/features/0", "column country is null"),
            ([[1.0, False]], "/features/0", "column country is false"),
            ([[1.0, ["BE"]]], "/features/0", "column country is a list"),
            ([[1e300, "BE"]], "/features/0", "between"),
            ([[10**400, "BE"]], "/features/0", "between"),
            ([[1.0, 10**400]], "/features/0", "column country"),
        ],
    )
    def test_are_refused_by_row(
        self, lasting: httpx.Client, trained: str, features: Any, where: str, message: str
    ) -> None:
        for path in ("estimates", "posteriors", "shift-tests"):
            answer = lasting.post(f"{trained}/{path}", json={"features": features})
            assert answer.status_code == 422, answer.text
            assert answer.json()["errors"][0]["pointer"] == where
            assert message in answer.json()["detail"]

    @pytest.mark.parametrize(
        "columns", [["amount"], ["amount", "land"], ["amount", "amount"], "amount", [1, 2], []]
    )
    def test_columns_must_be_those_of_training(
        self, lasting: httpx.Client, trained: str, columns: Any
    ) -> None:
        content = {"features": [[1.0, "BE"]], "columns": columns}
        answer = lasting.post(f"{trained}/posteriors", json=content)
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["pointer"].startswith("/columns")

    def test_beside_posteriors_are_one_too_many(self, lasting: httpx.Client, trained: str) -> None:
        content = {"features": [[1.0, "BE"]], "posteriors": [[0.5, 0.5]]}
        answer = lasting.post(f"{trained}/estimates", json=content)
        assert answer.status_code == 422
        assert "exactly one of" in answer.json()["detail"]

    def test_need_a_version_that_was_trained(self, lasting: httpx.Client) -> None:
        plain = register(lasting, "plain", COUNTED)
        for path in ("estimates", "posteriors", "shift-tests"):
            answer = lasting.post(f"{plain}/{path}", json={"features": [[1.0]]})
            assert answer.status_code == 409
            assert "not trained in the service" in answer.json()["detail"]

    def test_extremes_are_scored(self, lasting: httpx.Client, trained: str) -> None:
        content = {"features": [[1e30, "BE"], [-1e30, "XX"], [5e-324, 0], [-0.0, ""]]}
        answer = lasting.post(f"{trained}/posteriors", json=content)
        assert answer.status_code == 200
        assert np.isfinite(answer.json()["posteriors"]).all()


JUNK: list[Any] = [
    None,
    True,
    0,
    -1,
    1e31,
    10**400,
    "",
    "BE",
    "\0",
    [],
    [[]],
    {},
    {"a": 1},
    [None],
    ["x"],
    0.5,
    [[1.0, "BE"]],
    "impute",
    ["country"],
    ["amount", "country"],
    "cde",
]


def test_junk_never_breaks_the_service(lasting: httpx.Client, no_fit: None, model: str) -> None:
    draw = random.Random(0)
    for _ in range(150):
        asked: dict[str, Any] = training("naive-bayes", count=6)
        for name in draw.sample([*asked, "parameters", "folds", "missing", "seed"], 2):
            asked[name] = draw.choice(JUNK)
        if isinstance(asked["features"], list) and asked["features"] and draw.random() < 0.5:
            row = draw.choice(asked["features"])
            if isinstance(row, list) and row:
                row[draw.randrange(len(row))] = draw.choice(JUNK)
        body = json.dumps({"training": asked})
        headers = {"content-type": "application/json"}
        answer = lasting.post(model, content=body, headers=headers)
        assert answer.status_code == 422, answer.text


def test_junk_batches_never_break_the_service(lasting: httpx.Client) -> None:
    trained = address(train(lasting, "junk", training("logistic-regression", missing="impute")))
    draw = random.Random(1)
    for _ in range(150):
        features: Any = rows(4, CLASSES)[0]
        features[draw.randrange(4)][draw.randrange(2)] = draw.choice(JUNK)
        if draw.random() < 0.3:
            features[draw.randrange(4)] = draw.choice(JUNK)
        content: dict[str, Any] = {"features": features}
        if draw.random() < 0.3:
            content["columns"] = draw.choice(JUNK)
        if draw.random() < 0.3:
            content["options"] = {"refit": draw.choice([False, 0, "yes", None])}
        path = draw.choice(["estimates?keep=false", "posteriors", "shift-tests", "adjusted-models"])
        body = json.dumps(content)
        headers = {"content-type": "application/json"}
        answer = lasting.post(f"{trained}/{path}", content=body, headers=headers)
        assert answer.status_code in (200, 422), answer.text
