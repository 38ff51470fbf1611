"""One run on one worker: protocol, limits, result."""

from __future__ import annotations

import functools
import hashlib
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NoReturn

import orjson

from foundation.execution_slot import release_slot
from scripts.sandbox import protocol
from scripts.sandbox.errors import (
    HostCallError,
    SandboxFault,
    ScriptCrashed,
    ScriptFailed,
    ScriptLimitExceeded,
    ScriptResultInvalid,
    ScriptSyntaxError,
    ScriptThrew,
)
from scripts.sandbox.limits import Limits
from scripts.sandbox.process import (
    MAX_PRELUDES,
    RESIDENT_SLACK_BYTES,
    WATCH_SECONDS,
    FrameTooLarge,
    WorkerLost,
    WorkerProcess,
)

HostCalls = Callable[[str, list[Any]], Any]

# Growth above which a worker is replaced after the run: it may not return the memory, and its peak would hide that of
# the next run.
REPLACE_GROWTH_BYTES: Final = 64_000_000
# Runs after which a worker is replaced, against leaks of the engine.
REPLACE_AFTER_RUNS: Final = 5_000
# Maximum stored refusals of host calls, from which an uncaught one is reported with its cause.
MAX_REFUSALS: Final = 64
# name of a limit, as ScriptLimitExceeded has it → field of Limits
LIMIT_FIELDS: Final = {
    "wall": "wall_seconds",
    "cpu": "cpu_seconds",
    "memory": "memory_bytes",
    "host_calls": "host_calls",
    "source": "source_bytes",
    "message": "message_bytes",
    "stack": "stack_bytes",
}
CONSOLE_CUT_MARK: Final = "\n… (console cut at {} bytes)"
# Time for which the thread keeps the execution slot of its process: enough for most host calls of a short script.
SLOT_HOLD_MILLISECONDS: Final = 1


@dataclass(frozen=True, slots=True)
class RunResult:
    """The result of a run.

    value_json       return value of a function body, as JSON; b"null" for a script
    parameters_json  the final `parameters` object of the body, as JSON; b"null" for a script
    console          lines joined by newlines, truncated at the limit with a mark
    """

    value_json: bytes
    parameters_json: bytes
    console: str
    duration_ms: float
    host_call_count: int


