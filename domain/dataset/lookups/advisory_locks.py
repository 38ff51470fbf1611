"""Locks on values that a transaction looks up in order to create an entity where none has them.

A merge that finds nothing creates. Two concurrent merges would both find nothing, and most of the attributes by which
entities are looked up have no unique index. On PostgreSQL a transaction therefore takes an advisory lock on the value
before the lookup and holds it until it ends. On SQLite a writing transaction is the only one, so no lock is needed.

PostgreSQL has room for some thousands of locks in all. A request that looks up many values locks the repository.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db import connection

from domain.model.repository import Repository

#: Values of one repository that a transaction locks one by one.
MANY = 100
#: Of the hash, so that these locks are not those of deliveries (webhooks.claim) by chance.
_SEED = 2


class AdvisoryLocks:
    """The locks of one request, which may need several attempts, each in a database transaction of its own.

    whole   lock repositories and not values, for imports of many objects in one transaction
    """

    def __init__(self, *, whole: bool = False) -> None:
        self._whole = whole
        #: identity → values; None is the whole repository
        self._held: dict[str, set[str] | None] = {}

    def take(self, repository: Repository[Any], values: Iterable[str]) -> None:
        """Lock the values of the repository's entities; waits while another transaction has one of them locked.

        Raises OperationalError on a deadlock, or when the wait is too long.
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
        """In a new transaction, lock what the last one had locked; all requests lock in the same order."""
        for identity, values in sorted(self._held.items()):
            _lock(identity, values)


def _lock(identity: str, values: Iterable[str] | None) -> None:
    """Lock values exclusively and the repository shared; without values, the repository exclusively."""
    if connection.vendor != "postgresql":
        return
    if values is None:
        keys, locks = [identity], ["pg_advisory_xact_lock"]
    else:
        keys = [identity, *(f"{identity}.{value}" for value in sorted(values))]
        locks = ["pg_advisory_xact_lock_shared", *["pg_advisory_xact_lock"] * (len(keys) - 1)]
    # They are taken in this order: PostgreSQL computes what it selects from left to right.
    taken = ", ".join(f"{lock}(hashtextextended(%s, {_SEED}))" for lock in locks)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {taken}", keys)
