"""Deliveries of entities that are new in their dataset, rendered by the commit (spec 05, 5.4; spec 06, 6.2).

An event before the commit finds a new entity without what only the commit can give it: a number. The request is
rendered when the commit has written the entity: with the values of the event, and in place of the empty ones those of
the commit. So a webhook of a released order says Released, also if the same commit completes the order.
"""

from __future__ import annotations

import base64
import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Self

from domain.dataset.checks.authority import Authority
from domain.dataset.lookups.name_binding import EventValues
from domain.dataset.records.record import Record, UnitOfWork
from domain.dataset.transactions.stored_writes import write_handlers
from domain.model.registry import repositories
from domain.model.values import deserialize, serialize
from foundation import errors
from foundation.failures import record_failure
from rules.read_access import REASON, unreadable
from webhooks.outbox import NewDelivery, deliveries_insert, delivery_prepare
from webhooks.templates import web_hook_get

_WRITE_HANDLER = "LateWebHookDelivery"
_EMPTY = (None, "")


@dataclass(frozen=True, slots=True)
class DeferredDelivery:
    """A delivery that is rendered and inserted by the commit, in this request or in a later one (StorableWrite).

    template   guid
    author     of the rule
    at_event   a copy of the entity
    """

    template: str
    author: Authority
    event_type: str
    rule_code: str
    at_event: Record
    events: EventValues

    def __call__(self) -> None:
        self.write_all([self])

    @classmethod
    def write_all(cls, writes: Sequence[Self]) -> None:
        """Render and insert these in order."""
        deliveries_insert([delivery for write in writes if (delivery := write.prepared()) is not None])

    def prepared(self) -> NewDelivery | None:
        """The delivery; None if the entity was deleted again, or if the template must, may or can not send any more."""
        template, record = web_hook_get(self.template), self._completed()
        if template is None or not template.is_active or record is None:
            return None
        # The references have been checked at the event; the commit may have filled in others.
        hidden = unreadable(self.author, template.reads, record, self.events)
        if name := hidden or template.hidden_from_author(record, self.events):
            self._report(errors.format_message(REASON, [name]))
            return None
        try:
            return delivery_prepare(
                template, record, event_type=self.event_type, rule_code=self.rule_code, events=self.events
            )
        except errors.Refused as exc:
            if exc.code is not errors.INTERPOLATION_FAILED:
                raise
            self._report(exc)
            return None

    def _report(self, why: object) -> None:
        record_failure(f"rule {self.rule_code}", errors.Refused(errors.RULE_BROKEN, self.rule_code, why))

    def _completed(self) -> Record | None:
        """The entity as at the event, with the values of the commit in place of the empty ones."""
        before = self.at_event
        known = before.dataset.load(before.repository, before.id)
        if known is None:
            return None
        values = {name: known.values.get(name) if value in _EMPTY else value for name, value in before.values.items()}
        return _copy(known, values, {**known.custom, **before.custom})

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """See domain.dataset.transactions.stored_writes."""
        record, attributes = self.at_event, self.at_event.repository.attributes
        return _WRITE_HANDLER, {
            "template": self.template,
            "author": self.author,
            "event_type": self.event_type,
            "rule_code": self.rule_code,
            "repository": record.repository.name,
            "entity": record.id,
            "values": {name: serialize(attributes[name], value) for name, value in record.values.items()},
            "custom": record.custom,
            "events": {name: _serialized(value) for name, value in self.events.items()},
        }


def copied(record: Record) -> Record:
    """A copy of the entity, for `DeferredDelivery.at_event`."""
    return _copy(record, dict(record.values), record.custom)


def _copy(record: Record, values: dict[str, Any], custom: dict[str, Any]) -> Record:
    copy = Record(record.dataset, record.repository, record.id, record.state, values)
    copy.custom = custom
    return copy


@write_handlers.function(_WRITE_HANDLER)
def deferred_deliveries_insert_stored(dataset: UnitOfWork, payloads: Sequence[dict[str, Any]]) -> None:
    """Render and insert what `DeferredDelivery.serialize` stored."""
    DeferredDelivery.write_all([_deserialized(dataset, **payload) for payload in payloads])


def _deserialized(
    dataset: UnitOfWork,
    *,
    repository: str,
    entity: str,
    values: Mapping[str, Any],
    custom: dict[str, Any],
    events: Mapping[str, Sequence[Any]],
    **others: str,
) -> DeferredDelivery:
    declared = repositories[repository]
    known = {name: deserialize(declared.attributes[name], value) for name, value in values.items()}
    record = Record(dataset, declared, entity, "Added", known)
    record.custom = custom
    named = {name: _FROM_TEXT[kind](value) if kind else value for name, (kind, value) in events.items()}
    return DeferredDelivery(at_event=record, events=named, **others)


#: Kind of an event attribute's value that JSON lacks → its reader.
_FROM_TEXT: Mapping[str, Callable[[str], Any]] = {
    "number": Decimal,
    "moment": datetime.datetime.fromisoformat,
    "date": datetime.date.fromisoformat,
    "bytes": base64.b64decode,
}


def _serialized(value: Any) -> tuple[str, Any]:
    """(kind, JSON): the kind of `_FROM_TEXT`, "" for what JSON has."""
    match value:
        case Decimal():
            return "number", str(value)
        case datetime.datetime():
            return "moment", value.isoformat()
        case datetime.date():
            return "date", value.isoformat()
        case bytes():
            return "bytes", base64.b64encode(value).decode()
    return "", value
