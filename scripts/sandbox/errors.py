"""Errors of a run.

SandboxError
├── ScriptFailed                 caused by the script; has the console so far
│   ├── ScriptSyntaxError        the source does not parse
│   ├── ScriptThrew              an uncaught exception
│   ├── ScriptResultInvalid      the result is no JSON
│   ├── ScriptLimitExceeded      a limit, named
│   └── ScriptCrashed            the worker process died
├── SandboxBusy                  no worker in time; retry_after_seconds
├── CallerBusy                   too many runs of the caller; retry_after_seconds
├── SandboxUnavailable           workers do not start
└── SandboxFault                 a bug of the platform in the worker: a prelude that throws

HostCallError has the other direction: a host call raises it, and it is thrown inside the script, which may catch it.
Lines and columns count from 1 in the author's source and are None if unknown.
"""

from __future__ import annotations

from typing import Any


class SandboxError(Exception):
    """Base of all errors of the sandbox."""


class ScriptFailed(SandboxError):
    """The run ended without a result because of the script."""

    def __init__(self, message: str, *, console: str = "", line: int | None = None, column: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.console = console
        self.line = line
        self.column = column


class ScriptSyntaxError(ScriptFailed):
    """The source does not parse. The line is exact; the column is that of the token at which the parser stopped."""


class ScriptThrew(ScriptFailed):
    """An uncaught exception.

    name is the error's class name ("Error" if the value has none), code its `code` property if that is a string or
    number, stack the engine's frames in the author's lines. host_error is the HostCallError that the script did not
    catch.
    """

    def __init__(
        self,
        message: str,
        *,
        name: str = "Error",
        stack: str = "",
        code: str | int | float | None = None,
        host_error: HostCallError | None = None,
        console: str = "",
        line: int | None = None,
        column: int | None = None,
    ) -> None:
        super().__init__(message, console=console, line=line, column=column)
        self.name = name
        self.stack = stack
        self.code = code
        self.host_error = host_error


class ScriptResultInvalid(ScriptFailed):
    """The returned value or an output parameter is no JSON (a function, a BigInt, NaN, a cycle)."""


class ScriptLimitExceeded(ScriptFailed):
    """limit is one of wall, cpu, memory, host_calls, source, message, stack; allowed is its value, as in Limits."""

    def __init__(
        self,
        limit: str,
        allowed: float,
        *,
        console: str = "",
        line: int | None = None,
        column: int | None = None,
    ) -> None:
        self.limit = limit
        self.allowed = allowed
        super().__init__(
            f"The script exceeded its {limit} limit of {self.shown}.", console=console, line=line, column=column
        )

    @property
    def shown(self) -> str:
        """The allowed value with its unit."""
        if self.limit in ("wall", "cpu"):
            return f"{self.allowed:g} s"
        if self.limit == "host_calls":
            return f"{self.allowed:.0f}"
        return f"{self.allowed / 1e6:g} MB"


class ScriptCrashed(ScriptFailed):
    """The worker died during the run; exit_code as in subprocess (negative: a signal)."""

    def __init__(self, exit_code: int | None, *, console: str = "") -> None:
        super().__init__("The script engine stopped unexpectedly.", console=console)
        self.exit_code = exit_code


class SandboxBusy(SandboxError):
    """No worker became free in time, or too many runs wait."""

    def __init__(self, retry_after_seconds: int) -> None:
        super().__init__("All script workers are busy.")
        self.retry_after_seconds = retry_after_seconds


class CallerBusy(SandboxError):
    """The caller has the maximum number of runs, running or waiting."""

    def __init__(self, runs: int, retry_after_seconds: int) -> None:
        super().__init__(f"The caller has {runs} scripts that run or wait.")
        self.runs = runs
        self.retry_after_seconds = retry_after_seconds


class SandboxUnavailable(SandboxError):
    """Workers exit at the start: the installation is broken. The message has the reason."""


class SandboxFault(SandboxError):
    """A bug of the platform: most likely a prelude that does not parse or throws."""


class HostCallError(Exception):
    """A refused host call. In the script: an Error with this message, `.name`, `.code` and `.data` (any JSON value)."""

    def __init__(
        self,
        message: str,
        code: str | int | None = None,
        type_name: str = "HostError",
        data: Any = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.type_name = type_name
        self.data = data
