"""What a sink is sent, with whose rights, and from where it goes on (spec 13, 13.5)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import Settings

from domain.dataset.tables.models import ChangeFeedEntry
from domain.event_stream import feed
from domain.event_stream.cloud_events import render
from event_sinks import delivery
from event_sinks.brokers import connected
from event_sinks.brokers.target import BrokerFailed, Publish, Target, target_of
from event_sinks.delivery import batches_by_entity, sink_begin, sink_replay, sink_retry, sinks_deliver, sinks_due
from event_sinks.models import EventSink, SinkState
from event_sinks.tasks import deliver
from foundation.clock import database_now
from foundation.fields import utc_now
from identity.models import User
from tests.domain.conftest import api, fresh_process, world
from tests.domain.security.conftest import (
    BOOKS,
    MARK,
    Library,
    administrator,
    library,
    restricted,
)
from tests.domain.security.test_hidden_history import tracked
from tests.support.api import Api
from tests.support.brokers import Got, NatsServer

__all__ = ["administrator", "api", "fresh_process", "library", "restricted", "tracked", "world"]

CURRENCIES, NAME = "General_Currencies_Currencies", "General.Currencies.Currencies"


@pytest.fixture(autouse=True)
def listed_host(settings: Settings) -> None:
    settings.EGRESS_ALLOW = ["127.0.0.1"]


@pytest.fixture
def stream(nats_broker: NatsServer) -> NatsServer:
    nats_broker.make_stream()
    return nats_broker


@pytest.fixture
def sink(api: Api, stream: NatsServer) -> EventSink:
    return sink_to(stream, "admin")


def sink_to(stream: NatsServer, reader: str, **values: Any) -> EventSink:
    sink = EventSink.objects.create(
        name=f"To {reader}",
        broker="NATS",
        servers=stream.servers,
        uses_tls=False,
        destination=stream.destination,
        reader=User.objects.get(login=reader),
        **values,
    )
    SinkState.objects.create(sink=sink, last=end_of_the_feed())
    return sink


def end_of_the_feed() -> int:
    """The id before the next one. On PostgreSQL nothing of the test's own transaction is settled, so only ids without a
    gap are read; and the sequence goes on behind the rows of earlier tests, which were rolled back.
    """
    if connection.vendor != "postgresql":
        return feed._newest_id()
    with connection.cursor() as cursor:
        cursor.execute("SELECT nextval(pg_get_serial_sequence('domain_changefeedentry', 'id'))")
        return int(cursor.fetchone()[0])


def create(api: Api, sign: str) -> str:
    answer = api.post(CURRENCIES, {"CurrencySign": sign, "Name": f"Currency {sign}"})
    assert answer.status_code == 201, answer.content
    return str(answer.json()["@odata.id"].rpartition("(")[2].rstrip(")"))


def state_of(sink: EventSink) -> SinkState:
    return SinkState.objects.get(sink=sink)


def changes(got: list[Got], id: str) -> list[str]:
    return [each.name.removeprefix(f"{NAME}.") for each in got if id in each.event["subject"]]


def test_a_change_is_an_event_at_the_broker(sink: EventSink, stream: NatsServer, api: Api) -> None:
    id = create(api, "S1")
    api.patch(f"{CURRENCIES}({id})", {"Name": "Other"})
    assert sinks_deliver() == 1
    got = stream.got()
    assert changes(got, id) == ["Create", "Update"]
    created, updated = (each.event for each in got if id in each.event["subject"])
    assert created["source"] == "/api/domain"
    assert created["subject"] == f"{CURRENCIES}({id})"
    assert updated["data"]["entity"]["CurrencySign"] == "S1"
    state = state_of(sink)
    assert (state.delivered, state.last_error, state.lease_token) == (len(got), "", "")
    assert sinks_due() == []


def test_a_sink_begins_with_its_first_day(sink: EventSink, stream: NatsServer, api: Api) -> None:
    create(api, "S1")
    later = EventSink.objects.create(name="Later", broker="NATS", destination="later", reader=sink.reader)
    sink_begin(later)
    assert state_of(later).last >= feed._newest_id() - feed._IN_FLIGHT_ENTRIES
    last = state_of(later).last
    create(api, "S2")
    sink_begin(later)
    assert state_of(later).last == last


def test_only_what_is_asked_for(sink: EventSink, stream: NatsServer, api: Api) -> None:
    EventSink.objects.update(repositories=f"{NAME}, Crm.Sales.SalesOrders", operations="update, DELETE")
    id = create(api, "S1")
    api.patch(f"{CURRENCIES}({id})", {"Name": "Other"})
    sinks_deliver()
    assert {each.name for each in stream.got()} == {f"{NAME}.Update"}


def test_the_reader_reads_no_more_than_by_other_ways(tracked: Library, restricted: Api, stream: NatsServer) -> None:
    sink = sink_to(stream, "bob")
    SinkState.objects.update(last=0)
    state = state_of(sink)
    # Of all that is kept, in pages of a few: the transaction of the test is open.
    entries = [feed.Entry(*row) for row in ChangeFeedEntry.objects.order_by("id").values_list(*feed.Entry._fields)]
    run = delivery._Run(sink, "")
    context = delivery.context_for(sink)
    events = render(entries, context)
    with connected(target_of(sink)) as publish:
        run._publish(events, publish, end=float("inf"))
    got = stream.got()
    visible = {f"Library_Books({tracked.books[code]})" for code in ("A1", "A2", "A4", "A6")}
    assert {each.event["subject"] for each in got if each.name.startswith(f"{BOOKS}.")} == visible
    assert not [each for each in got if MARK.encode() in each.body]
    assert state.delivered == 0


def test_without_its_reader_nothing_is_delivered(sink: EventSink, stream: NatsServer, api: Api) -> None:
    create(api, "S1")
    User.objects.filter(pk=sink.reader_id).update(active=False)
    sinks_deliver()
    assert state_of(sink).last_error == "its reader is not there any more, or may not sign in"
    assert stream.got() == []


def test_a_user_who_reads_for_a_sink_can_be_deleted(stream: NatsServer, api: Api) -> None:
    answer = api.post("Systems_Security_Users", {"Login": "sinker", "Name": "Sinker", "UserType": "InternalUser"})
    assert answer.status_code == 201, answer.content
    sink = sink_to(stream, "sinker")
    gone = api.delete(f"Systems_Security_Users({User.objects.get(login='sinker').pk})")
    assert gone.status_code == 204, gone.content
    sinks_deliver()
    assert "its reader is not there any more" in state_of(sink).last_error


def test_a_broker_that_is_away_gets_everything_later_in_order(sink: EventSink, stream: NatsServer, api: Api) -> None:
    id = create(api, "S1")
    sinks_deliver()
    stream.kill()
    for number in range(3):
        api.patch(f"{CURRENCIES}({id})", {"Name": f"Name {number}"})
    sinks_deliver()
    failed = state_of(sink)
    assert "no server of NATS accepts a connection" in failed.last_error
    assert failed.failures == 1
    assert failed.failing_since is not None
    assert failed.next_attempt > database_now()
    assert sinks_due() == []
    sink_retry(sink)
    sinks_deliver()
    assert state_of(sink).failures == 2
    assert state_of(sink).next_attempt > database_now() + timedelta(seconds=1)
    stream.start()
    sink_retry(sink)
    sinks_deliver()
    healed = state_of(sink)
    assert (healed.failures, healed.failing_since, healed.last_error) == (0, None, "")
    assert changes(stream.got(), id) == ["Create", "Update", "Update", "Update"]


def test_what_a_worker_did_not_note_is_sent_again(
    sink: EventSink, stream: NatsServer, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = create(api, "S1")

    def die(*_given: object) -> None:
        raise SystemExit

    monkeypatch.setattr(delivery._Run, "_advance", die)
    with pytest.raises(SystemExit):
        sinks_deliver()
    monkeypatch.undo()
    assert changes(stream.got(), id) == ["Create"]
    # Its lease still holds.
    assert sinks_due() == []
    SinkState.objects.update(lease_until=utc_now() - timedelta(seconds=1))
    sinks_deliver()
    assert state_of(sink).last >= feed._newest_id()
    # JetStream knows the id.
    assert changes(stream.got(), id) == ["Create"]


def test_a_worker_that_has_lost_its_lease_moves_nothing(sink: EventSink, stream: NatsServer, api: Api) -> None:
    create(api, "S1")
    (due,) = sinks_due()
    token = delivery._take(due.state)
    assert token
    assert delivery._take(due.state) == ""
    before = state_of(sink).last
    sink_replay(sink)
    with pytest.raises(delivery.LeaseLost):
        delivery._Run(due, token).deliver()
    assert state_of(sink).last == 0
    assert before > 0


def test_a_lease_that_is_lost_at_the_end_is_no_failure(
    sink: EventSink, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(api, "S1")
    monkeypatch.setattr(delivery._Run, "deliver", lambda run: sink_replay(run.sink))
    assert sinks_deliver() == 1
    assert (state_of(sink).failures, state_of(sink).last_error) == (0, "")


def test_an_event_that_is_refused_is_overtaken_by_none(sink: EventSink, stream: NatsServer, api: Api) -> None:
    EventSink.objects.update(destination="nowhere")
    create(api, "S1")
    sinks_deliver()
    assert "no stream of JetStream stores the subject nowhere." in state_of(sink).last_error
    assert state_of(sink).last < feed._newest_id()


def test_a_repository_that_is_gone_is_named(sink: EventSink, api: Api) -> None:
    EventSink.objects.update(repositories="Custom.Gone")
    create(api, "S1")
    sinks_deliver()
    assert "Custom.Gone" in state_of(sink).last_error


def test_a_host_that_is_listed_no_longer(sink: EventSink, api: Api, settings: Settings) -> None:
    settings.EGRESS_ALLOW = []
    create(api, "S1")
    sinks_deliver()
    assert state_of(sink).last_error == "the setting EGRESS_ALLOW must list 127.0.0.1"


def test_events_that_were_removed_before_are_reported(
    sink: EventSink, api: Api, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    create(api, "S0")
    sinks_deliver()
    create(api, "S1")
    create(api, "S2")
    lost = ChangeFeedEntry.objects.filter(id__gt=state_of(sink).last).earliest("id")
    ChangeFeedEntry.objects.filter(id__lte=lost.id).delete()
    old = utc_now() - timedelta(days=settings.DELTA_RETENTION_DAYS + 1)
    SinkState.objects.update(moved_at=old)
    sinks_deliver()
    assert "were removed before they were delivered" in caplog.text


def test_an_inactive_sink_rests(sink: EventSink, stream: NatsServer, api: Api) -> None:
    EventSink.objects.update(is_active=False)
    create(api, "S1")
    deliver()
    assert stream.got() == []
    EventSink.objects.update(is_active=True)
    deliver()
    assert stream.got()


@given(st.lists(st.integers(0, 4)))
def test_parts_keep_the_order_of_each_entity(entities: list[int]) -> None:
    now = utc_now()
    events = [(feed.Entry(number, NAME, str(entity), "U", now), b"") for number, entity in enumerate(entities)]
    parts = list(batches_by_entity(events))
    assert [event for part in parts for event in part] == events
    for part in parts:
        assert part
        assert len({entry.entity_id for entry, _ in part}) == len(part)


def test_a_slow_broker_gets_on(sink: EventSink, stream: NatsServer, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if it does not manage a page: what it has confirmed is noted, and not sent again."""
    id = create(api, "S1")
    for number in range(3):
        api.patch(f"{CURRENCIES}({id})", {"Name": f"Name {number}"})
    monkeypatch.setattr(delivery, "_SAVE_SECONDS", 0.0)
    monkeypatch.setattr(delivery, "connected", lambda target: failing_after(2, target))
    sinks_deliver()
    assert changes(stream.got(), id) == ["Create", "Update"]
    assert state_of(sink).delivered == len(stream.got())
    monkeypatch.undo()
    sink_retry(sink)
    sinks_deliver()
    assert changes(stream.got(), id) == ["Create", "Update", "Update", "Update"]
    assert state_of(sink).delivered == len(stream.got())


def test_a_delivery_ends_in_the_middle_of_a_page_when_its_time_is_up(
    sink: EventSink, stream: NatsServer, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = create(api, "S1")
    for number in range(3):
        api.patch(f"{CURRENCIES}({id})", {"Name": f"Name {number}"})
    monkeypatch.setattr(delivery, "RUN_SECONDS", -1.0)
    for expected in (["Create"], ["Create", "Update"], ["Create", "Update", "Update"]):
        sinks_deliver()
        assert changes(stream.got(), id) == expected
        assert state_of(sink).delivered == len(stream.got())
    monkeypatch.undo()
    sinks_deliver()
    assert changes(stream.got(), id) == ["Create", "Update", "Update", "Update"]


@contextmanager
def failing_after(times: int, target: Target) -> Iterator[Publish]:
    with connected(target) as publish:
        left = iter(range(times))

        def limited(messages: Any) -> None:
            if next(left, None) is None:
                raise BrokerFailed("enough")
            publish(messages)

        yield limited
