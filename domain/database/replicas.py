"""Reads from PostgreSQL streaming replicas that have replayed what the session has written and read (spec 13, 13.2).

Each session is assigned one replica, the same in all processes of all nodes, so that its reads never go back in time.
A read on the primary, or on another replica while the session's own is out of use, stores the primary's WAL position
with the session (identity.session_positions); the session's replica serves reads once it has replayed that position.

A replica is out of use while it does not answer, lags more than DATABASE_REPLICA_LAG_SECONDS, or has not caught up
afterwards. A restarted server may be behind its earlier position, so a new connection is used only after it has
replayed everything that the primary had when the connection was made.

Reads from a replica fill caches, too. Meanwhile the thread's cache versions are held at values that the replica has.
"""

from __future__ import annotations

import hashlib
import logging
import os
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from django.conf import settings
from django.db import DatabaseError, InterfaceError, OperationalError, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from prometheus_client import Counter

from domain.database import postgresql
from foundation import cache_versions
from foundation.execution_slot import yield_to_requests
from foundation.per_process import PerProcess
from identity.session_positions import POSITION_NOW, position_note, position_read

logger = logging.getLogger("platform.database")

T = TypeVar("T")

_reads = Counter("platform_replicated_reads", "Reads that replicas may answer, by who did.", ("server",))
_PRIMARY: Final = "primary"

#: Interval of polls of each server.
LOOK_SECONDS: Final = 0.25
#: A replica that has not answered a poll for this long is out of use.
SILENT_SECONDS: Final = 0.8
_NO_REPLICA: Final = "The server is no replica now."
#: How long `replicas_examine` waits for a replica that is behind.
EXAMINE_SECONDS: Final = 5.0
#: How long a long read waits for a replica to reach the position that its session needs.
LONG_READ_WAIT_SECONDS: Final = 0.3
#: Polls of the primary that are kept, to compute the lag of a replica: ten minutes.
_MAX_POSITIONS: Final = 2400
_REPLAYED = "SELECT pg_is_in_recovery(), pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0')::bigint"
#: Prefixes of SQLSTATEs that only a replica raises: it stops or starts, replay cancels a query, the read writes.
_STATES_OF_REPLICAS = ("08", "57P", "40001", "40P01", "25006")


@dataclass(frozen=True, slots=True)
class ReplicaState:
    """State of a replica as this process last polled it.

    lag_seconds  None if the replica does not answer or has not caught up yet
    problem      the error of the last failed poll
    is_primary   the server replays no WAL: after a failover a replica may be the primary
    """

    name: str
    is_in_use: bool
    lag_seconds: float | None
    problem: str
    is_primary: bool


@dataclass(frozen=True, slots=True)
class Examined:
    """Result of `replicas_examine` for one replica.

    megabytes   WAL that the replica had not replayed at first
    seconds     time until it had
    is_primary  the server replays no WAL
    """

    name: str
    megabytes: float = 0.0
    seconds: float = 0.0
    problem: str = ""
    cure: str = ""
    is_primary: bool = False


class _Primary:
    """The primary's WAL positions at the last polls."""

    def __init__(self) -> None:
        self.positions: deque[tuple[float, int]] = deque(maxlen=_MAX_POSITIONS)
        self._connection = _watching_connection("default")

    def poll(self) -> None:
        began = time.monotonic()
        self.positions.append((began, _primary_position(self._connection)))

    def close(self, problem: str) -> None:
        with suppress(DatabaseError, InterfaceError):
            self._connection.close()

    def has_been_at(self, position: int, *, since: float) -> bool:
        """Whether a poll after `since` found the primary at or before the position."""
        return any(at >= since and found <= position for at, found in tuple(self.positions))

    def lag_seconds(self, position: int) -> float:
        """Lag of a server that has replayed up to the position."""
        for at, found in tuple(self.positions):
            if found > position:
                return time.monotonic() - at
        return 0.0


