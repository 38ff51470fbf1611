"""Confines a worker before the first script: identity, descriptors, limits, system calls.

Each measure is applied separately and its success recorded, so that a kernel without one of them (or macOS) still has
the others. Uses only ctypes and the standard library; nothing can be imported afterwards.
"""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import signal
import struct
import sys
from collections.abc import Callable
from typing import Final

PR_SET_PDEATHSIG: Final = 1
PR_SET_SECCOMP: Final = 22
PR_SET_NO_NEW_PRIVS: Final = 38
SECCOMP_MODE_FILTER: Final = 2

NOBODY: Final = 65534
# Memory besides the JavaScript heap: Python's copies of one message, and fragmentation.
ADDRESS_SPACE_HEADROOM_BYTES: Final = 256_000_000

# With this niceness a script gets a third of the processor time of a request's thread under load.
NICENESS: Final = 5

# include/uapi/linux/audit.h
AUDIT_ARCH: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

# System calls of a running interpreter: its one socket, memory, locks, clocks, signal return, exit. Review the names;
# the numbers are from each architecture's table. getrandom seeds Math.random of a new context.
ALLOWED_SYSCALLS: Final[dict[str, dict[str, int]]] = {
    "x86_64": {
        "close": 3, "munmap": 11, "brk": 12, "rt_sigaction": 13, "rt_sigprocmask": 14, "rt_sigreturn": 15,
        "mremap": 25, "madvise": 28, "getpid": 39, "exit": 60, "gettimeofday": 96, "getrusage": 98,
        "sigaltstack": 131, "time": 201, "futex": 202, "restart_syscall": 219, "clock_gettime": 228,
        "clock_getres": 229, "exit_group": 231, "getrandom": 318, "sched_yield": 24,
    },
    "aarch64": {
        "close": 57, "exit": 93, "exit_group": 94, "futex": 98, "clock_gettime": 113, "clock_getres": 114,
        "sched_yield": 124, "restart_syscall": 128, "sigaltstack": 132, "rt_sigaction": 134, "rt_sigprocmask": 135,
        "rt_sigreturn": 139, "getrusage": 165, "gettimeofday": 169, "getpid": 172, "brk": 214, "munmap": 215,
        "mremap": 216, "madvise": 233, "getrandom": 278,
    },
}  # fmt: skip
# Allowed with a condition on an argument: I/O on the one socket, memory that is not executable.
SOCKET_SYSCALLS: Final = {"x86_64": {"read": 0, "write": 1}, "aarch64": {"read": 63, "write": 64}}
MEMORY_SYSCALLS: Final = {"x86_64": {"mmap": 9, "mprotect": 10}, "aarch64": {"mmap": 222, "mprotect": 226}}
PROT_EXEC: Final = 4
# prlimit64 for limit_cpu: only on the process itself and RLIMIT_CPU, whose soft limit stays below the hard one.
LIMIT_SYSCALL: Final = {"x86_64": 302, "aarch64": 261}

EPERM: Final = 1
RET_ALLOW: Final = 0x7FFF0000
RET_EPERM: Final = 0x00050000 | EPERM
RET_KILL_PROCESS: Final = 0x80000000

# Classic BPF, include/uapi/linux/filter.h, over struct seccomp_data {nr, arch, instruction pointer, args[6]}.
LOAD_WORD: Final = 0x20
JUMP_EQUAL: Final = 0x15
JUMP_ANY_BIT: Final = 0x45
RETURN: Final = 0x06
DATA_NR: Final = 0
DATA_ARCH: Final = 4
DATA_ARG0: Final = 16
DATA_ARG1: Final = 24
DATA_ARG2: Final = 32


def confine(*, socket_fd: int, memory_bytes: int, host_pid: int) -> dict[str, bool]:
    """Apply every measure, in an order in which each permits the next; returns measure → success."""
    mapped_bytes = _address_space_bytes()
    os.closerange(0, socket_fd)
    os.closerange(socket_fd + 1, _open_files_ceiling())
    linux = sys.platform == "linux"
    prctl = _prctl() if linux else None
    done = {"unprivileged": _succeeds(_drop_root)}
    # After the change of identity, which clears it.
    done["dies_with_host"] = prctl is not None and _succeeds(lambda: prctl(PR_SET_PDEATHSIG, signal.SIGKILL))
    if os.getppid() != host_pid:
        os._exit(0)  # the host ended before the death signal was set
    done["address_space"] = _succeeds(
        lambda: _limit(resource.RLIMIT_AS, mapped_bytes + 2 * memory_bytes + ADDRESS_SPACE_HEADROOM_BYTES)
    )
    # Requests have precedence when scripts use all processors.
    done["low_priority"] = _succeeds(_lower_priority)
    done["no_core"] = _succeeds(lambda: _limit(resource.RLIMIT_CORE, 0))
    done["no_file_growth"] = _succeeds(lambda: _limit(resource.RLIMIT_FSIZE, 0))
    done["no_processes"] = _succeeds(lambda: _limit(resource.RLIMIT_NPROC, 0)) and os.geteuid() != 0
    done["no_files"] = _succeeds(lambda: _limit(resource.RLIMIT_NOFILE, 0))
    done["no_new_privileges"] = prctl is not None and _succeeds(lambda: prctl(PR_SET_NO_NEW_PRIVS, 1))
    done["syscall_filter"] = prctl is not None and _succeeds(lambda: _install_filter(prctl, socket_fd))
    return done


