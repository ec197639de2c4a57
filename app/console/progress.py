"""How far a job is: a bar on a terminal, a line per change elsewhere."""

from types import TracebackType
from typing import Self

from rich.console import RenderableType
from rich.progress import BarColumn, Progress, ProgressColumn, Task

from app.console.terminal import Terminal
from app.core.json_types import JsonObject


class Field(ProgressColumn):
    """A field of what goes on, as the words that it holds: a string, which the terminal escapes."""

    def __init__(self, name: str) -> None:
        self._name = name
        super().__init__()

    def render(self, task: Task) -> RenderableType:
        """Its words now."""
        return str(task.fields[self._name])


class JobDisplay:
    """``console``: of standard error. ``id``: of the job."""

    def __init__(self, console: Terminal, id: str) -> None:
        self._console, self._id, self._told = console, id, ""
        self._bar = Progress(
            Field("state"),
            BarColumn(),
            Field("pace"),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("", total=None, state="", pace="")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def update(self, job: JsonObject | None) -> None:
        """The job as it is now; None: nobody answers."""
        if job is None:
            self._say("nobody answers; waiting")
            self._bar.update(self._task, state="nobody answers; waiting")
            return
        progress = job["progress"]
        described = _described(job)
        self._say(described)
        if progress is None:
            self._bar.update(self._task, state=described)
            return
        self._bar.update(
            self._task,
            state=described,
            total=progress["of"],
            completed=progress["partitions"],
            pace=pace(progress),
        )

    def _say(self, described: str) -> None:
        if described != self._told and not self._console.is_terminal:
            self._console.say(f"job {self._id}: {described}")
        self._told = described


def _described(job: JsonObject) -> str:
    progress = job["progress"]
    return f"{job['state']}" + ("" if progress is None else f", round {progress['round']}")


def pace(progress: JsonObject) -> str:
    """Partitions, rows a second, time left of the round."""
    parts: list[str] = [f"{progress['partitions']}/{progress['of']} partitions"]
    if progress["rows_per_second"] is not None:
        parts.append(f"{progress['rows_per_second']:,.0f} rows/s")
    if progress["remaining_seconds"] is not None:
        minutes, seconds = divmod(round(progress["remaining_seconds"]), 60)
        hours, minutes = divmod(minutes, 60)
        parts.append(f"{hours}:{minutes:02}:{seconds:02} left")
    return ", ".join(parts)
