"""Gives threads to requests when their turn comes (foundation.turns).

The server calls with a request in one of its threads. Where nobody works, that thread works itself, and goes on with
the requests that have come meanwhile: a change of threads costs some hundredths of a millisecond and cold CPU caches.
Else it leaves the request waiting and takes the next one from the server, so that callers take turns and not
connections. Where the thread that works gives its turn away in the middle, a thread of this pool goes on.

One thread of the server must always be free to take requests. The server makes its second thread when two requests wait
for the first; until then the first one only takes them.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Final, Protocol

from foundation.turns import Ticket, Turn
from platform_site.serving.exchange import Future

logger = logging.getLogger("platform.serving")

#: How often it is looked whether somebody has had the turn for too long.
LOOK_SECONDS: Final = 0.01
#: A thread without work ends after this time.
REST_SECONDS: Final = 10.0
#: Whether the client of a request that waits is still there is asked after this time.
PATIENCE_SECONDS: Final = 1.0

Work = Callable[[], None]


class Client(Protocol):
    """Who has sent a request (platform_site.serving.exchange.HttpProtocol)."""

    def client_disconnect(self) -> Future:
        """Done when the client disconnects."""


class _Request(Ticket):
    __slots__ = ("client", "threads", "work")

    def __init__(self, caller: str, work: Work, client: Client, threads: RequestThreads) -> None:
        super().__init__(caller)
        self.work = work
        self.client: Client | None = client
        self.threads = threads

    def begin(self) -> None:
        self.threads.begin(self)


class _Resting:
    """A thread without work."""

    __slots__ = ("called", "request")

    def __init__(self) -> None:
        self.called = threading.Lock()
        self.called.acquire()
        self.request: _Request | None = None


class RequestThreads:
    """The request threads of one process.

    server_threads   how many the server has at most, and keeps; all but one may work
    """

    def __init__(self, turn: Turn, *, server_threads: int, rest_seconds: float = REST_SECONDS) -> None:
        self._turn = turn
        self._rest_seconds = rest_seconds
        self._server_threads = server_threads
        self._seen: set[int] = set()
        self._allowed: list[None] = [None] * (server_threads - 1)
        self._lock = threading.Lock()
        self._resting: list[_Resting] = []

    def submit(self, caller: str, work: Work, client: Client) -> None:
        """Do some work in the caller's turn, in this thread or another one; not if the client goes before."""
        request = _Request(caller, work, client, self)
        if self._turn.is_known_here or not self._may_work():
            self._turn.queue(request)
            return
        try:
            self._allowed.pop()
        except IndexError:  # too many of them work
            self._turn.queue(request)
            return
        try:
            if self._turn.offer(request):
                self._work(request)
        finally:
            self._allowed.append(None)

    def _may_work(self) -> bool:
        """Whether this thread of the server may work, because there is another one."""
        if len(self._seen) == self._server_threads:
            return True
        self._seen.add(threading.get_ident())
        return len(self._seen) == self._server_threads

    def watch(self) -> None:
        """Let nobody keep the turn from others; a loop for its own thread."""
        next_second = time.monotonic()
        while True:
            time.sleep(LOOK_SECONDS)
            self._turn.look()
            if (now := time.monotonic()) >= next_second:
                next_second = now + 1.0
                self.forget_gone(now)

    def forget_gone(self, now: float) -> None:
        """Let go of requests that wait and whose clients have gone, or will: nobody needs their answers."""
        for request in self._turn.waiting_since(now - PATIENCE_SECONDS):
            if isinstance(request, _Request) and request.client is not None:
                gone = request.client.client_disconnect()
                request.client = None
                gone.add_done_callback(partial(self._forget, request), context=None)

    def _forget(self, request: _Request, gone: Future) -> None:
        self._turn.withdraw(request)

    def stop(self) -> None:
        """The process is stopping: threads without work end."""
        with self._lock:
            self._rest_seconds = 0.0
            for resting in self._resting:
                resting.called.release()
            self._resting.clear()

    def begin(self, request: _Request) -> None:
        """Give a thread to a request that has the turn."""
        with self._lock:
            resting = self._resting.pop() if self._resting else None
        if resting is None:
            threading.Thread(target=self._run, args=(request,), name="request", daemon=True).start()
        else:
            resting.request = request
            resting.called.release()

    def _run(self, request: _Request | None) -> None:
        while request is not None:
            self._turn.adopt(request)
            self._work(request)
            request = self._rest()

    def _work(self, request: _Request) -> None:
        """Work for a request, and for those whose turn it is afterwards."""
        following: Ticket | None = request
        while isinstance(following, _Request):
            try:
                following.work()
            except Exception:
                logger.exception("unhandled exception in a request thread")
            following = self._turn.end()

    def _rest(self) -> _Request | None:
        """The next request for this thread; None after some time without."""
        resting = _Resting()
        with self._lock:
            self._resting.append(resting)
            seconds = self._rest_seconds
        if not resting.called.acquire(timeout=seconds):
            with self._lock:
                if resting in self._resting:
                    self._resting.remove(resting)
                    return None
            resting.called.acquire()  # it is being called at this moment
        return resting.request
