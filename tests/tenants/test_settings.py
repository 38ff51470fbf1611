"""A process of a tenant has the settings of a plain instance with the same environment, and all that is derived from
them; nothing of the pool's remains.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from platform_site.environment import SETTINGS
from platform_site.tenants.directory import Tenant
from platform_site.tenants.tenant_settings import POOL_SETTINGS
from tests.support.platform import ROOT

#: Of each kind of setting a value that no default is, for the pool and for the tenant.
OF_A_KIND = {
    "number": ("31", "37"), "decimal": ("31.5", "37.5"), "switch": ("1", ""), "text": ("pool-text", "tenant-text"),
    "numbers": ("31,32", "37,38"), "list": ("10.31.0.0/16", "10.37.0.0/16"),
    "time zone": ("Asia/Tokyo", "Europe/Sofia"),
    "colour": ("#1b5fc1", "#0f4c8a"),
}  # fmt: skip
OF_A_NAME = {
    "LOG_FORMAT": ("json", "text"),
    "LOG_LEVEL": ("ERROR", "WARNING"),
    "PORT": ("8831", "8832"),
    "BASE_URL": ("https://pool.example.com", "https://tenant.example.com"),
    "ALLOWED_HOSTS": ("pool.example.com", "tenant.example.com"),
    "EMAIL_URL": ("smtp://mail.pool.example.com", ""),
    "EGRESS_ALLOW": ("pool.example.net", "tenant.example.net"),
    "DATABASE_URL": ("", "postgres://tenant@127.0.0.1:5999/tenant"),
    "WEB_PROCESSES": ("3", "2"),
    "DATABASE_CONNECTIONS": ("0", "8"),
}
#: A key of each would have to be made; packages and servers that are not there.
LEFT_OUT = {"ENCRYPTION_KEYS", "OTEL_EXPORTER_OTLP_ENDPOINT", "DATABASE_REPLICA_URLS", "INSTANCE_LOGO"}


def values(position: int, of: set[str]) -> dict[str, str]:
    """A value for each setting: of the pool (0) or the tenant (1)."""
    known = {each.name: (OF_A_NAME.get(each.name) or OF_A_KIND[each.type]) for each in SETTINGS if each.name in of}
    return {name: pair[position] for name, pair in known.items()}


def derived(environment: dict[str, str], file: Path, *arguments: str) -> Any:
    """What the program says."""
    words = [sys.executable, "-m", "tests.support.derived_settings", str(file), *arguments]
    subprocess.run(words, cwd=ROOT, env=environment, check=True, timeout=240)
    return json.loads(file.read_text())


def test_a_tenant_has_what_a_plain_instance_has(tmp_path: Path) -> None:
    names = {each.name for each in SETTINGS} - LEFT_OUT
    pool_data, tenant = tmp_path / "of-the-pool", Tenant(tmp_path / "tenants" / "acme")
    tenant.data.mkdir(parents=True, mode=0o700)
    tenant.write_settings(values(1, names - POOL_SETTINGS))
    plain = {name: value for name, value in os.environ.items() if name not in {each.name for each in SETTINGS}}
    of_the_pool = {
        **plain,
        **values(0, names - POOL_SETTINGS),
        "DEMO": "0",
        "DATA_DIR": str(pool_data),
        "TENANTS": str(tmp_path / "tenants"),
        "SECRET_KEY": "of-the-pool" * 3,
    }
    in_the_fork = derived(of_the_pool, tmp_path / "fork.json", str(tenant.path))
    environment = dict(json.loads(in_the_fork["derived"]["environment"]))
    in_a_plain_instance = derived(environment, tmp_path / "plain.json")
    found, expected = in_the_fork["derived"], in_a_plain_instance["derived"]
    both = found.keys() & expected.keys()
    assert {name: (found[name], expected[name]) for name in both if found[name] != expected[name]} == {}
    # The modules of the other database, and what Django has for tests.
    others = ("django.test", "django.db.", "foundation.sqlite.")
    assert {name for name in found.keys() ^ expected.keys() if not name.startswith(others)} == set()
    assert in_the_fork["remaining"] == []
    assert "tenant.example.com" in found["settings.ALLOWED_HOSTS"]
    assert "of-the-pool" not in found["settings.SECRET_KEY"]
