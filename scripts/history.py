"""Stores the history of script runs and the messages of Action.log, after the request (spec 04, 4.4)."""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Sequence
from datetime import timedelta
from typing import Literal

from django.conf import settings
from django.utils import translation
from prometheus_client import Counter, Histogram

from domain.entities.systems_monitoring import InformationMessage
from foundation import errors
from foundation.fields import utc_now
from foundation.texts import storable
from foundation.write_behind import WriteBehind
from identity.context import CallContext
from scripts.models import ScriptRun

Kind = Literal["ExecuteScript", "Managed", "Rule", "Command"]
HEAD_CHARACTERS = 2_000
#: Maximum of buffered rows; older ones are dropped.
MAX_WAITING = 2_000

_runs = Counter("platform_script_runs", "Runs of scripts.", ("kind", "outcome"))
_seconds = Histogram(
    "platform_script_seconds",
    "Time of a script's run.",
    ("kind",),
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)


def _write(rows: Sequence[ScriptRun | InformationMessage]) -> None:
    ScriptRun.objects.bulk_create([row for row in rows if isinstance(row, ScriptRun)])
    InformationMessage.objects.bulk_create([row for row in rows if isinstance(row, InformationMessage)])


pending: WriteBehind[ScriptRun | InformationMessage] = WriteBehind("script history", _write, limit=MAX_WAITING)


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
    """Record a run; written when the request or transaction has ended."""
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
        request_id=context.request_id,
        source_digest=hashlib.sha256(source.encode("utf-8", "replace")).hexdigest(),
        source_head=storable(source[:HEAD_CHARACTERS]),
        outcome="Succeeded" if failure is None else failure.code.type,
        message="" if failure is None else storable(_in_english(failure)[:HEAD_CHARACTERS]),
        console_head=storable(console[:HEAD_CHARACTERS]),
    )
    _runs.labels(kind, run.outcome).inc()
    _seconds.labels(kind).observe(duration_ms / 1000)
    host = socket.gethostname()[:128]
    logged = [
        InformationMessage(
            machine_name=host,
            information_message_type=message_type,
            message=storable(text),
            process_description=(f"Script {name}" if name else kind)[:254],
            user_name=login,
        )
        for message_type, text in messages
    ]
    pending.add([run, *logged])


def _in_english(failure: errors.PlatformError) -> str:
    """The error in English, because readers of all languages see the stored text."""
    with translation.override("en"):
        return failure.message


def prune(days: int | None = None) -> int:
    """Delete runs that are older than the retention; returns their number."""
    kept = days if days is not None else settings.SCRIPT_HISTORY_DAYS
    deleted, _ = ScriptRun.objects.filter(started__lt=utc_now() - timedelta(days=kept)).delete()
    return deleted
