"""Writes the output of several processes to one stream: whole lines with the process name, coloured on a terminal."""

from __future__ import annotations

import os
import sys
import threading
from typing import TextIO

_COLOURS = {"web": "36", "worker": "35", "": "32", "bold": "1", "dim": "2", "red": "31"}


class Console:
    """Writes lines of several threads to one stream without mixing them."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stdout
        self._lock = threading.Lock()
        self._coloured = self._stream.isatty() and "NO_COLOR" not in os.environ

    def say(self, text: str = "") -> None:
        """Write a line of the supervisor."""
        self._write(f"{text}\n")

    def relay(self, name: str, line: str) -> None:
        """Write a line that a child process printed."""
        self._write(f"{self.paint(f'{name:<6} |', name)} {line.rstrip()}\n")

    def paint(self, text: str, colour: str) -> str:
        """The text in the colour of that name, if the stream shows colours."""
        return f"\033[{_COLOURS[colour]}m{text}\033[0m" if self._coloured and colour in _COLOURS else text

    def _write(self, text: str) -> None:
        with self._lock:
            try:
                self._stream.write(text)
                self._stream.flush()
            except (BrokenPipeError, ValueError):
                # The reader of the pipe has exited (`make run | head`); the instance continues.
                pass
