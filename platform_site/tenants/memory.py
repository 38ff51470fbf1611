"""What tenants take of a machine's memory: the code that they share, and how many run at once."""

from __future__ import annotations

from importlib import import_module
from typing import Final

import psutil
from django.conf import settings
from django.template import engines
from django.utils.module_loading import import_string
from django.utils.translation.trans_real import translation

#: Measured (docs/operations.md): the code, which all share, and what a tenant's processes have of their own.
SHARED_BYTES: Final = 150_000_000
TENANT_BYTES: Final = 190_000_000
MOST_BYTES: Final = 1_500_000_000


def load_code() -> None:
    """Load what processes of tenants load when they start, besides what `serve` loads: it is memory that they share.

    Nothing of it may depend on a setting that tenants have.
    """
    for path in settings.MIDDLEWARE:
        import_string(path)
    for name in ("django_q.cluster", "platform_site.management.commands.qcluster", "whitenoise.storage"):
        import_module(name)
    engines.all()
    for code, _name in settings.LANGUAGES:
        translation(code)


def running_by_memory(memory_bytes: int) -> int:
    """How many tenants run at once on a machine with that memory."""
    return max(1, int((min(memory_bytes / 2, MOST_BYTES) - SHARED_BYTES) // TENANT_BYTES))


def machine_memory() -> int:
    """Bytes of memory that this machine has."""
    total: int = psutil.virtual_memory().total
    return total
