import io
import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from app import logs

NOTHING: dict[str, int] = {}
QUOTED = "a value"


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    """What is logged; afterwards logging is as it was."""
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    yield io.StringIO()
    root.handlers = handlers
    root.setLevel(level)
    for name in (logs.OWN, logs.SERVER):
        logging.getLogger(name).setLevel(logging.NOTSET)
    logging.captureWarnings(False)


def lines(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_one_json_line_for_each_event(stream: io.StringIO) -> None:
    logs.configure("auto", "info", stream)
    logs.log.info("request", route="/v1/models", status=200)
    logs.log.debug("request", route="/livez", status=200)
    logging.getLogger("uvicorn.error").info("running on %s", "a port")
    logging.getLogger("another.library").info("chatter")
    logging.getLogger("another.library").warning("trouble\nand what it quotes")
    told = lines(stream)
    assert all(str(line.pop("timestamp")).endswith("+00:00") for line in told)
    assert told == [
        {
            "level": "info",
            "logger": "priorshift",
            "event": "request",
            "route": "/v1/models",
            "status": 200,
        },
        {"level": "info", "logger": "uvicorn.error", "event": "running on a port"},
        {"level": "warning", "logger": "another.library", "event": "trouble"},
    ]


def test_the_level_is_for_our_own(stream: io.StringIO) -> None:
    logs.configure("json", "debug", stream)
    logs.log.debug("told")
    logging.getLogger("another.library").debug("not told")
    logs.configure("json", "error", stream)
    logs.log.warning("not told")
    logging.getLogger("another.library").warning("not told")
    assert [line["event"] for line in lines(stream)] == ["told"]
    with pytest.raises(ValueError, match="log levels are debug, info, warning, error"):
        logs.configure("json", "trace", stream)


def test_for_people(stream: io.StringIO) -> None:
    logs.configure("console", "info", stream)
    logs.log.info("request", route="/v1/models")
    try:
        raise ValueError(QUOTED)
    except ValueError as error:
        logs.log.error("unexpected error", exc_info=error)
    shown = stream.getvalue()
    assert "route=/v1/models" in shown
    assert "test_logs.py" in shown
    assert "ValueError" in shown
    assert QUOTED not in shown


def test_errors_are_told_without_what_they_quote(stream: io.StringIO) -> None:
    logs.configure("json", "info", stream)
    try:
        try:
            NOTHING[QUOTED]
        except KeyError as cause:
            raise OSError(2, QUOTED) from cause
    except OSError as error:
        logs.log.error("unexpected error", exc_info=error)
        logging.getLogger("uvicorn.error").error("failed", exc_info=error)
    for line in lines(stream):
        told = str(line["exception"]).splitlines()
        assert [text for text in told if not text.startswith(" ")] == [
            "KeyError",
            "FileNotFoundError 2",
        ]
        assert "test_logs.py" in told[0]
        assert QUOTED not in stream.getvalue()


def test_a_context_that_was_dropped_is_not_told() -> None:
    with pytest.raises(RuntimeError) as raised:
        try:
            NOTHING[QUOTED]
        except KeyError:
            raise RuntimeError from None
    assert "KeyError" not in logs.trace(raised.value).splitlines()


def test_nothing_global_is_configured() -> None:
    assert not structlog.is_configured()
