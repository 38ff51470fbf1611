"""Which process of a running instance does what: told by the kernel, since nothing in an answer says it (Linux)."""

from __future__ import annotations

import http.client
import os
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit

from tests.support.platform import LivePlatform
from tests.support.waiting import eventually

#: The system takes the same process so often in a row by no chance.
_MOST_CONNECTIONS = 100


def database_of(platform: LivePlatform) -> dict[str, str]:
    """The instance's own DATABASE_URL, where it has one: what commands beside it must be told."""
    variables = Path(f"/proc/{platform.process.pid}/environ").read_bytes().split(b"\0")
    given = next((item.decode() for item in variables if item.startswith(b"DATABASE_URL=")), "")
    return {"DATABASE_URL": given.partition("=")[2]} if given else {}


def descendants(pid: int) -> list[int]:
    """The processes that this one has started, and theirs."""
    return [each for child in children_of(pid) for each in (child, *descendants(child))]


def cpu_seconds(pids: Iterable[int]) -> float:
    """Processor time that these processes have used until now, their threads that ended included."""
    ticks = 0
    for pid in pids:
        # The command may hold spaces and brackets; utime and stime are the 14th and 15th field of the whole line.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def connection_to_each(base_url: str, pid: int, *, processes: int = 2) -> dict[int, http.client.HTTPConnection]:
    """Web process → a connection that it serves, for `processes` of those that `pid` has started.

    Each process has a socket of its own, and the system chooses one for a connection: more are opened until each has
    one. Raises AssertionError when fewer processes serve.
    """
    parts = urlsplit(base_url)
    assert parts.hostname is not None
    assert parts.port is not None
    found: dict[int, http.client.HTTPConnection] = {}
    spare: list[http.client.HTTPConnection] = []
    try:
        while len(found) < processes:
            assert len(spare) < _MOST_CONNECTIONS, f"{len(found)} processes serve {base_url}"
            connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
            connection.connect()
            server = _server_of(connection, parts.port, pid)
            if server in found:
                spare.append(connection)
            else:
                found[server] = connection
    finally:
        for connection in spare:
            connection.close()
    return found


def _server_of(connection: http.client.HTTPConnection, port: int, pid: int) -> int:
    """The process at the other end of the connection."""
    local_port: int = connection.sock.getsockname()[1]
    found: list[int] = []

    def accepted() -> bool:
        inode = _inode(port, local_port)
        found[:] = [each for each in descendants(pid) if inode and _holds(each, inode)]
        return bool(found)

    assert eventually(accepted), "nobody holds the other end of the connection"
    return found[-1]


def _inode(local_port: int, remote_port: int) -> str:
    """The socket between these ports as its server sees it; "" when there is none."""
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        ports = [int(address.rpartition(":")[2], 16) for address in fields[1:3]]
        if ports == [local_port, remote_port]:
            return fields[9]
    return ""


def _holds(pid: int, inode: str) -> bool:
    try:
        return any(os.readlink(entry) == f"socket:[{inode}]" for entry in Path(f"/proc/{pid}/fd").iterdir())
    except (FileNotFoundError, PermissionError):
        return False  # it has just ended, or has just closed the file


def processes_below(cluster: int) -> list[int]:
    """Every process of a task cluster but its first two, of which the second starts the others again when they die."""
    sentinels = children_of(cluster)
    return [child for sentinel in sentinels for child in children_of(sentinel)]


def children_of(pid: int) -> list[int]:
    """The processes that this one has started."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []
