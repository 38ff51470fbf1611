"""Converts a run's job for the JavaScript context: sources, wrapped functions, names of inputs."""

from __future__ import annotations

import json
import re
from typing import Final

from scripts.sandbox import protocol
from scripts.sandbox.throw_statements import marked

IDENTIFIER: Final = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*\Z")
RESERVED: Final = frozenset(
    {
        "arguments", "await", "break", "case", "catch", "class", "const", "continue", "debugger", "default", "delete",
        "do", "else", "enum", "eval", "export", "extends", "false", "finally", "for", "function", "if", "implements",
        "import", "in", "instanceof", "interface", "let", "new", "null", "package", "parameters", "private",
        "protected", "public", "return", "static", "super", "switch", "this", "throw", "true", "try", "typeof", "var",
        "void", "while", "with", "yield",
    }
)  # fmt: skip


def read_run(payload: bytes) -> tuple[protocol.RunHeader, protocol.RunJob]:
    start = protocol.JOB_HEADER.size
    split = start + protocol.JOB_HEADER.unpack_from(payload)[0]
    return json.loads(payload[start:split]), json.loads(payload[split:])


def is_function_body(job: protocol.RunJob) -> bool:
    return job["mode"] in (protocol.MODE_FUNCTION_BODY, protocol.MODE_CHECK_FUNCTION_BODY)


def variable_names(job: protocol.RunJob) -> list[str]:
    """The inputs that are also variables: their names are identifiers."""
    return [name for name in job["parameters"] if IDENTIFIER.match(name) and name not in RESERVED]


def function_opening(job: protocol.RunJob) -> str:
    return f"(function({','.join(['parameters', *variable_names(job)])}){{"


def is_check(job: protocol.RunJob) -> bool:
    return job["mode"] in (protocol.MODE_CHECK_SCRIPT, protocol.MODE_CHECK_FUNCTION_BODY)


def context_job(job: protocol.RunJob, statements: list[int]) -> str:
    """The job for preludes/sandbox.js: a function's body wrapped, inputs named, `throw` statements marked."""
    source, wrapped = marked(job["source"], statements), is_function_body(job)
    return json.dumps(
        {
            "source": None if wrapped else source,
            "wrapped": f"{function_opening(job)[1:]}\n{source}\n}}" if wrapped else None,
            "names": variable_names(job) if wrapped else [],
            "parameters": job["parameters"],
            "globals": job["globals"],
            "check": is_check(job),
        }
    )
