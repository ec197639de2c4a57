"""What has been found out in the rounds so far: enough to go on with, elsewhere or later."""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from app.engines.partitions import Partition
from app.engines.remote_evidence import Answers
from app.engines.statistics import Pass, SurveyPass, WorkerModel
from app.engines.tallies import Group, Json, Read, Sums, Tally

FORMAT = 2


@dataclass
class Checkpoint:
    """All that has to be kept for going on after a finished round.

    ``of``: digest of what is read and under which priors.
    ``rounds``: how many are finished.
    ``read``: what the first of them met.
    ``groups``: the sums by group.
    """

    of: str
    rounds: int = 0
    read: Read = field(default_factory=Read)
    groups: dict[Group, Answers] = field(default_factory=dict)

    def add_survey(self, tally: Tally, survey: SurveyPass) -> None:
        """The first round is done."""
        self.rounds, self.read = 1, tally.read
        for group in sorted(tally.answers):
            self.groups[group] = Answers()
            self.groups[group].add(survey, tally.answers[group])

    def add(self, tally: Tally, passes: dict[Group, Pass]) -> None:
        """Another round is done."""
        self.rounds += 1
        for group, question in passes.items():
            self.groups[group].add(question, tally.answers[group])

    def to_json(self) -> Json:
        """For whoever keeps it; a megabyte or so, most of it the sample."""
        groups = [
            {"group": group, "sums": {k: s.to_json() for k, s in answers.sums.items()}}
            for group, answers in self.groups.items()
        ]
        return {
            "format": FORMAT,
            "of": self.of,
            "rounds": self.rounds,
            "read": asdict(self.read),
            "groups": groups,
        }

    @classmethod
    def resume(cls, content: Json | None, of: str) -> "Checkpoint":
        """What was kept, if it is of the same rows and priors; else nothing has been found yet."""
        if content is None or content.get("format") != FORMAT or content.get("of") != of:
            return cls(of)
        groups = {tuple(entry["group"]): _answers(entry["sums"]) for entry in content["groups"]}
        read: dict[str, Any] = content["read"] | {"messages": tuple(content["read"]["messages"])}
        return cls(of, content["rounds"], Read(**read), groups)


def _answers(content: Json) -> Answers:
    return Answers({key: Sums.from_json(sums) for key, sums in content.items()})


def digest(partitions: Sequence[Partition], source: WorkerModel) -> str:
    """What the sums are of: partitions by name, priors, and what else is asked of the rows."""
    sha256 = hashlib.sha256(source.priors.tobytes())
    sha256.update(repr((source.averages, source.bins is None, source.embedding is None)).encode())
    for partition in partitions:
        sha256.update(partition.name.encode() + b"\n")
    return sha256.hexdigest()
