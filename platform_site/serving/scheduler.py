"""Schedules the requests of a web process, so that no caller delays the others for long.

CPU-bound threads that share an interpreter lock slow one another down, so one request at a time holds the execution
slot of the process. Each caller has a queue, and the callers take turns. A request leaves the slot

- at its end,
- before it waits for something outside the process (`release`),
- after SLICE_SECONDS if requests of other callers wait or preempted ones defer to it, or after OWN_SLICE_SECONDS if
  other requests of its caller wait (`preempt`).

The server thread that submits a request executes it at once if the slot is free, and then the queue until it is empty:
passing a request to another thread takes as long as a small read. Meanwhile the other server thread is parked. It is
unparked to listen when a request occupies the first one for long. Request threads of the scheduler execute the requests
behind a preempted one.

A request checks its time at each database statement (`defer`); a thread of the scheduler preempts requests that execute
no statement for long (`watch`). A preempted request continues in its thread, and waits a moment at each statement while
another request holds the slot, so short requests overtake long ones. A caller has at most MAX_RUNNING running and
MAX_QUEUED waiting requests, so no caller takes all threads or fills the memory.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Final

from foundation.fair_queue import FairQueue

logger = logging.getLogger("platform.serving")

#: Maximum time for which a request holds the slot while requests of other callers wait.
SLICE_SECONDS: Final = 0.03
#: The same while only requests of the same caller wait: longer, since its writers would wait for SQLite's lock.
OWN_SLICE_SECONDS: Final = 0.3
#: A request that holds the slot for this time is long: another server thread is unparked to listen.
LONG_SECONDS: Final = 0.01
#: Interval of checks of the holder while there is no long request. Each check takes the interpreter lock from the
#: holder: an interval of LONG_SECONDS cost a tenth of the processor time of keyed reads.
CHECK_SECONDS: Final = 0.05
#: The same while requests of several callers wait, which the holder may delay until the next check.
CHECK_SEVERAL_SECONDS: Final = 0.015
#: Maximum wait of a preempted request in `defer` before it continues without the slot.
DEFER_SECONDS: Final = 0.02
#: Long work outside of requests, such as a response of a million rows, pauses while requests run: if one has begun
#: within this time, for a multiple (REST_FACTOR) of the work's processor time.
QUIET_SECONDS: Final = 0.25
REST_FACTOR: Final = 7.0
#: A caller with a running request starts no other while this many requests run, without those that wait outside.
MAX_RUNNING: Final = 3
#: Maximum requests of one caller in the queue.
MAX_QUEUED: Final = 1000
#: Maximum requests of the process that run or wait for something outside; each has a thread.
MAX_THREADS: Final = 128
#: After this wait of a queued request, the scheduler watches for its client's disconnect.
WATCH_SECONDS: Final = 1.0
#: Threads of the server: one listens while the other executes a long request; else one is parked.
SERVER_THREADS: Final = 2
#: Maximum idle request threads.
IDLE_THREADS: Final = 4


class Request:
    """A request that is queued or runs.

    caller    the name of the queue
    work      executes the request and sends its response
    notify    registers a callback for the disconnect of the client
    resolve   looks up the name of the caller, if it is not cached; None if it is known
    """

    __slots__ = ("caller", "is_counted", "notify", "resolve", "since", "work")

    def __init__(
        self,
        caller: str,
        work: Callable[[], None],
        notify: Callable[[Callable[[], None]], object] | None,
        resolve: Callable[[], str] | None = None,
    ) -> None:
        self.caller = caller
        self.work = work
        self.notify = notify
        self.resolve = resolve
        self.since = time.monotonic()  # start of its wait, or of its holding the slot
        self.is_counted = False  # whether it counts towards MAX_RUNNING


class Scheduler:
    """The request queues, the execution slot and the request threads of one web process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._queue: FairQueue[Request] = FairQueue()
        self._running: Counter[str] = Counter()  # caller → requests that count towards MAX_RUNNING
        self._holder: Request | None = None
        self._slot_is_free = threading.Event()
        self._is_busy = threading.Event()
        self._threads = 0
        self._idle = 0
        self._deferring = 0  # preempted requests that wait a moment for a free slot
        self._submitter_executes = False
        self._listening = SERVER_THREADS  # number of server threads that are not parked or executing
        self._nobody_listens = threading.Condition(self._lock)
        self._is_stopping = False
        self._next_watch = 0.0
        self._last_start = float("-inf")  # last start of a request, by time.monotonic
        self._current = threading.local()

    def submit(self, request: Request) -> bool:
        """Queue a request, or execute it and those behind it; False if its caller has too many in the queue.

        Called by all threads of the server, of which one at a time executes requests.
        """
        with self._lock:
            if self._queue.count_of(request.caller) >= MAX_QUEUED:
                return False
            self._queue.put(request)
            if self._submitter_executes or (first := self._start()) is None:
                self._wake()
                return True
            self._submitter_executes = True
            self._threads += 1
            self._listening -= 1
        self._run(first, self._next_at_once)
        with self._lock:
            if self._listening and not self._is_stopping:
                self._nobody_listens.wait()
            self._listening += 1
        return True

    def count_requests(self) -> int:
        """The number of requests that wait or run."""
        with self._lock:
            return len(self._queue) + self._threads - self._idle

    def release(self) -> None:
        """Give the slot to the next request, before the request of this thread waits for something outside."""
        request: Request | None = getattr(self._current, "request", None)
        if request is None or not request.is_counted:
            return
        with self._lock:
            self._uncount(request)
            if self._holder is request:
                self._free_slot()
            self._wake()
            self._listen()

    def defer(self) -> None:
        """Wait up to DEFER_SECONDS for a free slot, if the request of this thread has lost it."""
        request: Request | None = getattr(self._current, "request", None)
        if request is None:
            return
        if self._holder is request and time.monotonic() - request.since >= LONG_SECONDS:
            self.preempt()
        if self._holder is not request:
            with self._lock:
                self._deferring += 1
            self._slot_is_free.wait(DEFER_SECONDS)
            with self._lock:
                self._deferring -= 1

    def yield_to_requests(self) -> None:
        """In a thread without a request, pause while there are requests; in others, as `defer`."""
        if getattr(self._current, "request", None) is not None:
            self.defer()
            return
        if self._holder is not None:
            self._slot_is_free.wait(DEFER_SECONDS)
        worked = time.thread_time()
        if time.monotonic() - self._last_start < QUIET_SECONDS:
            time.sleep(min((worked - getattr(self._current, "worked", worked)) * REST_FACTOR, DEFER_SECONDS))
        self._current.worked = worked

    def watch(self) -> None:
        """Preempt requests that hold the slot for too long; an endless loop for a separate thread."""
        is_long = False
        while True:
            self._is_busy.wait()
            check_seconds = CHECK_SEVERAL_SECONDS if len(self._queue.callers) > 1 else CHECK_SECONDS
            time.sleep(LONG_SECONDS if is_long else check_seconds)
            try:
                is_long = self.preempt()
                self.watch_clients()
            except Exception:
                # If this thread ended, a long request would delay all others until its end.
                logger.exception("could not preempt")

    def preempt(self) -> bool:
        """Take the slot from a request that has held it for its slice, if another request can have it.

        Returns whether a long request holds the slot.
        """
        with self._lock:
            holder = self._holder
            if holder is None:
                self._is_busy.clear()
                return False
            held = time.monotonic() - holder.since
            if held < LONG_SECONDS:
                return False
            self._listen()
            if held >= SLICE_SECONDS:
                waiting = [caller for caller in self._queue.callers if self._may_start(caller)]
                # The holder may wait for a database lock that a deferring request has.
                if self._deferring or any(caller != holder.caller or held >= OWN_SLICE_SECONDS for caller in waiting):
                    self._free_slot()
                    self._wake()
            return True

    def watch_clients(self) -> None:
        """Drop queued requests whose clients disconnect, once they have waited for WATCH_SECONDS."""
        now = time.monotonic()
        with self._lock:
            if now < self._next_watch:
                return
            self._next_watch = now + WATCH_SECONDS
            waiting = self._queue.tickets()
        for request in waiting:
            if request.notify is not None and now - request.since >= WATCH_SECONDS:
                notify, request.notify = request.notify, None
                notify(partial(self._drop, request))

    def _drop(self, request: Request) -> None:
        with self._lock:
            self._queue.remove(request)

    def finish(self, timeout_seconds: float) -> None:
        """Wait until the running requests have ended, when the process stops."""
        with self._changed:
            self._is_stopping = True
            self._changed.notify_all()
            self._nobody_listens.notify_all()
            self._changed.wait_for(lambda: self._threads == 0, timeout_seconds)

    # --- threads ------------------------------------------------------------------------------------------------------

    def _run_queue(self) -> None:
        self._run(None, self._wait_for_next)

    def _run(self, request: Request | None, find_next: Callable[[], Request | None]) -> None:
        """Execute the request and those that `find_next` returns, until it returns None."""
        try:
            while request is not None or (request := find_next()) is not None:
                self._current.request = request
                try:
                    if self._is_resolved(request):
                        request.work()
                except Exception:
                    logger.exception("unhandled exception in a request thread")
                self._end(request)
                request = None
        finally:
            self._current.request = None
            with self._changed:
                self._threads -= 1
                if self._is_stopping:
                    self._changed.notify_all()

    def _end(self, request: Request) -> None:
        with self._lock:
            self._uncount(request)
            if self._holder is request:
                self._free_slot()

    def _wait_for_next(self) -> Request | None:
        """The next request for this thread; None if the thread should end."""
        with self._changed:
            while (request := self._start()) is None:
                if self._is_stopping or self._idle >= IDLE_THREADS:
                    return None
                self._idle += 1
                self._changed.wait()
                self._idle -= 1
            return request

    def _next_at_once(self) -> Request | None:
        """The next request for the submitting thread; None if there is none to execute now."""
        with self._lock:
            if (request := self._start()) is None:
                self._submitter_executes = False
            return request

    def _is_resolved(self, request: Request) -> bool:
        """Resolve the caller; False if the request must wait in the caller's own queue, since too many requests run."""
        if request.resolve is None:
            return True
        caller, request.resolve = request.resolve(), None
        if caller == request.caller:
            return True
        with self._lock:
            self._uncount(request)
            if self._may_start(caller) or self._queue.count_of(caller) >= MAX_QUEUED:
                request.caller = caller
                self._count(request)
                return True
            # A new object, since another thread may start it before this thread has ended the request.
            self._queue.put(Request(caller, request.work, request.notify))
        return False

    # --- with the lock ------------------------------------------------------------------------------------------------

    def _start(self) -> Request | None:
        """Give the free slot to the next request of the next caller that may have it."""
        if self._holder is not None or (request := self._queue.take(self._may_start)) is None:
            return None
        self._count(request)
        request.since = self._last_start = time.monotonic()
        self._holder = request
        self._slot_is_free.clear()
        if not self._is_busy.is_set():
            self._is_busy.set()
        return request

    def _may_start(self, caller: str) -> bool:
        return not self._running[caller] or self._running.total() < MAX_RUNNING

    def _listen(self) -> None:
        """Unpark a thread of the server if no other listens."""
        if not self._listening:
            self._nobody_listens.notify()

    def _free_slot(self) -> None:
        self._holder = None
        self._slot_is_free.set()

    def _wake(self) -> None:
        """Wake or start a thread for the next request."""
        if self._holder is not None or not self._queue:
            return
        if self._idle:
            self._changed.notify()
        elif self._threads < MAX_THREADS:
            self._threads += 1
            threading.Thread(target=self._run_queue, name="request", daemon=True).start()

    def _count(self, request: Request) -> None:
        request.is_counted = True
        self._running[request.caller] += 1

    def _uncount(self, request: Request) -> None:
        if request.is_counted:
            request.is_counted = False
            self._running[request.caller] -= 1
            if not self._running[request.caller]:
                del self._running[request.caller]
