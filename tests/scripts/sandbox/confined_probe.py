"""Gives up what a worker gives up, by the same function, then tries to get each thing back. Prints what happened.

Started as a worker is: `python -I -S confined_probe.py ROOT SOCKET HOST_PID`. Answers one JSON line on the socket.
"""

from __future__ import annotations

import sys

sys.path.append(sys.argv[1])

import ctypes
import errno
import json
import os
import resource
import signal
import socket
import subprocess
import threading
from collections.abc import Callable

from scripts.sandbox import confinement

LIBC = ctypes.CDLL(None, use_errno=True)
NUMBERS = {
    "x86_64": {
        "openat": 257, "open": 2, "socket": 41, "connect": 42, "execve": 59, "fork": 57, "vfork": 58, "clone": 56,
        "clone3": 435, "ptrace": 101, "kill": 62, "tgkill": 234, "unlink": 87, "mkdir": 83, "mount": 165, "chroot": 161,
        "bpf": 321, "io_uring_setup": 425, "memfd_create": 319, "process_vm_readv": 310, "userfaultfd": 323,
        "keyctl": 250, "unshare": 272, "setns": 308, "pidfd_open": 434, "sendmsg": 46, "dup": 32, "prctl": 157,
        "setuid": 105, "shmget": 29, "getdents64": 217, "readlink": 89, "stat": 4,
    },
    "aarch64": {
        "openat": 56, "socket": 198, "connect": 203, "execve": 221, "clone": 220, "clone3": 435, "ptrace": 117,
        "kill": 129, "tgkill": 131, "unlinkat": 35, "mount": 40, "chroot": 51, "bpf": 280, "io_uring_setup": 425,
        "memfd_create": 279, "process_vm_readv": 270, "userfaultfd": 282, "keyctl": 219, "unshare": 97, "setns": 268,
        "pidfd_open": 434, "sendmsg": 211, "dup": 23, "prctl": 167, "setuid": 146, "shmget": 194, "getdents64": 61,
    },
}  # fmt: skip


def outcome(attempt: Callable[[], object]) -> str:
    """The errno's name, or "allowed"."""
    try:
        attempt()
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, str(error))
    except BaseException as error:
        return type(error).__name__
    return "allowed"


def system_call(number: int) -> str:
    ctypes.set_errno(0)
    if LIBC.syscall(number, 0, 0, 0, 0, 0, 0) >= 0:
        return "allowed"
    return errno.errorcode[ctypes.get_errno()]


def executable_memory() -> None:
    LIBC.mmap.restype = ctypes.c_void_p
    address = LIBC.mmap(None, ctypes.c_size_t(4096), 7, 0x22, -1, ctypes.c_long(0))
    if address == ctypes.c_void_p(-1).value:
        raise OSError(ctypes.get_errno(), "mmap")


def memory_over_the_limit() -> None:
    bytearray(3_000_000_000)


def write_elsewhere() -> None:
    os.write(1, b"x")


def start_thread() -> None:
    threading.Thread(target=print).start()


def main(socket_fd: int, host_pid: int) -> None:
    machine = os.uname().machine
    flags = confinement.confine(socket_fd=socket_fd, memory_bytes=100_000_000, host_pid=host_pid)
    report: dict[str, object] = {
        "flags": flags,
        "environment": dict(os.environ),
        "directory": None,
        "python": {
            "open": outcome(lambda: os.open("/etc/passwd", os.O_RDONLY)),
            "listdir": outcome(lambda: os.listdir("/")),
            "stat": outcome(lambda: os.stat("/")),
            "getcwd": outcome(os.getcwd),
            "socket": outcome(socket.socket),
            "unix socket": outcome(lambda: socket.socket(socket.AF_UNIX)),
            "socketpair": outcome(socket.socketpair),
            "pipe": outcome(os.pipe),
            "dup": outcome(lambda: os.dup(socket_fd)),
            "fork": outcome(os.fork),
            "exec": outcome(lambda: os.execv("/bin/true", ["true"])),
            "subprocess": outcome(lambda: subprocess.run(["/bin/true"], check=True)),
            "thread": outcome(start_thread),
            "kill the host": outcome(lambda: os.kill(host_pid, 0)),
            "signal itself": outcome(lambda: os.kill(os.getpid(), signal.SIGTERM)),
            "raise the limit on files": outcome(lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))),
            "raise the limit on memory": outcome(
                lambda: resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            ),
            "write to another descriptor": outcome(write_elsewhere),
            "executable memory": outcome(executable_memory),
            "memory over the limit": outcome(memory_over_the_limit),
            "import a file": outcome(lambda: __import__("wave")),
        },
        "system_calls": {name: system_call(number) for name, number in NUMBERS.get(machine, {}).items()},
    }
    os.write(socket_fd, json.dumps(report).encode() + b"\n")
    os._exit(0)


main(int(sys.argv[2]), int(sys.argv[3]))
