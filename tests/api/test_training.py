import subprocess
import sys
import threading
from typing import Any

import httpx
import numpy as np
import pytest

from app.core.learners.columns import FeatureColumns
from app.core.learners.recipe import Learner, Recipe, complete_parameters
from app.core.learners.trained import Trained, Training
from app.main import create_app
from app.settings import Settings
from app.training.procedures import learn
from app.training.process import ROOT, Trainer
from tests.api.sources import CLASSES, COUNTED, register
from tests.api.trained import COUNTRIES, NAMES, THREE, address, codes, rows, train, training
from tests.conftest import served
from tests.patience import until

HALF = {"legit": 0.5, "fraud": 0.5}


def core(learner: Learner, classes: list[str], count: int = 60) -> Training:
    """The training of ``training``, in the core's form: levels in the order of the rows."""
    features, labels = rows(count, classes)
    levels = list(dict.fromkeys(row[1] for row in features))
    table = np.array([[row[0], levels.index(row[1])] for row in features])
    codes = np.array([classes.index(label) for label in labels])
    recipe = Recipe(learner, complete_parameters(learner, {}, ""))
    return Training(
        FeatureColumns(tuple(NAMES), {1: tuple(levels)}), table, codes, len(classes), recipe
    )


@pytest.fixture(scope="module")
def bayes(lasting: httpx.Client) -> dict[str, Any]:
    """The page of a naive Bayes of two classes."""
    return train(lasting, "shared", training("naive-bayes"))


