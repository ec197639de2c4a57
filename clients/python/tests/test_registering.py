import numpy as np
import pytest

from priorshift_client import Client, Conflict, InvalidInput, NotFound, Source, Training
from tests.api.sources import CLASSES, scores, validation
from tests.api.trained import rows

COUNTS = [[900, 90], [10, 100]]


class TestModels:
    def test_create_get_describe_delete(self, client: Client) -> None:
        made = client.models.create("shop", CLASSES, description="first")
        assert (made.name, made.classes, made.versions) == ("shop", ("legit", "fraud"), 0)
        assert made.version is None
        client.models.describe("shop", "second")
        found = client.models.get("shop")
        assert found.description == "second"
        assert found.created_at == made.created_at
        assert found.created_at.tzinfo is not None
        client.models.delete("shop")
        with pytest.raises(NotFound):
            client.models.get("shop")

    def test_a_list_goes_through_its_pages(self, client: Client) -> None:
        names = [f"page-{k}" for k in range(5)]
        for name in names:
            client.models.create(name, CLASSES)
        found = [m.name for m in client.models.list(limit=2) if m.name.startswith("page-")]
        assert found == names

    def test_estimates_are_deleted_by_force_only(self, client: Client) -> None:
        client.models.create("used", CLASSES, Source(confusion_matrix=COUNTS))
        client.estimate("used", {"legit": 90, "fraud": 10})
        with pytest.raises(Conflict):
            client.models.delete("used")
        client.models.delete("used", force=True)

    @pytest.mark.parametrize("name", ["", ".", ".."])
    def test_a_name_never_leaves_its_place(self, client: Client, name: str) -> None:
        with pytest.raises(ValueError, match="cannot be a name"):
            client.aliases.delete("shop", name)

    def test_a_slash_stays_in_its_segment(self, client: Client) -> None:
        with pytest.raises(NotFound):
            client.models.get("shop/versions")


class TestVersions:
    def test_a_validation_set_of_arrays(self, client: Client) -> None:
        client.models.create("arrays", CLASSES)
        labels, posteriors = scores(np.random.default_rng(5), 300, 0.2)
        named = np.array(CLASSES)[labels]
        version = client.versions.register(
            "arrays",
            Source(named, posteriors[:, ::-1], CLASSES[::-1], calibration="temperature"),
        )
        assert version.version == 1
        assert version.validation is not None
        assert version.validation.size == 300
        assert version.calibration.method == "temperature"
        assert version.calibration.report is not None
        assert version.calibration.report.after.log_loss is not None
        assert {m.name for m in version.methods if m.available} >= {"mle", "em", "acc-qp"}
        card = client.versions.scorecard("arrays")
        assert card.chosen in {score.name for score in card.methods}
        plain = client.versions.register("arrays", Source(named.tolist(), posteriors.tolist()))
        assert plain.version == 2
        assert [v.version for v in client.versions.list("arrays", limit=1)] == [2, 1]
        assert client.versions.get("arrays", 2) == plain

    def test_the_same_content_is_the_same_version(self, client: Client) -> None:
        client.models.create("twice", CLASSES)
        source = Source(confusion_matrix=np.array(COUNTS), class_counts={"legit": 9, "fraud": 1})
        assert client.versions.register("twice", source).version == 1
        again = client.versions.register("twice", source)
        assert again.version == 1
        assert again.confusion_matrix == ((900.0, 90.0), (10.0, 100.0))

    def test_metadata_priors_and_outputs(self, client: Client) -> None:
        client.models.create("reject", CLASSES)
        source = Source(
            priors={"legit": 0.9, "fraud": 0.1},
            confusion_matrix=[[800, 90, 110], [10, 80, 20]],
            outputs=["legit", "fraud", "reject"],
            metadata={"commit": "4f1c2d9"},
        )
        version = client.versions.register("reject", source)
        assert version.outputs == ("legit", "fraud", "reject")
        assert version.metadata == {"commit": "4f1c2d9"}

    def test_training(self, client: Client) -> None:
        features, labels = rows(60, CLASSES)
        training = Training(
            features,
            labels,
            "logistic-regression",
            feature_names=["amount", "country"],
            categorical=["country"],
            parameters={"C": 0.5},
        )
        made = client.models.create("trained", CLASSES, Source(training=training))
        assert made.version is not None
        assert made.version.training is not None
        assert made.version.training.feature_names == ("amount", "country")
        assert made.version.training.parameters["C"] == 0.5

    def test_labels_without_posteriors(self) -> None:
        with pytest.raises(TypeError, match="both"):
            Source(labels=["legit"]).content()

    def test_rows_at_fault_are_named(self, client: Client) -> None:
        client.models.create("wrong", CLASSES)
        given = validation(20)
        given["posteriors"][3] = [0.4, float("nan")]
        given["posteriors"][8] = [float("inf"), 0.4]
        with pytest.raises(InvalidInput) as raised:
            client.versions.register("wrong", Source(given["labels"], given["posteriors"]))
        assert raised.value.rows == (3, 8)
        given = validation(20)
        given["labels"][7] = "other"
        with pytest.raises(InvalidInput) as raised:
            client.versions.register("wrong", Source(given["labels"], given["posteriors"]))
        assert raised.value.rows == (7,)
        assert raised.value.errors[0].pointer == "/source/validation/labels/7"


def test_aliases(client: Client, cards: str) -> None:
    made = client.aliases.put(cards, "champion", 1)
    assert client.aliases.get(cards, "champion") == made
    assert client.models.get(cards).aliases == {"champion": 1}
    assert client.versions.get(cards, "@champion").version == 1
    client.aliases.delete(cards, "champion")
    with pytest.raises(NotFound):
        client.aliases.get(cards, "champion")
