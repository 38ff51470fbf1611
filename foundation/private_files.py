"""Files in DATA_DIR that hold keys and secrets: written whole, for this user alone, by one process at a time."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path


def write(path: Path, content: bytes, *, is_new: bool = False) -> None:
    """Write a file whole or not at all, with mode 0600; it survives a power failure once this has returned.

    is_new: raises FileExistsError, and writes nothing, where the file exists already.
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
    # The new name is an entry of the directory, which fsync of the file does not cover (fsync(2)).
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


@contextlib.contextmanager
def lock(path: Path) -> Iterator[None]:
    """Hold the lock of this lock file, which is created; waits while another process or thread holds it."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
