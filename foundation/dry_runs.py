"""Dry runs: real work inside a database transaction that is rolled back (spec 12, 12.1).

    with dry_run() as run:
        ...                      # rows, numbers and cache versions are written, seen by this connection alone, and
        undone hooks = run.hooks()      # what would have run after the commit

Effects outside of the database transaction, and how a dry run prevents them:

transaction.on_commit      webhook workers, mails, COMMITTED rules, announcements of cache versions, waiting clients:
                           Django drops the hooks with the transaction; `DryRun.hooks` are those that would have run
foundation.write_behind    rows about requests (statistics, traces, history of scripts): not buffered
foundation.egress          requests to other servers, those of scripts too: refused (errors.Refused, EGRESS_REFUSED)
foundation.cluster         tasks enqueued without a hook: not enqueued
foundation.cache_versions          a bump is a row, and known to its own transaction only as long as its hook waits
database sequences         surrogate keys of PostgreSQL: may skip values, as after every refused write

This code, and the code that collects entries of the report, gets the dry run of its thread from `current`.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal

from django.db import connection, transaction

from foundation import errors

#: Sections of the report whose entries are collected during the run; the others come from its hooks.
Section = Literal["rules", "notRun", "warnings"]
Entry = Mapping[str, Any] | str

#: Maximum number of entries of a section, of changed entities, and of webhook requests or mails.
MAX_ENTRIES = 1_000


class RepeatDryRun(BaseException):
    """Signals that the whole dry run must be repeated, after a deadlock or a lost optimistic-lock race.

    Only the rollback of the whole dry run releases the locks of its earlier commits, which a real request would have
    released. The cause is the error. Not an Exception, so that no part of the request handles it.
    """


@dataclass(slots=True)
class DryRun:
    """One dry run.

    began     time.perf_counter at the start
    entries   section → its entries, in order
    omitted   section → number of entries beyond MAX_ENTRIES
    shared    state of other modules for the time of the run, by key
    limit_seconds   maximum duration; None for none
    is_repeatable   whether the caller repeats it on RepeatDryRun
    is_first        whether it is the first attempt
    """

    began: float = field(default_factory=time.perf_counter)
    entries: dict[Section, list[Entry]] = field(default_factory=dict)
    omitted: Counter[str] = field(default_factory=Counter)
    shared: dict[object, Any] = field(default_factory=dict)
    limit_seconds: float | None = None
    is_repeatable: bool = False
    is_first: bool = True
    _earlier_hooks: int = 0

    def begin(self) -> None:
        """Remember the hooks that the enclosing transaction already has, if there is one."""
        self._earlier_hooks = len(connection.run_on_commit)

    def add(self, section: Section, entry: Entry) -> None:
        """Collect an entry."""
        if self.is_full(section):
            self.omitted[section] += 1
        else:
            self.entries.setdefault(section, []).append(entry)

    def is_full(self, section: Section) -> bool:
        """Whether further entries are only counted."""
        return len(self.entries.get(section, ())) >= MAX_ENTRIES

    def mark(self) -> dict[Section, int]:
        """Section → number of collected entries, for `forget`."""
        return {section: len(entries) for section, entries in self.entries.items()}

    def forget(self, mark: Mapping[Section, int]) -> None:
        """Drop the entries after the mark: of an attempt that is repeated."""
        for section, entries in self.entries.items():
            del entries[mark.get(section, 0) :]

    def hooks(self) -> list[Callable[[], None]]:
        """The hooks that would have run after the commit, in order, without those of rolled back parts."""
        return [hook for _, hook, *_ in connection.run_on_commit[self._earlier_hooks :]]

    def check_time(self) -> None:
        """Raise PayloadTooLarge after limit_seconds. Long work calls this often: the run holds locks all the time, on
        SQLite the lock of all writers.
        """
        if self.limit_seconds is not None and self.elapsed_seconds() > self.limit_seconds:
            raise errors.PayloadTooLarge(errors.DRY_RUN_TOO_LONG, round(self.limit_seconds))

    def elapsed_seconds(self) -> float:
        """The time since the run began."""
        return time.perf_counter() - self.began


_current: ContextVar[DryRun | None] = ContextVar("dry run", default=None)


def current() -> DryRun | None:
    """The dry run of this thread; None outside of one."""
    return _current.get()


@contextmanager
def dry_run(
    begin: Callable[[], AbstractContextManager[object]] = transaction.atomic,
    *,
    limit_seconds: float | None = None,
    is_repeatable: bool = False,
    is_first: bool = True,
) -> Iterator[DryRun]:
    """Roll back the database transaction of the block, which is nested in the open one if there is one.

    begin   begins the transaction
    """
    run = DryRun(limit_seconds=limit_seconds, is_repeatable=is_repeatable, is_first=is_first)
    token = _current.set(run)
    try:
        with begin():
            run.begin()
            try:
                yield run
            finally:
                transaction.set_rollback(True)
    finally:
        _current.reset(token)
