"""The directory of tenants: their names, settings and files, and what no two of them may share."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, unquote, urlsplit

import environ
from django.conf import settings

from foundation import private_files
from platform_site.environment import BASE_DIR, SETTINGS
from platform_site.serving.addresses import is_loopback

#: Letters, digits and hyphens: neither a path nor a hidden file.
_NAME: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
_HOST_NAME: Final = re.compile(r"(?!-)[A-Za-z0-9-]{1,63}(\.(?!-)[A-Za-z0-9-]{1,63})*")
#: The first port of tenants.
FIRST_PORT: Final = 20_000
#: What the pool decides for all its tenants, or what would lead out of a tenant's directory or its databases.
NOT_OF_A_TENANT: Final = frozenset(
    {
        "DATA_DIR", "STATIC_DIR", "HOST", "REDIS_URL", "DEBUG", "SECRET_KEY", "TENANTS", "TENANT_IDLE_SECONDS",
        "TENANTS_RUNNING",
    }
)  # fmt: skip
#: Settings of the pool that its tenants have unless theirs say otherwise.
SHARED: Final = frozenset(
    {"LOG_FORMAT", "LOG_LEVEL", "TRUSTED_PROXIES", "EMAIL_URL", "EMAIL_FROM", "OTEL_EXPORTER_OTLP_ENDPOINT"}
)
#: One process of each kind: the processor is for all tenants.
_SMALL: Final = {"WEB_PROCESSES": "1", "WORKER_PROCESSES": "1", "SANDBOX_WORKERS": "1"}
#: Parameters of a connection that may name another server or database than the rest of the URL.
_LEADS_ELSEWHERE: Final = frozenset({"host", "hostaddr", "port", "dbname", "service", "servicefile"})
STOP_TIMEOUT_SECONDS: Final = 60.0


class TenantError(Exception):
    """A tenant that cannot be made, found or changed; the message is a sentence for people."""


class _File(environ.Env):  # type: ignore[misc]  # it has no types
    """Reads files like `.env` into a dictionary instead of the environment."""

    ENVIRON: dict[str, str] = {}


@dataclass(frozen=True, slots=True)
class Tenant:
    """A tenant by its directory."""

    path: Path

    @property
    def name(self) -> str:
        """The name, which is that of the directory."""
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
        """What its processes print."""
        return self.path / "log.txt"

    @property
    def is_suspended(self) -> bool:
        """Whether the pool answers 503 for it."""
        return (self.path / "suspended").exists()

    def suspend(self, *, is_suspended: bool) -> None:
        """Suspend or resume it."""
        if is_suspended:
            (self.path / "suspended").touch(mode=0o600)
        else:
            (self.path / "suspended").unlink(missing_ok=True)

    def settings(self) -> dict[str, str]:
        """Name → text. Raises TenantError when the file cannot be read."""
        reader: Any = type("_Read", (_File,), {"ENVIRON": {}})
        try:
            reader.read_env(str(self.settings_file), overwrite=True)
            self.settings_file.stat()  # the library ignores a missing file
        except (OSError, UnicodeDecodeError) as error:
            raise TenantError(f"The settings of {self.name} cannot be read: {error}") from error
        found: dict[str, str] = reader.ENVIRON
        return found

    def write_settings(self, settings: Mapping[str, str]) -> None:
        """Write the file. Raises TenantError for a value that does not fit into a line."""
        for name, value in settings.items():
            if any(not character.isprintable() for character in value) or "'" in value:
                raise TenantError(f"The value of {name} has a character that tenant.env cannot have.")
        lines = (f"{name}='{value}'\n" for name, value in settings.items())
        private_files.write(self.settings_file, "".join(lines).encode())

    @property
    def port(self) -> int:
        """The port that the pool listens on for it. Raises TenantError."""
        port = self.settings().get("PORT", "")
        if not port.isdigit() or not 0 < int(port) < 65536:
            raise TenantError(f"PORT of {self.name} must be between 1 and 65535, not {port!r}.")
        return int(port)

    def hosts(self) -> list[str]:
        """Its host names, in lower case."""
        settings = self.settings()
        named = [each.strip().lower() for each in settings.get("ALLOWED_HOSTS", "").split(",") if each.strip()]
        if (root := urlsplit(settings.get("BASE_URL", "")).hostname) and root not in named:
            named.insert(0, root)
        return named

    def environment(self) -> dict[str, str]:
        """The environment of its processes, without what is another instance's in this process's.

        A setting that is empty counts as not set, also where `.env` of the pool has it.
        """
        ours = frozenset(setting.name for setting in SETTINGS)
        return {
            **{name: value for name, value in os.environ.items() if name not in ours},
            **dict.fromkeys(sorted(ours), ""),
            **_SMALL,
            **{name: os.environ[name] for name in SHARED if name in os.environ},
            **self.settings(),
            "DATA_DIR": str(self.data),
            "STATIC_DIR": str(static_directory()),
            "HOST": "127.0.0.1",
        }

    def due_at(self) -> float:
        """When its worker is needed next, as its processes said when they stopped; infinity if they never did."""
        try:
            return float((self.path / "due_at").read_text())
        except (OSError, ValueError):
            return float("inf")

    def write_due_at(self, timestamp: float) -> None:
        """Keep it for this pool and the next one."""
        private_files.write(self.path / "due_at", str(timestamp).encode())

    @contextlib.contextmanager
    def stopped(self) -> Iterator[None]:
        """Within it no process serves the tenant, which is suspended meanwhile. Raises TenantError."""
        was_suspended = self.is_suspended
        self.suspend(is_suspended=True)
        deadline = time.monotonic() + STOP_TIMEOUT_SECONDS
        try:
            while (lock := self.lock()) is None:
                if time.monotonic() > deadline:
                    raise TenantError(f"The processes of {self.name} did not stop.")
                time.sleep(0.1)
            with lock:
                yield
        finally:
            if self.path.exists():
                self.suspend(is_suspended=was_suspended)

    def lock(self) -> contextlib.AbstractContextManager[object] | None:
        """What whoever serves or changes the tenant holds; None while another process does."""
        file = open(os.open(self.path / "lock", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600), "w")  # noqa: SIM115  (closed by the holder)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            return None
        return file


def static_directory() -> Path:
    """Where the pool collects static files, which are the product's, for all tenants."""
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
    return [each for each in found if each.settings_file.exists() and not each.path.is_symlink()]


