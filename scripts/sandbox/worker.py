"""The process that runs JavaScript: no settings, no secrets, one socket.

Started by process.py as `python -I -S worker.py` with the arguments of `main`. It loads the engine and the few modules
it needs, drops its privileges (confinement.py) and serves one run after another, each in a new context. It prepares the
next context between runs, so that a run starts at once.
"""

from __future__ import annotations

import sys

# -I excludes the program's directory, -S the site-packages: imports are possible only from this path, and only until
# confinement. The project's root comes last, so that it cannot shadow modules of the standard library.
sys.path.append(sys.argv[1])

import importlib.machinery
import importlib.util
import json
import mmap
import os
from collections.abc import Callable
from typing import Any, Final, NoReturn, cast

from scripts.sandbox import confinement, positions, protocol
from scripts.sandbox.engine_interface import EngineInterface
from scripts.sandbox.jobs import context_job, function_opening, is_check, is_function_body, read_run
from scripts.sandbox.throw_statements import throw_statements
from scripts.sandbox.well_formed_json import well_formed
from scripts.sandbox.wire import Console, Wire

EXIT_BROKEN: Final = 70
MAX_PRELUDES: Final = 8
# Memory beyond the run's limit that the engine may use to serialize a failure.
REPORT_BYTES: Final = 8_000_000


class Engine:
    """One context for one run, with its preludes evaluated.

    The engine's time limit stays off: with it, the engine refuses to call Python.
    """

    def __init__(self, worker: Worker, header: protocol.RunHeader) -> None:
        self.key = engine_key(header)
        self._memory_bytes = header["memory_bytes"]
        self._context = worker.new_context()
        self._context.set_memory_limit(self._memory_bytes)
        self._context.set_max_stack_size(header["stack_bytes"])
        for name, function in worker.callables:
            self._context.add_callable(name, function)
        worker.interface.run(self._context, worker.core_prelude)
        worker.interface.watch_rejections(self._context, "__trackRejection")
        self._control = self._context.get("__control")
        self._control("taken", "")
        if header["prelude"]:
            worker.interface.run(self._context, worker.preludes[header["prelude"]])
            self._control("prelude", "")

    def run(self, job: str) -> str:
        """The outcome as JSON text: a result, or a failure with its `kind`."""
        self._control("run", job)
        while self._context.execute_pending_job():
            pass
        self._context.set_memory_limit(self._memory_bytes + REPORT_BYTES)
        return cast(str, self._control("finish", ""))


