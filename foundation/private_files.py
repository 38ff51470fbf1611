"""Writes and locks files of keys and secrets in DATA_DIR: atomic, readable by this user only."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path


def write(path: Path, content: bytes, *, is_new: bool = False) -> None:
    """Write a file atomically with mode 0600 and flush it to disk.

    is_new: raises FileExistsError, and writes nothing, if the file exists.
    """
    descriptor, written = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        (os.link if is_new else os.replace)(written, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(written)
    # fsync of the file does not cover its new entry in the directory (fsync(2)).
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


@contextlib.contextmanager
def lock(path: Path) -> Iterator[None]:
    """Create the lock file and hold its lock; waits while another process or thread holds it."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
