"""Renders entries of the change feed that a caller may read as CloudEvents 1.0 (CloudEvents JSON format 1.0.2).

    {"specversion": "1.0", "id": "184", "source": "https://…/api/domain", "type": "Crm.Sales.SalesOrders.Update",
     "subject": "Crm_Sales_SalesOrders(0187…)", "time": "2026-11-27T…Z", "datacontenttype": "application/json",
     "cursor": "184-1764205000", "data": {"entity": {…}, "changes": {"Active": [false, true]}}}

entity    as a GET by its key returns it now; null if it has been deleted, by this commit or later; only the key, with
          `changes` null, if the event would exceed MAX_EVENT_BYTES or a value cannot be read
changes   attribute → [old, new] of this commit, from the change history; null if it keeps no values of the
          repository, or the caller may not read Systems.Core.ObjectChanges

A caller gets no event of an entity that is hidden from it. Row policies cannot be applied to deleted entities, so
callers with row policies get no events of these. Delta links report them (domain.odata.read.deltas).
"""

from __future__ import annotations

import json
import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import orjson
from django.db import InterfaceError
from django.db.models import Q

from domain import query
from domain.dataset.tables.history import ObjectChange
from domain.event_stream.feed import Entry, cursor_of
from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.odata.message.failures import known_error
from domain.query.base.access import Access
from domain.query.base.representation import Representation
from domain.syntax import parse_boolean_expression, parse_select
from domain.syntax.ast import QueryOptions
from foundation import errors
from foundation.batches import batched
from foundation.texts import utc_text
from identity.context import CallContext

logger = logging.getLogger("platform.events")

#: Operation of an entry → the last part of the event's type, named as in the change history.
OPERATIONS: Mapping[str, str] = {"I": "Create", "U": "Update", "D": "Delete"}
SOURCE_PATH = "/api/domain"
_CHANGES = "Systems.Core.ObjectChanges"
#: Most brokers accept messages up to a megabyte; a subscriber can read the whole entity by its key.
MAX_EVENT_BYTES = 128 * 1024
#: Entities read by one statement.
_AT_ONCE = 100
_EVERYTHING, _KEY = "*,Id", "Id"

#: (entity, time of the commit) → its changes in the history.
_Histories = Mapping[tuple[str, Any], Any]


def type_of(repository: str, operation: str) -> str:
    """Crm.Sales.SalesOrders.Update; operation: I, U or D."""
    return f"{repository}.{OPERATIONS[operation]}"


def render(entries: Collection[Entry], context: CallContext) -> list[tuple[Entry, bytes]]:
    """The entries that the caller may see, in order, with their events as JSON."""
    by_repository: dict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        by_repository[entry.repository].append(entry)
    access = Access(context.permissions)
    events: dict[int, bytes] = {}
    for name, given in by_repository.items():
        # The repository of a custom entity may have been removed since.
        if name in repositories and access.readable(repositories[name]):
            events |= _rendered(repositories[name], given, context, access)
    return [(entry, events[entry.id]) for entry in entries if entry.id in events]


def is_temporary(error: Exception) -> bool:
    """Whether a retry may succeed: the database is busy or unavailable, or the model is changing."""
    return isinstance(error, InterfaceError) or isinstance(known_error(error), errors.Unavailable)


def _rendered(
    repository: Repository[Any], entries: list[Entry], context: CallContext, access: Access
) -> dict[int, bytes]:
    """The events by id. The event of an entity that is too large or cannot be read has only its key, so that it does
    not delay other events and subscribers.
    """
    try:
        return _events(repository, entries, context, access, _EVERYTHING)
    except Exception as error:
        if is_temporary(error):
            raise
        if len(entries) == 1 and not isinstance(error, errors.PayloadTooLarge):
            logger.exception("event %d has the key alone: %s(%s)", entries[0].id, repository.name, entries[0].entity_id)
    if len(entries) > 1:
        alone = (_rendered(repository, [entry], context, access) for entry in entries)
        return {id: event for events in alone for id, event in events.items()}
    return _events(repository, entries, context, access, _KEY)


def _events(
    repository: Repository[Any], entries: list[Entry], context: CallContext, access: Access, select: str
) -> dict[int, bytes]:
    shown = _entities(repository, {entry.entity_id for entry in entries}, context, select)
    histories = _histories(entries, context) if select == _EVERYTHING else {}
    is_restricted = access.restricts(repository)
    events: dict[int, bytes] = {}
    for entry in entries:
        commit = (entry.entity_id, entry.changed_at)
        if entry.entity_id in shown or not is_restricted:
            entity = shown.get(entry.entity_id) if entry.operation != "D" else None
            events[entry.id] = _event(repository, entry, entity, histories.get(commit), context)
    return events


def _event(
    repository: Repository[Any], entry: Entry, entity: bytes | None, changes: Any, context: CallContext
) -> bytes:
    event = orjson.dumps(
        {
            "specversion": "1.0",
            "id": str(entry.id),
            "source": f"{context.root_url}{SOURCE_PATH}",
            "type": type_of(entry.repository, entry.operation),
            "subject": f"{repository.set_name}({entry.entity_id})",
            "time": utc_text(entry.changed_at),
            "datacontenttype": "application/json",
            "cursor": cursor_of(entry.id),
            "data": {"entity": None if entity is None else orjson.Fragment(entity), "changes": changes},
        }
    )
    if len(event) <= MAX_EVENT_BYTES:
        return event
    return _event(repository, entry, orjson.dumps({"Id": entry.entity_id}) if entity else None, None, context)


def _entities(repository: Repository[Any], ids: Iterable[str], context: CallContext, select: str) -> dict[str, bytes]:
    """The entities that are visible to the caller, as JSON, by id."""
    result: dict[str, bytes] = {}
    for part in batched(sorted(ids), _AT_ONCE):
        result |= _read(repository, part, context, select)
    return result


def _read(repository: Repository[Any], ids: Sequence[str], context: CallContext, select: str) -> dict[str, bytes]:
    """The rows by id."""
    of_them = parse_boolean_expression(f"Id in ({','.join(ids)})")
    options = QueryOptions(filter=of_them, select=parse_select(select))
    representation = Representation("none", language=context.language)
    page = query.read_collection(
        repository, options, context, representation, max_page_size=len(ids), may_end_early=False
    )
    # As text, so that decimals keep their digits.
    rows = json.loads(page.body, parse_float=orjson.Fragment)["value"]
    return {row["Id"]: orjson.dumps(row) for row in rows}


def _histories(entries: list[Entry], context: CallContext) -> _Histories:
    """The changes of the entries in the history, if the caller may read them."""
    changes = repositories[_CHANGES]
    if not Access(context.permissions).readable(changes):
        return {}
    times = {entry.changed_at for entry in entries}
    of_them = Q(entity_item_id__in={entry.entity_id for entry in entries}, change_time_utc__in=times)
    ids = [str(id) for id in ObjectChange.objects.filter(of_them).values_list("id", flat=True)]
    rows = query.select_rows(changes, ["EntityItemId", "ChangeTimeUtc", "Changes"], ctx=context, ids=ids)
    return {(entity, time): _parsed(stored) for entity, time, stored in rows}


def _parsed(stored: Any) -> Any:
    return orjson.loads(stored) if isinstance(stored, str) and stored else stored or None
