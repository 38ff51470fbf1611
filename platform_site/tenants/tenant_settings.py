"""The settings of a tenant, read and checked, and what they claim: what no other tenant may have.

URLs and lists are read by the functions with which the tenant's processes read them (`environment`), so that what is
compared is what they open.
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

_HOST_NAME: Final = re.compile(r"(?!-)[A-Za-z0-9-]{1,63}(\.(?!-)[A-Za-z0-9-]{1,63})*")
#: What the pool decides for all its tenants, or what would lead out of a tenant's directory or its databases.
NOT_OF_A_TENANT: Final = frozenset(
    {
        "DATA_DIR", "STATIC_DIR", "HOST", "REDIS_URL", "DEBUG", "SECRET_KEY", "TENANTS", "TENANT_IDLE_SECONDS",
        "TENANTS_RUNNING",
    }
)  # fmt: skip
#: Parameters of a connection that may name another server or database than the rest of the URL.
_LEADS_ELSEWHERE: Final = frozenset({"host", "hostaddr", "port", "dbname", "service", "servicefile"})
#: Variables of OpenTelemetry's SDK that name files.
_OTEL_FILE: Final = re.compile(r"OTEL_.*(CERTIFICATE|KEY|FILE)")
#: PostgreSQL cuts longer names, so that two could be one.
_DATABASE_NAME_BYTES: Final = 63
#: A longer file is no file of settings.
_FILE_BYTES: Final = 1_000_000


class TenantError(Exception):
    """A tenant that cannot be made, found or changed; the message is a sentence for people."""


class _File(environ.Env):  # type: ignore[misc]  # it has no types
    """Reads files like `.env` into a dictionary instead of the environment."""

    ENVIRON: dict[str, str] = {}


@dataclass(frozen=True, slots=True)
class TenantSettings:
    """Settings that a tenant may have, unless another one has something of it.

    values      name → text
    hosts       host names, in lower case
    port        the port that the pool listens on for it
    databases   host:port/name of each server of PostgreSQL
    digest      of the file that they were read from
    """

    values: Mapping[str, str]
    hosts: tuple[str, ...]
    port: int
    databases: frozenset[str]
    digest: str = ""

    @property
    def claims(self) -> frozenset[str]:
        """What no other tenant may have, as texts for people."""
        hosts = (f"the host {each}" for each in self.hosts)
        return frozenset((*hosts, port_claim(self.port), *(f"the database {each}" for each in self.databases)))


def port_claim(port: int) -> str:
    """The text of a claim."""
    return f"the port {port}"


def read_file(file: Path) -> tuple[dict[str, str], str]:
    """Name → text, and the digest of the file. Raises TenantError when it cannot be read."""
    name = file.parent.name
    try:
        # Neither waits for a pipe nor reads a device.
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
    """The settings of the tenant in this directory. Raises TenantError for those that a tenant may not have."""
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
        if name in NOT_OF_A_TENANT:
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
        if leading := sorted(_LEADS_ELSEWHERE & {each.lower() for each in found.get("OPTIONS", ())}):
            raise TenantError(f"{setting} of {tenant} may not have the parameter {leading[0]}.")
        database = found["NAME"]
        if not 0 < len(database.encode()) <= _DATABASE_NAME_BYTES:
            raise TenantError(f"{setting} of {tenant} must name a database, in at most {_DATABASE_NAME_BYTES} bytes.")
        hosts, ports = str(found["HOST"]).split(","), str(found["PORT"]).split(",")
        # One port is that of all hosts (libpq, "Specifying Multiple Hosts").
        for host, port in zip(hosts, ports * len(hosts) if len(ports) == 1 else ports, strict=True):
            yield f"{_server(host)}:{int(port or 5432)}/{database}"


def _server(host: str) -> str:
    """The name of a server, the same for all texts that mean this machine, or one address."""
    host = host.strip().lower().rstrip(".")
    if not host or host[0] in "/@":  # a socket
        return "localhost"
    with contextlib.suppress(OSError, ValueError):  # a name
        # Reads what the driver takes for an address: also 127.1 and 0x7f000001. It asks no name server.
        text = socket.getaddrinfo(host.strip("[]"), None, flags=socket.AI_NUMERICHOST)[0][4][0]
        address = ipaddress.ip_address(str(text).partition("%")[0])
        address = getattr(address, "ipv4_mapped", None) or address
        return "localhost" if address.is_loopback or address.is_unspecified else str(address)
    return host