def _lower_priority() -> None:
    os.nice(NICENESS)


def limit_cpu(seconds: float) -> None:
    """Limit the processor time, as a fallback: normally the host kills the worker first."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    soft = int(usage.ru_utime + usage.ru_stime + seconds) + 2
    resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def filter_program(machine: str, socket_fd: int) -> bytes:
    """The BPF program: kills for system calls of another architecture, allows the lists above, else EPERM."""
    allowed = ALLOWED_SYSCALLS[machine]
    program = [(LOAD_WORD, 0, 0, DATA_ARCH), (JUMP_EQUAL, 1, 0, AUDIT_ARCH[machine]), (RETURN, 0, 0, RET_KILL_PROCESS)]
    program.append((LOAD_WORD, 0, 0, DATA_NR))
    for number in allowed.values():
        program += [(JUMP_EQUAL, 0, 1, number), (RETURN, 0, 0, RET_ALLOW)]
    for number in SOCKET_SYSCALLS[machine].values():
        program += [
            (JUMP_EQUAL, 0, 4, number),
            (LOAD_WORD, 0, 0, DATA_ARG0),
            (JUMP_EQUAL, 0, 1, socket_fd),
            (RETURN, 0, 0, RET_ALLOW),
            (RETURN, 0, 0, RET_EPERM),
        ]
    for number in MEMORY_SYSCALLS[machine].values():
        program += [
            (JUMP_EQUAL, 0, 4, number),
            (LOAD_WORD, 0, 0, DATA_ARG2),
            (JUMP_ANY_BIT, 1, 0, PROT_EXEC),
            (RETURN, 0, 0, RET_ALLOW),
            (RETURN, 0, 0, RET_EPERM),
        ]
    program += [
        (JUMP_EQUAL, 0, 6, LIMIT_SYSCALL[machine]),
        (LOAD_WORD, 0, 0, DATA_ARG0),
        (JUMP_EQUAL, 0, 3, 0),
        (LOAD_WORD, 0, 0, DATA_ARG1),
        (JUMP_EQUAL, 0, 1, resource.RLIMIT_CPU),
        (RETURN, 0, 0, RET_ALLOW),
        (RETURN, 0, 0, RET_EPERM),
    ]
    program.append((RETURN, 0, 0, RET_EPERM))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program)


def _install_filter(prctl: Callable[..., None], socket_fd: int) -> None:
    program = filter_program(platform.machine(), socket_fd)
    code = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("=H6xQ", len(program) // 8, ctypes.addressof(code))
    descriptor = ctypes.create_string_buffer(header, len(header))
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.addressof(descriptor))


def _prctl() -> Callable[..., None]:
    function = ctypes.CDLL(None, use_errno=True).prctl
    function.restype = ctypes.c_int
    function.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]

    def prctl(*arguments: int) -> None:
        if function(*arguments, *[0] * (5 - len(arguments))) != 0:
            raise OSError(ctypes.get_errno(), "prctl")

    return prctl


def _drop_root() -> None:
    """Drop root, which is exempt from the process limit; other users keep their identity."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)


def _address_space_bytes() -> int:
    """Size of the current mappings (0 without procfs, which makes the limit tighter)."""
    try:
        with open("/proc/self/statm", "rb") as statm:
            return int(statm.read().split()[0]) * resource.getpagesize()
    except OSError:
        return 0


def _open_files_ceiling() -> int:
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return 65_536 if soft == resource.RLIM_INFINITY else min(soft, 65_536)


def _limit(which: int, value: int) -> None:
    resource.setrlimit(which, (value, value))


def _succeeds(step: Callable[[], None]) -> bool:
    try:
        step()
    except (OSError, ValueError, KeyError, AttributeError):
        return False
    return True
