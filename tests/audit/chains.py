"""Chains for tests: entries, heads, and somebody who changes rows behind the platform's back."""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable
from typing import Any

from django.db import connection

from audit import kinds
from audit.actors import Actor
from audit.chain import entries_chain, head_write
from audit.kinds import EntryKind, Ocsf
from audit.models import AuditEntry, AuditHead
from audit.record import record
from foundation.fields import utc_now

TABLE = AuditEntry._meta.db_table
ALICE = Actor("alice", address="192.0.2.7", request_id="4bf92f3577b34da6")


class Noted(EntryKind):
    """A kind of the tests, which is not registered."""

    name = "test.noted"
    title = "Noted"
    ocsf = Ocsf(kinds.API_ACTIVITY, 1)


def entries(count: int, *, subject: str = "thing") -> None:
    """Write entries, not chained yet."""
    for number in range(count):
        record(Noted, by=ALICE, subject=f"{subject} {number}", number=number, text="Ünï — ж")


def minute_of(count: int, minute: int) -> AuditHead:
    """Entries, chained, and the head that is signed after them. Minutes are in the past."""
    entries(count, subject=f"minute {minute} thing")
    entries_chain()
    head = head_write(now=utc_now() - datetime.timedelta(hours=5) + datetime.timedelta(minutes=minute))
    assert head is not None
    return head


def execute(text: str, *parameters: str | int | bytes) -> int:
    """A statement of somebody with access to the database; the number of changed rows."""
    with connection.cursor() as cursor:
        cursor.execute(text, parameters)
        return int(cursor.rowcount)


def renumber(first: int, by: int) -> None:
    """Move the positions from `first` on, so that no gap shows."""
    execute(f"UPDATE {TABLE} SET position = -position WHERE position >= %s", first)
    execute(f"UPDATE {TABLE} SET position = -position + %s WHERE position < 0", by)


class Tamperer:
    """Changes one thing of a chain of `size` entries. Each method returns the position that the finding must have."""

    def __init__(self, random_: random.Random, size: int) -> None:
        self._random, self._size = random_, size

    def act(self) -> tuple[str, int]:
        """(what was done, where)."""
        method: Callable[[], int] = self._random.choice(
            [
                self.flip,
                self.flip,
                self.flip,
                self.remove,
                self.remove_and_close,
                self.insert,
                self.cut,
                self.swap,
                self.rechain,
            ]
        )
        return method.__name__, method()

    def flip(self) -> int:
        """One character of one column."""
        position = self._any()
        column = self._random.choice(["kind", "at", "actor", "subject", "content", "seal", "hash", "id"])
        row: Any = AuditEntry.objects.values().get(position=position)
        if column == "id":
            execute(f"UPDATE {TABLE} SET id = id + 1000000 WHERE position = %s", position)
        elif column == "at":
            changed = row["at"] + datetime.timedelta(microseconds=self._random.choice([1, -1, 1000, 86_400_000_000]))
            AuditEntry.objects.filter(position=position).update(at=changed)
        else:
            text = str(row[column])
            place = self._random.randrange(len(text))
            other = self._random.choice([each for each in '0123456789abcdefXYZ{}"é ' if each != text[place]])
            execute(
                f"UPDATE {TABLE} SET {column} = %s WHERE position = %s",
                text[:place] + other + text[place + 1 :],
                position,
            )
        return position

    def remove(self) -> int:
        """A row."""
        position = self._any(last=self._size - 1)
        execute(f"DELETE FROM {TABLE} WHERE position = %s", position)
        return position

    def remove_and_close(self) -> int:
        """A row, and number the others anew."""
        position = self.remove()
        renumber(position, -1)
        return position

    def insert(self) -> int:
        """A row that looks like another."""
        position = self._any()
        renumber(position, 1)
        execute(
            f"INSERT INTO {TABLE} (kind, at, actor, subject, content, seal, position, hash) SELECT kind, at, actor, "
            f"'thing 4711', content, seal, %s, hash FROM {TABLE} WHERE position = %s",
            position, position + 1,
        )  # fmt: skip
        return position

    def cut(self) -> int:
        """The end of the chain."""
        position = self._any(first=2)
        execute(f"DELETE FROM {TABLE} WHERE position >= %s", position)
        return position

    def swap(self) -> int:
        """Two neighbours."""
        position = self._any(last=self._size - 1)
        execute(f"UPDATE {TABLE} SET position = -1 WHERE position = %s", position)
        execute(f"UPDATE {TABLE} SET position = %s WHERE position = %s", position, position + 1)
        execute(f"UPDATE {TABLE} SET position = %s WHERE position = -1", position + 1)
        return position

    def rechain(self) -> int:
        """Change an entry and compute every later hash anew, as somebody can who knows how hashes are made."""
        position = self._any()
        execute(f"UPDATE {TABLE} SET actor = 'mallory' WHERE position = %s", position)
        rechain(position)
        return position

    def _any(self, *, first: int = 1, last: int | None = None) -> int:
        return self._random.randint(first, last or self._size)


def rechain(first: int) -> None:
    """Compute the hashes from this position on anew."""
    from audit.hashing import GENESIS, entry_hash
    from audit.rows import chained_rows

    before = AuditEntry.objects.filter(position=first - 1).first()
    previous = before.hash if before is not None else GENESIS
    for step in chained_rows(first - 1):
        for row in step:
            previous = entry_hash(previous, row, row.position)
            execute(f"UPDATE {TABLE} SET hash = %s WHERE id = %s", previous, row.id)
