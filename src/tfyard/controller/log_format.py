"""The form of the operator's logs: one JSON object per line on stderr, or plain text for people.

    log_format.configure("json")
    with log_format.for_job("team-a", "mnist"):
        log.info("created pods", extra={"count": 64})

The job is a property of the asyncio task that reconciles it, not an argument: so even lines of the client, which
knows no TFJob, can be found by the job's name.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec

Format = Literal["json", "text"]

_JOB: ContextVar[str] = ContextVar("job", default="")

# Attributes that every record has; all others come from `extra`.
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_OURS = frozenset({"time", "level", "message", "logger", "job", "error"})


@contextmanager
def for_job(namespace: str, name: str) -> Iterator[None]:
    """All lines that are logged inside, also in tasks started there, have this job's name."""
    token = _JOB.set(f"{namespace}/{name}")
    try:
        yield
    finally:
        _JOB.reset(token)


def configure(format: Format = "json") -> None:
    """Set the format of all lines of this process, those of libraries included."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if format == "json" else TextFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)


def fields_of(record: logging.LogRecord) -> dict[str, Any]:
    """The fields of a line, the most important ones first. An extra field never replaces a standard one."""
    fields: dict[str, Any] = {
        "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")[:-6] + "Z",
        "level": record.levelname.lower(),
        "message": record.getMessage(),
        "logger": record.name,
    }
    if job := _JOB.get():
        fields["job"] = job
    extra = {key: value for key, value in vars(record).items() if key not in _STANDARD}
    return fields | {f"{key}_" if key in _OURS else key: value for key, value in extra.items()}


class JsonFormatter(logging.Formatter):
    """One line per record, even with a traceback: log collectors split at newlines."""

    def format(self, record: logging.LogRecord) -> str:
        fields = fields_of(record)
        if record.exc_info:
            fields["error"] = self.formatException(record.exc_info)
        return _encode(fields)


class TextFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        fields = fields_of(record)
        time, level, message = (fields.pop(key) for key in ("time", "level", "message"))
        fields.pop("logger")
        tail = "".join(f" {key}={value}" for key, value in fields.items())
        line = f"{time} {level.upper():<7} {message}{tail}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def _encode(fields: dict[str, Any]) -> str:
    """The fields as JSON; values that JSON cannot express become text, so that no line is lost."""
    try:
        return msgspec.json.encode(fields, enc_hook=str).decode()
    except (TypeError, ValueError, RecursionError):
        return msgspec.json.encode({key: _plain(value) for key, value in fields.items()}).decode()


def _plain(value: object) -> str:
    return str(value).encode(errors="replace").decode()
