"""Advisory locks on looked-up values, so that concurrent merges create an entity only once.

A merge creates an entity if its lookup finds none. Two concurrent merges would both find none, and most lookup
attributes have no unique index. On PostgreSQL a transaction therefore takes an advisory lock on the value before the
lookup and holds it until it ends. On SQLite it takes the lock of the only writer.

PostgreSQL has room for some thousands of locks in all. A request that looks up many values locks the repository.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db import connection

from domain.database import sqlite
from domain.database.cursor import fetch
from domain.model.repository import Repository

#: Maximum values of one repository that a transaction locks individually.
MANY = 100
#: Part of the hash, so that these locks differ from those of deliveries (webhooks.lease).
_SEED = 2


class AdvisoryLocks:
    """The locks of one request, which may need several attempts, each in its own database transaction.

    whole   lock repositories and not values, for imports of many objects in one transaction
    """

    def __init__(self, *, whole: bool = False) -> None:
        self._whole = whole
        #: identity → values; None is the whole repository
        self._held: dict[str, set[str] | None] = {}

    def take(self, repository: Repository[Any], values: Iterable[str]) -> None:
        """Lock the values of the repository's entities; waits while another transaction holds one of them.

        Raises OperationalError on a deadlock, or after the lock timeout.
        """
        identity = repository.identity_name
        held = self._held.setdefault(identity, set())
        if held is None:
            return
        fresh = set(values) - held
        if not fresh:
            return
        if self._whole or len(held) + len(fresh) > MANY:
            self._held[identity] = None
            _lock(identity, None)
        else:
            held |= fresh
            _lock(identity, fresh)

    def lock_again(self) -> None:
        """In a new transaction, take the locks of the previous one again; all requests lock in the same order."""
        for identity, values in sorted(self._held.items()):
            _lock(identity, values)


def _lock(identity: str, values: Iterable[str] | None) -> None:
    """Lock values exclusively and the repository shared; without values, the repository exclusively."""
    if connection.vendor != "postgresql":
        sqlite.take_write_lock()
        return
    if values is None:
        keys, locks = [identity], ["pg_advisory_xact_lock"]
    else:
        keys = [identity, *(f"{identity}.{value}" for value in sorted(values))]
        locks = ["pg_advisory_xact_lock_shared", *["pg_advisory_xact_lock"] * (len(keys) - 1)]
    # PostgreSQL computes the selected values from left to right, and so takes the locks in this order.
    taken = ", ".join(f"{lock}(hashtextextended(%s, {_SEED}))" for lock in locks)
    fetch(f"SELECT {taken}", keys)
