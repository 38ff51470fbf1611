"""The outbox: a delivery is a row of the same database transaction that writes the data (spec 06, 6.2).

A rollback removes the row; a committed row is sent at least once, despite crashes. After the commit the task queue
wakes a worker; if that message is lost, the workers' sweep finds the row.

Events of one entity keep their order within one template: each row takes the next number of its entity and template.
The lock on the entity's row serializes its commits, and so the numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from functools import lru_cache
from operator import attrgetter
from typing import Any, Self

from django.db import connection, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from domain.database import cursor
from domain.dataset.checks.access import allowed
from domain.dataset.lookups.name_binding import EventValues
from domain.dataset.records.dry_run_hooks import ReportEntry
from domain.dataset.records.record import Record, UnitOfWork
from domain.dataset.templates.record_template import InvalidTemplate
from domain.dataset.transactions.stored_writes import write_handlers
from domain.model.registry import repositories
from domain.model.values import moment_to_storage
from domain.query import select_rows
from foundation import errors
from foundation.dry_runs import MAX_ENTRIES
from foundation.egress.policy import destination_of
from foundation.fields import utc_now
from foundation.guids import new_guid
from identity.context import CallContext
from webhooks.announcer import wake_workers
from webhooks.headers import InvalidHeader, with_trace
from webhooks.models import DELIVERY_STATE, WebHookDelivery
from webhooks.templates import WebHookTemplate
from webhooks.url_secrets import masked_url

_WRITE_HANDLER = "WebHookDelivery"
_DELIVERIES = "Systems.Config.WebHookDeliveries"
#: Attributes of a delivery in the report of a dry run.
_REPORTED = (
    "WebHookCode",
    "RepositoryName",
    "EntityId",
    "EventType",
    "RuleCode",
    "RequestURL",
    "RequestHeaders",
    "RequestBody",
)
#: The destination of a delivery whose rendered URL has no valid host.
NO_DESTINATION = "-"


@dataclass(slots=True)
class NewDelivery:
    """A row to insert, by the names of its columns; `headers` is JSON already.

    Not a WebHookDelivery, whose construction takes as long as rendering the request and inserting the row together. As
    a BulkWrite and StorableWrite it can be deferred to the commit, also to that of a Domain transaction in a later
    request.
    """

    id: str
    web_hook_id: str
    web_hook_code: str
    repository_name: str
    entity_id: str
    event_type: str
    rule_code: str | None
    is_test: bool
    is_host_rendered: bool
    destination: str
    request_url: str
    request_headers: str
    request_body: str
    read_repositories: str
    headers: str
    timeout_seconds: int
    max_retries: int

    def __call__(self) -> None:
        deliveries_insert([self])

    @classmethod
    def write_all(cls, deliveries: Sequence[Self]) -> None:
        deliveries_insert(deliveries)

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """See domain.dataset.transactions.stored_writes."""
        return _WRITE_HANDLER, asdict(self)


#: Columns with the time of the insert.
_TIME_COLUMNS = ("aggregate_last_update_time_utc", "creation_time_utc", "next_attempt_time_utc")


def delivery_prepare(
    template: WebHookTemplate,
    record: Record,
    *,
    event_type: str = "",
    rule_code: str | None = None,
    events: EventValues | None = None,
    is_test: bool = False,
) -> NewDelivery:
    """Render the template at the event. The row is not inserted yet.

    Raises Refused if the template can no longer be rendered or the request cannot be sent.
    """
    try:
        rendered = template.compiled.render(record, events)
        destination = template.fixed_destination
    except (InvalidTemplate, InvalidHeader, ValueError) as exc:
        raise errors.Refused(errors.INTERPOLATION_FAILED, template.code, exc) from exc
    shown, stored = template.stored_headers(with_trace(rendered.headers, record.dataset.context.traceparent))
    return NewDelivery(
        id=new_guid(),
        web_hook_id=template.id,
        web_hook_code=template.code,
        repository_name=record.repository.name,
        entity_id=record.id,
        event_type=event_type,
        rule_code=rule_code,
        is_test=is_test,
        destination=destination or _destination_of(rendered.url),
        is_host_rendered=destination is None,
        request_url=rendered.url,
        request_headers=shown,
        request_body=rendered.body,
        read_repositories=template.read_repositories,
        headers=stored,
        timeout_seconds=template.timeout_seconds,
        max_retries=0 if is_test else template.max_retries,
    )


def _destination_of(url: str) -> str:
    """host:port of a rendered URL, or NO_DESTINATION: the worker reports an invalid host, the commit does not fail."""
    try:
        return destination_of(url).name
    except ValueError:
        return NO_DESTINATION


def deliveries_insert(deliveries: Sequence[NewDelivery]) -> None:
    """Insert the rows in the current database transaction, due now, and wake a worker after its commit."""
    database = transaction.get_connection()
    deliveries_write(deliveries, database)
    announce([delivery.id for delivery in deliveries], database)


def deliveries_write(deliveries: Sequence[NewDelivery], database: BaseDatabaseWrapper) -> None:
    """Insert the rows without waking a worker: one statement, executed for each."""
    insert = _insert_statement()
    moment = insert.moment(utc_now())
    rows = [(*insert.values(delivery), moment, moment, moment) for delivery in deliveries]
    cursor.change_many(insert.sql, rows, connection=database)


@write_handlers.function(_WRITE_HANDLER)
def deliveries_insert_stored(dataset: UnitOfWork, payloads: Sequence[dict[str, Any]]) -> None:
    """Insert rows that `NewDelivery.serialize` stored, due now."""
    deliveries_insert([NewDelivery(**payload) for payload in payloads])


@dataclass(frozen=True, slots=True)
class _Insert:
    """The statement that numbers a row and inserts it. Parameters: values(delivery), then the times."""

    sql: str
    values: Callable[[NewDelivery], tuple[Any, ...]]
    moment: Callable[[datetime], Any]


@lru_cache(maxsize=1)
def _insert_statement() -> _Insert:
    """Cached: every commit with a webhook uses it. Other columns have the model's defaults."""
    given = [field.name for field in fields(NewDelivery)]
    defaults = {
        str(field.column): _literal(field.get_default())
        for field in WebHookDelivery._meta.concrete_fields
        if field.attname not in (*given, *_TIME_COLUMNS, "sequence") and field.get_default() is not None
    }
    table = WebHookDelivery._meta.db_table
    # Lists all states, so that the index `delivery_order` finds the entity's rows instead of all of the template's.
    states = ", ".join(map(_literal, DELIVERY_STATE.members))
    same_entity = f"web_hook_id = %s AND state IN ({states}) AND entity_id = %s"
    number = f"(SELECT COALESCE(MAX(sequence), 0) + 1 FROM {table} WHERE {same_entity})"  # noqa: S608
    # The number comes first, so that its two parameters are taken from the row with the others.
    columns = ["sequence", *given, *_TIME_COLUMNS, *defaults]
    values = [number, *["%s"] * (len(given) + len(_TIME_COLUMNS)), *defaults.values()]
    return _Insert(
        f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join(values)})",  # noqa: S608 (names of our own)
        attrgetter("web_hook_id", "entity_id", *given),
        moment_to_storage(connection.vendor),
    )


