"""Generates the proxy configuration that forwards each host name to its tenant's port."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from platform_site.tenants.tenant_settings import TenantSettings

#: Host names that a map of nginx would take for its own parameters.
_ESCAPED: Final = {"default": r"\default", "include": r"\include"}


def nginx(of_tenants: Iterable[TenantSettings]) -> str:
    """A `map` for the `http` block: `$host` → `$tenant_port`; 0 for unknown names.

    deploy/tenants/nginx.conf sizes its hash table: those directives may stand once in `http`, before the first map.
    """
    lines = ["map $host $tenant_port {", "    default 0;"]
    lines += [f"    {_ESCAPED.get(host, host)} {port};" for host, port in _ports(of_tenants)]
    return "\n".join([*lines, "}"])


def caddy(of_tenants: Iterable[TenantSettings]) -> str:
    """A block for each host name, which imports the snippet `tenant` of deploy/tenants/Caddyfile with the port."""
    return "\n".join(f"{host} {{\n\timport tenant {port}\n}}" for host, port in _ports(of_tenants))


def _ports(of_tenants: Iterable[TenantSettings]) -> list[tuple[str, int]]:
    return sorted((host, settings.port) for settings in of_tenants for host in settings.hosts)