def tenant_get(name: str) -> Tenant:
    """The tenant of this name. Raises TenantError."""
    found = Tenant(root() / check_name(name))
    if found.path.is_symlink() or not found.settings_file.exists():
        raise TenantError(f"There is no tenant {name!r}.")
    return found


def check_name(name: str) -> str:
    """The name. Raises TenantError for one that is no name."""
    if not _NAME.fullmatch(name):
        raise TenantError(f"{name!r} is no name of a tenant: up to 63 letters, digits and hyphens, none at the ends.")
    return name


def check_settings(tenant: Tenant, settings: Mapping[str, str]) -> None:
    """Raise TenantError for settings that a tenant may not have."""
    known = frozenset(setting.name for setting in SETTINGS)
    kinds = {setting.name: setting.type for setting in SETTINGS}
    for name, value in settings.items():
        if name in NOT_OF_A_TENANT:
            raise TenantError(f"{name} is not a setting of a tenant: the pool decides it.")
        if name not in known and not name.startswith("OTEL_"):
            raise TenantError(f"There is no setting {name}.")
        if kinds.get(name) == "path" and value:
            path = (BASE_DIR / Path(value).expanduser()).resolve()
            if not path.is_relative_to(tenant.path.resolve()):
                raise TenantError(f"{name} of {tenant.name} must be a file below {tenant.path}.")
    for name in ("DATABASE_URL", "DATABASE_REPLICA_URLS"):
        for url in filter(None, (each.strip() for each in settings.get(name, "").split(","))):
            if "://" in url and not url.startswith(("postgres://", "postgresql://", "pgsql://")):
                raise TenantError(
                    f"{name} of {tenant.name} must be of PostgreSQL; without it SQLite is used in {tenant.data}."
                )
            if leading := sorted(_LEADS_ELSEWHERE & set(parse_qs(urlsplit(url).query, keep_blank_values=True))):
                raise TenantError(f"{name} of {tenant.name} may not have the parameter {leading[0]}.")
    hosts = [each.strip() for each in settings.get("ALLOWED_HOSTS", "").split(",") if each.strip()]
    hosts += filter(None, [urlsplit(settings.get("BASE_URL", "")).hostname])
    if not hosts or not settings.get("ALLOWED_HOSTS"):
        raise TenantError(f"{tenant.name} needs ALLOWED_HOSTS with the names by which callers reach it.")
    for host in hosts:
        if not _HOST_NAME.fullmatch(host):
            raise TenantError(f"{host!r} of {tenant.name} is not one host name.")