class Run:
    """One run on one worker.

    `reusable`: whether the worker may serve another run afterwards; only if it ended the run itself.
    """

    def __init__(self, worker: WorkerProcess, limits: Limits, host_calls: HostCalls) -> None:
        self._worker = worker
        self._limits = limits
        self._host_calls = host_calls
        self._calls = 0
        self._refusals: dict[int, HostCallError] = {}  # number → refusal, oldest first
        self._started = 0.0
        self._deadline = 0.0
        self._next_watch = 0.0
        self._cpu_ceiling = 0.0
        self._resident_ceiling = 0
        self._most_resident = 0
        self._faulted_before = 0
        self._max_frame = limits.message_bytes + protocol.FRAME_SLACK_BYTES
        self.reusable = False

    def perform(self, prelude: str, job: bytes) -> RunResult:
        try:
            self._begin(prelude, job)
            return self._converse()
        except WorkerLost:
            self._fail_crashed()
        except FrameTooLarge:
            self._fail_limit("message")

    def _begin(self, prelude: str, job: bytes) -> None:
        worker, limits = self._worker, self._limits
        worker.clear_console()
        worker.ready = False
        worker.runs += 1
        digest = _digest(prelude) if prelude else b""
        header: protocol.RunHeader = {
            "prelude": digest.hex(),
            "memory_bytes": limits.memory_bytes,
            "stack_bytes": limits.stack_bytes,
            "console_bytes": limits.console_bytes,
            "message_bytes": limits.message_bytes,
            "cpu_seconds": limits.cpu_seconds,
        }
        header_json = orjson.dumps(header)
        self._started = time.monotonic()
        self._deadline = self._started + limits.wall_seconds
        self._next_watch = self._started + WATCH_SECONDS
        self._cpu_ceiling = worker.cpu_seconds() + limits.cpu_seconds
        self._faulted_before = worker.faulted_bytes()
        self._resident_ceiling = worker.first_resident_bytes + limits.memory_bytes + RESIDENT_SLACK_BYTES
        self._send(
            self._prelude_frame(digest, prelude)
            + protocol.frame(protocol.RUN, protocol.JOB_HEADER.pack(len(header_json)), header_json, job)
        )

    def _prelude_frame(self, digest: bytes, prelude: str) -> bytes:
        """The prelude's frame if the worker does not have it; at MAX_PRELUDES a worker drops all preludes."""
        known = self._worker.preludes
        if not prelude or digest.hex() in known:
            return b""
        if len(known) >= MAX_PRELUDES:
            known.clear()
        known.add(digest.hex())
        return protocol.frame(protocol.PRELUDE, digest, prelude.encode())

    def _converse(self) -> RunResult:
        while True:
            received = self._receive()
            self._watch(idle=received is None)
            if received is None:
                continue
            kind, payload = received
            if kind == protocol.CALL:
                self._answer(payload)
            elif kind == protocol.DONE:
                return self._finish(payload)
            elif kind == protocol.FAILED:
                self._fail_reported(payload)
            elif kind == protocol.FATAL:
                raise SandboxFault(payload[:1000].decode("utf-8", "replace"))
            else:
                raise WorkerLost

    def _receive(self) -> tuple[bytes, bytes] | None:
        """The next frame, or None when there is none within WATCH_SECONDS."""
        if not self._worker.has_sent(SLOT_HOLD_MILLISECONDS):
            release_slot()
        return self._worker.receive(self._max_frame)

    # -- limits ----------------------------------------------------------------------------------------------------

    def _watch(self, *, idle: bool) -> None:
        """Check wall time at every call; processor time and memory, which need system calls, every WATCH_SECONDS."""
        now = time.monotonic()
        if now >= self._deadline:
            self._fail_limit("wall")
        if not idle and now < self._next_watch:
            return
        self._next_watch = now + WATCH_SECONDS
        if self._worker.cpu_seconds() > self._cpu_ceiling:
            self._fail_limit("cpu")
        resident = self._worker.resident_bytes()
        self._most_resident = max(self._most_resident, resident)
        if resident > self._resident_ceiling:
            self._fail_limit("memory")

    def _send(self, data: bytes) -> None:
        if not self._worker.send(data, self._deadline):
            self._fail_limit("wall")

    # -- host calls ------------------------------------------------------------------------------------------------

    def _answer(self, payload: bytes) -> None:
        self._calls += 1
        if self._calls > self._limits.host_calls:
            self._fail_limit("host_calls")
        try:
            method, arguments = read_call(payload)
            answer = orjson.dumps(self._host_calls(method, arguments), option=orjson.OPT_UTC_Z)
        except HostCallError as refusal:
            self._refuse(refusal)
            return
        if len(answer) > self._limits.answer_bytes:
            self._refuse(HostCallError("The answer of the host call is too large.", type_name="RangeError"))
            return
        if time.monotonic() >= self._deadline:  # the answer exceeds the limit
            self._fail_limit("wall")
        self._send(protocol.frame(protocol.ANSWER, answer))

    def _refuse(self, refusal: HostCallError) -> None:
        self._refusals[self._calls] = refusal
        if len(self._refusals) > MAX_REFUSALS:
            del self._refusals[next(iter(self._refusals))]
        fields = {
            "id": self._calls,
            "message": refusal.message,
            "name": refusal.type_name,
            "code": refusal.code,
            "data": refusal.data,
        }
        self._send(protocol.frame(protocol.REFUSAL, orjson.dumps(fields)))

    # -- the end ---------------------------------------------------------------------------------------------------

    def _console(self) -> str:
        text, cut = self._worker.read_console(self._limits.console_bytes)
        return text + CONSOLE_CUT_MARK.format(self._limits.console_bytes) if cut else text

    def _mark_reusable(self) -> None:
        grown = (self._worker.peak_bytes() or 0) - self._worker.first_resident_bytes
        self.reusable = grown < min(REPLACE_GROWTH_BYTES, self._limits.memory_bytes // 3) and (
            self._worker.runs < REPLACE_AFTER_RUNS
        )

    def _finish(self, payload: bytes) -> RunResult:
        duration_ms = (time.monotonic() - self._started) * 1000
        if protocol.has_too_many_objects(payload):
            self._fail_limit("message")
        try:
            outcome = orjson.loads(payload)
            value_json, parameters_json = orjson.dumps(outcome["value"]), orjson.dumps(outcome["parameters"])
        except ValueError:
            raise ScriptResultInvalid("The result is nested too deeply.", console=self._console()) from None
        except (KeyError, TypeError):
            self._fail_crashed()
        self._mark_reusable()
        return RunResult(value_json, parameters_json, self._console(), duration_ms, self._calls)

    def _fail_reported(self, payload: bytes) -> NoReturn:
        try:
            failure: protocol.Failure = orjson.loads(payload)
            error = self._reported(failure)
        except (ValueError, KeyError, TypeError, AttributeError):
            self._fail_crashed()
        self._mark_reusable()
        raise error

    def _reported(self, failure: protocol.Failure) -> ScriptFailed:
        console = self._console()
        line, column = failure.get("line"), failure.get("column")
        kind, message = failure["kind"], str(failure["message"])
        if failure.get("may_be_memory") and self._memory_ran_out():
            kind, failure["limit"] = "limit", "memory"
        if kind == "limit":
            limit = failure["limit"]
            return ScriptLimitExceeded(limit, self._allowed(limit), console=console, line=line, column=column)
        if kind == "syntax":
            return ScriptSyntaxError(message, console=console, line=line, column=column)
        if kind == "result":
            return ScriptResultInvalid(message, console=console)
        number = failure.get("host_error")
        return ScriptThrew(
            message,
            name=str(failure["name"]) or "Error",
            stack=str(failure["stack"]),
            code=failure.get("code"),
            host_error=self._refusals.get(number) if number is not None else None,
            console=console,
            line=line,
            column=column,
        )

    def _memory_ran_out(self) -> bool:
        # A worker that has grown much is replaced after the run, so a high peak belongs to this run.
        peak = self._worker.peak_bytes()
        return peak is None or peak - self._worker.first_resident_bytes > self._limits.memory_bytes // 2

    def _died_of_memory(self) -> bool:
        """Whether the worker died of a failed allocation, which can crash the engine.

        It may have allocated the memory since the last check, so this reads the page faults, which remain readable.
        """
        faulted = self._worker.faulted_bytes() - self._faulted_before
        grown = self._most_resident - self._worker.first_resident_bytes
        return max(faulted, grown) > self._limits.memory_bytes // 2

    def _allowed(self, limit: str) -> float:
        return float(getattr(self._limits, LIMIT_FIELDS[limit]))

    def _fail_limit(self, limit: str) -> NoReturn:
        self._worker.kill()
        raise ScriptLimitExceeded(limit, self._allowed(limit), console=self._console()) from None

    def _fail_crashed(self) -> NoReturn:
        self._worker.kill()
        self._worker.wait_ended()
        if self._died_of_memory():
            self._fail_limit("memory")
        exit_code = self._worker.exit_code(1)
        raise ScriptCrashed(exit_code, console=self._console()) from None


