"""What a process has derived from its settings, as texts: a tenant's process must have what a plain instance has.

Run as a program: `derived_settings FILE` writes them as JSON; with a tenant's directory as second argument it loads all
code as the pool does, forks as the pool does, and writes those of the fork, which has applied the tenant's settings.
"""

from __future__ import annotations

import gc
import json
import logging
import os
import pathlib
import re
import sys
import time
from collections.abc import Iterator
from typing import Any

OURS = (
    "foundation", "audit", "identity", "domain", "scripts", "rules", "webhooks", "jobs", "event_sinks", "platform_site",
    "django", "django_q", "oauth2_provider", "rest_framework", "unfold", "whitenoise", "prometheus_client",
)  # fmt: skip
#: Values of a moment or of a process, by the names of their modules and attributes.
VOLATILE = re.compile(
    r"foundation\.guids\._last|foundation\.cache_versions\._(checked_at|expirations)|.*\.__(cached|file|spec|loader)__|"
    r"scripts\.sandbox\..*|django\.dispatch\.dispatcher\.NONE_ID|django\.views\..*coroutine_functions_to_sensitive_variables|django\.db\.models\.fields\.Field\.(auto_)?creation_counter|.*\.creation_counter|"
    r"platform_site\.tenants\..*|.*__firstlineno__|.*\._(count|counter)"
)


def load() -> None:
    """Load all code, as `serve` and the pool do."""
    import django

    django.setup()
    from platform_site.management.commands import serve
    from platform_site.tenants.memory import load_code

    load_code()
    serve._load_code(pages=True)


def derived() -> dict[str, str]:
    """Name → value as text."""
    from django.conf import settings
    from django.core.cache import caches
    from django.core.files.storage import default_storage
    from django.db import connections
    from django.utils import timezone
    from django_q.conf import Conf
    from oauth2_provider.settings import DEFAULTS, oauth2_settings
    from rest_framework.settings import DEFAULTS as REST_DEFAULTS
    from rest_framework.settings import api_settings

    from foundation import encryption
    from platform_site.metrics import (
        _requests,
        request_counted,  # noqa: F401  (its counters are written below)
    )

    _requests.labels("other", "GET", "2xx").inc()
    files = sorted(str(path.relative_to(settings.DATA_DIR)) for path in settings.METRICS_DIR.glob("counter_*"))
    found = {f"settings.{name}": getattr(settings, name) for name in dir(settings) if name.isupper()}
    found |= {f"tasks.{name}": value for name, value in vars(Conf).items() if name.isupper()}
    found |= {f"oauth.{name}": getattr(oauth2_settings, name) for name in DEFAULTS}
    found |= {f"rest.{name}": getattr(api_settings, name) for name in REST_DEFAULTS}
    found |= {
        "connections": connections.settings,
        "caches": caches.settings,
        "storage": default_storage.location,  # type: ignore[attr-defined]
        "time zone": (time.tzname, timezone.get_default_timezone_name(), time.timezone),
        "encryption": encryption._path(),
        "metrics": len(files) > 0,
        "environment": json.dumps(sorted(os.environ.items())),
    }
    for name in ("", "django", "django-q", "oauthlib", "urllib3", "platform.request"):
        each = logging.getLogger(name)
        found[f"logger.{name}"] = (
            each.level,
            each.propagate,
            [_handler(handler) for handler in each.handlers if handler.formatter],
        )
    found |= dict(_globals())
    return {name: value if name == "environment" else _text(value) for name, value in found.items()}


def _handler(handler: logging.Handler) -> tuple[str, str, list[str]]:
    return (type(handler).__name__, type(handler.formatter).__name__, [type(each).__name__ for each in handler.filters])


def _globals() -> Iterator[tuple[str, Any]]:
    """Plain values that modules and classes hold."""
    for module_name, module in sorted(sys.modules.items()):
        if module_name.partition(".")[0] not in OURS or module_name == "platform_site.settings":
            continue
        for name, value in list(vars(module).items()):
            yield from _plain_only(f"{module_name}.{name}", value)
            if isinstance(value, type) and value.__module__ == module_name:
                for attribute, held in list(vars(value).items()):
                    yield from _plain_only(f"{module_name}.{name}.{attribute}", held)


def _plain_only(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if not name.endswith("__") and not VOLATILE.fullmatch(name) and _is_plain(value):
        yield name, value


def _is_plain(value: Any, depth: int = 0) -> bool:
    if isinstance(value, str | int | float | bool | bytes | pathlib.Path | None):
        return True
    if depth < 3 and isinstance(value, tuple | list | set | frozenset):
        return all(_is_plain(each, depth + 1) for each in value)
    if depth < 3 and isinstance(value, dict):
        return all(_is_plain(each, depth + 1) for item in value.items() for each in item)
    return False


def _text(value: Any) -> str:
    if isinstance(value, set | frozenset):
        value = sorted(value, key=repr)
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


def remaining(marker: str, allowed: str) -> list[str]:
    """Texts in this process that contain the marker, without those that contain what is allowed."""
    gc.unfreeze()
    gc.collect()
    found: set[str] = set()
    for holder in gc.get_objects():
        if isinstance(holder, dict | list | tuple | set) or hasattr(holder, "__dict__"):
            for each in gc.get_referents(holder):
                if isinstance(each, str | pathlib.Path) and marker in str(each) and allowed not in str(each):
                    found.add(str(each))
    return sorted(found)


def main() -> None:
    """Write the file."""
    file = pathlib.Path(sys.argv[1])
    tenant = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else None
    os.environ["DJANGO_SETTINGS_MODULE"] = "platform_site.settings"
    load()
    if tenant is None:
        file.write_text(json.dumps({"derived": derived(), "remaining": []}))
        return
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        sys.exit(os.waitstatus_to_exitcode(status))
    from platform_site.tenants.directory import Tenant
    from platform_site.tenants.settings_change import apply

    marker = os.environ["DATA_DIR"]
    read = Tenant(tenant)
    apply(read.environment(read.settings()))
    values = derived()
    del os.environ["STATIC_DIR"]
    found = remaining(marker, f"{marker}/static")
    file.write_text(json.dumps({"derived": values, "remaining": found}))
    os._exit(0)


if __name__ == "__main__":
    sys.path.insert(0, os.getcwd())
    main()