def _literal(default: int | str) -> str:
    """A default of the model in SQL: a number or a state's name, which needs no escaping."""
    assert isinstance(default, int) or default.isidentifier(), default
    return f"'{default}'" if isinstance(default, str) else str(default)


@dataclass(slots=True)
class _WakeUp:
    """One message to the workers for all rows that one database transaction inserts into the outbox."""

    ids: list[str] = field(default_factory=list)

    def __call__(self) -> None:
        wake_workers(self.ids)

    def report_entries(self, context: CallContext) -> Iterator[ReportEntry]:
        """The requests that would be sent, to callers who may read deliveries; secrets masked."""
        deliveries = repositories[_DELIVERIES]
        if not allowed(context, deliveries, "read"):
            return
        for row in select_rows(deliveries, _REPORTED, ctx=context, ids=self.ids[:MAX_ENTRIES]):
            code, repository, entity, event, rule, url, headers, body = row
            yield (
                "webhooks",
                {
                    "webHook": code,
                    "event": event,
                    "rule": rule,
                    "entity": f"{repositories[repository].set_name}({entity})",
                    "url": masked_url(url),
                    "headers": headers.splitlines(),
                    "body": body,
                },
            )


def announce(delivery_ids: Sequence[str], database: BaseDatabaseWrapper) -> None:
    """Wake a worker after the commit; once for each database transaction, however many rows it inserts."""
    waiting: list[tuple[Any, ...]] = database.run_on_commit
    for entry in reversed(waiting):
        if isinstance(entry[1], _WakeUp):
            entry[1].ids.extend(delivery_ids)
            return
    database.on_commit(_WakeUp([*delivery_ids]))
