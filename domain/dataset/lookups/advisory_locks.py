"""What a transaction looks for in order to make it where it is missing: until its commit nobody else may do the same.

A merge that finds nothing creates. Two that look at once would both find nothing, and behind most attributes that
entities are found by stands no unique index. So on PostgreSQL an advisory lock on the value is taken before the look
and held until the transaction ends. On SQLite the transaction has been the only writer since before the look.

PostgreSQL keeps some thousands of locks for everybody. Whoever looks for many values therefore claims the repository.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db import connection

from domain.model.repository import Repository

#: Values of one repository that a transaction claims one by one.
MANY = 100
#: Of the hash, so that these locks are not those of deliveries (webhooks.claim) by chance.
_SEED = 2


class Claims:
    """The claims of one request, which may need several attempts, each in a database transaction of its own.

    whole   claim repositories and not values, for imports of many objects in one transaction
    """

    def __init__(self, *, whole: bool = False) -> None:
        self._whole = whole
        #: identity → values; None is the whole repository
        self._held: dict[str, set[str] | None] = {}

    def take(self, repository: Repository[Any], values: Iterable[str]) -> None:
        """Wait until nobody else claims any of the values of the repository's entities, and claim them.

        Raises OperationalError where two wait for each other, or for too long.
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

    def take_again(self) -> None:
        """Claim, in a new transaction, all that was claimed in the last one; in an order that is the same for all."""
        for identity, values in sorted(self._held.items()):
            _lock(identity, values)


def _lock(identity: str, values: Iterable[str] | None) -> None:
    """Who claims values shares the repository with others who do, and with nobody who claims it whole."""
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
