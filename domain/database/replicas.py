"""Reads from PostgreSQL streaming replicas that have replayed what the session has written and read (spec 13, 13.2).

Each session is assigned one replica, the same in all processes of all nodes, so that its reads never go back in time.
A read on the primary, or on another replica while the session's own is out of use, stores the primary's WAL position
with the session (identity.session_positions); the session's replica serves reads once it has replayed that position.

A replica is out of use while it does not answer, lags more than DATABASE_REPLICA_LAG_SECONDS, or has not caught up
afterwards. A restarted server may be behind its earlier position, so a new connection is used only after it has
replayed everything that the primary had when the connection was made.

Positions say nothing about a standby of another cluster, or of another server than the primary: such a server is out of
use, too. It has another system identifier, or lacks the stamp of the primary's timeline (identity.session_positions).

Reads from a replica fill caches, too. Meanwhile the thread's cache versions are held at values that the replica has.
"""

from __future__ import annotations

import enum
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
from identity.session_positions import (
    POSITION_NOW,
    STAMP,
    STAMP_NOW,
    Needed,
    needed_read,
    position_note,
    timeline_stamp,
)

logger = logging.getLogger("platform.database")

T = TypeVar("T")

_reads = Counter("platform_replicated_reads", "Reads that replicas may answer, by who did.", ("server",))
_PRIMARY: Final = "primary"

#: Interval of polls of each server.
POLL_SECONDS: Final = 0.25
#: A replica that has not answered a poll for this long is out of use.
SILENT_SECONDS: Final = 0.8
#: How long `replicas_examine` waits for a replica that is behind.
EXAMINE_SECONDS: Final = 5.0
#: How long a long read waits for a replica to reach the position that its session needs.
LONG_READ_WAIT_SECONDS: Final = 0.3
#: Polls of the primary that are kept, to compute the lag of a replica: ten minutes.
_MAX_POSITIONS: Final = 2400
_CLUSTER = "SELECT system_identifier FROM pg_control_system()"
# The timeline of pg_control_recovery() is behind the replayed one for some minutes, so a lesser one says nothing.
_REPLAYED = f"""
SELECT pg_is_in_recovery(), pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0')::bigint, {STAMP},
       (SELECT min_recovery_end_timeline FROM pg_control_recovery())
"""  # noqa: S608  a constant
_PRIMARY_STATE = f"SELECT {POSITION_NOW}, {STAMP_NOW}, ({_CLUSTER})"
#: Prefixes of SQLSTATEs that only a replica raises: it stops or starts, replay cancels a query, the read writes.
_STATES_OF_REPLICAS = ("08", "57P", "40001", "40P01", "25006")


class Reason(enum.StrEnum):
    """Why a replica is out of use. The values are labels of a metric."""

    NO_ANSWER = "no_answer"
    BEHIND = "behind"
    #: The server replays no WAL: after a failover a replica may be the primary.
    NO_REPLICA = "no_replica"
    OTHER_CLUSTER = "other_cluster"
    OTHER_TIMELINE = "other_timeline"


class _OutOfUse(OperationalError):
    """A server that answers, but must not be read."""

    def __init__(self, reason: Reason, problem: str) -> None:
        super().__init__(problem)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class ReplicaState:
    """State of a replica as this process last polled it.

    reason       None while the replica is in use
    lag_seconds  None if the replica does not answer or has not caught up yet
    problem      the error of the last failed poll
    """

    name: str
    reason: Reason | None
    lag_seconds: float | None
    problem: str


_CURES: Final = {
    Reason.NO_ANSWER: "start it, or take it out of DATABASE_REPLICA_URLS",
    Reason.OTHER_CLUSTER: "name the primary's own standby in DATABASE_REPLICA_URLS",
    Reason.OTHER_TIMELINE: "let it follow the primary, or make it anew (pg_rewind, pg_basebackup)",
    Reason.NO_REPLICA: "",
}


@dataclass(frozen=True, slots=True)
class Examined:
    """Result of `replicas_examine` for one replica.

    megabytes  WAL that the replica had not replayed at first
    seconds    time until it had
    reason     why it cannot be used, with `problem` and `cure`
    """

    name: str
    megabytes: float = 0.0
    seconds: float = 0.0
    problem: str = ""
    cure: str = ""
    reason: Reason | None = None


@dataclass(frozen=True, slots=True)
class _PrimaryState:
    """The primary's next position, the stamp of its timeline, and its cluster's system identifier."""

    needed: Needed
    cluster: int


