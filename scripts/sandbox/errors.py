"""How a run can fail.

SandboxError
├── ScriptFailed                 the script's own doing; carries the console so far
│   ├── ScriptSyntaxError        the source does not parse
│   ├── ScriptThrew              an exception that nothing caught
│   ├── ScriptResultInvalid      the result cannot be written as JSON
│   ├── ScriptLimitExceeded      a limit, named
│   └── ScriptCrashed            the engine's process died under the script
├── SandboxBusy                  no worker within the wait; retry_after_seconds
├── CallerBusy                   the caller's own runs are too many; retry_after_seconds
├── SandboxUnavailable           workers do not start here
└── SandboxFault                 our own code in the worker failed: a prelude that throws

HostCallError is the other direction: raised by the host's answer to a call, thrown inside the script, catchable there.
Lines and columns count from 1 in the author's source and are None where the engine does not know them.
"""

from __future__ import annotations

from typing import Any


class SandboxError(Exception):
    """Base of everything that the sandbox raises."""


class ScriptFailed(SandboxError):
    """The run ended without a result, by the script's own doing."""

    def __init__(self, message: str, *, console: str = "", line: int | None = None, column: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.console = console
        self.line = line
        self.column = column


class ScriptSyntaxError(ScriptFailed):
    """The source does not parse. The line is exact, the column is that of the token at which the parser gave up."""


class ScriptThrew(ScriptFailed):
    """An exception reached the top.

    name is the error's class name ("Error" where the value has none), code its `code` property when that is a string
    or number, stack the engine's frames in the author's lines. host_error is the HostCallError that the script let
    pass unchanged.
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
    """The returned value or an output parameter holds what JSON cannot (a function, a BigInt, NaN, a cycle)."""


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
        """What is allowed, with its unit."""
        if self.limit in ("wall", "cpu"):
            return f"{self.allowed:g} s"
        if self.limit == "host_calls":
            return f"{self.allowed:.0f}"
        return f"{self.allowed / 1e6:g} MB"


class ScriptCrashed(ScriptFailed):
    """The worker died while it ran the script; exit_code as subprocess gives it (negative: a signal)."""

    def __init__(self, exit_code: int | None, *, console: str = "") -> None:
        super().__init__("The script engine stopped unexpectedly.", console=console)
        self.exit_code = exit_code


class SandboxBusy(SandboxError):
    """Every worker was taken for the whole wait, or too many callers wait already."""

    def __init__(self, retry_after_seconds: int) -> None:
        super().__init__("All script workers are busy.")
        self.retry_after_seconds = retry_after_seconds


class CallerBusy(SandboxError):
    """The caller has as many runs at once as it may have; `runs` of them run or wait."""

    def __init__(self, runs: int, retry_after_seconds: int) -> None:
        super().__init__(f"The caller has {runs} scripts that run or wait.")
        self.runs = runs
        self.retry_after_seconds = retry_after_seconds


class SandboxUnavailable(SandboxError):
    """Workers start and die at once: the installation is broken. The reason is the text of the exception."""


class SandboxFault(SandboxError):
    """A bug of ours, not of the script: most likely a prelude that does not parse or throws."""


class HostCallError(Exception):
    """A host call refused. In the script: an Error with this message, `.name`, `.code` and `.data` (any JSON value)."""

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
