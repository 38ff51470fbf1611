"""The pool of script workers, and the order of the runs."""

from __future__ import annotations

import atexit
import logging
import math
import os
import queue
import signal
import threading
import time
import weakref
from collections import deque
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, Literal, Self

import orjson
from prometheus_client import Histogram

from foundation.execution_slot import release_slot
from foundation.fair_queue import FairQueue
from scripts.sandbox import protocol
from scripts.sandbox.errors import CallerBusy, SandboxBusy, SandboxUnavailable
from scripts.sandbox.limits import Limits
from scripts.sandbox.process import FrameTooLarge, WorkerLost, WorkerProcess
from scripts.sandbox.run import HostCalls, Run, RunResult, check_source, refuse_all_calls

logger = logging.getLogger(__name__)

_wait_seconds = Histogram(
    "platform_script_wait_seconds",
    "Time until a script had a worker, or was refused one.",
    buckets=(0.0001, 0.001, 0.01, 0.1, 0.5, 1, 2.5, 5, 10),
)

Mode = Literal["script", "function_body"]

# Maximum runs of a process that wait for a worker. Each blocks a request thread.
MAX_WAITING: Final = 64
# Maximum wait for a worker's next context: it is ready within a millisecond, unless a large old heap is freed first.
READY_SECONDS: Final = 1.0
START_SECONDS: Final = 10.0


@dataclass(eq=False, slots=True)
class Ticket:
    """A waiting run. `is_over` is set when it gets a worker, or is replaced by a run of another caller."""

    caller: str
    is_over: threading.Event = field(default_factory=threading.Event)
    worker: WorkerProcess | None = None


