"""What a subscriber may not read it does not hear of (spec 13, 13.5; spec 01, 1.7)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import connection
from django.db.models.expressions import RawSQL
from django.http import HttpResponse

from domain.dataset.tables.history import ObjectChange
from domain.dataset.tables.models import ChangeFeedEntry
from domain.event_stream import hub as hubs
from domain.event_stream.cloud_events import render
from domain.event_stream.feed import Entry
from domain.event_stream.hub import Hub
from domain.event_stream.subscription import ServerSentEvents, StreamFilter, Subscription
from foundation import errors
from identity.context import CallContext
from identity.models import User
from identity.permissions import permissions_for
from tests.domain.conftest import api, world
from tests.domain.security.conftest import (
    BOOKS,
    MARK,
    Library,
    administrator,
    caller,
    give_role,
    library,
    person,
    restricted,
)
from tests.domain.security.test_hidden_history import tracked
from tests.support.api import Api
from tests.support.response_writers import ReadResponseWriter

__all__ = ["administrator", "api", "library", "restricted", "tracked", "world"]


def context_of(login: str) -> CallContext:
    user = User.objects.get(login=login)
    permissions = permissions_for(str(user.pk), is_admin=user.is_admin)
    return CallContext(user=None, scopes=frozenset({"read"}), permissions=permissions, root_url="http://x")


def heard(login: str) -> list[dict[str, Any]]:
    """The events of all that is kept, for this person."""
    # Not by position: on PostgreSQL nothing of the test's own open transaction is settled.
    entries = [Entry(*row) for row in ChangeFeedEntry.objects.order_by("id").values_list(*Entry._fields)]
    return [json.loads(event) for _, event in render(entries, context_of(login))]


def test_hidden_rows_are_hidden_in_the_stream(tracked: Library, administrator: Api, restricted: Api) -> None:
    visible = {f"Library_Books({tracked.books[code]})" for code in ("A1", "A2", "A4", "A6")}
    hidden = {f"Library_Books({tracked.books[code]})" for code in ("A3", "A5")}
    everything = heard("alice")
    assert visible | hidden <= {event["subject"] for event in everything}
    seen = heard("bob")
    assert {event["subject"] for event in seen if event["type"].startswith(f"{BOOKS}.")} == visible
    assert MARK not in json.dumps(seen)


def test_of_a_deleted_row_only_those_hear_who_see_all(tracked: Library, administrator: Api, restricted: Api) -> None:
    """Nothing says any more whether the policies showed it. Delta links do (domain.odata.read.deltas)."""
    for code in ("A4", "A5"):
        assert administrator.delete(f"Library_Books({tracked.books[code]})").status_code == 204
    assert not [event for event in heard("bob") if event["type"] == f"{BOOKS}.Delete"]
    gone = {event["subject"] for event in heard("alice") if event["type"] == f"{BOOKS}.Delete"}
    assert gone == {f"Library_Books({tracked.books[code]})" for code in ("A4", "A5")}


def test_an_entity_that_cannot_be_read_is_named_and_holds_up_no_other(
    tracked: Library, administrator: Api, restricted: Api, caplog: pytest.LogCaptureFixture
) -> None:
    broken = tracked.books["A2"]
    changes = ObjectChange.objects.filter(entity_item_id__in=[broken, tracked.books["A3"]])
    assert changes.update(changes=RawSQL("'{'", ()))
    events = {event["subject"]: event for event in heard("alice") if event["type"] == f"{BOOKS}.Update"}
    assert set(events) == {f"Library_Books({id})" for id in tracked.books.values()}
    assert events[f"Library_Books({broken})"]["data"] == {"entity": {"Id": broken}, "changes": None}
    assert events[f"Library_Books({tracked.books['A1']})"]["data"]["changes"]
    assert f"Library.Books({broken})" in caplog.text
    if connection.vendor == "sqlite":  # PostgreSQL's error, of bob's policies, would end the test's transaction
        assert f"Library_Books({broken})" in {event["subject"] for event in heard("bob")}


def test_without_permission_there_is_nothing(library: Library) -> None:
    give_role(person("carol"), {"Crm.*": "r"})
    assert {event["type"].rpartition(".")[0].partition(".")[0] for event in heard("carol")} == {"Crm"}


def test_a_repository_without_permission_is_not_found(library: Library) -> None:
    dora = person("dora")
    give_role(dora, {"General.*": "r"})
    answer = caller(dora).client.get(
        f"/api/domain/events?repository={BOOKS}", headers={"Authorization": f"Bearer {caller(dora).token}"}
    )
    assert answer.status_code == 404


def refusal_of(error: Exception) -> HttpResponse:
    return HttpResponse(b'{"error": {}}', status=401)


def test_a_stream_ends_with_the_right_to_listen(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hubs, "RENEW_SECONDS", 0.0)

    def refused() -> CallContext:
        raise errors.Unauthorized(errors.TOKEN_INVALID, "it has been revoked")

    hub, writer = Hub(), ReadResponseWriter()
    monkeypatch.setattr(hub, "_is_polling", True)  # no thread: the test polls
    subscription = Subscription(
        hub, CallContext(user=None), StreamFilter(None, frozenset("IUD")), ServerSentEvents(), 0,
        seconds=60, renew=refused, refusal=refusal_of,
    )  # fmt: skip
    subscription.start(writer)
    assert len(hub.all()) == 1
    hub.serve([subscription])
    assert writer.is_ended
    assert writer.parts[-1] == b'event: error\ndata: {"error": {}}\n\n'
    assert len(hub.all()) == 0


def test_a_client_that_has_gone_before_the_response_begins_takes_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    hub, writer = Hub(), ReadResponseWriter()
    monkeypatch.setattr(hub, "_is_polling", True)
    subscription = Subscription(
        hub, CallContext(user=None), StreamFilter(None, frozenset("IUD")), ServerSentEvents(), 0,
        seconds=60, renew=lambda: CallContext(user=None), refusal=refusal_of,
    )  # fmt: skip
    subscription.close()
    subscription.start(writer)
    assert writer.is_ended
    assert len(hub.all()) == 0


def test_no_caller_takes_all_places(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    hub = Hub()
    monkeypatch.setattr(hub, "max_listeners", 3)
    monkeypatch.setattr(hub, "reserved", 1)
    monkeypatch.setattr(hub, "_is_polling", True)
    for _ in range(2):
        hub.check_capacity("")
        Subscription(
            hub, CallContext(user=None), StreamFilter(None, frozenset("IUD")), ServerSentEvents(), 0,
            seconds=60, renew=lambda: CallContext(user=None), refusal=refusal_of,
        ).start(ReadResponseWriter())  # fmt: skip
    hub.check_capacity("another")
    with pytest.raises(errors.Unavailable):
        hub.check_capacity("")
