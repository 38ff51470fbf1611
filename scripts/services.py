"""Runs scripts for the platform: one pool of workers per process, and the platform's errors (spec 04).

script_run(source, dataset, kind="ExecuteScript")        a script; its changes stay in the dataset
check_source(source, mode="function_body")               raises SCRIPT_SYNTAX if it does not parse
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.conf import settings
from prometheus_client import Counter

from domain.dataset.dataset import Dataset
from domain.dataset.records.record import Record
from domain.dataset.transactions import write_lock_time
from domain.dataset.transactions.domain_transactions import TransactionDataset
from foundation import errors
from foundation.messages import TranslatableMessage as Message
from scripts import history
from scripts.bridge.bridge import MAX_DEPTH, PRELUDE, Bridge, Refusal
from scripts.sandbox.errors import (
    CallerBusy,
    SandboxBusy,
    SandboxUnavailable,
    ScriptFailed,
    ScriptLimitExceeded,
    ScriptResultInvalid,
    ScriptSyntaxError,
    ScriptThrew,
)
from scripts.sandbox.limits import Limits
from scripts.sandbox.pool import Mode, SandboxPool
from scripts.sandbox.run import RunResult

_refusals = Counter(
    "platform_script_refusals", "Scripts that did not begin: caller (too many of one), busy, unavailable.", ("reason",)
)

_lock = threading.Lock()
_pool: SandboxPool | None = None


@dataclass(frozen=True, slots=True)
class FailedRun:
    """A failed run.

    restarted      whether it had committed or rolled back the Domain transaction that it runs in
    line, column   position in the source
    """

    error: errors.PlatformError
    restarted: bool
    console: str = ""
    line: int | None = None
    column: int | None = None


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """A successful run. value_json: the result of a function body."""

    console: str
    duration_ms: float
    value_json: bytes
    host_calls: int


def pool() -> SandboxPool:
    """The workers of the process; the first run starts them."""
    global _pool
    if _pool is None:
        with _lock:
            if _pool is None:
                _pool = SandboxPool(
                    settings.SANDBOX_WORKERS,
                    limits(),
                    max_waiting=settings.SCRIPTS_WAITING,
                    max_per_caller=settings.SCRIPTS_PER_CALLER,
                )
    return _pool


def limits() -> Limits:
    """The limits of runs on this instance."""
    return Limits(
        wall_seconds=settings.SCRIPT_WALL_SECONDS,
        cpu_seconds=settings.SCRIPT_WALL_SECONDS,
        memory_bytes=settings.SCRIPT_MEMORY_BYTES,
        host_calls=settings.SCRIPT_HOST_CALLS,
        source_bytes=settings.SCRIPT_SOURCE_BYTES,
        console_bytes=settings.SCRIPT_CONSOLE_BYTES,
    )


def script_run(
    source: str,
    dataset: Dataset,
    *,
    kind: history.Kind,
    name: str = "",
    subject: Record | None = None,
    event: Mapping[str, Any] | None = None,
) -> RunOutcome:
    """As `script_outcome`, but raises the error of a failed run."""
    outcome = script_outcome(source, dataset, kind=kind, name=name, subject=subject, event=event)
    if isinstance(outcome, FailedRun):
        raise outcome.error
    return outcome


def script_outcome(
    source: str,
    dataset: Dataset,
    *,
    kind: history.Kind,
    name: str = "",
    mode: Mode = "script",
    parameters: dict[str, Any] | None = None,
    subject: Record | None = None,
    event: Mapping[str, Any] | None = None,
    depth: int = 0,
    check: Callable[[bytes], errors.PlatformError | None] | None = None,
) -> RunOutcome | FailedRun:
    """Run a source against a dataset with its caller's rights, and record the run. Does not commit.

    name    of the managed script or rule, for the history
    depth   number of enclosing scripts
    check   called with the parameters' JSON of a successful run; its error fails the run

    Fails with Refused: SCRIPT_SYNTAX, SCRIPT_THREW, SCRIPT_LIMIT, SCRIPT_OUTPUTS (the result is no JSON),
    SCRIPT_CANCELLED; Unavailable: SANDBOX_BUSY; TooManyRequests: TOO_MANY_SCRIPTS, which is not recorded; any
    PlatformError that the script did not catch. `info` has the position and the console. Raises TooManyRequests if the
    caller's scripts have held the write lock for too long (domain.dataset.transactions.write_lock_time).
    """
    if depth > MAX_DEPTH:
        return FailedRun(errors.Refused(errors.SCRIPT_LIMIT, Message("scripts within scripts ({0})", MAX_DEPTH)), False)
    allowed = limits()
    is_of_caller = kind != "Rule" and not depth
    if is_of_caller:
        seconds = write_lock_time.seconds_left(dataset.context)
        allowed = replace(allowed, wall_seconds=min(allowed.wall_seconds, seconds))
    start = time.monotonic()
    bridge = Bridge(
        dataset,
        deadline=start + allowed.wall_seconds,
        # A managed script that a rule's script executes is part of the rule.
        transactions=kind != "Rule" and not dataset.by_rule,
        subject=subject,
        depth=depth,
    )
    restarts = _restarts(dataset)
    failure: errors.PlatformError | None = None
    console = ""
    line = column = None
    try:
        result = pool().run(
            source,
            mode=mode,
            parameters=parameters,
            prelude=PRELUDE,
            globals_json=bridge.globals_json(event=event, files=kind == "Managed"),
            host_calls=bridge.call,
            limits=allowed,
            caller=dataset.context.user_id,
        )
        console = result.console
        if bridge.cancelled is not None:
            failure = errors.Refused(errors.SCRIPT_CANCELLED, bridge.cancelled, info=_info(None, None, "", console))
        elif check is not None:
            failure = check(result.parameters_json)
    except ScriptFailed as exc:
        console, line, column = exc.console, exc.line, exc.column
        failure = _platform_error(exc, bridge)
    except CallerBusy as exc:
        return FailedRun(_no_worker(exc), False)
    except (SandboxBusy, SandboxUnavailable) as exc:
        failure = _no_worker(exc)
    finally:
        if is_of_caller:
            write_lock_time.spend(dataset.context, time.monotonic() - start)
    history.note(
        kind=kind,
        name=name,
        source=source,
        context=dataset.context,
        transaction_id=dataset.row.id if isinstance(dataset, TransactionDataset) else "",
        duration_ms=(time.monotonic() - start) * 1000,
        console=console,
        failure=failure,
        messages=bridge.messages.to_store(dataset.context),
    )
    if failure is not None:
        return FailedRun(failure, _restarts(dataset) != restarts, console, line, column)
    return RunOutcome(
        result.console,
        result.duration_ms,
        result.value_json,
        result.host_call_count,
    )


def _restarts(dataset: Dataset) -> int:
    return dataset.restarts if isinstance(dataset, TransactionDataset) else 0


def rows_run(source: str, bridge: Bridge, globals_json: bytes, parameter_names: tuple[str, ...]) -> RunResult:
    """Run a function body for rows, without a record in the history. Raises PlatformError."""
    context = bridge.dataset.context
    try:
        return pool().run(
            source,
            mode="function_body",
            parameters=dict.fromkeys(parameter_names),
            prelude=PRELUDE,
            globals_json=globals_json,
            host_calls=bridge.call,
            limits=limits(),
            caller=context.user_id,
        )
    except ScriptFailed as exc:
        raise _platform_error(exc, bridge) from exc
    except (CallerBusy, SandboxBusy, SandboxUnavailable) as exc:
        raise _no_worker(exc) from exc


class SourceRefused(errors.Refused):
    """A source that does not parse, with the position, or None if it is unknown."""

    line: int | None = None
    column: int | None = None


def check_source(source: str, *, mode: Mode = "script", parameter_names: tuple[str, ...] = ()) -> None:
    """Raise SourceRefused(SCRIPT_SYNTAX or SCRIPT_LIMIT) if the source does not parse."""
    try:
        pool().check_syntax(source, mode=mode, parameter_names=parameter_names)
    except ScriptFailed as exc:
        error = _platform_error(exc, None)
        refused = SourceRefused(error.code, *error.parameters, info=error.info)
        refused.line, refused.column = exc.line, exc.column
        raise refused from exc
    except (SandboxBusy, SandboxUnavailable) as exc:
        raise _no_worker(exc) from exc


def _no_worker(refused: CallerBusy | SandboxBusy | SandboxUnavailable) -> errors.PlatformError:
    """The error for a run that did not begin: 429 for too many runs of the caller, 503 for a busy pool."""
    match refused:
        case CallerBusy(runs=runs, retry_after_seconds=seconds):
            _refusals.labels("caller").inc()
            return errors.TooManyRequests(runs, seconds, retry_after_seconds=seconds, code=errors.TOO_MANY_SCRIPTS)
        case SandboxBusy(retry_after_seconds=seconds):
            _refusals.labels("busy").inc()
        case _:
            _refusals.labels("unavailable").inc()
            seconds = 30
    return errors.Unavailable(errors.SANDBOX_BUSY, seconds, retry_after_seconds=seconds)


def _platform_error(failed: ScriptFailed, bridge: Bridge | None) -> errors.PlatformError:
    """The platform's error for an error of the sandbox (spec 07)."""
    info = _info(failed.line, failed.column, getattr(failed, "stack", ""), failed.console)
    if bridge is not None and bridge.cancelled is not None:
        return errors.Refused(errors.SCRIPT_CANCELLED, bridge.cancelled, info=info)
    place = (_shown(failed.line), _shown(failed.column))
    match failed:
        case ScriptSyntaxError():
            return errors.Refused(errors.SCRIPT_SYNTAX, failed.message, *place, info=info)
        case ScriptThrew(host_error=Refusal() as refusal):
            return _with_position(refusal.original, info)
        case ScriptThrew():
            name = "" if failed.name in ("", "Error") else f"{failed.name}: "
            return errors.Refused(errors.SCRIPT_THREW, f"{name}{failed.message}", *place, info=info)
        case ScriptLimitExceeded():
            return errors.Refused(errors.SCRIPT_LIMIT, f"{failed.limit} ({failed.shown})", info=info)
        case ScriptResultInvalid():
            return errors.Refused(errors.SCRIPT_OUTPUTS, failed.message, info=info)
    return errors.Refused(errors.SCRIPT_THREW, failed.message, *place, info=info)


def _with_position(original: errors.PlatformError, info: str) -> errors.PlatformError:
    """The platform's error, with the position in the script added to its info."""
    original.info = info if original.info is None else f"{original.info}\n{info}"
    return original


def _shown(number: int | None) -> str:
    return "?" if number is None else str(number)


def _info(line: int | None, column: int | None, stack: str, console: str) -> str:
    parts = []
    if line is not None:
        parts.append(f"line {line}, column {_shown(column)}")
    if stack:
        parts.append(stack.rstrip())
    if console:
        parts.append(f"console:\n{console}")
    return "\n".join(parts)
