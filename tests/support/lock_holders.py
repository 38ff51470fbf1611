"""Who holds the locks of the test databases in SQLite, and what this process does meanwhile."""

from __future__ import annotations

import gc
import os
import sqlite3
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from django.db import connections

#: The byte of the -shm file that a writer locks in WAL mode (SQLite's "walformat", 2.3.1).
_WRITE_LOCK = "120 120"


def lock_holders() -> str:
    """Holders of write locks by process id, open transactions of this process and the stacks of its threads."""
    found = [*_locks(), *_open_transactions(), *_stacks()]
    # A connection that was dropped without being closed is a cycle, and keeps its lock until it is collected.
    gc.collect()
    return "\n".join([*found, "after a garbage collection:", *_locks()])


def _locks() -> Iterator[str]:
    yield f"this is process {os.getpid()}"
    for database in connections.all(initialized_only=True):
        with suppress(OSError):
            inode = os.stat(f"{database.settings_dict['NAME']}-shm").st_ino
            for line in Path("/proc/locks").read_text().splitlines():
                if f":{inode} " in line and line.endswith(_WRITE_LOCK):
                    yield f"{database.alias}: {line}"


def _open_transactions() -> Iterator[str]:
    for connection in gc.get_objects():
        if isinstance(connection, sqlite3.Connection):
            with suppress(sqlite3.Error):  # it is closed
                names = [name for _, _, name in connection.execute("PRAGMA database_list")]
                yield f"{connection} in_transaction={connection.in_transaction} {names}"


def _stacks() -> Iterator[str]:
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    for ident, frame in sys._current_frames().items():
        yield f"--- {names.get(ident, ident)}\n" + "".join(traceback.format_stack(frame)[-12:])