class SandboxPool:
    """A pool of warm workers of this process; callers take turns (foundation.fair_queue).

    At most `size` run concurrently. One more is kept warm: for the run after a kill, and for a caller without a running
    run while others use all workers. A run within a host call of another gets an extra worker, which prevents a
    deadlock. `run` is thread-safe. The first run starts the workers. After a fork the child has an empty pool; the
    workers remain the parent's. Workers end with the pool (`close`, or at exit), and with this process however it ends.
    """

    def __init__(
        self,
        size: int,
        limits: Limits | None = None,
        *,
        wait_seconds: float = 10.0,
        max_waiting: int = MAX_WAITING,
        max_per_caller: int | None = None,
    ) -> None:
        """limits: the maximum for all runs. wait_seconds: maximum wait for a worker, before SandboxBusy.

        max_per_caller: running and waiting runs of one caller; None: no limit.
        """
        if size < 1:
            raise ValueError("a pool needs at least one worker")
        self.size = size
        self.limits = limits or Limits()
        self.wait_seconds = wait_seconds
        self.max_waiting = max_waiting
        self.max_per_caller = max_per_caller
        self._reset()
        _pools.add(self)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._idle: deque[WorkerProcess] = deque()
        self._workers: set[WorkerProcess] = set()  # all alive, idle or at work
        self._taken: dict[WorkerProcess, str] = {}  # at work → the caller
        self._callers: dict[int, int] = {}  # thread → runs it has begun and not ended, each within the one before
        self._extra = 0  # runs within runs, for which there are workers beyond the size
        self._waiting: FairQueue[Ticket] = FairQueue()
        self._chores: queue.SimpleQueue[WorkerProcess | None] = queue.SimpleQueue()
        self._keeper: threading.Thread | None = None
        self._failed_starts = 0
        self._start_failure = ""
        self._closed = False

    # -- running ---------------------------------------------------------------------------------------------------

    def run(
        self,
        source: str,
        *,
        mode: Mode = "script",
        parameters: dict[str, Any] | None = None,
        prelude: str = "",
        globals_json: bytes | None = None,
        host_calls: HostCalls | None = None,
        limits: Limits | None = None,
        source_name: str = "script.js",
        caller: str = "",
    ) -> RunResult:
        """Run a source in a new context and wait for its end.

        mode          script: statements; function_body: may `return`, has `parameters` and each of its members as a
                      variable; the result is its return value and the final `parameters`
        prelude       source of a function body with the parameters `(host, sandbox)`, run before the script, which
                      cannot access it. `host(method, ...arguments)` calls host_calls and returns its result or throws
                      its HostCallError; `sandbox.beforeEnd(f)` runs f when the script and its promises have ended. If
                      it returns a function, that is called with the globals at the start of the run.
        globals_json  a JSON object: passed to the prelude's function, or else defined as global variables
        host_calls    function of method and arguments, called in the calling thread; its result must be serializable
                      by orjson (orjson.Fragment for existing JSON). HostCallError is thrown in the script; any other
                      exception ends the run and is raised here.
        caller        id of the caller; max_per_caller does not apply to ""

        Raises ScriptFailed (see errors.py), SandboxBusy, CallerBusy, SandboxUnavailable, SandboxFault.
        """
        return self._run(source, mode, parameters or {}, prelude, globals_json, host_calls, limits, source_name, caller)

    def check_syntax(
        self,
        source: str,
        *,
        mode: Mode = "script",
        parameter_names: tuple[str, ...] = (),
    ) -> None:
        """Raise ScriptSyntaxError if the source does not parse. Nothing is run."""
        check = protocol.MODE_CHECK_SCRIPT if mode == "script" else protocol.MODE_CHECK_FUNCTION_BODY
        self._run(source, check, dict.fromkeys(parameter_names), "", None, None, None, "script.js")

    def _run(
        self,
        source: str,
        mode: str,
        parameters: dict[str, Any],
        prelude: str,
        globals_json: bytes | None,
        host_calls: HostCalls | None,
        limits: Limits | None,
        source_name: str,
        caller: str = "",
    ) -> RunResult:
        allowed = self.limits if limits is None else limits.within(self.limits)
        check_source(source, allowed)
        job = orjson.dumps(
            {
                "mode": mode,
                "source": source,
                "source_name": source_name,
                "parameters": parameters,
                "globals": orjson.Fragment(globals_json or b"null"),
            }
        )
        worker = self._acquire(caller)
        run = Run(worker, allowed, host_calls or refuse_all_calls)
        try:
            return run.perform(prelude, job)
        finally:
            self._release(worker, reusable=run.reusable)
            self._end_call()

    # -- workers ---------------------------------------------------------------------------------------------------

    @property
    def _at_work(self) -> int:
        return len(self._taken)

    def _acquire(self, caller: str = "") -> WorkerProcess:
        """A ready worker; the same thread must return it by `_release` and `_end_call`."""
        self._begin_call()
        try:
            with _wait_seconds.time():
                return self._find_worker(caller)
        except BaseException:
            self._end_call()
            raise

    def _begin_call(self) -> None:
        """Count the thread's runs. A run within a host call of the thread's own script gets an extra worker at once."""
        thread = threading.get_ident()
        with self._lock:
            self._callers[thread] = self._callers.get(thread, 0) + 1
            if self._callers[thread] > 1:
                self._extra += 1
                self._chores.put(None)

    def _end_call(self) -> None:
        thread = threading.get_ident()
        with self._lock:
            if self._callers.get(thread, 0) > 1:
                self._callers[thread] -= 1
                self._extra -= 1
            else:
                self._callers.pop(thread, None)
            while self._idle and len(self._workers) > self.size + 1 + self._extra:
                surplus = self._idle.pop()
                self._workers.discard(surplus)
                self._chores.put(surplus)

    def _find_worker(self, caller: str) -> WorkerProcess:
        deadline = time.monotonic() + self.wait_seconds
        # A run whose worker died, and a run within another run, go to the front of the queue.
        in_front = self._callers[threading.get_ident()] > 1
        while True:
            worker = self._next_worker(deadline, caller, in_front=in_front)
            in_front = True
            fresh = worker.runs == 0
            try:
                if self._wait_ready(worker, START_SECONDS if fresh else READY_SECONDS):
                    self._failed_starts = 0
                    return worker
            except (WorkerLost, FrameTooLarge, protocol.ProtocolError):
                logger.warning("script worker %d died before its run: %s", worker.pid, worker.fatal)
            except BaseException:  # an interrupt: release the worker
                self._release(worker, reusable=False)
                raise
            exit_code = worker.exit_code(1)
            if fresh and exit_code != -signal.SIGKILL:  # sent by another process
                self._failed_starts += 1
                self._start_failure = worker.fatal or f"exit code {exit_code}"
            self._release(worker, reusable=False)

    def _wait_ready(self, worker: WorkerProcess, seconds: float) -> bool:
        if worker.poll_ready():
            return worker.wait_ready(0)
        release_slot()
        return worker.wait_ready(time.monotonic() + seconds)

    def _next_worker(self, deadline: float, caller: str, *, in_front: bool) -> WorkerProcess:
        ticket = Ticket(caller)
        with self._lock:
            if self._closed:
                raise SandboxUnavailable("The pool is closed.")
            if self._failed_starts >= 3 * self.size:
                self._failed_starts -= 1  # fail at once, and let a later run try again
                raise SandboxUnavailable(f"Script workers do not start: {self._start_failure}")
            self._ensure_keeper()
            if in_front:
                self._waiting.put_first(ticket)
            else:
                self._queue(ticket)
            self._assign_idle()
            worker = ticket.worker
            if worker is not None:
                return worker
        try:
            release_slot()
            ticket.is_over.wait(max(0.0, deadline - time.monotonic()))
        except BaseException:  # an interrupt: this thread does not use the worker
            self._leave(ticket)
            raise
        with self._lock:
            if ticket.worker is not None:
                return ticket.worker
            self._waiting.remove(ticket)
            if self._failed_starts:
                raise SandboxUnavailable(f"Script workers do not start: {self._start_failure}")
            raise SandboxBusy(self._retry_after())

    def _queue(self, ticket: Ticket) -> None:
        """Put a ticket behind the others of its caller; lock held. Raises CallerBusy, SandboxBusy."""
        caller = ticket.caller
        if caller and self.max_per_caller is not None:
            own = self._waiting.count_of(caller) + sum(holder == caller for holder in self._taken.values())
            if own >= self.max_per_caller:
                raise CallerBusy(own, self._retry_after())
        runs_at_once = self._idle and self._may_run(caller)
        if len(self._waiting) >= self.max_waiting and not runs_at_once:
            # In a full queue the last run of the caller with the most waiting runs is removed.
            other = self._waiting.evict_for(caller)
            if other is None:
                raise SandboxBusy(self._retry_after())
            other.is_over.set()
        self._waiting.put(ticket)

    def _may_run(self, caller: str) -> bool:
        """Whether a run of the caller may get an idle worker; lock held."""
        spare = caller not in self._taken.values()
        return self._at_work < self.size + self._extra + spare

    def _pick_idle(self) -> WorkerProcess:
        """The longest idle worker that is ready; else one between two runs rather than one that is starting.

        Lock held.
        """
        worker = next((worker for worker in self._idle if worker.poll_ready()), None)
        if worker is None:
            worker = max(self._idle, key=lambda worker: worker.runs > 0)
        self._idle.remove(worker)
        return worker

    def _release(self, worker: WorkerProcess, *, reusable: bool) -> None:
        if not reusable:
            worker.kill()
        with self._lock:
            self._taken.pop(worker, None)
            if worker not in self._workers:  # the pool was closed meanwhile
                worker.reap()
                return
            if reusable:
                self._idle.append(worker)
            else:
                self._workers.discard(worker)
                self._chores.put(worker)
            self._assign_idle()

    def _leave(self, ticket: Ticket) -> None:
        with self._lock:
            if ticket.worker is None:
                self._waiting.remove(ticket)
                return
        self._release(ticket.worker, reusable=True)

    def _assign_idle(self) -> None:
        """Assign idle workers to the next runs; lock held."""
        while self._idle and (ticket := self._waiting.take(self._may_run)) is not None:
            ticket.worker = self._pick_idle()
            self._taken[ticket.worker] = ticket.caller
            ticket.is_over.set()

    def _retry_after(self) -> int:
        return max(1, math.ceil(min(self.limits.wall_seconds, self.wait_seconds) / 2))

    def _ensure_keeper(self) -> None:
        """Start the keeper if needed, and have it start missing workers; lock held."""
        if self._keeper is None:
            self._keeper = threading.Thread(target=self._maintain_workers, name="sandbox-keeper", daemon=True)
            self._keeper.start()
            self._chores.put(None)
            return
        if not self._workers:  # after failed starts
            self._chores.put(None)

    def _maintain_workers(self) -> None:
        """Start and reap workers, in a separate thread, so that no caller waits for it.

        The thread lives as long as the process: the kernel sends a worker its death signal when the *thread* that
        started it ends, not the process.
        """
        chores = self._chores
        while True:
            worker = chores.get()
            try:
                if worker is not None:
                    worker.reap()
                if self._is_closed():
                    return
                self._start_missing()
            except Exception as error:
                logger.exception("cannot start a script worker")
                with self._lock:
                    self._failed_starts += 1
                    self._start_failure = str(error)
                time.sleep(0.2)

    def _start_missing(self) -> None:
        while True:
            with self._lock:
                if self._closed or len(self._workers) > self.size + self._extra:
                    return
                failed_starts = self._failed_starts
            if failed_starts:
                time.sleep(min(1.0, 0.1 * failed_starts))
            worker = WorkerProcess(self.limits)
            with self._lock:
                if self._is_closed():
                    self._chores.put(worker)
                    return
                self._workers.add(worker)
                self._idle.append(worker)
                self._assign_idle()

    def start_failure(self) -> str | None:
        """Why workers do not start here; None if they do. Starts one, unless one of the pool has become ready."""
        with self._lock:
            if any(worker.ready for worker in self._workers):
                return None
        try:
            worker = WorkerProcess(self.limits)
        except OSError as error:
            return str(error)
        try:
            is_ready = worker.wait_ready(time.monotonic() + START_SECONDS)
            return None if is_ready else f"not ready within {START_SECONDS:.0f} s"
        except (WorkerLost, FrameTooLarge, protocol.ProtocolError):
            return worker.fatal or f"exit code {worker.exit_code(1)}"
        finally:
            worker.reap()

    # -- the pool's end --------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Kill and reap every worker. Running scripts end with ScriptCrashed."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            workers, self._workers = self._workers, set()
            idle, self._idle = self._idle, deque()
            keeper = self._keeper
            self._chores.put(None)
        if keeper is not None:
            keeper.join(START_SECONDS)
        for worker in workers:
            worker.kill()
        for worker in workers:
            worker.exit_code(START_SECONDS)
        for worker in idle:
            worker.close()  # the runs close the others
        while not self._chores.empty():
            left = self._chores.get()
            if left is not None:
                left.reap()

    def _is_closed(self) -> bool:
        return self._closed  # set by other threads, which a type checker does not see

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _forget(self) -> None:
        """In a forked child: drop the parent's workers, and locks that its threads may hold."""
        for worker in self._workers:
            worker.close_in_child()
        self._reset()

    def confinement(self) -> dict[str, bool]:
        """The effective confinement measures on this machine (confinement.py); for system checks and tests."""
        worker = self._acquire()
        flags = dict(worker.confinement)
        self._release(worker, reusable=True)
        self._end_call()
        return flags


_pools: weakref.WeakSet[SandboxPool] = weakref.WeakSet()


def _close_pools() -> None:
    for pool in list(_pools):
        pool.close()


def _forget_pools() -> None:
    for pool in list(_pools):
        pool._forget()


atexit.register(_close_pools)
os.register_at_fork(after_in_child=_forget_pools)
