"""Reads and checks the settings of a tenant, and finds the values that must be unique among tenants.

URLs and lists are parsed by the functions that the tenant's processes use (platform_site.environment), so that the
compared values are those that the processes use.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import ipaddress
import os
import re
import socket
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import environ
from django.core.exceptions import ImproperlyConfigured

from platform_site.environment import (
    BASE_DIR,
    POSTGRESQL,
    SETTINGS,
    Environment,
    to_number,
    to_replicas,
    to_texts,
    to_url,
)

#: At most 253 characters, as in DNS: the proxy's tables have room for that.
_HOST_NAME: Final = re.compile(r"(?=.{1,253}\Z)(?!-)[A-Za-z0-9-]{1,63}(\.(?!-)[A-Za-z0-9-]{1,63})*")
#: Settings that the pool decides for all tenants, or that would reach outside of a tenant's directory or databases.
POOL_SETTINGS: Final = frozenset(
    {
        "DATA_DIR", "STATIC_DIR", "HOST", "REDIS_URL", "DEBUG", "SECRET_KEY", "TENANTS", "TENANT_IDLE_SECONDS",
        "TENANTS_RUNNING",
    }
)  # fmt: skip
#: Connection parameters that may override the server or database of the URL.
_TARGET_PARAMETERS: Final = frozenset({"host", "hostaddr", "port", "dbname", "service", "servicefile"})
#: Variables of OpenTelemetry's SDK that name files.
_OTEL_FILE: Final = re.compile(r"OTEL_.*(CERTIFICATE|KEY|FILE)")
#: PostgreSQL truncates longer names, so that two could be equal.
_DATABASE_NAME_BYTES: Final = 63
#: Maximum size of the settings file.
_FILE_BYTES: Final = 1_000_000


class TenantError(Exception):
    """A tenant cannot be created, found or changed; the message is a sentence for people."""


class _File(environ.Env):  # type: ignore[misc]  # it has no types
    """Reads files like `.env` into a dictionary instead of the environment."""

    ENVIRON: dict[str, str] = {}


@dataclass(frozen=True, slots=True)
class TenantSettings:
    """Valid settings of a tenant; another tenant may still own one of their unique values.

    values      name → text
    hosts       host names, in lower case
    port        port on which the pool listens for it
    databases   host:port/name of each PostgreSQL server
    digest      digest of the file
    """

    values: Mapping[str, str]
    hosts: tuple[str, ...]
    port: int
    databases: frozenset[str]
    digest: str = ""

    @property
    def unique_values(self) -> frozenset[str]:
        """The hosts, the port and the databases, which no other tenant may have, as texts for people."""
        hosts = (f"the host {each}" for each in self.hosts)
        return frozenset((*hosts, port_text(self.port), *(f"the database {each}" for each in self.databases)))


def port_text(port: int) -> str:
    """The port as a unique value."""
    return f"the port {port}"


def read_file(file: Path) -> tuple[dict[str, str], str]:
    """Name → text, and the digest of the file. Raises TenantError when it cannot be read."""
    name = file.parent.name
    try:
        # O_NONBLOCK: must neither wait for a pipe nor read a device.
        with open(os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as opened:
            if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
                raise TenantError(f"The settings of {name} cannot be read: {file} is no file.")
            content = opened.read(_FILE_BYTES + 1)
        if len(content) > _FILE_BYTES:
            raise TenantError(f"The settings of {name} cannot be read: {file} is too long.")
        reader: Any = type("_Read", (_File,), {"ENVIRON": {}})
        reader.read_env(io.StringIO(content.decode()), overwrite=True)
    except (OSError, ValueError) as error:
        raise TenantError(f"The settings of {name} cannot be read: {error}") from error
    found: dict[str, str] = reader.ENVIRON
    return found, hashlib.sha256(content).hexdigest()


def checked(directory: Path, values: Mapping[str, str], digest: str = "") -> TenantSettings:
    """The checked settings of the tenant in this directory. Raises TenantError for a problem."""
    name = directory.name
    try:
        _check_names(directory, values)
        hosts = tuple(_hosts(name, values))
        databases = frozenset(_databases(name, values))
        port = to_number("PORT", values.get("PORT") or "0")
    except (ImproperlyConfigured, OSError, RuntimeError, ValueError) as error:
        # RuntimeError: of paths, for an unknown user's home or links in a circle.
        raise TenantError(f"A setting of {name} cannot be read: {error}") from error
    if not 0 < port < 65536:
        raise TenantError(f"PORT of {name} must be between 1 and 65535, not {values.get('PORT', '')!r}.")
    return TenantSettings(values, hosts, port, databases, digest)


def _check_names(directory: Path, values: Mapping[str, str]) -> None:
    kinds = {setting.name: setting.type for setting in SETTINGS}
    for name, value in values.items():
        if name in POOL_SETTINGS:
            raise TenantError(f"{name} is not a setting of a tenant: the pool decides it.")
        if name not in kinds and not name.startswith("OTEL_"):
            raise TenantError(f"There is no setting {name}.")
        if value and (kinds.get(name) == "path" or _OTEL_FILE.fullmatch(name)):
            path = (BASE_DIR / Path(value).expanduser()).resolve()
            if not path.is_relative_to(directory.resolve()):
                raise TenantError(f"{name} of {directory.name} must be a file below {directory}.")
    url = values.get("EMAIL_URL")
    if url and not Environment.email(to_url("EMAIL_URL", url))["EMAIL_BACKEND"].endswith(".smtp.EmailBackend"):
        raise TenantError(f"EMAIL_URL of {directory.name} must be of a mail server, such as smtp://mail.example.com.")


def _hosts(tenant: str, values: Mapping[str, str]) -> list[str]:
    found = [each.lower() for each in to_texts(values.get("ALLOWED_HOSTS", ""))]
    if not found:
        raise TenantError(f"{tenant} needs ALLOWED_HOSTS with the names by which callers reach it.")
    if (url := values.get("BASE_URL")) and (named := urlsplit(to_url("BASE_URL", url)).hostname) and named not in found:
        found.insert(0, named)
    for host in found:
        if not _HOST_NAME.fullmatch(host):
            raise TenantError(f"{host!r} of {tenant} is not one host name.")
    return found


def _databases(tenant: str, values: Mapping[str, str]) -> Iterator[str]:
    main, replicas = values.get("DATABASE_URL"), values.get("DATABASE_REPLICA_URLS", "")
    databases = [("DATABASE_URL", Environment.database(main))] if main else []
    databases += [("DATABASE_REPLICA_URLS", each) for each in to_replicas("DATABASE_REPLICA_URLS", replicas)]
    for setting, found in databases:
        if found["ENGINE"] != POSTGRESQL:
            raise TenantError(f"{setting} of {tenant} must be of PostgreSQL; without it SQLite is used in its data.")
        if leading := sorted(_TARGET_PARAMETERS & {each.lower() for each in found.get("OPTIONS", ())}):
            raise TenantError(f"{setting} of {tenant} may not have the parameter {leading[0]}.")
        database = found["NAME"]
        if not 0 < len(database.encode()) <= _DATABASE_NAME_BYTES:
            raise TenantError(f"{setting} of {tenant} must name a database, in at most {_DATABASE_NAME_BYTES} bytes.")
        hosts, ports = str(found["HOST"]).split(","), str(found["PORT"]).split(",")
        # One port is that of all hosts (libpq, "Specifying Multiple Hosts").
        for host, port in zip(hosts, ports * len(hosts) if len(ports) == 1 else ports, strict=True):
            yield f"{_server(host)}:{int(port or 5432)}/{database}"


def _server(host: str) -> str:
    """The normalized name of a server: equal for all spellings of this machine or of one address."""
    host = host.strip().lower().rstrip(".")
    if not host or host[0] in "/@":  # a socket
        return "localhost"
    with contextlib.suppress(OSError, ValueError):  # a name
        # Parses every spelling that the driver accepts as an address, also 127.1 and 0x7f000001, without a DNS query.
        text = socket.getaddrinfo(host.strip("[]"), None, flags=socket.AI_NUMERICHOST)[0][4][0]
        address = ipaddress.ip_address(str(text).partition("%")[0])
        address = getattr(address, "ipv4_mapped", None) or address
        return "localhost" if address.is_loopback or address.is_unspecified else str(address)
    return host
