"""Names in the form in which the caller has them, and the service's own CSV read back."""

import csv
import io

import numpy as np
import pytest

from app.core import sheets
from priorshift_client import Client, Source, WindowSpec, as_sklearn, name_of
from priorshift_client.names import place_of
from tests.core.test_names import E_APART, E
from tests.patience import until

ROWS = np.array([[0.9, 0.1], [0.3, 0.7], [0.2, 0.8]] * 5)
WILD = ('=HYPERLINK("http://x")', "-2+3", "'=y", "-1", "@x", "fraud", "'tis")


class Fitted:
    """A classifier that has its classes decomposed."""

    classes_ = np.array(["legit", E_APART])

    def predict_proba(self, X: object) -> np.ndarray:
        return ROWS


def test_either_form_of_a_name_is_one(client: Client) -> None:
    source = Source(priors={"legit": 0.8, E_APART: 0.2})
    client.models.create("forms", ["legit", E_APART], source)
    found = client.estimate("forms", ROWS, columns=["legit", E_APART])
    assert found.prevalence[E] == found.prevalence[E_APART]
    priors = {E_APART: 0.5, "legit": 0.5}
    wrapped = as_sklearn(Fitted(), client, "forms", target_priors=priors)
    assert wrapped.predict_proba(None).shape == ROWS.shape
    with pytest.raises(KeyError):
        found.prevalence["other"]
    assert place_of(E_APART, [E_APART, E]) == 0
    with pytest.raises(KeyError):
        place_of("u\u0308\u0323", ["u\u0323\u0308", "\u1ee5\u0308"])


@pytest.mark.parametrize("name", WILD)
def test_cells_of_the_service_are_names_again(name: str) -> None:
    assert name_of(sheets.cell(name)) == name


def test_a_series_in_csv_gives_the_names_back(client: Client) -> None:
    given = np.random.default_rng(0)
    labels = ["=A1" if given.random() < 0.3 else "-1" for _ in range(300)]
    rows = np.array([[0.8, 0.2] if label == "=A1" else [0.1, 0.9] for label in labels])

    client.models.create("wild", ["=A1", "-1"], Source(labels, rows))
    client.monitors.create("wild", "wild", WindowSpec(rows=100))
    client.monitors.observe("wild", rows[:100])

    until(lambda: client.monitors.series("wild").count)
    lines = list(csv.DictReader(io.StringIO(client.monitors.series_csv("wild"))))
    assert [line["class"] for line in lines] == ["'=A1", "-1"]
    assert [name_of(line["class"]) for line in lines] == ["=A1", "-1"]
