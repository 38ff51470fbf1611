"""Memory of tenants: preloads the shared code, and computes how many tenants run at once."""

from __future__ import annotations

from importlib import import_module
from typing import Final

import psutil
from django.conf import settings
from django.template import engines
from django.utils.module_loading import import_string
from django.utils.translation.trans_real import translation

#: Measured (docs/operations.md): the shared code, and the private memory of a tenant's processes.
SHARED_BYTES: Final = 150_000_000
TENANT_BYTES: Final = 190_000_000
MAX_BYTES: Final = 1_500_000_000


def load_code() -> None:
    """Load the code that tenants' processes load at their start, so that they share its memory.

    None of it may depend on a setting that tenants can have.
    """
    for path in settings.MIDDLEWARE:
        import_string(path)
    for name in ("django_q.cluster", "platform_site.management.commands.qcluster", "whitenoise.storage"):
        import_module(name)
    engines.all()
    for code, _name in settings.LANGUAGES:
        translation(code)


def max_running_by_memory(memory_bytes: int) -> int:
    """Maximum number of running tenants on a machine with this memory."""
    return max(1, int((min(memory_bytes / 2, MAX_BYTES) - SHARED_BYTES) // TENANT_BYTES))


def machine_memory() -> int:
    """The memory of this machine in bytes."""
    total: int = psutil.virtual_memory().total
    return total
