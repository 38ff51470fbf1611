"""Checks that a rule reads only data that its author may read (spec 05, 5.2).

A rule compares, copies and sends values of its entity and of referenced entities. The author, the user who saved it
last, is checked with current roles: access to repositories when the rule is saved and when it runs, to referenced rows
when it runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.utils.translation import gettext_noop as _

from domain.dataset.checks import access
from domain.dataset.checks.authority import NOBODY, Authority, context_of
from domain.dataset.dataset import Dataset
from domain.dataset.lookups.name_binding import ROWS, EventName, EventValues, ReferencePath, follow
from domain.dataset.records.record import Record
from domain.dataset.unit.autoflush import flushed
from domain.model.registry import repositories
from identity.context import AllPermissions, CallContext

#: Reason of a rule that does not run.
REASON = _("its author may not read {0}")


@dataclass(frozen=True, slots=True)
class Reads:
    """Data that a rule reads: its repository, and the reference paths."""

    repository: str
    paths: frozenset[ReferencePath]


def unreadable_repository(author: Authority, repository: str, paths: Iterable[ReferencePath]) -> str:
    """The first repository that the author may not read; "" if there is none."""
    context = context_of(author)
    if isinstance(context.permissions, AllPermissions):
        return ""
    # A rule without a known author does not disclose its entity.
    own = () if author == NOBODY else (repository,)
    hops = [hop for path in paths for hop in path]
    # Lists are not checked row by row: a row policy refuses the whole list.
    lists = (hop.target for hop in hops if isinstance(hop, EventName) and hop.name == ROWS)
    for name in lists:
        if access.has_policies(context, repositories[name], "read"):
            return name
    names = (*own, *(hop.target for hop in hops))
    return next((name for name in names if not access.allowed(context, repositories[name], "read")), "")


def unreadable(author: Authority, reads: Reads, record: Record, events: EventValues) -> str:
    """As `unreadable_repository`, or the repository of the first row on the paths that is hidden from the author."""
    context = context_of(author)
    if isinstance(context.permissions, AllPermissions):
        return ""
    if name := unreadable_repository(author, reads.repository, reads.paths):
        return name
    for path in reads.paths:
        for length in range(1, len(path) + 1):
            result = follow(record, path[:length], events)
            if result is not None and not may_see(context, result):
                return result.repository.name
    return ""


def hidden_entity(author: Authority, record: Record) -> str:
    """The repository of the record if it is hidden from the author; "" if it is not."""
    return "" if may_see(context_of(author), record) else record.repository.name


def may_see(context: CallContext, record: Record) -> bool:
    """Whether the context's caller may see the record with its pending values; a deleted one with its former values."""
    if isinstance(context.permissions, AllPermissions):
        return True
    if not access.allowed(context, record.repository, "read"):
        return False
    assert isinstance(record.dataset, Dataset)
    is_stored = record.is_deleted or record.dataset.rows_written
    if is_stored or not access.has_policies(context, record.repository, "read"):
        return access.row_visible(context, record.repository, record.id)
    with flushed(record.dataset, around=record.id):
        return access.row_visible(context, record.repository, record.id)
