"""The directory of tenants: their names, settings and files, and the owners of unique values."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TextIO

from django.conf import settings

from foundation import private_files
from platform_site.environment import BASE_DIR, SETTINGS
from platform_site.tenants.tenant_settings import TenantError, TenantSettings, checked, port_text, read_file

#: Letters, digits and hyphens: neither a path nor a hidden file.
_NAME: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
#: The first port of tenants.
FIRST_PORT: Final = 20_000
#: Settings of the pool that are the defaults of its tenants.
SHARED: Final = frozenset(
    {"LOG_FORMAT", "LOG_LEVEL", "TRUSTED_PROXIES", "EMAIL_URL", "EMAIL_FROM", "OTEL_EXPORTER_OTLP_ENDPOINT"}
)
#: One process of each kind by default, since all tenants share the processors.
_SMALL: Final = {"WEB_PROCESSES": "1", "WORKER_PROCESSES": "1", "SANDBOX_WORKERS": "1"}
STOP_TIMEOUT_SECONDS: Final = 60.0
#: The database of a tenant without DATABASE_URL, below its data.
SQLITE: Final = "platform.sqlite3"
#: Files in the data of a tenant that has been created, the second one without DATABASE_URL only.
_FILES: Final = ("secret_key", SQLITE)
#: Values of `Tenant.unfinished`. A command has stopped the tenant to change it, and has not changed it yet.
_STOPPED: Final = "stop"
#: The command has begun a change that only its repetition can complete.
CREATE: Final = "create"
RESTORE: Final = "restore"


@dataclass(frozen=True, slots=True)
class Tenant:
    """A tenant, identified by its directory."""

    path: Path

    @property
    def name(self) -> str:
        """The name of the directory."""
        return self.path.name

    @property
    def data(self) -> Path:
        """DATA_DIR of its processes."""
        return self.path / "data"

    @property
    def settings_file(self) -> Path:
        """Its settings, as in `.env`."""
        return self.path / "tenant.env"

    @property
    def log_file(self) -> Path:
        """The output of its processes."""
        return self.path / "log.txt"

    @property
    def exists(self) -> bool:
        """Whether its settings file exists; False if the directory may not be read."""
        # Path.exists raises PermissionError.
        return os.path.exists(self.settings_file) and not self.path.is_symlink()

    @property
    def is_suspended(self) -> bool:
        """Whether the operator has suspended it."""
        return os.path.exists(self.path / "suspended")

    def suspend(self) -> None:
        """Suspend it, also while another command changes it."""
        (self.path / "suspended").touch(mode=0o600)

    def resume(self) -> None:
        """End its suspension. Raises TenantError while a command changes it, or if one has left it half done."""
        if self.unfinished:
            self.check_finished()
            with self.changing():
                self._recover()
                self.mark_unfinished("")
        (self.path / "suspended").unlink(missing_ok=True)

    @property
    def unfinished(self) -> str:
        """The change that a command has begun and not finished, CREATE for example; "" if there is none.

        A file, so that it remains if the command is killed. The pool responds with 503 for the tenant.
        """
        try:
            return (self.path / "unfinished").read_text()
        except OSError:
            return ""

    def mark_unfinished(self, change: str) -> None:
        """Store `unfinished`."""
        if change:
            private_files.write(self.path / "unfinished", change.encode())
        else:
            (self.path / "unfinished").unlink(missing_ok=True)

    def check_finished(self) -> None:
        """Raises TenantError if it was not created or restored completely."""
        if (change := self.unfinished) in (CREATE, RESTORE):
            raise TenantError(
                f"`tenants {change}` of {self.name} has not finished. If it no longer runs, run it again, or delete "
                f"{self.name}."
            )

    def missing_data(self, settings: TenantSettings) -> str:
        """Why the tenant, created before, would begin empty: a sentence; "" if its files are there or unfinished."""
        needed = _FILES[:1] if settings.values.get("DATABASE_URL") else _FILES
        missing = next((name for name in needed if not os.path.exists(self.data / name)), "")
        if not missing or self.unfinished:
            return ""
        return (
            f"{self.data / missing} is missing. {self.name} is not served, since it would begin with new data. "
            "Put the files back, or restore a backup."
        )

    @property
    def has_files(self) -> list[bool]:
        """Whether each of the files exists that `missing_data` looks for."""
        return [os.path.exists(self.data / name) for name in _FILES]

    @property
    def is_available(self) -> bool:
        """Whether the pool may start it: neither suspended nor unfinished."""
        return not self.is_suspended and not os.path.exists(self.path / "unfinished")

    def settings(self) -> dict[str, str]:
        """Name → unchecked text. Raises TenantError if the file cannot be read."""
        return read_file(self.settings_file)[0]

    def read(self) -> TenantSettings:
        """Its checked settings; other tenants may own their unique values. Raises TenantError."""
        values, digest = read_file(self.settings_file)
        return checked(self.path, values, digest)

    def write_settings(self, settings: Mapping[str, str]) -> None:
        """Write the settings file. Raises TenantError for a value that cannot be quoted in one line."""
        for name, value in settings.items():
            if any(not character.isprintable() for character in value) or "'" in value:
                raise TenantError(f"The value of {name} has a character that tenant.env cannot have.")
        lines = (f"{name}='{value}'\n" for name, value in settings.items())
        private_files.write(self.settings_file, "".join(lines).encode())

    @property
    def port(self) -> int:
        """The port on which the pool listens for it. Raises TenantError."""
        return self.read().port

    def hosts(self) -> list[str]:
        """Its host names, in lower case. Raises TenantError."""
        return list(self.read().hosts)

    def environment(self, values: Mapping[str, str]) -> dict[str, str]:
        """The environment of its processes with these settings, without the other settings of this process.

        An empty setting counts as not set, even if `.env` of the pool sets it.
        """
        ours = frozenset(setting.name for setting in SETTINGS)
        return {
            **{name: value for name, value in os.environ.items() if name not in ours},
            **dict.fromkeys(sorted(ours), ""),
            **_SMALL,
            **{name: os.environ[name] for name in SHARED if name in os.environ},
            **values,
            "DATA_DIR": str(self.data),
            "STATIC_DIR": str(static_directory()),
            "HOST": "127.0.0.1",
        }

    def due_at(self) -> float:
        """The next time at which its worker is needed, as stored when it stopped; infinity if it never ran."""
        try:
            return float((self.path / "due_at").read_text())
        except (OSError, ValueError):
            return float("inf")

    def write_due_at(self, timestamp: float) -> None:
        """Store it, so that it survives a restart of the pool."""
        private_files.write(self.path / "due_at", str(timestamp).encode())

    @contextlib.contextmanager
    def used(self) -> Iterator[None]:
        """Keep other commands from changing the tenant during the block; it may be served. Raises TenantError."""
        self.check_finished()
        with self._command_lock(fcntl.LOCK_SH):
            self.check_finished()
            if self.unfinished:
                raise TenantError(
                    f"A command that stopped {self.name} was killed. Run it again, or resume {self.name}."
                )
            yield

    @contextlib.contextmanager
    def changing(self) -> Iterator[int]:
        """Keep other commands from using or changing the tenant during the block. Raises TenantError.

        Yields the descriptor of the lock. A child process that inherits it keeps the lock if this process is killed.
        """
        with self._command_lock(fcntl.LOCK_EX) as descriptor:
            yield descriptor

    @contextlib.contextmanager
    def _command_lock(self, kind: int) -> Iterator[int]:
        if (lock := self._lock("command.lock", kind)) is None:
            raise TenantError(f"Another command of {self.name} is running. Try again when it has ended.")
        with lock:
            yield lock.fileno()

    @contextlib.contextmanager
    def stopped(self) -> Iterator[None]:
        """Stop the tenant during the block, and wait until its processes have exited. Raises TenantError.

        If the block fails, the tenant remains unfinished only if the block has marked it so.
        """
        with self.changing():
            if not self.unfinished:
                self.mark_unfinished(_STOPPED)
            try:
                with self._serving_lock():
                    self._recover()
                    try:
                        yield
                    finally:
                        self._recover()
            except BaseException:
                if self.unfinished == _STOPPED:
                    self.mark_unfinished("")
                raise
            self.mark_unfinished("")

    def _serving_lock(self) -> TextIO:
        deadline = time.monotonic() + STOP_TIMEOUT_SECONDS
        while (lock := self.lock()) is None:
            if time.monotonic() > deadline:
                raise TenantError(f"The processes of {self.name} did not stop.")
            time.sleep(0.1)
        return lock

    def lock(self) -> TextIO | None:
        """Take the lock for serving the tenant or changing its data; None if another process holds it."""
        return self._lock("lock", fcntl.LOCK_EX)

    def _lock(self, name: str, kind: int) -> TextIO | None:
        path = self.path / name
        try:
            file = open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600), "w")  # noqa: SIM115  (closed by the holder)
        except FileNotFoundError as error:
            raise TenantError(f"There is no tenant {self.name!r}.") from error
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
            # Another command may have deleted the tenant and created it again.
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                return file
        except (BlockingIOError, FileNotFoundError):
            pass
        file.close()
        return None

    def replace_data(self, new: Path) -> None:
        """Replace the data by the directory `new`, whose files are on disk. Call within `stopped`.

        `stopped` removes the former data. At any moment one of both is complete, so that `_recover` can end a
        replacement that was interrupted.
        """
        if self.data.exists():
            self.data.rename(self._former_data)
        new.rename(self.data)

    @property
    def _former_data(self) -> Path:
        return self.path / ".data.former"

    def _recover(self) -> None:
        """End a replacement of the data: undo it if the new data are not in place, else remove the former data."""
        if self._former_data.exists():
            if self.data.exists():
                shutil.rmtree(self._former_data)
            else:
                self._former_data.rename(self.data)


def static_directory() -> Path:
    """The directory of static files, which are the same for all tenants."""
    return Path(settings.STATIC_ROOT)


def root() -> Path:
    """The directory of tenants. Raises TenantError without one."""
    if not settings.TENANTS:
        raise TenantError("Set TENANTS to the directory of tenants, for example TENANTS=/var/lib/platform/tenants.")
    return BASE_DIR / Path(settings.TENANTS).expanduser()


def tenants(directory: Path) -> list[Tenant]:
    """The tenants of the directory, by name."""
    if not directory.is_dir():
        return []
    found = [Tenant(path) for path in sorted(directory.iterdir()) if _NAME.fullmatch(path.name)]
    return [each for each in found if each.exists]


def tenant_get(name: str) -> Tenant:
    """The tenant with this name. Raises TenantError."""
    found = Tenant(root() / check_name(name))
    if not found.exists:
        raise TenantError(f"There is no tenant {name!r}.")
    return found


def check_name(name: str) -> str:
    """Returns the name. Raises TenantError for an invalid one."""
    if not _NAME.fullmatch(name):
        raise TenantError(f"{name!r} is no name of a tenant: up to 63 letters, digits and hyphens, none at the ends.")
    return name


@dataclass(slots=True)
class Review:
    """The checked settings of all tenants.

    settings   tenant → valid settings
    problems   tenant → why it may not be served: invalid settings, missing data, or a unique value of another tenant
    owners     unique value → the tenant that has it
    """

    settings: dict[str, TenantSettings] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    owners: dict[str, str] = field(default_factory=dict)

    def port(self, name: str) -> int | None:
        """The port that the tenant owns; None if its settings are invalid, or another tenant owns the port."""
        settings = self.settings.get(name)
        return settings.port if settings and self.owners.get(port_text(settings.port)) == name else None

    def accept(self, name: str, settings: TenantSettings) -> str:
        """Make the tenant the owner of its unique values, all or none; returns the problem, "" if there is none."""
        if taken := sorted(each for each in settings.unique_values if self.owners.get(each, name) != name):
            return f"{name} may not have {taken[0]}, which {self.owners[taken[0]]} has."
        self.owners |= dict.fromkeys(settings.unique_values, name)
        return ""


def review(directory: Path) -> Review:
    """Read and check the settings of all tenants of the directory, and store the owners of unique values in `.owners`.

    A tenant keeps the values that it owned before, also while its settings cannot be read, so that nobody can take them
    by editing the settings of another tenant. Raises OSError if `.owners` cannot be written.
    """
    found = Review()
    if not directory.is_dir():
        return found
    with private_files.lock(directory / ".owners.lock"):
        for tenant in tenants(directory):
            try:
                found.settings[tenant.name] = settings = tenant.read()
                if problem := tenant.missing_data(settings):
                    found.problems[tenant.name] = problem
            except TenantError as error:
                found.problems[tenant.name] = str(error)
        before = _read_owners(directory)
        for value, name in before.items():
            if name in found.problems or (name in found.settings and value in found.settings[name].unique_values):
                found.owners[value] = name
        for name, settings in found.settings.items():
            if problem := found.accept(name, settings):
                found.problems[name] = problem
        if found.owners != before:
            private_files.write(directory / ".owners", json.dumps(found.owners, indent=1).encode())
    return found


def _read_owners(directory: Path) -> dict[str, str]:
    try:
        found: Any = json.loads((directory / ".owners").read_bytes())
    except (FileNotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def settings_get(tenant: Tenant) -> TenantSettings:
    """The settings of a tenant that may be served. Raises TenantError if it may not."""
    found = review(tenant.path.parent)
    if tenant.name in found.problems:
        raise TenantError(found.problems[tenant.name])
    if tenant.name not in found.settings:
        raise TenantError(f"There is no tenant {tenant.name!r}.")
    return found.settings[tenant.name]


@contextlib.contextmanager
def directory_lock() -> Iterator[None]:
    """Create the directory, and hold the lock for adding and removing tenants."""
    directory = root()
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    with private_files.lock(directory / ".lock"):
        yield


def add(name: str, settings: Mapping[str, str], change: str = CREATE) -> Tenant:
    """Create the directory of a new tenant, which is unfinished (`change`) until its data are complete.

    Replaces a tenant of the same name whose creation was interrupted. A tenant without a PORT gets the next free one.
    Call within `directory_lock`. Raises TenantError.
    """
    directory = root()
    tenant = Tenant(directory / check_name(name))
    if tenant.unfinished == CREATE:
        with tenant.changing():
            remove(tenant)
    if tenant.path.exists() or any(each.name.lower() == name.lower() for each in tenants(directory)):
        raise TenantError(f"There is a tenant {name!r} already.")
    found = review(directory)
    chosen = dict(settings)
    if not chosen.get("PORT"):
        taken = {each.port for each in found.settings.values()}
        free = (port for port in range(FIRST_PORT, 65536) if port not in taken and port_text(port) not in found.owners)
        chosen["PORT"] = str(next(free))
    if problem := found.accept(name, checked(tenant.path, chosen)):
        raise TenantError(problem)
    # Complete before it has its name, so that a killed command leaves nothing that is not marked.
    made = Tenant(directory / f".{name}.created")
    shutil.rmtree(made.path, ignore_errors=True)
    made.data.mkdir(mode=0o700, parents=True)
    made.path.chmod(0o700)
    made.mark_unfinished(change)
    made.write_settings(chosen)
    made.path.rename(tenant.path)
    review(directory)
    return tenant


def remove(tenant: Tenant) -> None:
    """Remove all files of a stopped tenant."""
    # Renamed first, so that the pool drops it before its files disappear one by one.
    leaving = tenant.path.with_name(f".{tenant.name}.deleted")
    shutil.rmtree(leaving, ignore_errors=True)
    tenant.path.rename(leaving)
    shutil.rmtree(leaving)
