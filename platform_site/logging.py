"""Log lines: for machines (JSON, one object a line) and for people (text), both with the id of the request.

A logger of any app writes `logger.info("session closed", extra={"session": id})`: what is in `extra` becomes fields of
the JSON object and `name=value` pairs of the text line. Secrets, tokens and bodies do not belong there (spec 09, 9.3).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import orjson

# The one value that follows a request without being passed: log lines of code that has no CallContext need it too.
# Nothing but logging reads it (ARCHITECTURE: no thread-locals for what decides anything).
_request_id: ContextVar[str] = ContextVar("request_id", default="")

# What every LogRecord has; whatever else is on a record came in by `extra`.
_STANDARD_FIELDS = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}
_MASKED = "[not logged]"
_SECRET_WORDS = ("secret", "password", "token", "authorization", "cookie", "api_key")


@contextmanager
def request_logged_as(request_id: str) -> Iterator[None]:
    """Log lines inside the block carry this request id."""
    reset = _request_id.set(request_id)
    try:
        yield
    finally:
        _request_id.reset(reset)


def current_request_id() -> str:
    """The id of the request being served; empty outside of one."""
    return _request_id.get()


def extra_fields(record: logging.LogRecord) -> Iterator[tuple[str, object]]:
    """What the caller gave in `extra`; a value under a name that smells of a secret is masked: slips happen."""
    for name, value in record.__dict__.items():
        if name in _STANDARD_FIELDS or name.startswith("_") or name in {"request", "request_id", "server_time"}:
            continue
        masked = any(word in name.lower() for word in _SECRET_WORDS) and value not in (None, "")
        yield name, _MASKED if masked else value


class RequestIdFilter(logging.Filter):
    """Puts the request id on the record while the request's own thread still handles it."""

    def filter(self, record: logging.LogRecord) -> bool:
        if not hasattr(record, "request_id"):
            record.request_id = _request_id.get()
        return True


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time (UTC), level, logger, message, request_id, the extra fields, exception."""

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, object] = {
            "time": f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(record.created))}.{int(record.msecs):03d}Z",
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if request_id := getattr(record, "request_id", ""):
            fields["request_id"] = request_id
        fields.update(extra_fields(record))
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        if record.stack_info:
            fields["stack"] = self.formatStack(record.stack_info)
        return orjson.dumps(fields, default=str, option=orjson.OPT_NON_STR_KEYS).decode()


class TextFormatter(logging.Formatter):
    """Readable lines: time, level, message, the extra fields, the request id at the end."""

    def format(self, record: logging.LogRecord) -> str:
        clock = time.strftime("%H:%M:%S", time.localtime(record.created))
        line = f"{clock} {record.levelname:<7} {record.name}: {record.getMessage()}"
        # An empty field says nothing to a reader; a machine may want to know that it was empty.
        pairs = [f"{name}={value}" for name, value in extra_fields(record) if value not in (None, "")]
        if request_id := getattr(record, "request_id", ""):
            pairs.append(f"request={request_id[:8]}")
        if pairs:
            line = f"{line} ({' '.join(pairs)})"
        if record.exc_info:
            line = f"{line}\n{self.formatException(record.exc_info)}"
        return line