class _Primary:
    """The primary's state, and its WAL positions at the last polls."""

    def __init__(self) -> None:
        self.state: _PrimaryState | None = None
        self.positions: deque[tuple[float, int]] = deque(maxlen=_MAX_POSITIONS)
        self._connection = _watching_connection("default")

    def poll(self) -> None:
        began, state = time.monotonic(), _primary_state(self._connection)
        if self.state is not None and self.state.needed.stamp != state.needed.stamp:
            self.positions.clear()  # positions of another timeline, which this one may never reach
        self.state = state
        self.positions.append((began, state.needed.position))

    def close(self, error: Exception) -> None:
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
        self.reason: Reason | None = Reason.NO_ANSWER
        self.problem = ""
        self._failure = Reason.NO_ANSWER  # while it is silent
        self._primary = primary
        self._connection = _watching_connection(alias)
        self._position = -1
        self._stamp: int | None = None
        self._answered_at = float("-inf")
        self._connected_at: float | None = None
        self._has_caught_up = False
        self._in_hand: set[Any] = set()  # psycopg connections in use by reading threads

    def poll(self) -> None:
        """Poll the replayed position, on the watching thread's connection."""
        if (primary := self._primary.state) is None:
            return
        if self._connected_at is None:
            _check_cluster(self._connection, primary)
            self._connected_at, self._has_caught_up = time.monotonic(), False
        self._ask(self._connection, primary.needed.stamp)
        if not self._has_caught_up:
            self._has_caught_up = self._primary.has_been_at(self._position, since=self._connected_at)

    def close(self, error: Exception) -> None:
        """Close the watching connection; the next poll opens a new one."""
        self._connected_at = None
        self._failure = error.reason if isinstance(error, _OutOfUse) else Reason.NO_ANSWER
        if self._failure is not Reason.NO_ANSWER:
            self._answered_at = float("-inf")
        problem, self.problem = self.problem, _first_line(error)
        if self.reason is not None and self.problem != problem:
            self._log(self.problem)
        with suppress(DatabaseError, InterfaceError):
            self._connection.close()

    def decide(self) -> None:
        """Take the replica out of or back into use; while it is silent, each call breaks off the reads that wait."""
        lag = self.lag_seconds
        before = self.reason
        if lag is None:
            self._break_off()
            self.reason = self._failure if self._is_silent else Reason.BEHIND
        else:
            self.reason = Reason.BEHIND if lag > settings.DATABASE_REPLICA_LAG_SECONDS else None
        if before is None and self.reason is not None:
            reason = "It does not answer." if self._is_silent else "It is catching up."
            self._log(f"It is {lag:.1f} s behind." if lag is not None else self.problem or reason)
        elif before is not None and self.reason is None:
            logger.info("The replica %s is in use: %.1f s behind.", self.name, lag)

    def _log(self, why: str) -> None:
        # After a failover a replica is the primary, for good.
        level = logging.INFO if self._failure is Reason.NO_REPLICA else logging.WARNING
        logger.log(level, "The replica %s is left out. %s", self.name, why)

    @property
    def lag_seconds(self) -> float | None:
        """How far behind the replica is; None if it does not answer, or has not caught up since it was connected."""
        return None if self._is_silent or not self._has_caught_up else self._primary.lag_seconds(self._position)

    @property
    def _is_silent(self) -> bool:
        return time.monotonic() - self._answered_at > SILENT_SECONDS

    def reaches(self, needed: Needed, connection: BaseDatabaseWrapper) -> bool:
        """Whether the next read on the connection sees the position."""
        if needed.stamp is None:
            return False
        connection.ensure_connection()
        raw: Any = connection.connection
        with self._used(raw):
            if getattr(raw, "has_caught_up", False):
                has_position = self._stamp == needed.stamp and self._position >= needed.position
                return has_position or self._ask(connection, needed.stamp) >= needed.position
            if not hasattr(raw, "must_reach"):
                primary = _primary_state()
                _check_cluster(connection, primary)
                raw.must_reach = primary.needed.position
            raw.has_caught_up = self._ask(connection, needed.stamp) >= max(needed.position, raw.must_reach)
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

    def _ask(self, connection: BaseDatabaseWrapper, stamp: int | None) -> int:
        position = _replayed(connection, stamp)
        self._position = position
        self._stamp = stamp  # after the position, which is of this timeline when another thread sees this stamp
        self._answered_at, self._failure, self.problem = time.monotonic(), Reason.NO_ANSWER, ""
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
        chosen = next((each for each in (own, *others) if each.reason is None), None)
        return chosen, chosen is own

    def needed(self, session_id: str, values: Mapping[str, int]) -> Needed:
        """What a replica needs to read for the session and to fill caches under these cache versions."""
        floor = self._floor
        if floor[0] is not values:
            # A local variable: meanwhile another thread may store the position for older values in self._floor.
            floor = self._floor = values, _primary_state().needed.position
        needed = needed_read(session_id)
        return Needed(max(floor[1], needed.position), needed.stamp)

    def _decide(self) -> None:
        while True:
            for replica in self.all:
                replica.decide()
            time.sleep(POLL_SECONDS)


