"""Structured logs on standard error: one line per event, nothing in it that a caller sent.

Errors are told by type and place, and by the code that a database gives: their messages quote the
values that they stumbled over.
"""

import logging
import sys
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Literal, TextIO

import structlog
from structlog.stdlib import BoundLogger, ProcessorFormatter, filter_by_level
from structlog.typing import EventDict, Processor, WrappedLogger

Format = Literal["auto", "json", "console"]
LEVELS = ("debug", "info", "warning", "error")
OWN = "priorshift"
SERVER = "uvicorn.error"
CODES = ("sqlstate", "sqlite_errorname", "errno")

log: BoundLogger = structlog.wrap_logger(
    logging.getLogger(OWN),
    processors=[filter_by_level, ProcessorFormatter.wrap_for_formatter],
    wrapper_class=BoundLogger,
)


def configure(form: Format, level: str, stream: TextIO | None = None) -> None:
    """Send this process's logs to ``stream``; of other libraries, warnings and worse only."""
    if level not in LEVELS:
        raise ValueError(f"{level}: log levels are {', '.join(LEVELS)}")
    stream = sys.stderr if stream is None else stream
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter(form, stream.isatty()))
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(max(logging.WARNING, getattr(logging, level.upper())))
    for name in (OWN, SERVER):
        logging.getLogger(name).setLevel(level.upper())
    logging.captureWarnings(True)


def formatter(form: Format, terminal: bool) -> logging.Formatter:
    """JSON lines, or for people; ``auto``: JSON unless a terminal shows it."""
    as_json = not terminal if form == "auto" else form == "json"
    plain = structlog.dev.plain_traceback
    renderer: Processor = (
        structlog.processors.JSONRenderer()
        if as_json
        else structlog.dev.ConsoleRenderer(colors=terminal, exception_formatter=plain)
    )
    return ProcessorFormatter(processors=[_told, renderer])


def _told(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    """When, how grave, from where, what; then the rest."""
    record: logging.LogRecord = event.pop("_record")
    ours = event.pop("_from_structlog")
    error, text = event.pop("exc_info", None), event.pop("event")
    told: EventDict = {
        "timestamp": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
        "level": record.levelname.lower(),
        "logger": record.name,
        # What others say in further lines quotes errors.
        "event": text if ours or record.name == SERVER else text.partition("\n")[0],
        **event,
    }
    if isinstance(error, tuple):
        error = error[1]
    if error is not None:
        told["exception"] = trace(error)
    return told


def trace(error: BaseException) -> str:
    """The error and its causes, first cause first: places, types, codes; no messages."""
    parts = []
    for link in reversed(list(_chain(error))):
        parts += [*traceback.format_tb(link.__traceback__), _named(link)]
    return "\n".join(part.rstrip("\n") for part in parts)


def _chain(error: BaseException) -> Iterator[BaseException]:
    link: BaseException | None = error
    while link is not None:
        yield link
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)


def _named(error: BaseException) -> str:
    kind = f"{type(error).__module__}.{type(error).__qualname__}".removeprefix("builtins.")
    codes = [str(code) for name in CODES if (code := getattr(error, name, None)) is not None]
    return " ".join([kind, *codes])
