"""Generates the proxy configuration that forwards each host name to its tenant's port."""

from __future__ import annotations

from collections.abc import Iterable

from platform_site.tenants.tenant_settings import TenantSettings


def nginx(of_tenants: Iterable[TenantSettings]) -> str:
    """A `map` for the `http` block: `$host` → `$tenant_port`; 0 for unknown names."""
    lines = ["map $host $tenant_port {", "    default 0;"]
    lines += [f"    {host} {port};" for host, port in _ports(of_tenants)]
    return "\n".join([*lines, "}"])


def caddy(of_tenants: Iterable[TenantSettings]) -> str:
    """A block for each host name, which imports the snippet `tenant` of deploy/tenants/Caddyfile with the port."""
    return "\n".join(f"{host} {{\n\timport tenant {port}\n}}" for host, port in _ports(of_tenants))


def _ports(of_tenants: Iterable[TenantSettings]) -> list[tuple[str, int]]:
    return sorted((host, settings.port) for settings in of_tenants for host in settings.hosts)
