"""Memory of the processes of an instance, as Linux counts it."""

from __future__ import annotations

from pathlib import Path

from tests.support.platform import LivePlatform

_PROC = Path("/proc")


def web_processes(platform: LivePlatform) -> list[int]:
    """The processes that answer requests: children of the web server that the instance's supervisor started."""
    servers = [pid for pid in _children(platform.process.pid) if b"platform: web" in _command(pid)]
    return sorted(child for server in servers for child in _children(server))


def peak_bytes(pid: int) -> int:
    """The most memory that the process has had at once since it began, or since `forget_peak`."""
    status = (_PROC / str(pid) / "status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


def forget_peak(pid: int) -> int:
    """Begin to measure anew; what the process has now, in bytes."""
    (_PROC / str(pid) / "clear_refs").write_text("5")
    return peak_bytes(pid)


def _children(parent: int) -> list[int]:
    found = []
    for directory in _PROC.iterdir():
        if directory.name.isdecimal():
            try:
                fields = (directory / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # ended meanwhile
                continue
            if int(fields[1]) == parent:
                found.append(int(directory.name))
    return found


def _command(pid: int) -> bytes:
    try:
        return (_PROC / str(pid) / "cmdline").read_bytes()
    except OSError:
        return b""