class TestVersion:
    def test_is_that_of_the_out_of_fold_posteriors(self, client: httpx.Client) -> None:
        shown = train(client, "bayes", training("naive-bayes"))
        posteriors = learn(core("naive-bayes", CLASSES)).posteriors.tolist()
        labels = rows(60, CLASSES)[1]
        sent = {"validation": {"labels": labels, "posteriors": posteriors}}
        sent["class_counts"] = {"legit": 30, "fraud": 30}
        other = client.get(register(client, "sent", sent)).json()
        for part in ("priors", "source_priors", "confusion_matrix", "validation", "calibration"):
            assert shown[part] == other[part]
        assert other["training"] is None
        assert shown["warnings"] == []
        assert shown["training"] == {
            "learner": "naive-bayes",
            "parameters": {"distribution": "gaussian", "alpha": 1.0, "var_smoothing": 1e-9},
            "feature_names": NAMES,
            "categorical": ["country"],
            "missing": "refuse",
            "rows": 60,
            "folds": 5,
            "seed": 0,
        }
        assert client.get(address(shown)).json() == shown
        batch = {"features": rows(30, CLASSES, seed=1)[0]}
        answer = client.post(f"{address(shown)}/estimates", json=batch)
        assert answer.status_code == 201
        assert answer.json()["method"] == "mle"

    def test_the_same_content_is_not_fitted_again(
        self, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        shown = train(client, "bayes", training("naive-bayes"))
        fitted: list[Training] = []

        def count(self: Trainer, asked: Training) -> Any:
            fitted.append(asked)
            raise AssertionError

        monkeypatch.setattr(Trainer, "learn", count)
        again = client.post(
            "/v1/models/bayes/versions",
            json={"source": {"training": training("naive-bayes"), "metadata": {"by": "me"}}},
        )
        assert again.status_code == 200
        assert again.json() == shown
        assert fitted == []
        taken = {"name": "bayes", "classes": CLASSES, "source": {"training": training()}}
        assert client.post("/v1/models", json=taken).status_code == 409
        assert fitted == []

    def test_an_idempotency_key_replays_the_answer(
        self, lasting: httpx.Client, bayes: dict[str, Any]
    ) -> None:
        sent = {"source": {"training": training("naive-bayes")}}
        headers = {"Idempotency-Key": "once"}
        path = "/v1/models/shared/versions"
        first, second = (lasting.post(path, json=sent, headers=headers) for _ in range(2))
        assert first.status_code == second.status_code == 200
        assert first.json() == bayes
        assert second.headers["idempotency-replayed"] == "true"
        assert first.json() == second.json()

    def test_concurrent_equal_trainings_are_one(
        self, lasting: httpx.Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        lasting.post("/v1/models", json={"name": "twice", "classes": CLASSES})
        fitted: list[int] = []
        learn_ = Trainer.learn

        def count(self: Trainer, asked: Training) -> Any:
            fitted.append(1)
            return learn_(self, asked)

        monkeypatch.setattr(Trainer, "learn", count)
        statuses: list[int] = []

        def post() -> None:
            sent = {"source": {"training": training("naive-bayes")}}
            answer = lasting.post("/v1/models/twice/versions", json=sent)
            statuses.append(answer.status_code)

        threads = [threading.Thread(target=post) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(statuses)[-1] == 201
        assert set(statuses) == {200, 201}
        assert len(fitted) <= 2


class TestWarnings:
    def test_few_rows_of_a_class_lower_the_folds(self, lasting: httpx.Client) -> None:
        asked = training("naive-bayes", count=40)
        asked["labels"] = ["legit"] * 37 + ["fraud"] * 3
        shown = train(lasting, "rare", asked)
        assert shown["training"]["folds"] == 3
        assert "fewer-folds" in [w["code"] for w in shown["warnings"]]

    def test_searches_cut_short_are_reported(self, lasting: httpx.Client) -> None:
        asked = training("linear-svm", parameters={"max_iter": 1, "loss": "hinge"})
        shown = train(lasting, "short", asked)
        said = {w["code"]: w["message"] for w in shown["warnings"]}
        assert "6 of 6 fits" in said["not-converged"]

    def test_missing_values_are_filled_on_request(self, lasting: httpx.Client) -> None:
        asked = training("naive-bayes", missing="impute")
        asked["features"][3][0] = None
        asked["features"][4][1] = None
        shown = train(lasting, "gaps", asked)
        said = {w["code"]: w["message"] for w in shown["warnings"]}
        assert said["imputed-training"].endswith(": 2")
        batch = {"features": [[None, "BE"], [1.0, None], [None, "XX"]]}
        answer = lasting.post(f"{address(shown)}/posteriors", json=batch)
        assert answer.status_code == 200
        said = {w["code"]: w["message"] for w in answer.json()["warnings"]}
        assert said["imputed"].endswith(": 3")
        assert said["unknown-levels"].endswith(": 1")


class TestFeatures:
    def test_are_scored_by_the_model_of_all_rows(self, lasting: httpx.Client) -> None:
        asked = training("random-forest", THREE)
        shown = train(lasting, "forest", asked, classes=THREE)
        expected = core("random-forest", THREE)
        trained = Trained.of_arrays(learn(expected).arrays)
        scored = trained.posteriors(expected.table).tolist()
        one, other = (
            lasting.post(f"{address(shown)}/estimates?keep=false", json=batch).json()
            for batch in ({"features": asked["features"]}, {"posteriors": scored})
        )
        assert one["prevalence"] == other["prevalence"]
        assert one["warnings"] == other["warnings"]

    def test_serve_wherever_a_batch_does(self, lasting: httpx.Client) -> None:
        shown = train(lasting, "everywhere", training())
        features, labels = rows(40, CLASSES, seed=2)
        swapped = {
            "features": [row[::-1] for row in features],
            "columns": ["country", "amount"],
        }
        more: dict[str, dict[str, Any]] = {
            "estimates": {},
            "posteriors": {},
            "shift-tests": {},
            "region-tests": {"priors": {"legit": 0.5, "fraud": 0.5}},
            "evaluations": {"labels": labels},
            "bias-adjustments": {"intercepts": {"legit": 0.0, "fraud": 1.0}},
            "adjusted-models": {},
        }
        for path, content in more.items():
            answers = [
                lasting.post(f"{address(shown)}/{path}", json={**batch, **content})
                for batch in ({"features": features}, swapped)
            ]
            assert [a.status_code // 100 for a in answers] == [2, 2], answers[0].text
            one, other = (
                {k: v for k, v in a.json().items() if k not in ("id", "created_at")}
                for a in answers
            )
            assert one == other

    def test_unknown_levels_are_ignored_and_counted(
        self, lasting: httpx.Client, bayes: dict[str, Any]
    ) -> None:
        batch = {"features": [[0.5, "XX"], [0.5, 7], [0.5, "BE"]], "target_priors": HALF}
        answer = lasting.post(f"{address(bayes)}/posteriors", json=batch)
        said = {w["code"]: w["message"] for w in answer.json()["warnings"]}
        assert said["unknown-levels"].endswith(": 2")
        one, other, known = answer.json()["posteriors"]
        assert one == other != known


class TestNames:
    def test_unnamed_columns_are_numbered_and_numbers_may_be_levels(
        self, lasting: httpx.Client
    ) -> None:
        asked = training("naive-bayes", categorical=["x1"])
        del asked["feature_names"]
        asked["features"] = [[a, COUNTRIES.index(c)] for a, c in asked["features"]]
        shown = train(lasting, "numbered", asked)
        assert shown["training"]["feature_names"] == ["x0", "x1"]
        batch = {"features": [[0.5, 1], [0.5, 1.0], [0.5, "1"], [0.5, "one"]]}
        answer = lasting.post(f"{address(shown)}/posteriors", json={**batch, "target_priors": HALF})
        one, other, text, unknown = answer.json()["posteriors"]
        assert one == other == text != unknown
        assert codes(answer).count("unknown-levels") == 1


class TestCde:
    def test_refits_on_request(self, client: httpx.Client) -> None:
        shown = train(client, "cards", training())
        batch = {"features": rows(50, CLASSES, seed=4)[0], "method": "cde", "include": ["trace"]}
        refitted, threshold = (
            client.post(f"{address(shown)}/estimates", json={**batch, "options": options})
            for options in ({"refit": True}, {})
        )
        assert refitted.status_code == threshold.status_code == 201
        assert "not-fisher-consistent" in codes(refitted)
        content = refitted.json()
        assert content["diagnostics"]["status"] in ("converged", "cycle", "max-iterations")
        assert len(content["trace"]) == content["diagnostics"]["iterations"]
        assert content["trace"][0][1] == content["prevalence"][1]["counted"]

    def test_is_refused_with_the_reason_elsewhere(
        self, lasting: httpx.Client, bayes: dict[str, Any]
    ) -> None:
        plain = register(lasting, "plain", COUNTED)
        refit = {"method": "cde", "options": {"refit": True}}
        answer = lasting.post(f"{plain}/estimates", json={"posteriors": [[0.5, 0.5]], **refit})
        assert answer.status_code == 409
        assert "not trained in the service" in answer.json()["detail"]
        answer = lasting.post(
            f"{address(bayes)}/estimates", json={"posteriors": [[0.5, 0.5]], **refit}
        )
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["pointer"] == "/options/refit"
        batch = {"features": rows(4, CLASSES)[0], "options": {"refit": True}}
        answer = lasting.post(f"{address(bayes)}/estimates", json=batch)
        assert answer.status_code == 422
        three = train(lasting, "ternary", training("naive-bayes", THREE), classes=THREE)
        answer = lasting.post(
            f"{address(three)}/estimates", json={"features": rows(4, THREE)[0], **refit}
        )
        assert answer.status_code == 409
        assert "two classes" in answer.json()["detail"]


class TestProcess:
    def test_too_long_is_422_and_busy_is_503(
        self, sqlite_url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settings = Settings(
            database_url=sqlite_url, training_seconds=0.2, training_wait_seconds=0.1
        )
        app = create_app(settings)
        sent = {"name": "slow", "classes": CLASSES, "source": {"training": training()}}
        with served(app) as client:
            answer = client.post("/v1/models", json=sent)
            assert answer.status_code == 422
            assert answer.json()["errors"][0]["pointer"] == "/source/training"
            assert "longer than 0.2 seconds" in answer.json()["detail"]
            with app.state.services.classifiers.trainer.turn():
                answer = client.post("/v1/models", json=sent)
            assert answer.status_code == 503
            assert answer.headers["retry-after"] == "1"
            assert answer.json()["type"].endswith("training-busy")
            assert client.get("/v1/models").json()["items"] == []

    def test_stopping_the_server_ends_the_fit(self, sqlite_url: str) -> None:
        app = create_app(Settings(database_url=sqlite_url))
        asked = training("random-forest", count=600, parameters={"n_estimators": 1000})
        sent = {"name": "slow", "classes": CLASSES, "source": {"training": asked}}
        statuses: list[int] = []
        with served(app) as client:
            trainer = app.state.services.classifiers.trainer
            thread = threading.Thread(
                target=lambda: statuses.append(client.post("/v1/models", json=sent).status_code)
            )
            thread.start()
            until(lambda: trainer._process)
            trainer.close()
            thread.join()
        assert statuses == [503]

    def test_nothing_that_serves_loads_scikit_learn(self) -> None:
        script = (
            "import sys, tempfile\n"
            "from app.main import create_app\n"
            "from app.settings import Settings\n"
            "from models_store import schema\n"
            "from models_store.engine import connect\n"
            "from tests.api.trained import address, rows, train, training\n"
            "from tests.conftest import served\n"
            "with tempfile.TemporaryDirectory() as folder:\n"
            "    url = f'sqlite:///{folder}/t.db'\n"
            "    engine = connect(url)\n"
            "    schema.migrate(engine)\n"
            "    engine.dispose()\n"
            "    with served(create_app(Settings(database_url=url))) as client:\n"
            "        shown = train(client, 'm', training('random-forest'))\n"
            "        batch = {'features': rows(5, shown['classes'])[0]}\n"
            "        answer = client.post(address(shown) + '/estimates', json=batch)\n"
            "        assert answer.status_code == 201, answer.text\n"
            "assert not [name for name in sys.modules if name.startswith('sklearn')]\n"
        )
        subprocess.run([sys.executable, "-c", script], check=True, cwd=ROOT)


def test_the_cache_holds_the_newest_at_least(sqlite_url: str) -> None:
    app = create_app(Settings(database_url=sqlite_url, version_cache_bytes=10))
    learners = app.state.services.classifiers
    kept = Trained.of_arrays(learn(core("naive-bayes", CLASSES)).arrays)
    for version_id, size in ((1, 4), (2, 4), (3, 4), (4, 100)):
        learners._keep(version_id, kept, size)
        held = list(learners._kept)
        assert held == {1: [1], 2: [1, 2], 3: [2, 3], 4: [4]}[version_id]
    app.state.services.store.close()
