"""Detects that a worker process must stop, without replacing the server's signal handlers."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable


def on_stop(action: Callable[[], None]) -> None:
    """Call `action` in a separate thread when the process receives SIGTERM. Call from the main thread.

    The server installs its own handlers after the application is loaded, and they stay the only ones: the interpreter
    writes the number of each signal that it handles into a pipe (signal.set_wakeup_fd) that a thread reads.
    """
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    threading.Thread(target=_read, args=(reading, action), name="on-stop", daemon=True).start()


def _read(reading: int, action: Callable[[], None]) -> None:
    while numbers := os.read(reading, 64):
        if signal.SIGTERM in numbers or signal.SIGINT in numbers:
            action()
            return
