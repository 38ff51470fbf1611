"""Sends piped responses (foundation.streamed_responses) as fast as their clients read.

Granian buffers a streamed response without a limit, but reads a file only as fast as the client reads the response. So
it gets the path of a named pipe, and a thread writes the response into the pipe: the thread waits while the pipe is
full, and its writes fail after the client has disconnected.

The end of the pipe ends the response, so to abort a response its connection is closed first.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import select
import shutil
import tempfile
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from django.db import DatabaseError

from foundation.execution_slot import yield_to_requests
from foundation.streamed_responses import Parts
from platform_site.serving.connections import STALLED_SECONDS, abort
from platform_site.serving.exchange import HttpProtocol, ResponseHead

logger = logging.getLogger("platform.serving")

#: Capacity of the pipe: some parts.
PIPE_BYTES: Final = 256 * 1024
#: Time for the responses to end when the process stops, such as for cancelling a statement.
STOP_SECONDS: Final = 5.0
#: Slowest client, after its first STALLED_SECONDS: a response holds a thread, a connection and a snapshot.
BYTES_PER_SECOND: Final = 10_000
#: Maximum time for which a response waits for its client, all in all.
LONGEST_SECONDS: Final = 3600.0
#: Time for the server to open the pipe.
_OPEN_SECONDS: Final = 5.0
_POLL_SECONDS: Final = 0.5
_RETRY_SECONDS: Final = 0.002


class Broken(Exception):
    """The response was aborted: the client has disconnected or does not read, or the process stops."""


class Pipes:
    """The piped responses of a process."""

    def __init__(self) -> None:
        self._stopping = threading.Event()
        self._ended = threading.Condition()  # notified when a response has ended
        # One entry per response: the next response of a connection may begin before the last one is removed.
        self._clients: list[str] = []

    def stop(self) -> None:
        """Abort all responses when the process stops, also those whose next part takes long, and wait for their ends.

        The server stops with the interpreter lock held, waiting for its reads of pipes, whose writers need the lock.
        """
        with self._ended:
            self._stopping.set()
            for client in self._clients:
                abort(client)
            self._ended.wait_for(lambda: not self._clients, STOP_SECONDS)

    def send(self, protocol: HttpProtocol, client: str, head: ResponseHead, parts: Parts) -> bool:
        """Send the response to the client (address:port) in a separate thread. False, without sending, if the process
        stops."""
        with self._ended:
            if self._stopping.is_set():
                parts.close()
                return False
            self._clients.append(client)
        arguments = (protocol, client, head, parts)
        threading.Thread(target=self._send, args=arguments, name="piped response", daemon=True).start()
        return True

    def _send(self, protocol: HttpProtocol, client: str, head: ResponseHead, parts: Parts) -> None:
        try:
            with _Pipe(self._stopping) as pipe:
                protocol.response_file(head.status, head.headers, str(pipe.path))
                try:
                    pipe.open()
                    for part in parts:
                        pipe.write(part)
                        yield_to_requests()
                except Broken:
                    abort(client)
                    raise
        except Broken as exc:
            logger.info("a response was not sent to its end: %s", exc)
        except DatabaseError as exc:
            logger.warning("a response was not sent to its end: %s", exc)
        except Exception:
            logger.exception("unhandled exception in a piped response")
        finally:
            with self._ended:
                self._clients.remove(client)
                self._ended.notify_all()
            parts.close()


class _Pipe:
    """A named pipe and its writing end."""

    def __init__(self, stopping: threading.Event) -> None:
        self._stopping = stopping
        self._directory = Path(tempfile.mkdtemp(prefix="response-"))
        self.path = self._directory / "body"
        os.mkfifo(self.path, 0o600)
        self._end: int | None = None
        self._sent = 0
        self._waited = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._end is None:
            # A thread of the server may wait for a writer: open both ends, and close them.
            self._end = os.open(self.path, os.O_RDWR | os.O_NONBLOCK)
            self._remove()
        os.close(self._end)

    def _remove(self) -> None:
        shutil.rmtree(self._directory, ignore_errors=True)

    def open(self) -> None:
        """Wait until the server reads. Raises Broken."""
        deadline = time.monotonic() + _OPEN_SECONDS
        while True:
            # ENXIO: the server has not opened the pipe for reading yet.
            with contextlib.suppress(OSError):
                self._end = os.open(self.path, os.O_WRONLY | os.O_NONBLOCK)
                break
            if self._stopping.wait(_RETRY_SECONDS):
                raise Broken("the process stops")
            if time.monotonic() > deadline:
                raise Broken("the client has disconnected")
        # Remove the file once both ends are open, so that a killed process leaves none.
        self._remove()
        if hasattr(fcntl, "F_SETPIPE_SZ"):
            # Refused if the user has too many pipes; the default capacity suffices.
            with contextlib.suppress(OSError):
                fcntl.fcntl(self._end, fcntl.F_SETPIPE_SZ, PIPE_BYTES)

    def write(self, part: bytes) -> None:
        """Write a part, as fast as the client reads. Raises Broken."""
        assert self._end is not None
        left, deadline = memoryview(part), time.monotonic() + STALLED_SECONDS
        while left:
            if self._stopping.is_set():
                raise Broken("the process stops")
            try:
                written = os.write(self._end, left)
                left, self._sent = left[written:], self._sent + written
                deadline = time.monotonic() + STALLED_SECONDS
            except BlockingIOError:
                self._wait(deadline)
            except BrokenPipeError:
                raise Broken("the client has disconnected") from None

    def _wait(self, deadline: float) -> None:
        """Wait up to a moment for room in the pipe. Raises Broken for a client that reads nothing, or too slowly."""
        poller, began = select.poll(), time.monotonic()
        poller.register(self._end or -1, select.POLLOUT)
        is_writable = bool(poller.poll(_POLL_SECONDS * 1000))
        now = time.monotonic()
        if not is_writable and now > deadline:
            raise Broken(f"the client has read nothing for {STALLED_SECONDS:.0f} seconds")
        self._waited += now - began
        if self._waited > min(LONGEST_SECONDS, STALLED_SECONDS + self._sent / BYTES_PER_SECOND):
            raise Broken("the client reads too slowly")
