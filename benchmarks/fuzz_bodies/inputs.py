"""What is sent: good bodies, bodies gone wrong in one place or many, and traps."""

import gzip
import io
import json
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import zstandard

from app.formats import arrow

CLASSES = ("a", "b")
NAMES = ("one", "two")
JSON = "application/json"
NPY = "application/x-npy"
LIFTED = 36_000
"""Bytes of a matrix that is read in pieces."""


TABLE_QUERIES: tuple[tuple[tuple[str, str], ...], ...] = (
    (),
    (),
    (("predictions", "text"),),
    (("predictions", "coded"), ("labels", "large")),
    (("labels", "text"),),
    (("predictions", "one"),),
    (("columns", "a"),),
)


@dataclass(frozen=True)
class Input:
    """A body as it travels. ``sent``: what it is meant for, a batch or a source."""

    body: bytes
    media_type: str = JSON
    encoding: str = "identity"
    query: tuple[tuple[str, str], ...] = ()
    sent: str = "batch"


ODD_NUMBERS = (
    *("01", "-01", "+1", ".5", "1.", "1.e3", "1e", "1e+", "1E+5", "1e-5", "-0", "-0.0", "-", "--"),
    *("1-2", "1e400", "-1e400", "5e-324", "1e-400", "NaN", "-NaN", "nan", "Infinity", "-Infinity"),
    *("inf", "0x10", "1_000", "1,5", "1;5", "true", "null", '"1"', "[]", "{}", "[1]", "00", "0e0"),
    *("123456789012345678901234567", "9007199254740993", "1e22", "0.0e-0", "1", "2", "0.3"),
    *("0.1000000000000000055511151231257827", "\uff11"),
)
ODD_VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 1.5, 2**63, 10**400, 1e308, "", "a", "\x00", "\ud800", "\U0001f600", [], {},
    [[]], [None], {"a": {}}, [[1, 2], [3]], "x" * 300,
)  # fmt: skip
FIELDS = (
    *("posteriors", "predictions", "predicted_counts", "features", "labels", "columns", "method"),
    *("options", "interval", "shift", "observed_at", "segment", "include", "target_priors"),
    *("class_counts", "priors", "confusion_matrix", "outputs", "validation", "training"),
    *("calibration", "metadata", "source", "classes"),
)
BY_NAME = ("predicted_counts", "class_counts", "priors", "posteriors", "segment", "options")
ODD_BYTES = (b"\x00", b"\xff", b"]", b"[", b"{", b'"', b",", b"\\ud800", b"\xed\xa0\x80")
SHAPES = (
    *("(1000000000000, 2)", "(-1, 2)", "(2, -1)", "(9223372036854775808, 2)", "(True, 2)"),
    *("(0, 0)", "(4294967296, 4294967296)", "(1e3, 2)", "('3', 2)", "[3, 2]", "(3, 2"),
    *("((3, 2), 2)", "3", "(3, 2)"),
)
PROMISES = (
    *("'<f8'", "'<f8'", "'|O'", "'<f8,<f8'", "[('a', '<f8')]", "'V100'", "'|S0'", "f8", "None"),
)
QUERIES: tuple[tuple[tuple[str, str], ...], ...] = (
    *((), (), (), (("method", "em"),), (("posteriors", "1"),), (("interval.level", "nan"),)),
    *((("interval", "1"), ("interval.level", "2")), (("columns", "b"), ("columns", "a"))),
    *((("segment.\x00", "\ufffd"),), (("a.b.c", ""),), (("shift.", ""), (".", ""))),
)


def rows(rng: Random, most: int = 20) -> list[list[float]]:
    """Posteriors of two classes."""
    return [[p, 1 - p] for p in (rng.random() for _ in range(rng.randint(1, most)))]


def labels(rng: Random, size: int) -> list[str]:
    """One for each row, all of them classes."""
    return [rng.choice(CLASSES) for _ in range(size)]


def cells(rng: Random, size: int) -> list[list[Any]]:
    """Rows of features: a number, and a level."""
    return [[rng.gauss(0, 1), rng.choice(["x", "y", 1, 1.0, "1"])] for _ in range(size)]


