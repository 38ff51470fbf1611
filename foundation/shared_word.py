"""A memory-mapped file of one word that all processes of a machine share; it changes with every cache version.

Comparing the word costs one memory read. It only shows that some cache version (foundation.cache_versions) has changed;
the database has the values. A torn read, or a write without a change, costs one query.
"""

from __future__ import annotations

import logging
import mmap
import os
import struct
from collections.abc import Sequence
from pathlib import Path

logger = logging.getLogger(__name__)

_WORD = struct.Struct("=Q")
#: Used when the file cannot be mapped; never changes.
_NO_WORD = (0,)


class SharedWord:
    """One process's mapping of the file; `word[0]` is the current word."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.word: Sequence[int] = _NO_WORD
        self._file: tuple[int, int] | None = None
        self._failed = False
        self.remap()

    def remap(self) -> None:
        """Map the file again if it has been removed or replaced."""
        try:
            result = os.stat(self.path)
            is_mapped = (result.st_dev, result.st_ino) == self._file
        except OSError:
            is_mapped = False
        if not is_mapped:
            self._open(None)

    def write(self, word: int) -> None:
        """Write a word of 64 bits that the file never had."""
        self._open(word)

    def _open(self, word: int | None) -> None:
        """Open or create the file, write the word if one is given, and map the file if it is not mapped yet."""
        try:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                result = os.fstat(descriptor)
                if result.st_size < _WORD.size:
                    # A byte, not ftruncate: on tmpfs the first read of a hole allocates a page, and on a full disk that
                    # kills the reader (SIGBUS). A concurrent write of the word may lose its last byte, but the word
                    # still changes.
                    os.pwrite(descriptor, b"\0", _WORD.size - 1)
                if word is not None:
                    # Not through the map: on a full disk that would kill the process (SIGBUS).
                    os.pwrite(descriptor, _WORD.pack(word), 0)
                if (result.st_dev, result.st_ino) != self._file:
                    # Python frees the old map when no thread uses it any more.
                    self.word = memoryview(mmap.mmap(descriptor, _WORD.size, access=mmap.ACCESS_READ)).cast("Q")
                    self._file = (result.st_dev, result.st_ino)
            finally:
                os.close(descriptor)
            self._failed = False
        except OSError as error:
            if not self._failed:
                logger.warning("Changes reach other processes a little later: %s cannot be used: %s", self.path, error)
            self._failed = True
