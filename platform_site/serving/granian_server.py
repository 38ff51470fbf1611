"""The web server granian, on the listening socket that its supervisor opened (platform_site.serving.listening)."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import socket
import threading
from collections.abc import Callable, Iterable
from typing import Any

import granian.server.mp
from granian._granian import SocketHolder
from granian.constants import HTTPModes, Interfaces
from granian.log import LogLevels
from granian.server.mp import MPServer
from granian.wsgi import _callback_wrapper as answering

from foundation.turns import turn
from platform_site.environment import BASE_DIR
from platform_site.serving.listening import DESCRIPTOR_VARIABLE
from platform_site.serving.standby import Standby

#: Requests of one process that may arrive, or wait for something outside, at once. One at a time is worked on: pages
#: that need the processor collapse under threads that share an interpreter lock (measured: docs/decisions.md).
THREADS = 128
#: Connections of one process that the server reads from: also those whose requests wait, or that are kept open.
CONNECTIONS = 1024
# A process that does not end when it is told to is killed before the supervisor gives up (children).
KILL_TIMEOUT_SECONDS = 20


class InheritingServer(MPServer):
    """Granian whose processes share one socket, handed to it; by itself each of them opens one of its own."""

    def __init__(self, listening: socket.socket, *, workers: int) -> None:
        host, port = listening.getsockname()[:2]
        super().__init__(
            "platform_site.serving.web:application",
            host,
            port,
            interface=Interfaces.WSGI,
            http=HTTPModes.http1,
            websockets=False,
            workers=workers,
            blocking_threads=THREADS,
            backpressure=CONNECTIONS,
            respawn_failed_workers=True,
            workers_kill_timeout=KILL_TIMEOUT_SECONDS,
            log_level=LogLevels.warning,
            log_dictconfig=json.loads((BASE_DIR / "platform_site/serving/web_log.json").read_text()),
        )
        self._listening = listening

    def _init_shared_socket(self) -> None:
        # What granian 2.8 does with a Unix socket, which its processes share too (granian/server/common.py, mp.py); its
        # types do not know these.
        self._ssp = None
        self._sso = self._listening
        self._sfd = self._listening.fileno()  # type: ignore[assignment]
        self._shd = SocketHolder(self._sfd, False, self.backlog)  # type: ignore[assignment,call-arg]


class _Way:
    """The way back to the client. An answer that comes piece by piece comes from a thread of its own.

    Such answers are long polls: nothing else leaves the application unfinished (serving.turns). One of the server's
    threads that served it would be one less for requests.
    """

    __slots__ = ("_protocol", "response_bytes")

    def __init__(self, protocol: Any) -> None:
        self._protocol = protocol
        self.response_bytes = protocol.response_bytes

    def response_iter(self, status: int, headers: list[tuple[str, str]], body: Iterable[bytes]) -> None:
        """Begin to answer."""
        threading.Thread(
            target=self._protocol.response_iter, args=(status, headers, body), name="long poll", daemon=True
        ).start()


def _answering_in_one_thread(application: Callable[..., Any], *options: Any) -> Callable[..., Any]:
    """What a web process of granian 2.8 calls for each request (granian/wsgi.py), by the threads of serving.standby."""
    answer = answering(application, *options)
    standby = Standby()
    turn.reserve = standby
    return standby.serving(lambda protocol, scope: answer(_Way(protocol), scope))


def main() -> None:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, required=True)
    options = parser.parse_args()
    # The socket is inherited, so the processes are forked; and what is said here holds in them.
    multiprocessing.set_start_method("fork")
    granian.server.mp._wsgi_call_wrap = _answering_in_one_thread  # type: ignore[attr-defined, assignment]
    InheritingServer(socket.socket(fileno=int(os.environ[DESCRIPTOR_VARIABLE])), workers=options.workers).serve()


if __name__ == "__main__":
    main()
