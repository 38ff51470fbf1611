"""Objects that exist once per process."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from functools import update_wrapper
from typing import Generic, TypeVar

T = TypeVar("T")


class PerProcess(Generic[T]):
    """Decorator of a function without arguments: caches its result per process, and calls it again after a fork.

    A forked process has none of its parent's threads, would never get a lock that one of them held, and would share
    connections.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._made: tuple[T] | None = None
        update_wrapper(self, make, updated=())
        os.register_at_fork(after_in_child=self.forget)

    def __call__(self) -> T:
        made = self._made
        if made is None:
            with self._lock:
                made = self._made
                if made is None:
                    made = self._made = (self._make(),)
        return made[0]

    def forget(self) -> None:
        """Drop the cached result."""
        self._lock = threading.Lock()
        self._made = None


@PerProcess
def process_name() -> str:
    """Host and process id."""
    return f"{socket.gethostname()[:64]}:{os.getpid()}"