@functools.lru_cache(MAX_PRELUDES)
def _digest(prelude: str) -> bytes:
    return hashlib.sha256(prelude.encode()).digest()


def check_source(source: str, limits: Limits) -> None:
    """Refuse a source that is too long, or has characters that the engine's strings cannot hold."""
    try:
        size = len(source.encode())
    except UnicodeEncodeError as error:
        raise _unparsable(source, error.start, "a lone surrogate") from None
    if size > limits.source_bytes:
        raise ScriptLimitExceeded("source", limits.source_bytes)
    if "\0" in source:
        raise _unparsable(source, source.index("\0"), "a NUL character")


def _unparsable(source: str, offset: int, what: str) -> ScriptSyntaxError:
    before = source[:offset]
    return ScriptSyntaxError(
        f"unexpected {what}", line=before.count("\n") + 1, column=offset - (before.rfind("\n") + 1) + 1
    )


def read_call(payload: bytes) -> tuple[str, list[Any]]:
    """Method and arguments of a CALL frame. Raises WorkerLost if it is malformed: the worker is compromised."""
    start = protocol.CALL_HEADER.size
    try:
        split = start + protocol.CALL_HEADER.unpack_from(payload)[0]
        method = payload[start:split].decode()
    except (ValueError, struct.error) as error:
        raise WorkerLost from error
    if protocol.has_too_many_objects(payload):
        raise HostCallError("The host call is too large.", type_name="RangeError")
    try:
        arguments = orjson.loads(payload[split:])
    except ValueError as error:
        raise HostCallError("The arguments are nested too deeply.", type_name="RangeError") from error
    if not isinstance(arguments, list):
        raise WorkerLost
    return method, arguments


def refuse_all_calls(method: str, arguments: list[Any]) -> NoReturn:
    """Refuse every call: the host calls of a run without any."""
    raise HostCallError(f"There is no host call '{method}' here.", type_name="TypeError")