def batch(rng: Random) -> dict[str, Any]:
    """A good batch."""
    size = rng.randint(1, 20)
    kinds: tuple[Callable[[], dict[str, Any]], ...] = (
        lambda: {"posteriors": rows(rng)},
        lambda: {"predictions": labels(rng, size)},
        lambda: {"predicted_counts": {"a": rng.randint(0, 99), "b": 1}},
        lambda: {"features": cells(rng, size)},
        lambda: {"posteriors": rows(rng), "columns": ["b", "a"], "segment": {"k": "v"}},
        lambda: {"posteriors": [[0.5, 0.5]] * 3, "labels": ["a", None, "b"], "method": "em"},
    )
    return rng.choice(kinds)()


def source(rng: Random) -> dict[str, Any]:
    """A good source."""
    size = rng.randint(4, 30)
    posteriors = [[p, 1 - p] for p in (rng.random() for _ in range(size))]
    training = {
        "features": cells(rng, size),
        "labels": labels(rng, size),
        "feature_names": list(NAMES),
        "categorical": ["two"],
        "learner": rng.choice(["naive-bayes", "logistic-regression", "random-forest"]),
        "missing": rng.choice(["refuse", "impute"]),
    }
    return rng.choice(
        (
            {"class_counts": {"a": rng.randint(1, 99), "b": 5}},
            {"priors": {"a": 0.25, "b": 0.75}, "metadata": {"deep": [{"er": 1}]}},
            {"confusion_matrix": [[9, 1], [2, 8]], "outputs": ["a", "b"]},
            {"validation": {"labels": labels(rng, size), "posteriors": posteriors}},
            {"training": training, "calibration": "none"},
        )
    )


def spoiled(rng: Random, value: Any) -> Any:
    """The same with something odd somewhere in it."""
    if rng.random() < 0.3 or not isinstance(value, dict | list) or not value:
        return rng.choice(ODD_VALUES)
    if isinstance(value, list):
        place = rng.randrange(len(value))
        return [*value[:place], spoiled(rng, value[place]), *value[place + 1 :]]
    if rng.random() < 0.2:
        return {**value, rng.choice(FIELDS): rng.choice(ODD_VALUES)}
    name = rng.choice(list(value))
    return {**value, name: spoiled(rng, value[name])}


def written(rng: Random, value: Any) -> bytes:
    """As JSON, in one of its many layouts."""
    separators = rng.choice([(",", ":"), (", ", ": "), (" ,\n", "\t: ")])
    text = json.dumps(value, ensure_ascii=rng.random() < 0.5, separators=separators)
    encoding = rng.choice(["utf-8"] * 20 + ["utf-16", "utf-32", "utf-8-sig", "latin-1"])
    return text.encode(encoding, "ignore" if encoding == "latin-1" else "surrogatepass")


