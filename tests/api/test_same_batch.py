"""One batch in every format: each cell is read by what its column is used for, so digits agree."""

import csv
import io
import json
import re
from collections.abc import Callable
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from app.core.arrays import Floats
from app.core.errors import InvalidInput
from app.core.spelling import find, learn
from app.formats import arrow, columns, table
from app.formats import json as wire_json
from app.formats.frame import Frame
from app.formats.npy import MEDIA_TYPE as NPY
from tests.api.sources import CLASSES, COUNTED, register, scores, validation
from tests.api.test_formats import KINDS, SHORT, WRITERS, post
from tests.api.trained import address, train

ODD = ["31", "007", "1e3", "1.0", "true", "", "NaN", "null", " x ", "2020-01-01", "-0", "0x1F"]
ODD += ["inf", "None", "12:30", "2020-01-01T00:00:00Z", "1,5", 'say "so"', "=1+1", "é", "99" * 20]
LIMITS = arrow.Limits(10_000, 10**8)
NUMBER = "amount"
LEVEL = "store"
LABEL = "truth"
TEXT = st.sampled_from(ODD) | st.text(st.characters(blacklist_categories=["Cs", "Cc"]), max_size=8)


def quoted(given: pa.Table) -> bytes:
    """CSV as Python's own writer makes it: quotes around text, empty ones too, and nulls bare."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, quoting=csv.QUOTE_NONNUMERIC)
    writer.writerow(given.column_names)
    for row in zip(*(column.to_pylist() for column in given.columns), strict=True):
        writer.writerow([float("nan") if cell is None else cell for cell in row])
    return out.getvalue().encode().replace(b",nan", b",").replace(b"nan,", b",")


def large(given: pa.Table) -> bytes:
    """Arrow with the types that polars writes: views of text, dictionaries with unsigned codes."""
    arrays = []
    for column in given.combine_chunks().columns:
        if pa.types.is_string(column.type):
            coded = column.combine_chunks().dictionary_encode()
            column = pa.DictionaryArray.from_arrays(
                coded.indices.cast(pa.uint32()), coded.dictionary.cast(pa.large_string())
            )
        arrays.append(column)
    return WRITERS[arrow.ARROW](pa.table(arrays, given.column_names))


def views(given: pa.Table) -> bytes:
    fields = [
        f.with_type(pa.string_view()) if pa.types.is_string(f.type) else f for f in given.schema
    ]
    return WRITERS[arrow.ARROW](given.cast(pa.schema(fields)))


FORMATS: dict[str, tuple[str, Callable[[pa.Table], bytes]]] = {
    **{SHORT[kind]: (kind, WRITERS[kind]) for kind in KINDS},
    "quoted CSV": (arrow.CSV, quoted),
    "dictionaries": (arrow.ARROW, large),
    "views": (arrow.ARROW, views),
}


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[str], pa.Table]:
    """Levels that are known, and rows of one column each of numbers, levels and labels."""
    known = draw(st.lists(TEXT, min_size=1, max_size=6, unique=True))
    cell = st.none() | st.sampled_from(known) | TEXT
    number = st.none() | st.floats(-1e6, 1e6) | st.sampled_from([1e3, 31.0, -0.0, 5e-324])
    label = st.none()
    if any(known):
        label |= st.sampled_from([name for name in known if name])
    rows = draw(st.lists(st.tuples(number, cell, label), min_size=1, max_size=8))
    kinds = (pa.float64(), pa.string(), pa.string())
    arrays = [
        pa.array(cells, kind) for cells, kind in zip(zip(*rows, strict=True), kinds, strict=True)
    ]
    unused = pa.array([{"any": [1]}] * len(rows))
    return known, pa.table([*arrays, unused], [NUMBER, LEVEL, LABEL, "unused"])


def as_json(given: pa.Table) -> tuple[Any, Any]:
    """The features as rows and as lists by name, as the decoder leaves them."""
    by_name = {name: given[name].to_pylist() for name in (NUMBER, LEVEL)}
    body = json.dumps({"rows": list(zip(*by_name.values(), strict=True)), "lists": by_name})
    content = wire_json.decode(body.encode())
    return content["rows"], content["lists"]


def decoded(name: str, given: pa.Table) -> Frame:
    kind, write = FORMATS[name]
    return arrow.decode(kind, write(given), LIMITS)


@settings(max_examples=300, deadline=None)
@given(tables())
@example((["31", "32"], pa.table({NUMBER: [1.0], LEVEL: ["31"], LABEL: ["31"], "unused": [True]})))
def test_every_format_gives_the_same_table(drawn: tuple[list[str], pa.Table]) -> None:
    known, rows = drawn
    levels: table.Levels = {1: {level: code for code, level in enumerate(known)}}
    names = [NUMBER, LEVEL]
    listed, by_name = as_json(rows)
    expected = table.batch(listed, None, names, levels, True)
    turned = [row[::-1] for row in listed]
    same = [
        table.batch(by_name, None, names, levels, True),
        table.batch(turned, names[::-1], names, levels, True),
    ]
    codes = [known.index(x) if x in known else -1 for x in rows[LABEL].to_pylist()]
    classes = [name or "-" for name in known]
    for name in FORMATS:
        given = rows if name not in ("csv", "quoted CSV") else rows.drop_columns("unused")
        frame = decoded(name, given)
        same.append(table.framed(frame, names, levels, True))
        found = frame.labels(LABEL, classes, "/labels", partial=True)
        np.testing.assert_array_equal(found, codes, name)
    for features in same:
        np.testing.assert_array_equal(features, expected)
    exact = [
        x if x is None else known.index(x) for x in rows[LEVEL].to_pylist() if x in [None, *known]
    ]
    told = [
        x
        for x, y in zip(expected[:, 1], rows[LEVEL].to_pylist(), strict=True)
        if y in [None, *known]
    ]
    np.testing.assert_array_equal(told, np.array(exact, np.float64))


@settings(max_examples=200, deadline=None)
@given(st.lists(TEXT.filter(bool), min_size=1, max_size=8))
def test_every_format_gives_the_same_groups(cells: list[str]) -> None:
    rows = pa.table({LEVEL: pa.array(cells, pa.string()), NUMBER: np.arange(len(cells)) + 0.5})
    for name in FORMATS:
        levels, codes = decoded(name, rows).text(LEVEL, "/query/group_by")
        assert [levels[code] for code in codes] == cells, name


NUMBERLIKE = st.from_regex(columns.NUMBER.replace(r"[ \t]", "[ ]"), fullmatch=True)


@settings(max_examples=300, deadline=None)
@given(st.lists(NUMBERLIKE | TEXT, min_size=1, max_size=6))
def test_what_csv_says_of_numbers_does_not_depend_on_the_other_rows(cells: list[str]) -> None:
    """A word among numbers is named by its row, and changes nothing about the others."""

    def read(some: list[str]) -> list[float | str]:
        out = io.StringIO(newline="")
        writer = csv.writer(out, quoting=csv.QUOTE_ALL)
        writer.writerows([["x", "y"], *([cell, "1"] for cell in some)])
        frame = arrow.decode(arrow.CSV, out.getvalue().encode(), LIMITS)
        try:
            return [*frame.numbers(["x"], gaps=True)[:, 0]]
        except InvalidInput as error:
            return [str(fault.row) for fault in error.faults]

    alone = [read([cell]) for cell in cells]
    wrong = [row for row, one in enumerate(alone) if isinstance(one[0], str)]
    together = read(cells)
    if not wrong:
        np.testing.assert_array_equal(together, [one[0] for one in alone])
    elif together != ["None"]:
        assert together == [str(row) for row in wrong]


def test_the_order_of_rows_of_a_long_csv_does_not_matter() -> None:
    """Types are not those of the first block."""
    numbers = [*["1"] * 300_000, "1.5", *["2"] * 300_000]
    body = "\n".join(["x,y", *(f"{cell},{cell}" for cell in numbers)]).encode()
    limits = arrow.Limits(10**6, 10**8)
    frame = arrow.decode(arrow.CSV, body, limits)
    np.testing.assert_array_equal(frame.numbers(["x"])[:, 0], np.array(numbers, np.float64))
    levels, codes = frame.text("y", "")
    assert [levels[k] for k in codes[299_999:300_002]] == ["1", "1.5", "2"]
    words = body.replace(b"1.5,1.5", b"word,x")
    frame = arrow.decode(arrow.CSV, words, limits)
    with pytest.raises(InvalidInput) as caught:
        frame.numbers(["x"])
    assert caught.value.faults[0].pointer == "/x/300000"
    assert frame.text("y", "")[0] == ("1", "x", "2")


class TestSpelling:
    """What a number stands for among names, and a name among numbers."""

    @pytest.mark.parametrize(
        ("cell", "known", "place"),
        [
            ("31", ["31", 31.0], 0),
            (31, ["31", 31.0], 1),
            (31, ["7", "31"], 1),
            (31.0, ["31"], 0),
            ("31.0", ["31"], 0),
            ("31", ["31.0"], 0),
            (31, ["31.0"], 0),
            ("31", [31.0], 0),
            ("1e3", [1000.0], 0),
            ("007", ["7", 7.0], None),
            ("7", ["007"], None),
            (7, ["007"], None),
            ("3.10", ["3.1"], None),
            ("3.10", [3.1], 0),
            ("3.1", ["3.1.0"], None),
            (0.5, ["0.5.0"], None),
            (0.5, ["0.5"], 0),
            (True, ["1", "true"], 1),
            (1, ["true", "1"], 1),
            ("true", ["True"], None),
            (" 31", ["31"], None),
            ("٣", ["3", 3.0], None),
            (-0.0, ["0"], 0),
        ],
    )
    def test_by_cases(self, cell: Any, known: list[str | float], place: int | None) -> None:
        assert find(cell, {name: k for k, name in enumerate(known)}) == place

    @given(st.lists(st.integers(-50, 50) | st.sampled_from(["1", "1.0", "01", "x"]), max_size=12))
    def test_training_merges_what_spells_the_same(self, cells: list[Any]) -> None:
        known: dict[str | float, int] = {}
        places = [learn(cell, known) for cell in cells]
        assert sorted(known.values()) == list(range(len(known)))
        for cell, place in zip(cells, places, strict=True):
            assert find(cell, known) == place
            assert isinstance(cell, str) or find(str(cell), known) in (place, known.get(str(cell)))


def bits(rows: int = 60) -> tuple[list[list[Any]], list[str]]:
    """Features whose odd levels tell the classes apart, and labels."""
    rng = np.random.default_rng(0)
    labels = np.arange(rows) % 2
    stores = rng.integers(0, len(ODD) // 2, rows) * 2 + (labels ^ (rng.random(rows) < 0.1))
    amounts = np.round(rng.normal(labels, 1.0), 3)
    listed = [[a, ODD[k % len(ODD)]] for a, k in zip(amounts.tolist(), stores, strict=True)]
    return listed, [CLASSES[k] for k in labels]


@pytest.fixture(scope="module")
def shops(lasting: httpx.Client) -> str:
    features, labels = bits(240)
    asked = {
        "features": features,
        "labels": labels,
        "feature_names": [NUMBER, LEVEL],
        "categorical": [LEVEL],
        "learner": "logistic-regression",
    }
    return address(train(lasting, "shops", asked))


def batch() -> pa.Table:
    features, labels = bits(90)
    amounts, stores = zip(*features, strict=True)
    known = [label if row % 5 == 0 else None for row, label in enumerate(labels)]
    unused = pa.array([[1, None]] * len(labels))
    return pa.table(
        {
            LEVEL: pa.array(stores, pa.string()),
            "unused": unused,
            LABEL: pa.array(known, pa.string()),
            NUMBER: amounts,
        }
    )


def plain(answer: httpx.Response) -> Any:
    """What was answered, without what every answer has of its own."""
    assert answer.status_code < 300, answer.text

    def strip(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: strip(v) for k, v in value.items() if k not in ("id", "created_at")}
        return [strip(item) for item in value] if isinstance(value, list) else value

    return strip(answer.json())


ROUTES = {
    "estimates": ("keep=false", {}),
    "posteriors": ("", {}),
    "shift-tests": ("", {}),
    "region-tests": ("priors.legit=0.7&priors.fraud=0.3", {"priors": {"legit": 0.7, "fraud": 0.3}}),
}


@pytest.mark.parametrize("route", ROUTES)
def test_features_of_odd_levels_on_every_route(
    lasting: httpx.Client, shops: str, route: str
) -> None:
    rows = batch()
    query, more = ROUTES[route]
    path = f"{shops}/{route}" + ("?keep=false" if route == "estimates" else "")
    names = [NUMBER, LEVEL]
    by_name = {name: rows[name].to_pylist() for name in names}
    labels = rows[LABEL].to_pylist()
    listed = [list(row) for row in zip(*by_name.values(), strict=True)]
    expected = plain(lasting.post(path, json={"features": listed, "labels": labels, **more}))
    assert not [w for w in expected["warnings"] if w["code"] == "unknown-levels"]
    columnar = lasting.post(path, json={"features": by_name, "labels": labels, **more})
    assert plain(columnar) == expected
    for name, (kind, write) in FORMATS.items():
        given = rows if kind != arrow.CSV else rows.drop_columns("unused")
        found = post(lasting, f"{shops}/{route}", kind, write(given), f"?labels={LABEL}&{query}")
        assert plain(found) == expected, name


@pytest.mark.parametrize("route", ["adjusted-models", "bias-adjustments", "evaluations"])
def test_lists_by_name_on_routes_that_take_json(
    lasting: httpx.Client, shops: str, route: str
) -> None:
    features, labels = bits(90)
    more: dict[str, Any] = {"labels": labels} if route == "evaluations" else {}
    if route == "bias-adjustments":
        more["intercepts"] = {"legit": 0, "fraud": 0.1}
    by_name = dict(zip([NUMBER, LEVEL], zip(*features, strict=True), strict=True))
    answers = [
        plain(lasting.post(f"{shops}/{route}", json={"features": given, **more}))
        for given in (features, by_name)
    ]
    assert answers[0] == answers[1]


def test_groups_by_odd_levels(lasting: httpx.Client, shops: str) -> None:
    rows = batch()
    answers = {}
    for name, (kind, write) in FORMATS.items():
        given = rows if kind != arrow.CSV else rows.drop_columns("unused")
        query = f"?keep=false&group_by={LEVEL}&shift.reference=chi-square"
        answers[name] = plain(post(lasting, f"{shops}/estimates", kind, write(given), query))
    groups = [item["group"] for item in answers["arrow"]["items"]]
    assert groups == list(dict.fromkeys(rows[LEVEL].to_pylist()))
    assert all(answer == answers["arrow"] for answer in answers.values())


def test_observations_of_odd_segments(lasting: httpx.Client, shops: str) -> None:
    rows = batch()
    times = [f"2026-01-{1 + row % 28:02d}T00:00:00Z" for row in range(len(rows))]
    rows = rows.append_column("observed_at", pa.array(times))
    answers = {}
    for name, (kind, write) in {**FORMATS, "json": ("", bytes)}.items():
        monitor = f"watch-{re.sub('[^a-z]', '', name.lower())}"
        asked = {"name": monitor, "model": "shops", "window": {"rows": 10}, "segment_by": LEVEL}
        assert lasting.post("/v1/monitors", json=asked).status_code == 201
        path = f"/v1/monitors/{monitor}/observations"
        if name == "json":
            by_name = {key: rows[key].to_pylist() for key in (NUMBER, LEVEL)}
            segment = {LEVEL: by_name[LEVEL]}
            body = {"features": by_name, "segment": segment, "observed_at": times}
            answer = lasting.post(path, json=body)
        else:
            given = rows if kind != arrow.CSV else rows.drop_columns("unused")
            answer = post(lasting, path, kind, write(given))
        assert answer.status_code == 202, answer.text
        answers[name] = [
            {**stream, "closed": [(w["start"], w["size"]) for w in stream["closed"]]}
            for stream in answer.json()["streams"]
        ]
    assert len(answers["json"]) == len(set(rows[LEVEL].to_pylist()))
    assert all(answer == answers["json"] for answer in answers.values())


def npy(rows: Floats) -> bytes:
    out = io.BytesIO()
    np.save(out, rows)
    return out.getvalue()


@pytest.mark.parametrize("trained_as", [str, int, float])
def test_levels_that_are_numbers_in_one_place_and_text_in_another(
    lasting: httpx.Client, trained_as: type
) -> None:
    """Trained on 31, "31" or 31.0, and sent as any of them."""
    rng = np.random.default_rng(2)
    labels = np.arange(80) % 2
    stores = np.where(rng.random(80) < 0.8, 31 + labels, 32 - labels)
    asked = {
        "features": [[trained_as(store)] for store in stores.tolist()],
        "labels": [CLASSES[k] for k in labels],
        "feature_names": [LEVEL],
        "categorical": [LEVEL],
        "learner": "naive-bayes",
    }
    version = address(train(lasting, f"digits-{trained_as.__name__}", asked))
    path = f"{version}/posteriors"
    sent = [31, 31, 32, 31]
    bodies: list[tuple[str, bytes]] = [
        ("application/json", json.dumps({"features": [[cast(x)] for x in sent]}).encode())
        for cast in (str, int, float)
    ]
    for cast in (str, int, float):
        cells = pa.table({LEVEL: pa.array([cast(x) for x in sent])})
        bodies += [(kind, write(cells)) for kind, write in (FORMATS[SHORT[k]] for k in KINDS)]
    bodies.append((NPY, npy(np.array(sent, float)[:, None])))
    answers = []
    for kind, body in bodies:
        query = "?rows=features" if kind == NPY else ""
        answer = post(lasting, path, kind, body, query)
        assert answer.status_code == 200, answer.text
        assert "unknown-levels" not in answer.text
        answers.append(answer.json()["posteriors"])
    assert all(answer == answers[0] for answer in answers)
    assert answers[0][0] != answers[0][2]


@pytest.fixture(scope="module")
def numbers(lasting: httpx.Client) -> str:
    """A model whose classes are called 0, 1 and 01."""
    source: dict[str, Any] = {"class_counts": {"0": 50, "1": 30, "01": 20}}
    source["confusion_matrix"] = [[40, 5, 5], [2, 26, 2], [1, 2, 17]]
    content = {"name": "numbers", "classes": ["0", "1", "01"], "source": source}
    assert lasting.post("/v1/models", json=content).status_code == 201
    return "/v1/models/numbers/versions/1"


class TestLabels:
    """A number stands for the class of the same spelling, and "01" for no other than "01"."""

    def test_as_text_in_every_format(self, lasting: httpx.Client, numbers: str) -> None:
        guess = ["0", "1", "01", "0", "01", "1", "01", "0"] * 5
        truth = [None, "01", "01", None, "1", "0", None, None] * 5
        body = {"predictions": guess, "labels": truth}
        path = f"{numbers}/estimates?keep=false"
        expected = plain(lasting.post(path, json=body))
        rows = pa.table({"guess": guess, "truth": truth})
        for name, (kind, write) in FORMATS.items():
            query = "&predictions=guess&labels=truth"
            assert plain(post(lasting, path, kind, write(rows), query)) == expected, name

    @pytest.mark.parametrize("kind", [pa.int8(), pa.uint64(), pa.float64(), pa.decimal128(25, 2)])
    def test_as_numbers(self, lasting: httpx.Client, numbers: str, kind: pa.DataType) -> None:
        guess = [0, 1, 1, 0, 1, 0] * 8
        truth = [None, 1, None, 0, 1, None] * 8
        path = f"{numbers}/estimates?keep=false"
        spelled = [None if x is None else str(x) for x in truth]
        body = {"predictions": list(map(str, guess)), "labels": spelled}
        expected = plain(lasting.post(path, json=body))
        bare = lasting.post(path, json={"predictions": guess, "labels": truth})
        assert plain(bare) == expected
        rows = pa.table({"guess": pa.array(guess).cast(kind), "truth": pa.array(truth).cast(kind)})
        for name in ("arrow", "parquet", "csv"):
            given = FORMATS[name][1](rows)
            query = "&predictions=guess&labels=truth"
            found = post(lasting, path, FORMATS[name][0], given, query)
            if kind == pa.decimal128(25, 2) and name == "csv":
                assert found.status_code == 422  # "0.00" is no class, and no whole number
            else:
                assert plain(found) == expected, name

    @pytest.mark.parametrize(
        ("label", "status"), [(2, 422), (1.5, 422), (True, 422), ("1.0", 201), (1e30, 422)]
    )
    def test_others_are_refused(
        self, lasting: httpx.Client, numbers: str, label: Any, status: int
    ) -> None:
        answer = lasting.post(f"{numbers}/estimates", json={"predictions": ["0", label]})
        assert answer.status_code == status, answer.text
        if status == 422:
            assert answer.json()["errors"][0]["pointer"] == "/predictions/1"
        line = "".join(json.dumps({"guess": x}) + "\n" for x in ("0", label)).encode()
        found = post(lasting, f"{numbers}/estimates", arrow.NDJSON, line, "?predictions=guess")
        assert found.status_code == status, found.text

    def test_truth_values(self, lasting: httpx.Client) -> None:
        content = {"name": "truth", "classes": ["false", "true"]}
        assert lasting.post("/v1/models", json={**content, "source": COUNTED_TRUTH}).is_success
        path = "/v1/models/truth/versions/1/estimates?keep=false"
        guess = [True, False, True, True]
        expected = plain(lasting.post(path, json={"predictions": [str(x).lower() for x in guess]}))
        assert plain(lasting.post(path, json={"predictions": guess})) == expected
        for kind in KINDS:
            rows = pa.table({"guess": guess})
            assert plain(post(lasting, path, kind, rows, "&predictions=guess")) == expected

    def test_of_a_registration(self, lasting: httpx.Client) -> None:
        labels, posteriors = scores(np.random.default_rng(1), 100, 0.3)
        content = {"name": "registered", "classes": ["0", "1"]}
        assert lasting.post("/v1/models", json=content).status_code == 201
        given = {"labels": [str(k) for k in labels], "posteriors": posteriors.tolist()}
        path = "/v1/models/registered/versions"
        assert lasting.post(path, json={"validation": given}).status_code == 201
        again = {"validation": {**given, "labels": labels.tolist()}}
        assert lasting.post(path, json=again).status_code == 200


COUNTED_TRUTH = {
    "class_counts": {"false": 990, "true": 110},
    "confusion_matrix": COUNTED["confusion_matrix"],
}


@pytest.mark.parametrize("kind", KINDS)
def test_columns_that_nobody_asked_for_are_not_looked_at(lasting: httpx.Client, kind: str) -> None:
    if lasting.get("/v1/models/unused").status_code == 404:
        register(lasting, "unused", {"validation": validation()})
    rows = scores(np.random.default_rng(3), 50, 0.5)[1]
    plain_rows = {name: rows[:, k] for k, name in enumerate(CLASSES)}
    odd: dict[str, Any] = {
        "flag": [True] * 50,
        "mixed": pa.array([None, *["1"] * 49]),
        "many": pa.array(range(50)),
    }
    if kind not in (arrow.CSV, arrow.NDJSON):
        odd["list"] = pa.array([[1]] * 50)
        odd["naive"] = pa.array([0] * 50, pa.timestamp("ns"))
        odd["decimal"] = pa.array([1] * 50).cast(pa.decimal128(38, 0))
        odd["bytes"] = pa.array([b"\xff"] * 50)
    path = "/v1/models/unused/versions/1/estimates"
    bare = post(lasting, path, kind, pa.table(plain_rows), "?keep=false")
    full = post(lasting, path, kind, pa.table({**odd, **plain_rows}), "?keep=false")
    assert plain(full) == plain(bare)
