"""Single-use values: the jti of client assertions and DPoP proofs (RFC 7523, 3; RFC 9449, 11.1)."""

from __future__ import annotations

import datetime
import hashlib

from django.db import IntegrityError, transaction

from foundation.fields import utc_now
from identity.models import UsedValue


def use_once(kind: str, owner: str, value: str, *, seconds: float) -> bool:
    """Whether this is the first use of the owner's value; stored for `seconds`, after which it must be invalid.

    Stored in the database, for all nodes and across restarts: only one of two concurrent uses is the first.
    """
    digest = hashlib.sha256("\0".join((kind, owner, value)).encode()).hexdigest()
    try:
        with transaction.atomic():
            UsedValue(digest=digest, expires=utc_now() + datetime.timedelta(seconds=seconds)).save(force_insert=True)
    except IntegrityError:
        return False
    return True


def used_values_prune() -> int:
    """Delete values that are invalid by now; returns their number."""
    return UsedValue.objects.filter(expires__lt=utc_now()).delete()[0]