def _watch(server: _Primary | Replica) -> None:
    while True:
        try:
            server.poll()
        except Exception as error:  # polled again; requests that need the primary raise their own errors
            server.close(error)
        time.sleep(POLL_SECONDS)


_replicas = PerProcess(Replicas)


def replicas() -> Replicas | None:
    """The replicas, polled from the first call on; None if none are configured."""
    return _replicas() if settings.DATABASE_REPLICAS else None


def replica_states() -> list[ReplicaState]:
    """State of each replica, as this process last polled it."""
    known = replicas()
    if known is None:
        return []
    return [ReplicaState(each.name, each.reason, each.lag_seconds, each.problem) for each in known.all]


def replicas_examine() -> list[Examined]:
    """Wait for each replica in turn to replay the primary's current position, for EXAMINE_SECONDS at most."""
    return [_examined(alias) for alias in settings.DATABASE_REPLICAS]


def _examined(alias: str) -> Examined:
    name, primary = _name(alias), _primary_state()
    connection = connections.create_connection(alias)
    began, positions = time.monotonic(), list[int]()
    try:
        _check_cluster(connection, primary)
        while True:
            is_over = time.monotonic() - began > EXAMINE_SECONDS
            try:
                positions.append(_replayed(connection, primary.needed.stamp))
            except _OutOfUse as error:
                if is_over or error.reason is not Reason.OTHER_TIMELINE:  # that may be a matter of time
                    raise
            if is_over or (positions and positions[-1] >= primary.needed.position):
                break
            time.sleep(0.02)
    except _OutOfUse as error:
        return Examined(name, problem=str(error), cure=_CURES[error.reason], reason=error.reason)
    except (DatabaseError, InterfaceError) as error:
        return Examined(
            name, problem=_first_line(error), cure=_CURES[Reason.NO_ANSWER], reason=Reason.NO_ANSWER
        )  # fmt: skip
    finally:
        connection.close()
    return Examined(name, max(0, primary.needed.position - positions[0]) / 2**20, time.monotonic() - began)


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
            needed = known.needed(session_id, values)
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
        needed = known.needed(session_id, cache_versions.values())
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


def _check_cluster(connection: BaseDatabaseWrapper, primary: _PrimaryState) -> None:
    """Raise _OutOfUse for a server of another cluster than the primary's. Once for each connection is enough."""
    with connection.cursor() as cursor:
        cursor.execute(_CLUSTER)
        cluster = int(cursor.fetchone()[0])
    if cluster != primary.cluster:
        raise _OutOfUse(
            Reason.OTHER_CLUSTER,
            f"It is of another cluster: its system identifier is {cluster}, the primary's is {primary.cluster}.",
        )


def _replayed(connection: BaseDatabaseWrapper, stamp: int | None) -> int:
    """The WAL position that a replica has replayed. Raises _OutOfUse for a server that is not the primary's replica.

    stamp: of the primary's timeline
    """
    with connection.cursor() as cursor:
        cursor.execute(_REPLAYED)
        is_replica, position, own_stamp, timeline = cursor.fetchone()
    if not is_replica:
        raise _OutOfUse(Reason.NO_REPLICA, "The server is no replica now.")
    if stamp is None or own_stamp != stamp or timeline > stamp >> 32:
        raise _OutOfUse(Reason.OTHER_TIMELINE, "It has not replayed the primary's timeline, or follows another server.")
    return int(position)


def _primary_state(connection: BaseDatabaseWrapper | None = None) -> _PrimaryState:
    """The primary's state, whose timeline gets a stamp. connection: the watching thread's; None: the default one."""
    connection = connection or connections["default"]
    with connection.cursor() as cursor:
        cursor.execute(_PRIMARY_STATE)
        position, stamp, cluster = cursor.fetchone()
        if stamp is None:
            timeline_stamp(connection)
            cursor.execute(_PRIMARY_STATE)
            position, stamp, cluster = cursor.fetchone()
    return _PrimaryState(Needed(int(position), stamp), int(cluster))


def _is_of_a_replica(error: DatabaseError, replica: Replica) -> bool:
    """Whether an error is the replica's, so that the primary may serve the read; a stopped replica goes out of use."""
    state = postgresql.sqlstate(error)
    if (state is None and isinstance(error, OperationalError)) or (state or "").startswith(("08", "57P")):
        replica.fail()
        return True
    return state is not None and state.startswith(_STATES_OF_REPLICAS)