class Replica:
    """A replica, with the state that this process keeps of it."""

    def __init__(self, alias: str, primary: _Primary) -> None:
        self.alias = alias
        self.name = _name(alias)
        self.is_in_use = False
        self.problem = ""
        self._primary = primary
        self._connection = _watching_connection(alias)
        self._position = -1
        self._answered_at = float("-inf")
        self._connected_at: float | None = None
        self._has_caught_up = False
        self._in_hand: set[Any] = set()  # psycopg connections in use by reading threads

    def poll(self) -> None:
        """Poll the replayed position, on the watching thread's connection."""
        if self._connected_at is None:
            self._connected_at, self._has_caught_up = time.monotonic(), False
        self._ask(self._connection)
        if not self._has_caught_up:
            self._has_caught_up = self._primary.has_been_at(self._position, since=self._connected_at)

    def close(self, problem: str) -> None:
        """Close the watching connection; the next poll opens a new one."""
        self._connected_at, self.problem = None, problem
        with suppress(DatabaseError, InterfaceError):
            self._connection.close()

    def decide(self) -> None:
        """Take the replica out of or back into use; while it is silent, each call breaks off the reads that wait."""
        lag = self.lag_seconds
        if lag is None:
            self._break_off()
        is_in_use = lag is not None and lag <= settings.DATABASE_REPLICA_LAG_SECONDS
        if is_in_use == self.is_in_use:
            return
        self.is_in_use = is_in_use
        if is_in_use:
            logger.info("The replica %s is in use: %.1f s behind.", self.name, lag)
            return
        reason = f"It is {lag:.1f} s behind." if lag is not None else self.problem or "It does not answer."
        logger.warning("The replica %s is left out. %s", self.name, reason)

    @property
    def lag_seconds(self) -> float | None:
        """How far behind the replica is; None if it does not answer, or has not caught up since it was connected."""
        is_silent = time.monotonic() - self._answered_at > SILENT_SECONDS
        return None if is_silent or not self._has_caught_up else self._primary.lag_seconds(self._position)

    def reaches(self, needed: int, connection: BaseDatabaseWrapper) -> bool:
        """Whether the next read on the connection sees the position."""
        connection.ensure_connection()
        raw: Any = connection.connection
        with self._used(raw):
            if getattr(raw, "has_caught_up", False):
                return self._position >= needed or self._ask(connection) >= needed
            if not hasattr(raw, "must_reach"):
                raw.must_reach = _primary_position()
            raw.has_caught_up = self._ask(connection) >= max(needed, raw.must_reach)
            return bool(raw.has_caught_up)

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Redirect the thread's reads of the default database to the replica."""
        primary, replica = connections["default"], connections[self.alias]
        connections["default"] = replica
        try:
            with self._used(replica.connection):
                yield
        finally:
            connections["default"] = primary

    @contextmanager
    def _used(self, raw: Any) -> Iterator[None]:
        """Register the connection as in use, so that `_break_off` ends it if the server stops answering."""
        self._in_hand.add(raw)
        try:
            yield
        finally:
            self._in_hand.discard(raw)

    def fail(self) -> None:
        """Take the replica out of use until it answers again."""
        self._answered_at = float("-inf")
        connections[self.alias].close()

    def _ask(self, connection: BaseDatabaseWrapper) -> int:
        position = _replayed(connection)
        self._answered_at, self._position, self.problem = time.monotonic(), position, ""
        return position

    def _break_off(self) -> None:
        """Shut down the connections in use, so that their reads fail and are retried on the primary."""
        for raw in tuple(self._in_hand):
            with suppress(Exception), socket.socket(fileno=os.dup(raw.fileno())) as connection:
                connection.shutdown(socket.SHUT_RDWR)


class Replicas:
    """The configured replicas, and the threads of this process that poll them."""

    def __init__(self) -> None:
        self._primary = _Primary()
        self.all = [Replica(alias, self._primary) for alias in settings.DATABASE_REPLICAS]
        self._floor: tuple[Mapping[str, int] | None, int] = None, 0
        for server in (self._primary, *self.all):
            threading.Thread(target=_watch, args=(server,), name="replica watch", daemon=True).start()
        threading.Thread(target=self._decide, name="replica watch", daemon=True).start()

    def of(self, session_id: str) -> tuple[Replica | None, bool]:
        """(replica to read from, whether it is the session's own); another one while that is out of use."""
        own, *others = sorted(self.all, key=lambda each: hashlib.blake2b(f"{each.name} {session_id}".encode()).digest())
        chosen = next((each for each in (own, *others) if each.is_in_use), None)
        return chosen, chosen is own

    def position_needed(self, session_id: str, values: Mapping[str, int]) -> int:
        """WAL position that a replica needs to read for the session and to fill caches under these cache versions."""
        floor = self._floor
        if floor[0] is not values:
            # A local variable: meanwhile another thread may store the position for older values in self._floor.
            floor = self._floor = values, _primary_position()
        return max(floor[1], position_read(session_id))

    def _decide(self) -> None:
        while True:
            for replica in self.all:
                replica.decide()
            time.sleep(LOOK_SECONDS)


def _watch(server: _Primary | Replica) -> None:
    while True:
        try:
            server.poll()
        except Exception as error:  # polled again; requests that need the primary raise their own errors
            server.close(_first_line(error))
        time.sleep(LOOK_SECONDS)


_replicas = PerProcess(Replicas)


def replicas() -> Replicas | None:
    """The replicas, polled from the first call on; None if none are configured."""
    return _replicas() if settings.DATABASE_REPLICAS else None


