"""Delivers the change stream to sinks, each by one worker at a time (spec 13, 13.5).

    lease the sink → read entries after its position → render them with its reader's rights → publish → advance

Delivery is at least once: the position advances when the broker has confirmed, so after the death of a worker the next
one sends unconfirmed events again. Each entity's events are sent in the order of the stream; a failure stops the sink,
so that no event overtakes another. It is retried after 1, 2, 4 … 60 seconds, without limit.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.conf import settings
from django.db import connection, connections
from django.db.models import F, Min, Q
from django.utils import translation

from domain.dataset.checks.authority import context_of
from domain.dataset.tables.models import ChangeFeedEntry
from domain.entities.custom_entities.live import follow
from domain.event_stream import feed
from domain.event_stream.cloud_events import render, type_of
from domain.event_stream.feed import Entry
from domain.event_stream.subscription import Rendered, StreamFilter
from domain.event_stream.views import filter_of
from event_sinks.brokers import connected
from event_sinks.brokers.target import BrokerFailed, EventMessage, Publish, target_of
from event_sinks.models import EventSink, SinkState
from foundation.clock import database_now
from foundation.cluster import cluster_is_stopping
from foundation.errors import PlatformError
from foundation.failures import record_failure, record_problem
from foundation.messages import TranslatableMessage as Message
from foundation.messages import reason_of
from foundation.texts import storable
from identity.context import CallContext
from identity.models import User

logger = logging.getLogger("platform.events")

#: A worker that does not renew its lease for this time counts as dead: longer than a connection or a `publish` takes.
LEASE_SECONDS = 20.0
#: Maximum duration of a delivery, so that other tasks can run; the next task continues.
RUN_SECONDS = 3.0
#: Entries that are read and rendered together.
PAGE = 100
#: Interval of saving the position while a broker confirms slowly.
_SAVE_SECONDS = 1.0
#: Maximum sinks that a task delivers to concurrently.
MAX_CONCURRENT = 8
_LONGEST_PAUSE_SECONDS = 60.0


class LeaseLost(Exception):
    """Another worker has the sink."""


def sinks_deliver() -> int:
    """Deliver to every sink that is due; returns their number."""
    due = sinks_due()
    if not due:
        return 0
    follow()
    if len(due) == 1:
        _deliver(due[0])
    else:
        with ThreadPoolExecutor(min(len(due), MAX_CONCURRENT), "event sink") as pool:
            list(pool.map(_deliver_in_thread, due))
    return len(due)


def sinks_due() -> list[EventSink]:
    """Active, unleased sinks that are behind the change feed, with their state."""
    feed.poll()
    now = database_now()
    is_free = Q(state__lease_until__isnull=True) | Q(state__lease_until__lt=now)
    behind = Q(state__last__lt=feed.newest_seen())
    found = EventSink.objects.filter(is_free, behind, is_active=True, state__next_attempt__lte=now)
    return list(found.select_related("state").order_by("state__moved_at"))


def context_for(sink: EventSink) -> CallContext:
    """The current rights of the sink's reader. Raises ValueError with a Message without an active reader."""
    if not User.objects.filter(pk=sink.reader_id, active=True).exists():
        raise ValueError(Message("its reader is not there any more, or may not sign in"))
    return replace(context_of(str(sink.reader_id)), root_url=settings.BASE_URL)


def subscription_for(sink: EventSink, context: CallContext) -> StreamFilter:
    """The repositories and operations of the sink. Raises PlatformError for names that the reader cannot see."""
    return filter_of(sink.repositories, sink.operations, context)


def _deliver_in_thread(sink: EventSink) -> None:
    try:
        _deliver(sink)
    finally:
        connections.close_all()


def _deliver(sink: EventSink) -> None:
    token = _take(sink.state)
    if not token:
        return
    run = _Run(sink, token)
    try:
        with translation.override("en"):  # readers of all languages see the stored texts
            run.deliver()
        run.store(lease_token="", lease_until=None)
    except LeaseLost:
        logger.warning("the event sink %s was taken over", sink.name)
    except (BrokerFailed, ValueError, PlatformError) as exc:
        run.fail(_error_text(exc))
    except Exception as exc:
        connection.close()
        record_failure(f"event sink {sink.name}", exc)
        run.fail(f"{type(exc).__name__}: {exc}")


def _take(state: SinkState) -> str:
    """The token of the lease; "" if another worker has it."""
    now, token = database_now(), secrets.token_hex(16)
    free = SinkState.objects.filter(Q(lease_until__isnull=True) | Q(lease_until__lt=now), pk=state.pk, last=state.last)
    return token if free.update(lease_token=token, lease_until=now + timedelta(seconds=LEASE_SECONDS)) else ""


def _error_text(exc: Exception) -> str:
    with translation.override("en"):
        return exc.message if isinstance(exc, PlatformError) else reason_of(exc)


def batches_by_entity(events: Sequence[Rendered]) -> Iterator[list[Rendered]]:
    """The events in batches without two events of one entity, so that each may be published concurrently."""
    part: list[Rendered] = []
    entities: set[str] = set()
    for event in events:
        if event[0].entity_id in entities:
            yield part
            part, entities = [], set()
        part.append(event)
        entities.add(event[0].entity_id)
    if part:
        yield part


