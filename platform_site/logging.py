"""Log lines as JSON objects or as text, both with the id of the request.

The `extra` of `logger.info("session closed", extra={"session": id})` becomes fields of the JSON object and `name=value`
pairs of the text line. Secrets, tokens and bodies do not belong there (spec 09, 9.3).

Both formats mask secrets in URLs, for every logger, and escape control characters, so that data of callers neither
ends a line nor moves the cursor of a terminal.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache

import orjson

# Neither format shows them, and collecting them takes time for each line (Python's logging HOWTO, "Optimization").
logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False

# A context variable, because logging cannot be passed a CallContext. Only logging reads it.
_request_id: ContextVar[str] = ContextVar("request_id", default="")

# The attributes of every LogRecord, and those that Django and the filters below add; others come from `extra`.
_STANDARD_FIELDS = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}
_ADDED_FIELDS = {"request", "request_id", "server_time"}
_MASKED = "[not logged]"
_SECRET_WORDS = ("secret", "password", "token", "authorization", "cookie", "api_key")
#: Links to choose a password or to confirm an e-mail address; their last part is a secret.
_LINKS = re.compile(r"(/account/(?:reset|email)/[^/?\s]+/)(?!set(?![\w-]))[^/?\s\"'\\]+")
#: A parameter of a query string that is a secret or gives access to one.
_PARAMETERS = re.compile(
    r"([?&;][\w.$-]*(?:token|secret|password|credential|authorization|assertion|api[_-]?key)[\w.-]*="
    r"|[?&;](?:code|state|nonce|code_verifier|sid|session_state)=)[^&\s\"'#]+",
    re.IGNORECASE,
)
#: C0 without tab and line feed, DEL, C1, and the characters that end lines or change the direction of a text.
_CONTROLS = r"\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069"
_IN_A_LINE, _IN_LINES = re.compile(f"[\\t\\n{_CONTROLS}]"), re.compile(f"[{_CONTROLS}]")


@contextmanager
def request_logged_as(request_id: str) -> Iterator[None]:
    """Log records inside the block carry this request id."""
    reset = _request_id.set(request_id)
    try:
        yield
    finally:
        _request_id.reset(reset)


def loggable(text: str) -> str:
    """The text for a log line: URLs without secrets, control characters escaped."""
    return _without_secrets(_escaped(text))


def _without_secrets(text: str) -> str:
    return _PARAMETERS.sub(rf"\1{_MASKED}", _LINKS.sub(rf"\1{_MASKED}", text))


def _escaped(text: str, controls: re.Pattern[str] = _IN_A_LINE) -> str:
    # Fast path: nearly all texts are printable, and printable texts have no control characters.
    return text if text.isprintable() else controls.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()


@cache
def _is_extra(name: str) -> bool:
    return name not in _STANDARD_FIELDS and name not in _ADDED_FIELDS and not name.startswith("_")


@cache
def _is_secret(name: str) -> bool:
    return any(word in name.lower() for word in _SECRET_WORDS)


def extra_fields(record: logging.LogRecord) -> Iterator[tuple[str, object]]:
    """The fields from `extra`; masks the value if the name looks like that of a secret."""
    for name, value in record.__dict__.items():
        if _is_extra(name):
            masked = _is_secret(name) and value not in (None, "")
            yield name, _MASKED if masked else _escaped(value) if isinstance(value, str) else value


class RequestIdFilter(logging.Filter):
    """Sets the request id on the record in the thread of the request."""

    def filter(self, record: logging.LogRecord) -> bool:
        if not hasattr(record, "request_id"):
            record.request_id = _request_id.get()
        return True


class NoTracebackFilter(logging.Filter):
    """Removes the traceback of requests that Django refuses before a view runs, such as for a wrong Host."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name.startswith("django.security"):
            record.exc_info = record.exc_text = None
        return True


class JsonFormatter(logging.Formatter):
    """One JSON object per line: time (UTC), level, logger, message, request_id, the extra fields, exception."""

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, object] = {
            "time": f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(record.created))}.{int(record.msecs):03d}Z",
            "level": record.levelname,
            "logger": record.name,
            "message": _escaped(record.getMessage()),
        }
        if request_id := getattr(record, "request_id", ""):
            fields["request_id"] = request_id
        fields.update(extra_fields(record))
        if record.exc_info:
            fields["exception"] = _escaped(self.formatException(record.exc_info), _IN_LINES)
        if record.stack_info:
            fields["stack"] = self.formatStack(record.stack_info)
        return _without_secrets(orjson.dumps(fields, default=str, option=orjson.OPT_NON_STR_KEYS).decode())


class TextFormatter(logging.Formatter):
    """Readable lines: time, level, message, the extra fields, the request id at the end."""

    def format(self, record: logging.LogRecord) -> str:
        clock = time.strftime("%H:%M:%S", time.localtime(record.created))
        line = f"{clock} {record.levelname:<7} {record.name}: {_escaped(record.getMessage())}"
        # Empty fields are left out; the JSON format has them.
        pairs = [f"{name}={_escaped(str(value))}" for name, value in extra_fields(record) if value not in (None, "")]
        if request_id := getattr(record, "request_id", ""):
            pairs.append(f"request={request_id}")
        if pairs:
            line = f"{line} ({' '.join(pairs)})"
        if record.exc_info:
            line = f"{line}\n{_escaped(self.formatException(record.exc_info), _IN_LINES)}"
        return _without_secrets(line)