def claims(settings: Mapping[str, str]) -> set[str]:
    """What no other tenant may have: hosts, port, databases; as texts for people."""
    found = {
        f"the host {each.strip().lower()}" for each in settings.get("ALLOWED_HOSTS", "").split(",") if each.strip()
    }
    if named := urlsplit(settings.get("BASE_URL", "")).hostname:
        found.add(f"the host {named}")
    found.add(f"the port {settings.get('PORT', '')}")
    for name in ("DATABASE_URL", "DATABASE_REPLICA_URLS"):
        found |= {f"the database {each}" for each in _databases(settings.get(name, ""))}
    return found


def _databases(urls: str) -> Iterator[str]:
    """host:port/name of each server that the URL or the list of URLs names."""
    # A URL may name several servers, separated by commas as the URLs of the list are.
    for url in re.split(r",(?=\w+://)", urls):
        if not url.strip():
            continue
        _, _, behind = url.strip().partition("://")
        servers, _, rest = behind.rpartition("@")[2].partition("/")
        name = unquote(rest.partition("?")[0])
        for server in servers.split(","):
            host, _, port = server.rpartition(":") if re.search(r":\d+$", server) else (server, "", "")
            host = unquote(host).lower()
            yield f"{'localhost' if not host or is_loopback(host) else host}:{port or '5432'}/{name}"


def conflicts(all_tenants: Iterable[Tenant]) -> dict[str, str]:
    """Tenant → why it may not be served: wrong settings, or those that a tenant has which was changed before it."""
    found: dict[str, str] = {}
    owners: dict[str, str] = {}
    for tenant in sorted(all_tenants, key=_changed):
        try:
            settings = tenant.settings()
            check_settings(tenant, settings)
            mine = claims(settings)
        except (TenantError, OSError) as error:
            found[tenant.name] = str(error)
            continue
        if taken := sorted(claim for claim in mine if claim in owners):
            found[tenant.name] = f"{tenant.name} may not have {taken[0]}, which {owners[taken[0]]} has."
            continue
        owners |= dict.fromkeys(mine, tenant.name)
    return found


def _changed(tenant: Tenant) -> tuple[int, str]:
    try:
        return tenant.settings_file.stat().st_mtime_ns, tenant.name
    except OSError:
        return 0, tenant.name


@contextlib.contextmanager
def changing() -> Iterator[None]:
    """One command at a time adds tenants."""
    directory = root()
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    with private_files.lock(directory / ".lock"):
        yield


def add(name: str, settings: Mapping[str, str]) -> Tenant:
    """Make the directory of a new tenant, suspended until its database is prepared. Raises TenantError.

    A tenant without a PORT gets the next free one. Call within `changing`.
    """
    directory = root()
    tenant = Tenant(directory / check_name(name))
    others = tenants(directory)
    if tenant.path.exists() or any(each.name.lower() == name.lower() for each in others):
        raise TenantError(f"There is a tenant {name!r} already.")
    chosen = dict(settings)
    if not chosen.get("PORT"):
        taken = {each.settings().get("PORT", "") for each in others}
        chosen["PORT"] = next(str(port) for port in range(FIRST_PORT, 65536) if str(port) not in taken)
    check_settings(tenant, chosen)
    mine = claims(chosen)
    for other in others:
        if taken_claims := sorted(mine & claims(other.settings())):
            raise TenantError(f"{name} may not have {taken_claims[0]}, which {other.name} has.")
    tenant.data.mkdir(mode=0o700, parents=True)
    tenant.path.chmod(0o700)
    tenant.suspend(is_suspended=True)
    tenant.write_settings(chosen)
    return tenant


def remove(tenant: Tenant) -> None:
    """Remove all files of a tenant that nobody serves."""
    # The pool forgets it at once, before its files are gone one by one.
    leaving = tenant.path.with_name(f".{tenant.name}.deleted")
    shutil.rmtree(leaving, ignore_errors=True)
    tenant.path.rename(leaving)
    shutil.rmtree(leaving)
