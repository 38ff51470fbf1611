"""The worker's side of the socket and of the console's memory."""

from __future__ import annotations

import mmap
import os
from typing import Final

from scripts.sandbox import protocol

EXIT_HOST_GONE: Final = 0
READ_BYTES: Final = 65_536
FIRST_READ_BYTES: Final = 8_192


class Wire:
    """Frames over the blocking socket."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._buffer = bytearray()

    def receive(self) -> tuple[bytes, bytes]:
        if not self._buffer:
            # Usually one read returns exactly one frame, which needs no copy.
            chunk = os.read(self._fd, FIRST_READ_BYTES)
            if len(chunk) > protocol.FRAME_HEADER.size:
                size, kind = protocol.FRAME_HEADER.unpack_from(chunk)
                if len(chunk) == protocol.FRAME_HEADER.size + size:
                    return kind, chunk[protocol.FRAME_HEADER.size :]
            elif not chunk:
                os._exit(EXIT_HOST_GONE)
            self._buffer += chunk
        self._fill(protocol.FRAME_HEADER.size)
        size, kind = protocol.FRAME_HEADER.unpack_from(self._buffer)
        end = protocol.FRAME_HEADER.size + size
        self._fill(end)
        payload = bytes(self._buffer[protocol.FRAME_HEADER.size : end])
        del self._buffer[:end]
        return kind, payload

    def send(self, kind: bytes, *parts: bytes) -> None:
        data = protocol.frame(kind, *parts)
        written = os.write(self._fd, data)
        while written < len(data):
            written += os.write(self._fd, memoryview(data)[written:])

    def _fill(self, needed: int) -> None:
        while len(self._buffer) < needed:
            chunk = os.read(self._fd, max(READ_BYTES, min(needed - len(self._buffer), 1 << 20)))
            if not chunk:
                os._exit(EXIT_HOST_GONE)
            self._buffer += chunk


class Console:
    """The shared console memory, which the host reads after the run."""

    def __init__(self, memory: mmap.mmap) -> None:
        self._memory = memory
        self._used = 0
        self._allowed = 0

    def begin(self, allowed_bytes: int) -> None:
        self._used = 0
        self._allowed = min(allowed_bytes, len(self._memory) - protocol.CONSOLE_HEADER.size)

    def write(self, line: str) -> None:
        data = line.encode()
        if self._used:
            data = b"\n" + data
        room = self._allowed - self._used
        if room > 0:
            start = protocol.CONSOLE_HEADER.size + self._used
            kept = data[:room]
            self._memory[start : start + len(kept)] = kept
            self._used += len(kept)
        protocol.CONSOLE_HEADER.pack_into(self._memory, 0, self._used, len(data) > room)