class Worker:
    """Serves runs until the host closes the socket."""

    def __init__(
        self,
        wire: Wire,
        console: Console,
        new_context: Callable[[], Any],
        interface: EngineInterface,
        core_prelude: str,
    ) -> None:
        self._wire = wire
        self._console = console
        self._refusal = ""
        self._message_bytes = 0
        self.new_context = new_context
        self.interface = interface
        arguments = f"__callHost, __takeRefusal, __writeConsole, {positions.PADDING_LINES}"
        self.core_prelude = self._compiled(f"globalThis.__control = {core_prelude}({arguments})")
        self.preludes: dict[str, bytes] = {}  # digest in hex → compiled
        self.callables = (
            ("__callHost", self._call_host),
            ("__takeRefusal", self._take_refusal),
            ("__writeConsole", self._write_console),
        )

    def serve(self, confinement_flags: dict[str, bool]) -> NoReturn:
        next_engine: Engine | None = None
        while True:
            self._wire.send(protocol.READY, json.dumps(confinement_flags).encode())
            kind, payload = self._wire.receive()
            while kind == protocol.PRELUDE:
                self._keep_prelude(payload)
                kind, payload = self._wire.receive()
            if kind != protocol.RUN:
                raise protocol.ProtocolError(f"unexpected frame {kind!r}")
            header, job = read_run(payload)
            self._message_bytes = header["message_bytes"]
            self._console.begin(header["console_bytes"])
            confinement.limit_cpu(header["cpu_seconds"])
            if next_engine is None or next_engine.key != engine_key(header):
                next_engine = None  # free it first: two contexts would need twice the memory
                next_engine = Engine(self, header)
            self._wire.send(*self._outcome(next_engine, header, job))
            # The result is sent: free the old context and prepare the next one while the host is busy.
            next_engine = None
            next_engine = Engine(self, header)

    def _keep_prelude(self, payload: bytes) -> None:
        if len(self.preludes) >= MAX_PRELUDES:
            self.preludes.clear()  # the host does the same at this count
        digest, source = payload[: protocol.DIGEST_BYTES], payload[protocol.DIGEST_BYTES :]
        self.preludes[digest.hex()] = self._compiled(
            f"globalThis.__prelude = (function (host, sandbox) {{{source.decode()}\n}})"
        )

    def _compiled(self, source: str) -> bytes:
        return self.interface.compiled(self.new_context(), source)

    def _outcome(self, engine: Engine, header: protocol.RunHeader, job: protocol.RunJob) -> tuple[bytes, bytes]:
        # A source that is only checked runs nothing.
        statements = [] if is_check(job) else throw_statements(job["source"])
        try:
            text = engine.run(context_job(job, statements))
        except Exception as error:
            # The runner throws only if the engine cannot serialize the failure.
            text = json.dumps({"kind": "throw", "name": "", "message": str(error), "stack": "", "is_bare": True})
        if text.startswith('{"value":'):
            if len(text) > header["message_bytes"]:
                return failed({"kind": "limit", "limit": "message", "name": "", "message": "", "stack": ""})
            return protocol.DONE, well_formed(text).encode()
        return failed(self._described(json.loads(well_formed(text)), header, job, statements))

    def _described(
        self, raw: dict[str, Any], header: protocol.RunHeader, job: protocol.RunJob, statements: list[int]
    ) -> protocol.Failure:
        """The failure with its position in the author's source; detects limits among exceptions."""
        kind, name, message, stack = raw["kind"], raw["name"], raw["message"], raw["stack"]
        failure: protocol.Failure = {
            "kind": kind,
            "name": name,
            "message": message,
            "stack": positions.author_stack(stack, job["source"], job["source_name"]),
            "code": raw.get("code"),
            "host_error": raw.get("host_error"),
            # Out of memory, the engine may be unable to create the error: it throws null, or an error without message.
            "may_be_memory": raw["is_bare"] or (name == "InternalError" and not message),
        }
        parser_line = positions.line_of_parser(stack) if name == "SyntaxError" else None
        if name in ("InternalError", "SyntaxError") and message in ENGINE_LIMITS:
            failure["kind"], failure["limit"] = "limit", ENGINE_LIMITS[message]
        if parser_line is not None and failure["kind"] != "limit":
            failure["kind"] = "syntax"
            place = positions.of_syntax_error(parser_line, message, job["source"], self._parser(header, job))
            failure["message"] = positions.clarified(message, place, job["source"])
        elif kind == "syntax":  # a body that closes its own function: parsed, but not as a body
            place = positions.NOWHERE
        elif isinstance(site := raw.get("site"), int) and 0 <= site < len(statements):
            place = positions.of_offset(statements[site], job["source"])
        else:
            place = positions.of_exception(stack, name, message, job["source"])
        failure["line"], failure["column"] = place
        return failure

    def _parser(
        self, header: protocol.RunHeader, job: protocol.RunJob
    ) -> Callable[[str], tuple[str, int | None] | None]:
        """A parser for prefixes of the job's source, in an empty context; a leading `throw` prevents execution."""
        context = self.new_context()
        context.set_memory_limit(header["memory_bytes"])
        context.set_max_stack_size(header["stack_bytes"])
        opening = function_opening(job) if is_function_body(job) else ""
        before = "\n" * (positions.PADDING_LINES - 1) + "throw 0;" + opening + "\n"

        def parse(start: str) -> tuple[str, int | None] | None:
            try:
                context.eval(before + start)
            except Exception as error:
                message, _, stack = str(error).partition("\n")
                name, _, text = message.partition(": ")
                return (text, positions.line_of_parser(stack)) if name == "SyntaxError" else None
            return None

        return parse

    # -- called by the context; an exception must not pass through the engine --------------------------------------

    def _call_host(self, method: str, arguments: str) -> str | None:
        try:
            return self._answer(method, arguments)
        except BaseException:
            os._exit(EXIT_BROKEN)

    def _answer(self, method: str, arguments: str) -> str | None:
        name = method.encode()
        payload = well_formed(arguments).encode()
        if len(name) > protocol.METHOD_MAX_BYTES or len(payload) > self._message_bytes:
            self._refusal = json.dumps(
                {"id": None, "name": "RangeError", "message": "The host call is too large.", "code": None, "data": None}
            )
            return None
        self._wire.send(protocol.CALL, protocol.CALL_HEADER.pack(len(name)), name, payload)
        kind, answer = self._wire.receive()
        if kind == protocol.ANSWER:
            return answer.decode()
        if kind != protocol.REFUSAL:
            raise protocol.ProtocolError(f"unexpected frame {kind!r}")
        self._refusal = answer.decode()
        return None

    def _take_refusal(self) -> str:
        refusal, self._refusal = self._refusal, "null"
        return refusal

    def _write_console(self, line: str) -> None:
        try:
            self._console.write(json.loads(well_formed(line)))
        except BaseException:
            os._exit(EXIT_BROKEN)