def mutated(rng: Random, body: bytes) -> bytes:
    """Truncated, flipped, spliced, repeated."""
    content = bytearray(body)
    for _ in range(rng.choice([1, 1, 1, 2, 5, 20])):
        if not content:
            break
        place = rng.randrange(len(content))
        change = rng.randrange(6)
        if change == 0:
            del content[place:]
        elif change == 1:
            content[place] ^= 1 << rng.randrange(8)
        elif change == 2:
            del content[place : place + rng.randint(1, 9)]
        elif change == 3:
            content[place:place] = content[place // 2 : place // 2 + rng.randint(1, 30)]
        elif change == 4:
            content[place:place] = rng.choice(ODD_BYTES)
        else:
            content[place] = rng.randrange(256)
    return bytes(content)


def _plain(rng: Random) -> Input:
    sent = rng.choice(["batch", "batch", "source"])
    return Input(written(rng, batch(rng) if sent == "batch" else source(rng)), sent=sent)


def _spoiled(rng: Random) -> Input:
    sent = rng.choice(["batch", "source"])
    value = batch(rng) if sent == "batch" else source(rng)
    for _ in range(rng.randint(1, 3)):
        value = spoiled(rng, value)
    return Input(written(rng, value), sent=sent)


def _mutated(rng: Random) -> Input:
    original = _plain(rng)
    return replace(original, body=mutated(rng, original.body))


def _matrix(rng: Random) -> Input:
    """A matrix that is read in pieces, with a few cells or separators that are odd."""
    cell = rng.choice(["0.25", "1", "-1.5e-3", "0.123456789012345"])
    width = rng.choice([1, 2, 2, 3])
    gap = rng.choice(["", " ", "\n", "\t\r\n "])
    row = "[" + f",{gap}".join([cell] * width) + "]"
    lines = [row] * (LIFTED // len(row) + 1)
    for _ in range(rng.choice([0, 0, 1, 1, 2, 5])):
        odd = rng.choice(ODD_NUMBERS)
        lines[rng.randrange(len(lines))] = "[" + ",".join([odd, *[cell] * (width - 1)]) + "]"
    name = rng.choice(["posteriors", "posteriors", "features", "costs"])
    text = f'{{"{name}"{gap}:{gap}[' + f",{gap}".join(lines) + "]"
    text += (
        rng.choice(["", ',"method":"em"', f',"{name}":[[1,2]]', ',"x":{"posteriors":[[1]]}']) + "}"
    )
    body = text.encode()
    return Input(mutated(rng, body) if rng.random() < 0.5 else body)


def _deep(rng: Random) -> Input:
    depth = rng.choice([10, 200, 300, 900, 990, 1000, 2000, 100_000])
    opening, closing = rng.choice([("[", "]"), ('{"a":', "}"), ('[{"b":', "}]")])
    inside = (
        opening * depth + rng.choice(["", "1"]) + closing * (depth if rng.random() < 0.7 else 0)
    )
    name = rng.choice(["posteriors", "metadata", "segment", "predicted_counts", "a", "features"])
    return Input(f'{{"{name}":{inside}}}'.encode(), sent=rng.choice(["batch", "source"]))


def _doubled(rng: Random) -> Input:
    """Names that come twice, on any level."""
    first, second = (json.dumps(rng.choice([batch(rng), source(rng)]))[1:-1] for _ in range(2))
    text = rng.choice(
        [f"{{{first},{first}}}", f"{{{first},{second}}}", f'{{"a":{{{first},{first}}}}}']
    )
    return Input(text.encode())


def _huge_numbers(rng: Random) -> Input:
    digits = rng.choice([20, 310, 4299, 4301, 30_000])
    number = (
        rng.choice(["", "-"]) + "9" * digits + rng.choice(["", ".5", "e9", "e999999999", "e-99999"])
    )
    text = rng.choice(
        [
            f'{{"posteriors":[[{number},0.5]]}}',
            f'{{"predicted_counts":{{"a":{number},"b":1}}}}',
            f'{{"features":[[{number},"x"]]}}',
            f'{{"interval":{{"level":{number}}},"predictions":["a"]}}',
            f'{{"options":{{"seed":{number}}},"predictions":["a"]}}',
            f'{{"metadata":{{"n":{number}}},"class_counts":{{"a":1,"b":{number}}}}}',
        ]
    )
    return Input(text.encode(), sent=rng.choice(["batch", "source"]))


def _wide(rng: Random) -> Input:
    """One row of very many cells, or an object of very many names."""
    width = rng.choice([1001, 20_000, 1_000_000 if rng.random() < 0.02 else 50_000])
    if rng.random() < 0.3:
        body = ",".join(f'"{i}":1' for i in range(min(width, 20_000)))
        name = rng.choice(["predicted_counts", "segment", "metadata", "options"])
        return Input(f'{{"{name}":{{{body}}}}}'.encode(), sent=rng.choice(["batch", "source"]))
    row = "[" + ",".join(["0.5"] * width) + "]"
    name = rng.choice(["posteriors", "features"])
    if rng.random() < 0.3:
        return Input(f'{{"training":{{"{name}":[{row}],"labels":["a"]}}}}'.encode(), sent="source")
    return Input(f'{{"{name}":[{row}]}}'.encode())


def _long(rng: Random) -> Input:
    """Names, texts and numbers that nobody needs as long as they are, in any place."""
    letter = rng.choice(["a", "/", "~", "\x01", "\x01", "\x01", '"', "\n", "é", "\U0001f600"])
    name = letter * rng.choice([63, 300, 990, 990, 990, 1001, 20_000, 140_000, 900_000])
    many = {f"{name[:990]}{n}": n for n in range(rng.choice([1, 21, 60]))}
    good: dict[str, Any] = rng.choice([batch, source])(rng)
    inner = rng.choice([name, {name: 1}, [name], [[name]], many, many, [many], int("9" * 4000)])
    field = rng.choice([*FIELDS, *BY_NAME * 4, name])
    text = json.dumps({**good, field: inner}, ensure_ascii=rng.random() < 0.5)
    return Input(text.encode(), sent=rng.choice(["batch", "source"]))


def _lists(rng: Random) -> Input:
    """Long lists that are no matrices of numbers, mostly good, with odd items."""
    gap = rng.choice(["", " ", "\n  "])
    name, item = rng.choice(
        (
            ("predictions", '"a"'),
            ("predictions", '"a, b],[c"'),
            ("labels", "null"),
            ("features", f'[0.5,{gap}"x"]'),
            ("features", '[0.25,"],["]'),
            ("posteriors", '{"a":1}'),
            ("columns", "[[[]]]"),
            ("metadata", "1e5"),
        )
    )
    items = [item] * (rng.choice([140_000, 200_000, 900_000]) // len(item))
    for _ in range(rng.choice([0, 0, 1, 2])):
        odd = rng.choice([*ODD_NUMBERS, "[]", "{}", '"\\ud800"', "[", '"', ""])
        items[rng.randrange(len(items))] = odd
    good = json.dumps(rng.choice([batch, source])(rng))[:-1]
    body = f'{good},{gap}"{name}":{gap}[' + f"{gap},{gap}".join(items) + "]}"
    plain = Input(body.encode(), sent=rng.choice(["batch", "source"]))
    return replace(plain, body=mutated(rng, plain.body)) if rng.random() < 0.3 else plain


def array(rng: Random) -> bytes:
    """A good NPY file, or one of a kind that is not taken."""
    shapes = ((3, 2), (1, 2), (0, 2), (3,), (), (2, 2, 2), (2, 1))
    shape = (3, 2) if rng.random() < 0.5 else rng.choice(shapes)
    kinds = ["f8", "f4", "f2", ">f8", "i8", "u1", "?", "c16", "S3", "U2", "M8[s]", "i4", "g"]
    kind = "f8" if rng.random() < 0.5 else rng.choice(kinds)
    values = np.zeros(shape, kind)
    if kind.endswith(("f8", "f4", "f2")) and values.size:
        values[...] = rng.choice([0.5, 0.5, 0.5, 0.0, np.nan, np.inf, -1.0])
    buffer = io.BytesIO()
    np.save(buffer, np.asfortranarray(values) if rng.random() < 0.3 else values)
    return buffer.getvalue()


def forged(rng: Random) -> bytes:
    """An NPY header that promises what is not there."""
    shape, kind = rng.choice(SHAPES), rng.choice(PROMISES)
    order = rng.choice(["False", "True", "1"])
    text = f"{{'descr': {kind}, 'fortran_order': {order}, 'shape': {shape}, }}"
    if rng.random() < 0.1:
        text = "(" * rng.choice([50, 5000]) + text
    header = text.encode() + b" " * rng.choice([0, 5, 100]) + b"\n"
    major = rng.choice([1, 1, 2, 3, 255])
    size = rng.choice([len(header), len(header), len(header) - 1, 0, 60_000])
    if major == 1:
        length = struct.pack("<H", max(size, 0))
    else:
        length = struct.pack("<I", rng.choice([size, size, 2**32 - 1]))
    return b"\x93NUMPY" + bytes([major, 0]) + length + header + b"\x00" * rng.choice([0, 16, 48])


def _npy(rng: Random) -> Input:
    body = rng.choice([array, array, forged])(rng)
    if rng.random() < 0.4:
        body = mutated(rng, body)
    return Input(body, NPY, query=rng.choice(QUERIES))


BOMBS = {
    "gzip": gzip.compress(b" " * 50_000_000),
    "zstd": zstandard.compress(b" " * 50_000_000),
}


def frame(rng: Random) -> bytes:
    """A table as an Arrow stream: posteriors, features, labels, of kinds that are taken or not."""
    size = rng.randint(1, 20)
    columns: dict[str, Any] = dict(
        zip(CLASSES, zip(*rows(rng, 1) * size, strict=True), strict=True)
    )
    texts: list[Any] = [rng.choice([*CLASSES, "c", None, "\U0001f600"]) for _ in range(size)]
    extra: dict[str, Any] = {
        "text": pa.array(texts, pa.string()),
        "large": pa.array(texts, pa.large_string()),
        "coded": pa.array(texts, pa.string()).dictionary_encode(),
        "one": pa.array([rng.choice([None, 1.5, -2.0]) for _ in range(size)], pa.float64()),
        "two": ["x"] * size,
        "listed": [[1, 2]] * size,
        "when": pa.array([0] * size, pa.timestamp("us")),
        "nothing": pa.nulls(size),
        "small": pa.array([rng.randint(0, 9) for _ in range(size)], pa.int8()),
    }
    for name in rng.sample(list(extra), rng.randint(0, 3)):
        columns[name] = extra[name]
    if rng.random() < 0.3:
        columns.pop(rng.choice(CLASSES))
    if rng.random() < 0.05:
        columns["/" * rng.choice([900, 2000])] = ["\x01" * rng.choice([1, 5000])] * size
    table = pa.table({name: columns[name] for name in rng.sample(list(columns), len(columns))})
    out = io.BytesIO()
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table, rng.choice([1, 7, 1000]))
    return out.getvalue()


def _table(rng: Random) -> Input:
    """The same in every format of tables, whole or broken."""
    kind = rng.choice(list(arrow.KINDS))
    body = frame(rng)
    if kind == arrow.NDJSON:
        rows = pa.ipc.open_stream(body).read_all().to_pylist()
        body = "\n".join(json.dumps(row, default=str) for row in rows).encode()
    elif kind != arrow.ARROW:
        out = io.BytesIO()
        table = pa.ipc.open_stream(body).read_all()
        plain = ("listed", "coded") if kind == arrow.CSV else ()
        arrow.ENCODERS[kind](table.drop_columns([n for n in plain if n in table.column_names]), out)
        body = out.getvalue()
    if rng.random() < 0.6:
        body = mutated(rng, body)
    return Input(body, kind, query=rng.choice(TABLE_QUERIES))


def _packed(rng: Random) -> Input:
    """Compressed: good, broken, in parts, within itself, a bomb."""
    inner = rng.choice([_plain, _npy, _spoiled])(rng)
    encoding = rng.choice(["gzip", "zstd"])
    pack = gzip.compress if encoding == "gzip" else zstandard.compress
    draw = rng.random()
    body = pack(inner.body)
    if draw < 0.5:
        body = mutated(rng, body)
    elif draw < 0.6:
        half = len(inner.body) // 2
        body = pack(inner.body[:half]) + pack(inner.body[half:])
    elif draw < 0.65:
        body = pack(body)
    elif draw < 0.7:
        body = BOMBS[encoding] * rng.choice([1, 3])
    elif draw < 0.73:
        body = b"".join(pack(b"") for _ in range(rng.choice([1, 2000])))
    return replace(inner, body=body, encoding=encoding)


def _noise(rng: Random) -> Input:
    return Input(
        rng.randbytes(rng.choice([0, 1, 7, 100, 40_000])), rng.choice([JSON, NPY, "text/csv", ""])
    )


KINDS: dict[str, Callable[[Random], Input]] = {
    "good JSON": _plain,
    "JSON with odd values": _spoiled,
    "JSON with odd bytes": _mutated,
    "large matrices": _matrix,
    "deep": _deep,
    "repeated names": _doubled,
    "huge numbers": _huge_numbers,
    "wide": _wide,
    "long": _long,
    "long lists": _lists,
    "NPY": _npy,
    "tables": _table,
    "gzip and zstd": _packed,
    "noise": _noise,
}
SHARES = (8, 16, 16, 11, 2, 4, 4, 1, 3, 2, 11, 12, 9, 1)
"""Percent of each kind."""


def draw(number: int) -> tuple[str, Input]:
    """The kind and the input of a number."""
    rng = Random(number)
    (name,) = rng.choices(list(KINDS), SHARES)
    return name, KINDS[name](rng)