@dataclass(slots=True)
class _Run:
    """The delivery to one sink under a lease."""

    sink: EventSink
    token: str

    def deliver(self) -> None:
        """Publish until nothing is left or the time is up. Raises errors of the broker and the database."""
        state = self.sink.state
        self._report_lost_events(state)
        last, end = state.last, time.monotonic() + RUN_SECONDS
        context = context_for(self.sink)
        subscription = subscription_for(self.sink, context)
        with ExitStack() as stack:
            publish: Publish | None = None
            while not cluster_is_stopping():
                page = feed.read(last, PAGE, subscription.names)
                entries = [entry for entry in page.entries if subscription.wants(entry)]
                events = render(entries, context) if entries else []
                if events and publish is None:
                    publish = stack.enter_context(connected(target_of(self.sink)))
                    self._renew()
                delivered = self._publish(events, publish, end=end) if publish is not None else 0
                if delivered is None or page.last == last:
                    break
                last = page.last
                self._advance(last, delivered)
                if not page.is_full or time.monotonic() >= end:
                    break
                feed.poll()

    def _publish(self, events: Sequence[Rendered], publish: Publish, *, end: float) -> int | None:
        """Publish in order; returns the number of published events since the position was last saved.

        None if the time was up before the last ones; the position of the published ones is saved.
        """
        saved_at, saved = time.monotonic(), 0
        parts = list(batches_by_entity(events))
        for number, part in enumerate(parts, 1):
            publish([self._message(*event) for event in part])
            now = time.monotonic()
            is_over = now >= end or cluster_is_stopping()
            if number < len(parts) and (is_over or now - saved_at >= _SAVE_SECONDS):
                published = sum(map(len, parts[:number]))
                self._advance(part[-1][0].id, published - saved)
                saved_at, saved = now, published
                if is_over:
                    return None
        return len(events) - saved

    def _message(self, entry: Entry, event: bytes) -> EventMessage:
        name = type_of(entry.repository, entry.operation)
        return EventMessage(f"{self.sink.pk}-{entry.id}", name, entry.entity_id, event)

    def _report_lost_events(self, state: SinkState) -> None:
        kept = timedelta(days=settings.DELTA_RETENTION_DAYS)
        if not state.last or database_now() - state.moved_at < kept:
            return
        oldest = ChangeFeedEntry.objects.aggregate(oldest=Min("id"))["oldest"]
        if oldest is not None and oldest > state.last + 1:
            text = f"events older than {settings.DELTA_RETENTION_DAYS} days were removed before they were delivered"
            record_problem(f"event sink {self.sink.name}", text)

    def _renew(self) -> None:
        self.store(lease_until=database_now() + timedelta(seconds=LEASE_SECONDS))

    def _advance(self, last: int, delivered: int) -> None:
        now = database_now()
        self.store(
            last=last,
            moved_at=now,
            delivered=F("delivered") + delivered,
            failures=0,
            failing_since=None,
            last_error="",
            lease_until=now + timedelta(seconds=LEASE_SECONDS),
        )

    def fail(self, text: str) -> None:
        """Store a failed attempt, and the time of the next one."""
        state, now = self.sink.state, database_now()
        state.refresh_from_db(fields=["failures", "failing_since"])
        pause = min(_LONGEST_PAUSE_SECONDS, 2.0 ** min(state.failures, 10))
        logger.warning("the event sink %s failed: %s", self.sink.name, text)
        try:
            self.store(
                failures=state.failures + 1,
                failing_since=state.failing_since or now,
                last_error=storable(text)[:2000],
                next_attempt=now + timedelta(seconds=pause),
                lease_token="",
                lease_until=None,
            )
        except LeaseLost:
            logger.warning("the event sink %s was taken over", self.sink.name)

    def store(self, **values: object) -> None:
        """Store values of the state. Raises LeaseLost if another worker has the lease."""
        if not SinkState.objects.filter(pk=self.sink.pk, lease_token=self.token).update(**values):
            raise LeaseLost


# --- positions ----------------------------------------------------------------------------------------------------


def sink_begin(sink: EventSink) -> None:
    """Set the position of a new sink to the end of the change feed."""
    SinkState.objects.get_or_create(sink=sink, defaults={"last": feed.position_now()[0]})


def sink_replay(sink: EventSink) -> None:
    """Deliver the whole change feed again. The worker that has the lease stops."""
    SinkState.objects.filter(sink=sink).update(
        last=0, moved_at=database_now(), next_attempt=database_now(), lease_token="", lease_until=None
    )


def sink_retry(sink: EventSink) -> None:
    """Retry a failing sink now."""
    SinkState.objects.filter(sink=sink).update(next_attempt=database_now())


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of an active sink: undelivered entries, and the time since which it fails, or None."""

    name: str
    behind: int
    failing_since: datetime | None
    last_error: str


def sinks_progress() -> list[Progress]:
    """The progress of all active sinks: two queries."""
    feed.poll()
    states = SinkState.objects.filter(sink__is_active=True).select_related("sink").order_by("sink__name")
    return [
        Progress(state.sink.name, entries_behind(state, feed.newest_seen()), state.failing_since, state.last_error)
        for state in states
    ]


def entries_behind(state: SinkState, newest: int) -> int:
    """Number of entries of the change feed after the sink's position, including those that it filters out."""
    return max(0, newest - state.last)
