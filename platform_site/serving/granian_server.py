"""The web server granian: its processes, each with a listening socket of its own (platform_site.serving.listening).

Granian's own interfaces either block a thread while a body arrives (WSGI) or run an event loop of Python for every
request (ASGI, RSGI). This module combines RSGI, which notifies when a body has arrived, with the thread pool of
WSGI. It uses internals of the pinned version 2.8; tests cover them.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import socket
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from granian._granian import CallbackScheduler, RSGIWorker, SocketHolder, WorkerSignal
from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.log import LogLevels
from granian.server.common import WORKERS_METHODS
from granian.server.mp import MPServer, WorkerProcess

from foundation import execution_slot
from platform_site.environment import BASE_DIR
from platform_site.serving.children import die_with_parent
from platform_site.serving.connection_balance import ConnectionBalance, SharedCounts
from platform_site.serving.listening import SPREADS_CONNECTIONS, drain, open_listening, reset_unread, undrain
from platform_site.serving.scheduler import SERVER_THREADS, Scheduler
from platform_site.serving.stopping import on_stop

#: Switch interval of the interpreter lock (Python: 5 ms): a short request next to long ones needs it often.
SWITCH_SECONDS = 0.0005
#: Maximum connections of one process, including kept-alive ones and those whose requests wait.
CONNECTIONS = 4096
#: Maximum connections of one process that the server has not accepted yet.
BACKLOG = 1024
#: Files that a process opens besides its connections.
_OTHER_FILES = 512
#: A connection without a complete request head within this time is closed: a new one, a kept-alive one, and one that
#: sends its head byte by byte. A proxy must close its kept-alive connections earlier (deploy/Caddyfile).
HEAD_SECONDS = 20
# Shorter than the supervisor's timeout (serving.children), to kill a process that does not end after SIGTERM.
KILL_TIMEOUT_SECONDS = 20
#: Time for running requests without clients to end.
FINISH_SECONDS = 5


class Server(MPServer):
    """A granian server whose processes open their sockets themselves."""

    def _init_shared_socket(self) -> None:
        self._sso = None


@dataclass(frozen=True, slots=True)
class WebServer:
    """The processes of a server.

    shared   the listening socket of all processes, if the caller of `serve` owns it, or if the system does not
             distribute connections over several
    """

    host: str
    port: int
    counts: SharedCounts
    shared: socket.socket | None

    def socket_of_a_process(self) -> socket.socket:
        """The socket on which the calling process listens."""
        listening = self.shared or open_listening(self.host, self.port)
        reset_unread(listening)
        return listening


def serve_in_process(
    server: WebServer,
    worker_id: int,
    application: Any,
    sock: Any,
    ipc: Any,
    loop: Any,
    runtime_mode: Any,
    runtime_threads: int,
    runtime_blocking_threads: int,
    blocking_threads: int,
    blocking_threads_idle_timeout: int,
    backpressure: int,
    task_impl: Any,
    http_mode: Any,
    http1_settings: Any,
    http2_settings: Any,
    websockets: bool,
    static_path: Any,
    log_access_format: Any,
    ssl_ctx: Any,
    scope_options: Any,
    metrics: Any,
) -> None:
    """The main function of a web process (MPServer._spawn_rsgi_worker, with the threads of _spawn_wsgi_worker)."""
    # Import here, since models cannot be imported before the application is loaded.
    from domain.dataset.transactions.change_waits import change_waits
    from domain.event_stream.hub import hub
    from platform_site.metrics import files_allocate
    from platform_site.serving.receiving import Receiver
    from platform_site.serving.web import Policy

    files_allocate()
    scheduler = Scheduler()
    execution_slot.install(scheduler)
    receiver = Receiver(application, Policy(), scheduler, ConnectionBalance(server.counts, worker_id - 1))
    listening = server.socket_of_a_process()
    stop, ended = WorkerSignal(), threading.Event()
    stop.add_cb(ended.set)

    def end() -> None:
        drain(listening)
        # The server finishes its requests before it ends, so waits for changes must end.
        change_waits.stop()
        hub.stop()
        receiver.stop()
        stop.set()

    on_stop(end)
    sys.setswitchinterval(SWITCH_SECONDS)
    accepting: Any = SocketHolder
    make: Any = RSGIWorker  # its type stubs are for another version
    worker = make(
        worker_id,
        (None, accepting(listening.fileno(), False, BACKLOG)),
        ipc,
        runtime_threads,
        runtime_blocking_threads,
        SERVER_THREADS,
        blocking_threads_idle_timeout,
        backpressure,
        http_mode,
        http1_settings,
        http2_settings,
        websockets,
        static_path,
        *ssl_ctx,
        metrics,
    )
    threading.Thread(target=receiver.watch, name="slow bodies", daemon=True).start()
    threading.Thread(target=scheduler.watch, name="scheduler", daemon=True).start()
    # The receiver replaces the event loop, of which the server uses only the two methods that run a callback.
    getattr(worker, WORKERS_METHODS[runtime_mode][False])(_callbacks(receiver, loop), receiver, stop)
    ended.wait()
    if server.shared is not None:
        undrain(listening)
    scheduler.finish(FINISH_SECONDS)


def _callbacks(receiver: Any, loop: Any) -> CallbackScheduler:
    """What the server calls for each request, in one of its threads."""

    class Callbacks(CallbackScheduler):
        def __init__(self, *arguments: Any) -> None:
            super().__init__()
            self._schedule_fn = receiver.take

    return Callbacks(loop, receiver.take, None, None, None)


def _open_files() -> int:
    """Raise the limit of open files; returns the number of connections that it allows."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = CONNECTIONS + _OTHER_FILES
    allowed = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(allowed, resource.getrlimit(resource.RLIMIT_NOFILE)[0]), most))
    return max(allowed - _OTHER_FILES, allowed // 2)


def serve(
    host: str,
    port: int,
    *,
    workers: int,
    listening: socket.socket | None = None,
    counts: SharedCounts | None = None,
) -> None:
    """Serve until SIGTERM. Call in a separate process. Raises OSError if the address is in use.

    listening   the caller's listening socket, which may have waiting connections
    counts      the connection counts, if the caller reads them
    """
    # Fork, so that the processes share the memory of the counts and of the loaded code.
    multiprocessing.set_start_method("fork", force=True)
    # Reserve the port, so that no other program binds it while a process restarts.
    reserved = listening or open_listening(host, port)
    spreads = SPREADS_CONNECTIONS and listening is None
    # Two servers of one user could share the port by mistake: only one can bind this abstract name.
    named = socket.socket(socket.AF_UNIX)
    if spreads:
        named.bind(f"\0business-platform {host}:{port}")
    server = WebServer(host, port, counts or SharedCounts(workers), None if spreads else reserved)
    Server(
        "platform_site.serving.web:application",
        host,
        port,
        interface=Interfaces.RSGI,
        http=HTTPModes.http1,
        http1_settings=HTTP1Settings(header_read_timeout=HEAD_SECONDS * 1000),
        websockets=False,
        workers=workers,
        process_name="platform: web",
        backlog=BACKLOG,
        backpressure=_open_files(),
        respawn_failed_workers=True,
        workers_kill_timeout=KILL_TIMEOUT_SECONDS,
        log_level=LogLevels.warning,
        log_dictconfig=json.loads((BASE_DIR / "platform_site/serving/web_log.json").read_text()),
    ).serve(spawn_target=partial(_begin, os.getpid(), WorkerProcess.wrap_target(partial(serve_in_process, server))))  # type: ignore[no-untyped-call]


def _begin(parent: int, main: Callable[..., None], *arguments: Any, **named: Any) -> None:
    """The whole of a web process; it ends with the one that started it, also while it loads the application."""
    die_with_parent(parent)
    main(*arguments, **named)