ENGINE_LIMITS: Final = {
    "out of memory": "memory",
    "out of memory in regexp execution": "memory",
    "stack overflow": "stack",
}


def engine_key(header: protocol.RunHeader) -> tuple[str, int, int]:
    """The settings that a prepared context depends on."""
    return header["prelude"], header["memory_bytes"], header["stack_bytes"]


def failed(failure: protocol.Failure) -> tuple[bytes, bytes]:
    return protocol.FAILED, json.dumps(failure).encode()


def load_engine(extension_path: str) -> Callable[[], Any]:
    """Load the engine's context class from its extension file: the package around it would import threads."""
    loader = importlib.machinery.ExtensionFileLoader("_quickjs", extension_path)
    spec = importlib.util.spec_from_file_location("_quickjs", extension_path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return cast(Callable[[], Any], module.Context)


def warm_up(worker: Worker) -> None:
    """Run every code path once, so that lazy imports and allocations happen before confinement."""
    header: protocol.RunHeader = {
        "prelude": "",
        "memory_bytes": 50_000_000,
        "stack_bytes": 500_000,
        "console_bytes": 0,
        "message_bytes": 1000,
        "cpu_seconds": 1,
    }
    job: protocol.RunJob = {
        "mode": protocol.MODE_SCRIPT,
        "source": "console.log(Math.random(), new Date()); Promise.reject(new Error('é')); throw new Error('é')",
        "source_name": "",
        "parameters": {},
        "globals": {},
    }
    kind, _ = worker._outcome(Engine(worker, header), header, job)
    assert kind == protocol.FAILED
    json.dumps("é").encode("utf-8", "replace").decode("utf-8", "replace")


def main(arguments: list[str]) -> NoReturn:
    """Arguments: project root, engine's extension file, socket, console's descriptor and size, memory, host's pid."""
    _, extension_path, socket_fd, console_fd, console_size, memory_bytes, host_pid = arguments
    wire = Wire(int(socket_fd))
    try:
        with open(os.path.join(sys.argv[1], "scripts", "preludes", "sandbox.js"), encoding="utf-8") as file:
            core_prelude = file.read()
        memory = mmap.mmap(int(console_fd), int(console_size))
        new_context, interface = load_engine(extension_path), EngineInterface(extension_path)
        worker = Worker(wire, Console(memory), new_context, interface, core_prelude)
        warm_up(worker)
        sys.path.clear()
        sys.meta_path.clear()
        sys.path_hooks.clear()
        flags = confinement.confine(socket_fd=int(socket_fd), memory_bytes=int(memory_bytes), host_pid=int(host_pid))
    except Exception as error:
        wire.send(protocol.FATAL, f"{type(error).__name__}: {error}".encode("utf-8", "replace"))
        os._exit(EXIT_BROKEN)
    try:
        worker.serve(flags)
    except BaseException as error:
        wire.send(protocol.FATAL, f"{type(error).__name__}: {error}".encode("utf-8", "replace"))
        os._exit(EXIT_BROKEN)


if __name__ == "__main__":
    main(sys.argv[1:])
