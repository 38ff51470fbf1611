"""Frames between the host and a worker: one socket, half-duplex, a size limit on each frame.

A frame is a length (4 bytes, of what follows the type), a type (1 byte) and the payload. JSON is UTF-8.

host → worker
  PRELUDE   digest (32 bytes), source: stored by the worker for later runs
  RUN       header length (4 bytes), header JSON (`RunHeader`), job JSON (`RunJob`)
  ANSWER    JSON: the value of the host call
  REFUSAL   JSON: {id, message, name, code, data}, thrown in the script
worker → host
  READY     JSON {measure: took effect}: confined, and the context for the next run is made
  CALL      method length (2 bytes), method, arguments as JSON
  DONE      JSON: {value, parameters}
  FAILED    JSON (`Failure`)
  FATAL     text: the worker could not start, or a prelude failed

The worker sends READY, then for each RUN any number of CALLs, each answered, then DONE or FAILED, then READY again.
A script cannot write frames: it reaches Python through two closures whose arguments become payloads, never headers.
The host trusts no frame anyway: a script may have exploited an engine bug.
The console is not sent in frames: see `CONSOLE_HEADER`.
"""

from __future__ import annotations

import struct
from typing import Final, NotRequired, TypedDict

PRELUDE: Final = b"P"
RUN: Final = b"R"
ANSWER: Final = b"A"
REFUSAL: Final = b"E"
READY: Final = b"Y"
CALL: Final = b"H"
DONE: Final = b"D"
FAILED: Final = b"F"
FATAL: Final = b"X"

FRAME_HEADER: Final = struct.Struct(">Ic")
JOB_HEADER: Final = struct.Struct(">I")
CALL_HEADER: Final = struct.Struct(">H")
DIGEST_BYTES: Final = 32
METHOD_MAX_BYTES: Final = 200

# Maximum objects and arrays in one host call or result: a parsed empty one takes sixty times the size of its text.
# Brackets inside of strings count, too: excluding them would cost as much as parsing.
MAX_OBJECTS: Final = 250_000

# Size of a frame beyond the payload that `message_bytes` limits.
FRAME_SLACK_BYTES: Final = 65_536

# The console is in shared memory: bytes used, 1 if truncated, then the text. So logging needs no system call and no
# flush, cannot flood the host, and the output of a killed script remains.
CONSOLE_HEADER: Final = struct.Struct("=II")

MODE_SCRIPT: Final = "script"
MODE_FUNCTION_BODY: Final = "function_body"
MODE_CHECK_SCRIPT: Final = "check_script"
MODE_CHECK_FUNCTION_BODY: Final = "check_function_body"


class RunHeader(TypedDict):
    """The header of a run, for the worker's Python code."""

    prelude: str  # hex digest, "" for none
    memory_bytes: int
    stack_bytes: int
    console_bytes: int
    message_bytes: int
    cpu_seconds: float


class RunJob(TypedDict):
    """The job of a run, for the JavaScript context."""

    mode: str
    source: str
    source_name: str
    parameters: dict[str, object]
    globals: dict[str, object] | None


class Failure(TypedDict):
    """kind: syntax, throw, result or limit (with `limit`)."""

    kind: str
    name: str
    message: str
    stack: str
    limit: NotRequired[str]
    code: NotRequired[str | int | float | None]
    line: NotRequired[int | None]
    column: NotRequired[int | None]
    host_error: NotRequired[int | None]
    # The worker cannot decide whether memory ran out; the host knows how much was used.
    may_be_memory: NotRequired[bool]


class ProtocolError(Exception):
    """The other side violates the protocol."""


def has_too_many_objects(payload: bytes) -> bool:
    """Whether untrusted JSON has more objects and arrays than the host parses."""
    return payload.count(b"[") + payload.count(b"{") > MAX_OBJECTS


def frame(kind: bytes, *parts: bytes) -> bytes:
    """An encoded frame."""
    return b"".join((FRAME_HEADER.pack(sum(map(len, parts)), kind), *parts))