def replica_states() -> list[ReplicaState]:
    """State of each replica, as this process last polled it."""
    known = replicas()
    if known is None:
        return []
    return [
        ReplicaState(each.name, each.is_in_use, each.lag_seconds, each.problem, each.problem == _NO_REPLICA)
        for each in known.all
    ]


def replicas_examine() -> list[Examined]:
    """Wait for each replica in turn to replay the primary's current position, for EXAMINE_SECONDS at most."""
    return [_examined(alias) for alias in settings.DATABASE_REPLICAS]


def _examined(alias: str) -> Examined:
    name = _name(alias)
    connection = connections.create_connection(alias)
    began, needed = time.monotonic(), _primary_position()
    try:
        at_first = position = _replayed(connection)
        while position < needed and time.monotonic() - began < EXAMINE_SECONDS:
            time.sleep(0.02)
            position = _replayed(connection)
    except (DatabaseError, InterfaceError) as error:
        if str(error) == _NO_REPLICA:
            return Examined(name, is_primary=True)
        return Examined(name, problem=_first_line(error), cure="start it, or take it out of DATABASE_REPLICA_URLS")
    finally:
        connection.close()
    return Examined(name, max(0, needed - at_first) / 2**20, time.monotonic() - began)


def read_from_replica(session_id: str | None, read: Callable[[], T]) -> T:
    """The result of `read`, which must not write, from a replica that has all that the session has written and read.

    Reads from the primary if no replica has, and within a transaction.
    """
    known = replicas()
    if known is None or session_id is None or connections["default"].in_atomic_block:
        return read()
    replica, is_own = known.of(session_id)
    if replica is not None:
        with cache_versions.held() as values:
            needed = known.position_needed(session_id, values)
            try:
                if replica.reaches(needed, connections[replica.alias]):
                    with replica.serving():
                        result = read()
                    if not is_own:
                        position_note([session_id])
                    _reads.labels(replica.name).inc()
                    return result
            except DatabaseError as error:
                if not _is_of_a_replica(error, replica):
                    raise
            except InterfaceError:
                replica.fail()
    _reads.labels(_PRIMARY).inc()
    try:
        return read()
    finally:
        position_note([session_id])


def connection_for_long_read(session_id: str | None) -> BaseDatabaseWrapper:
    """A new connection for a long read: to the session's replica if that is ready in time, else to the primary.

    The caller closes it, and stores the position that the session has read (identity.rest_views does).
    """
    known = replicas()
    replica = known.of(session_id)[0] if known is not None and session_id is not None else None
    if known is not None and session_id is not None and replica is not None:
        needed = known.position_needed(session_id, cache_versions.values())
        connection = connections.create_connection(replica.alias)
        try:
            deadline = time.monotonic() + LONG_READ_WAIT_SECONDS
            while not (is_there := replica.reaches(needed, connection)) and time.monotonic() < deadline:
                yield_to_requests()
                time.sleep(0.01)
        except (DatabaseError, InterfaceError):
            is_there = False
            replica.fail()
        if is_there:
            _reads.labels(replica.name).inc()
            return connection
        connection.close()
    if known is not None:
        _reads.labels(_PRIMARY).inc()
    return connections.create_connection("default")


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def _watching_connection(alias: str) -> BaseDatabaseWrapper:
    connection = connections.create_connection(alias)
    connection.inc_thread_sharing()  # created in the thread of the first request, used by the watching thread
    return connection


def _name(alias: str) -> str:
    database = connections.settings[alias]
    return f"{database['HOST'] or 'localhost'}:{database['PORT'] or 5432}"


def _replayed(connection: BaseDatabaseWrapper) -> int:
    """The WAL position that a replica has replayed. Raises OperationalError for a server that is not a replica."""
    with connection.cursor() as cursor:
        cursor.execute(_REPLAYED)
        is_replica, position = cursor.fetchone()
    if not is_replica:
        raise OperationalError(_NO_REPLICA)
    return int(position)


def _primary_position(connection: BaseDatabaseWrapper | None = None) -> int:
    """The primary's WAL position. connection: the watching thread's; None: the default one."""
    with (connection or connections["default"]).cursor() as cursor:
        cursor.execute(f"SELECT {POSITION_NOW}")
        return int(cursor.fetchone()[0])


def _is_of_a_replica(error: DatabaseError, replica: Replica) -> bool:
    """Whether an error is the replica's, so that the primary may serve the read; a stopped replica goes out of use."""
    state = postgresql.sqlstate(error)
    if (state is None and isinstance(error, OperationalError)) or (state or "").startswith(("08", "57P")):
        replica.fail()
        return True
    return state is not None and state.startswith(_STATES_OF_REPLICAS)
