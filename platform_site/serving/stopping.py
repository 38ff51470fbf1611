"""Stops a worker process in order."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable


def on_stop(action: Callable[[], None]) -> None:
    """Call `action` in a separate thread when the process receives SIGTERM or SIGINT. Call from the main thread.

    A Python handler would interrupt the main thread at any point. So the handlers do nothing: the interpreter writes
    the number of each signal into a pipe (signal.set_wakeup_fd) that a thread reads.
    """
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    threading.Thread(target=_read, args=(reading, action), name="on-stop", daemon=True).start()


def _read(reading: int, action: Callable[[], None]) -> None:
    while numbers := os.read(reading, 64):
        if signal.SIGTERM in numbers or signal.SIGINT in numbers:
            action()
            return
