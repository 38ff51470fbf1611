"""The web server granian, on the listening socket that its supervisor opened (platform_site.serving.listening)."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import socket

from granian._granian import SocketHolder
from granian.constants import HTTPModes, Interfaces
from granian.log import LogLevels
from granian.server.mp import MPServer

from platform_site.environment import BASE_DIR
from platform_site.serving.listening import DESCRIPTOR_VARIABLE

# A process that does not end when it is told to is killed before the supervisor gives up (children).
KILL_TIMEOUT_SECONDS = 20


class InheritingServer(MPServer):
    """Granian whose processes share one socket, handed to it; by itself each of them opens one of its own."""

    def __init__(self, listening: socket.socket, *, workers: int, blocking_threads: int, backpressure: int) -> None:
        host, port = listening.getsockname()[:2]
        super().__init__(
            "platform_site.serving.web:application",
            host,
            port,
            interface=Interfaces.WSGI,
            http=HTTPModes.http1,
            websockets=False,
            workers=workers,
            blocking_threads=blocking_threads,
            backpressure=backpressure,
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


def main() -> None:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser()
    for name in ("--workers", "--blocking-threads", "--backpressure"):
        parser.add_argument(name, type=int, required=True)
    options = parser.parse_args()
    # The socket is inherited, so the processes are forked.
    multiprocessing.set_start_method("fork")
    InheritingServer(socket.socket(fileno=int(os.environ[DESCRIPTOR_VARIABLE])), **vars(options)).serve()


if __name__ == "__main__":
    main()
