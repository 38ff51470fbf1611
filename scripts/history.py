"""Noting runs, and what Action.log left, without a share in the run's own fate (spec 04, 4.4).

A run that fails takes its database transaction with it, so the note waits in the process until that is over: until the
request has ended, or else the next moment without a transaction. A process that is killed loses what it had not
written. Noting costs the caller nothing but the making of a row.
"""

from __future__ import annotations

import hashlib
import logging
import socket
import threading
from collections import deque
from datetime import timedelta
from typing import Any, Literal

from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.utils import translation
from prometheus_client import Counter, Histogram

from domain.entities.systems_monitoring import InformationMessage
from foundation import errors
from foundation.fields import utc_now
from identity.context import CallContext
from scripts.models import ScriptRun

logger = logging.getLogger("platform.scripts")

Kind = Literal["ExecuteScript", "Managed", "Rule", "Command"]
HEAD_CHARACTERS = 2_000
#: Notes that wait; what is older is lost when the database does not take them.
MAX_WAITING = 2_000

_runs = Counter("platform_script_runs", "Runs of scripts.", ("kind", "outcome"))
_seconds = Histogram(
    "platform_script_seconds",
    "Time of a script's run.",
    ("kind",),
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)

_lock = threading.Lock()
_waiting: deque[ScriptRun | InformationMessage] = deque(maxlen=MAX_WAITING)


def note(
    *,
    kind: Kind,
    name: str,
    source: str,
    context: CallContext,
    transaction_id: str,
    duration_ms: float,
    console: str,
    failure: errors.PlatformError | None,
    messages: list[tuple[str, str]],
) -> None:
    """Remember a run."""
    caller = context.user
    login = caller.login if caller is not None else ""
    run = ScriptRun(
        duration_ms=round(duration_ms, 3),
        started=utc_now() - timedelta(milliseconds=duration_ms),
        kind=kind,
        name=name[:64],
        user_id=caller.id if caller is not None else "",
        user_login=login,
        application=context.application[:254],
        session_id=context.session_id or "",
        transaction_id=transaction_id,
        source_digest=hashlib.sha256(source.encode("utf-8", "replace")).hexdigest(),
        source_head=_storable(source[:HEAD_CHARACTERS]),
        outcome="Succeeded" if failure is None else failure.code.type,
        message="" if failure is None else _storable(_in_english(failure)[:HEAD_CHARACTERS]),
        console_head=_storable(console[:HEAD_CHARACTERS]),
    )
    _runs.labels(kind, run.outcome).inc()
    _seconds.labels(kind).observe(duration_ms / 1000)
    with _lock:
        _waiting.append(run)
        for message_type, text in messages:
            _waiting.append(
                InformationMessage(
                    machine_name=socket.gethostname()[:128],
                    information_message_type=message_type,
                    message=_storable(text),
                    process_description=(f"Script {name}" if name else kind)[:254],
                    user_name=login,
                )
            )
    if connection.in_atomic_block:
        # Background processes end no requests. A failure's note waits for the next run or request.
        transaction.on_commit(flush_if_free, robust=True)


def _in_english(failure: errors.PlatformError) -> str:
    """What is stored once, for all readers, is not in the language of one caller."""
    with translation.override("en"):
        return failure.message


def _storable(text: str) -> str:
    """PostgreSQL stores no NUL character, and no halves of characters."""
    return text.replace("\0", "�").encode("utf-8", "replace").decode()


def flush_if_free(**_: Any) -> None:
    """Write what waits, unless that would share the fate of somebody's transaction."""
    if _waiting and not connection.in_atomic_block:
        flush()


def flush() -> None:
    """Write what waits now. A database that is busy gets it the next time."""
    with _lock:
        taken = list(_waiting)
        _waiting.clear()
    runs = [row for row in taken if isinstance(row, ScriptRun)]
    messages = [row for row in taken if isinstance(row, InformationMessage)]
    try:
        with transaction.atomic():
            ScriptRun.objects.bulk_create(runs)
            InformationMessage.objects.bulk_create(messages)
    except DatabaseError:
        logger.warning("the history of %d script runs could not be written yet", len(runs), exc_info=True)
        with _lock:
            _waiting.extendleft(reversed(taken))


def prune(days: int | None = None) -> int:
    """Delete runs that are older than the retention; how many."""
    kept = days if days is not None else settings.SCRIPT_HISTORY_DAYS
    deleted, _ = ScriptRun.objects.filter(started__lt=utc_now() - timedelta(days=kept)).delete()
    return deleted
