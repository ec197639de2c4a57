"""What a round brings home: sums by name and group, which merge by adding up."""

import base64
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.engines.engine import TooManyGroups

Group = tuple[str, ...]
"""A value of each column that groups; empty where nothing groups."""
Numbers = NDArray[np.floating[Any]]
Json = dict[str, Any]


SAMPLED = 1 << 17
"""Numbers of the sample that all partitions send, about: so many are solved in no time."""
MESSAGES = 20
MOST_JOINED = 4 * SAMPLED
"""Numbers of rows that a tally holds; of more it drops every other row."""


@dataclass(frozen=True)
class Sums:
    """The answer to a pass.

    ``added``: arrays by name that add up over the rows.
    ``joined``: arrays by name of a few rows themselves, which are concatenated.
    """

    added: dict[str, Numbers]
    joined: dict[str, Numbers]

    def merge(self, other: "Sums") -> "Sums":
        """Over the rows of both, which were asked the same."""
        # Two rows without a density may have sums of opposite infinity; that is NaN, and is met.
        # Where densities are subnormal, curvatures that are finite may sum to infinity.
        with np.errstate(invalid="ignore", over="ignore"):
            added: dict[str, Numbers] = {
                name: values + other.added[name] for name, values in self.added.items()
            }
        joined = {
            name: np.concatenate([values, other.joined[name]])
            for name, values in self.joined.items()
        }
        return Sums(added, joined)

    @property
    def numbers(self) -> int:
        """How many numbers the joined rows have."""
        return sum(values.size for values in self.joined.values())

    def thinned(self) -> "Sums":
        """With every other of the joined rows, each for two."""
        return Sums(self.added, thin(self.joined))

    def to_json(self) -> Json:
        """Exactly these numbers, infinities too."""
        return {"added": _pack_all(self.added), "joined": _pack_all(self.joined)}

    @classmethod
    def from_json(cls, content: Json) -> "Sums":
        """The sums that ``to_json`` wrote, to the last bit."""
        return cls(_unpack_all(content["added"]), _unpack_all(content["joined"]))


def thin(joined: dict[str, Numbers]) -> dict[str, Numbers]:
    """Every other row, and the weights to make up for the rest."""
    halved = {name: values[::2] for name, values in joined.items()}
    if "weights" in halved:
        halved["weights"] = halved["weights"] * (joined["weights"].sum() / halved["weights"].sum())
    return halved


def _pack_all(arrays: dict[str, Numbers]) -> Json:
    return {name: pack(values) for name, values in arrays.items()}


def _unpack_all(content: Json) -> dict[str, Numbers]:
    return {name: unpack(values) for name, values in content.items()}


def pack(values: Numbers) -> Json:
    """An array of floating-point numbers as JSON."""
    little = np.ascontiguousarray(values, values.dtype.newbyteorder("<"))
    data = base64.b64encode(little.tobytes()).decode()
    kind = "float32" if values.itemsize == 4 else "float64"
    return {"type": kind, "shape": list(values.shape), "data": data}


def unpack(content: Json) -> Numbers:
    """What ``pack`` made of an array."""
    kind = np.dtype({"float32": "<f4", "float64": "<f8"}[content["type"]])
    flat = np.frombuffer(base64.b64decode(content["data"]), kind)
    return np.array(flat.reshape(content["shape"]), kind.newbyteorder("="))


@dataclass(frozen=True)
class Read:
    """What one reading met.

    ``rows``: how many are used.
    ``bytes``: what these take in memory.
    ``renormalised``: how many of them were rescaled by more than a trifle.
    ``skipped``: how many were left out besides, as no probabilities.
    ``skipped_files``: files, or parts of them, whose rows nobody could count.
    ``messages``: what was wrong with the first of what was left out.
    """

    rows: int = 0
    bytes: int = 0
    renormalised: int = 0
    skipped: int = 0
    skipped_files: int = 0
    messages: tuple[str, ...] = ()

    def and_(self, other: "Read") -> "Read":
        """What both readings met, the messages of this one first."""
        return Read(
            self.rows + other.rows,
            self.bytes + other.bytes,
            self.renormalised + other.renormalised,
            self.skipped + other.skipped,
            self.skipped_files + other.skipped_files,
            (self.messages + other.messages)[:MESSAGES],
        )


@dataclass(frozen=True)
class Tally:
    """All of a round.

    ``answers``: the sums by group.
    ``most_groups``: how many groups there may be.
    ``read``: what the reading met.
    """

    answers: dict[Group, Sums]
    most_groups: int
    read: Read = field(default_factory=Read)

    @property
    def rows(self) -> int:
        """How many rows were read."""
        return self.read.rows

    @property
    def bytes(self) -> int:
        """What they take in memory."""
        return self.read.bytes

    def merge(self, other: "Tally") -> "Tally":
        """Of both; ``TooManyGroups`` if they have too many together."""
        answers = dict(self.answers)
        for group, theirs in other.answers.items():
            ours = answers.get(group)
            answers[group] = theirs if ours is None else ours.merge(theirs)
        if len(answers) > self.most_groups:
            raise TooManyGroups(self.most_groups)
        if sum(sums.numbers for sums in answers.values()) > MOST_JOINED:
            answers = {group: sums.thinned() for group, sums in answers.items()}
        return Tally(answers, self.most_groups, self.read.and_(other.read))
