"""Counters of events per minute, shared by all processes (spec 01, 1.9): in Redis, else in a file of this node.

Not Django's cache: its file backend is neither atomic nor fast enough for every request, and its Redis client needs two
round trips.
"""

from __future__ import annotations

import fcntl
import hashlib
import mmap
import os
import struct
import threading
from pathlib import Path
from typing import Protocol

from django.conf import settings

from foundation.per_process import PerProcess
from foundation.redis_failures import redis_required


class Counters(Protocol):
    """Counters by name and window."""

    def add(self, name: str, window: int, amount: int = 1) -> int:
        """Add to a counter and return its sum in the window (numbered by minute).

        A negative amount undoes a count of that window.
        """
        ...


class RedisCounters:
    """Counters for any number of nodes. Raises errors.Unavailable without Redis, so that every guess is counted."""

    def __init__(self, url: str) -> None:
        import redis

        self._client = redis.Redis.from_url(url)

    def add(self, name: str, window: int, amount: int = 1) -> int:
        key = f"count:{name}:{window}"
        with redis_required(), self._client.pipeline(transaction=False) as pipeline:
            pipeline.incrby(key, amount)
            # Longer than the window: a node with a slow clock must not start a new counter.
            pipeline.expire(key, 120)
            return int(pipeline.execute()[0])


class FileCounters:
    """Counters for the processes of one node: a table of fixed-size records in a mapped file, under one file lock.

    A record is (digest of the name, window, count). If other names use all records of a name in this window, it shares
    the last one and counts too much rather than too little.
    """

    _RECORD = struct.Struct("<QII")
    _RECORDS = 1 << 15
    _PROBES = 8

    def __init__(self, path: Path) -> None:
        size = self._RECORD.size * self._RECORDS
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        # Locked, so that no process overwrites another's counts with zeros.
        fcntl.lockf(self._descriptor, fcntl.LOCK_EX)
        present = os.fstat(self._descriptor).st_size
        if present < size:
            # Written, not truncated to the size: filling a hole through the map on a full disk kills the process.
            os.pwrite(self._descriptor, bytes(size - present), present)
        fcntl.lockf(self._descriptor, fcntl.LOCK_UN)
        self._map = mmap.mmap(self._descriptor, size)
        # A POSIX lock belongs to the process, so threads need a lock of their own.
        self._lock = threading.Lock()

    def add(self, name: str, window: int, amount: int = 1) -> int:
        digest = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")
        record, table = self._RECORD, self._map
        with self._lock:
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX)
            try:
                free = -1
                offset = 0
                for probe in range(self._PROBES):
                    offset = (digest + probe) % self._RECORDS * record.size
                    found, found_window, count = record.unpack_from(table, offset)
                    if found == digest and found_window == window:
                        total = max(0, int(count) + amount)
                        record.pack_into(table, offset, digest, window, total)
                        return total
                    if free < 0 and found_window != window:
                        free = offset
                if amount < 0:
                    return 0  # another name has taken the record
                if free >= 0:
                    record.pack_into(table, free, digest, window, amount)
                    return amount
                _, _, count = record.unpack_from(table, offset)
                record.pack_into(table, offset, digest, window, count + amount)
                return int(count + amount)
            finally:
                fcntl.lockf(self._descriptor, fcntl.LOCK_UN)


@PerProcess
def counters() -> Counters:
    """The counters of this process."""
    url: str = settings.REDIS_URL
    return RedisCounters(url) if url else FileCounters(settings.DATA_DIR / "counters.bin")
