"""Change tracking: delta links and pulling by watermark (spec 02, 2.2; OData Protocol 4.01, 11.3)."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pytest
from django.apps import apps
from django.db import connection, transaction

from domain.dataset.tables import change_feed
from domain.dataset.tables.models import ChangeFeedEntry
from domain.model.registry import repositories
from domain.odata.read import deltas
from domain.odata.resources.targets import Collection
from domain.syntax.ast import NO_OPTIONS
from domain.wiring import tasks
from foundation.fields import utc_now
from tests.domain.security.conftest import caller, give_role, person
from tests.rules.cast import World
from tests.support.api import ROOT, Api, error_of, id_of

# What other transactions see is the point here.
pytestmark = pytest.mark.django_db(transaction=True)

CURRENCIES = "General_Currencies_Currencies"
TRACK = "odata.track-changes"


#: `@removed` is the shape of 4.01; that of 4.0 has tests of its own.
NEWER = {"OData-MaxVersion": "4.01"}


@pytest.fixture
def api(api: Api) -> Api:
    """A caller who allows 4.01."""
    return replace(api, headers=NEWER)


def _currency(api: Api, sign: str, name: str = "x") -> dict[str, Any]:
    made: dict[str, Any] = api.create(CURRENCIES, {"CurrencySign": sign, "Name": name})
    return made


def _path(link: str) -> str:
    return link.partition(ROOT)[2]


def _begin(api: Api, query: str = "") -> str:
    """The delta link behind the last page of a tracked read."""
    response = api.get(f"{CURRENCIES}{query}", Prefer=TRACK)
    assert response.status_code == 200, response.content
    assert response["Preference-Applied"] == TRACK
    body = response.json()
    while "@odata.nextLink" in body:
        assert "@odata.deltaLink" not in body
        body = api.read(_path(body["@odata.nextLink"]))
    return _path(body["@odata.deltaLink"])


def _told(body: dict[str, Any]) -> tuple[set[str], dict[str, str]]:
    """(ids of added and changed entities, id → reason of removed ones)."""
    shown = {id_of(row) for row in body["value"] if "@removed" not in row}
    return shown, {id_of(row): row["@removed"]["reason"] for row in body["value"] if "@removed" in row}


def test_added_changed_and_deleted_entities_are_told_once(api: Api) -> None:
    kept, changed, deleted = (_currency(api, sign) for sign in ("USD", "GBP", "JPY"))
    link = _begin(api)
    assert _told(api.read(link)) == (set(), {})
    added = _currency(api, "CHF")
    api.patch(changed["@odata.id"], {"Name": "Pound"})
    api.delete(deleted["@odata.id"])
    body = api.read(link)
    assert body["@odata.context"].endswith(f"$metadata#{CURRENCIES}/$delta")
    assert _told(body) == ({id_of(added), id_of(changed)}, {id_of(deleted): "deleted"})
    assert {row["Name"] for row in body["value"] if "Name" in row} == {"x", "Pound"}
    assert id_of(kept) not in str(body)
    following = api.read(_path(body["@odata.deltaLink"]))
    assert _told(following) == (set(), {})
    # A delta link may be asked again.
    assert _told(api.read(link)) == _told(body)


def test_what_leaves_the_filter_is_removed_and_what_enters_it_is_shown(api: Api) -> None:
    leaving, entering, outside = _currency(api, "USD", "in"), _currency(api, "GBP", "out"), _currency(api, "JPY", "out")
    link = _begin(api, "?$filter=Name eq 'in'&$select=Id,Name")
    api.patch(leaving["@odata.id"], {"Name": "out"})
    api.patch(entering["@odata.id"], {"Name": "in"})
    body = api.read(link)
    assert _told(body) == ({id_of(entering)}, {id_of(leaving): "changed"})
    (row,) = (row for row in body["value"] if "@removed" not in row)
    assert {name for name in row if "@" not in name} == {"Id", "Name"}
    assert id_of(outside) not in str(body)


def test_the_link_comes_behind_the_last_page_and_counts_from_the_first(api: Api) -> None:
    for number in range(5):
        _currency(api, f"C{number}")
    first = api.get(CURRENCIES, Prefer=f"{TRACK}, odata.maxpagesize=2")
    assert set(first["Preference-Applied"].split(", ")) == {TRACK, "odata.maxpagesize=2"}
    body = first.json()
    assert "@odata.deltaLink" not in body
    meanwhile = _currency(api, "MID")
    while "@odata.nextLink" in body:
        body = api.read(_path(body["@odata.nextLink"]), Prefer="odata.maxpagesize=2")
    assert id_of(meanwhile) in _told(api.read(_path(body["@odata.deltaLink"])))[0]


def test_a_long_delta_has_pages(api: Api) -> None:
    link = _begin(api)
    made = {id_of(_currency(api, f"C{number}")) for number in range(5)}
    seen: set[str] = set()
    body = api.read(link, Prefer="odata.maxpagesize=2")
    pages = 1
    while "@odata.nextLink" in body:
        seen |= _told(body)[0]
        body = api.read(_path(body["@odata.nextLink"]), Prefer="odata.maxpagesize=2")
        pages += 1
    assert seen | _told(body)[0] == made
    assert pages >= 3
    assert _told(api.read(_path(body["@odata.deltaLink"]))) == (set(), {})


def test_4_0_clients_get_deleted_entities_in_their_shape(api: Api) -> None:
    made = _currency(api, "USD")
    link = _begin(api)
    api.delete(made["@odata.id"])
    (row,) = api.read(link, OData_MaxVersion="4.0")["value"]
    assert row == {
        "@odata.context": f"http://testserver{ROOT}$metadata#{CURRENCIES}/$deletedEntity",
        "id": made["@odata.id"],
        "reason": "deleted",
    }


def test_without_metadata_only_the_links_are_left(api: Api) -> None:
    link = _begin(api)
    _currency(api, "USD")
    body = api.read(link, Accept="application/json;odata.metadata=none")
    assert set(body) == {"value", "@odata.deltaLink"}
    assert body["value"][0]["CurrencySign"] == "USD"


def test_heirs_are_told_of_in_the_set_of_their_base(api: Api, world: World) -> None:
    body = api.get("General_Contacts_Parties", Prefer=TRACK).json()
    answered = api.patch(f"General_Contacts_Companies({world.party})", {"Name": {"EN": "Buyers"}})
    assert answered.status_code == 204, answered.content
    assert _told(api.read(_path(body["@odata.deltaLink"])))[0] == {world.party}


def test_row_policies_hold_in_deltas(api: Api, world: World) -> None:
    shown, leaving = _currency(api, "USD", "open"), _currency(api, "GBP", "open")
    reader = person("reader")
    give_role(reader, {"General.Currencies.Currencies": "r"}, {"General.Currencies.Currencies": "Name eq 'open'"})
    mine = replace(caller(reader), headers=NEWER)
    link = _begin(mine)
    api.patch(shown["@odata.id"], {"ShowOrder": 2})
    api.patch(leaving["@odata.id"], {"Name": "secret"})
    body = mine.read(link)
    assert _told(body) == ({id_of(shown)}, {id_of(leaving): "changed"})
    assert "secret" not in str(body)


@pytest.mark.parametrize(
    "query", ["?$expand=Lines", "?$apply=aggregate($count as n)", "?$top=5", "?$skip=1", "({order})/Lines"]
)
def test_what_cannot_be_tracked_is_read_without_the_preference(api: Api, world: World, query: str) -> None:
    path = f"Crm_Sales_SalesOrders{query}"
    if "{order}" in query:
        from tests.domain.odata.test_writing import order_body

        path = path.format(order=id_of(api.create("Crm_Sales_SalesOrders", order_body(world))))
    answer = api.get(path, Prefer=TRACK)
    assert answer.status_code == 200
    assert "Preference-Applied" not in answer
    assert "deltaLink" not in answer.content.decode()


@pytest.mark.parametrize("option", ["$expand=CreationUser", "$top=5", "$apply=aggregate($count as n)"])
def test_a_delta_token_beside_what_cannot_be_tracked_is_501_and_named(api: Api, option: str) -> None:
    refused = api.get(f"{_begin(api)}&{option}")
    assert (refused.status_code, error_of(refused)["type"]) == (501, "NotSupported")
    assert option.partition("=")[0] in error_of(refused)["message"]


def test_a_token_belongs_to_its_query_and_cannot_be_made(api: Api) -> None:
    link = _begin(api, "?$filter=Name eq 'in'")
    for wrong in (
        link.replace("'in'", "'out'").replace("%27in%27", "%27out%27"),
        f"{link}A",
        f"{CURRENCIES}?$deltatoken=x",
    ):
        assert wrong != link
        refused = api.get(wrong)
        assert (refused.status_code, error_of(refused)["type"]) == (400, "InvalidDeltaToken")


def test_a_token_expires(api: Api, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    link = _begin(api)
    later = time.time() + settings.DELTA_RETENTION_DAYS * 86_400 + 1
    monkeypatch.setattr(deltas, "time", SimpleNamespace(time=lambda: later))
    refused = api.get(link)
    assert (refused.status_code, error_of(refused)["type"]) == (410, "DeltaTokenExpired")


def test_the_feed_is_kept_as_long_as_links_are_good(api: Api, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for sign in ("USD", "GBP", "JPY"):
        _currency(api, sign)
    entries = ChangeFeedEntry.objects.order_by("id")
    written = utc_now() - timedelta(days=settings.DELTA_RETENTION_DAYS)
    monkeypatch.setattr(change_feed, "_ENTRIES_AT_ONCE", 1)  # more than one round
    entries.update(changed_at=written)
    assert change_feed.change_feed_prune() == 0
    entries.update(changed_at=written - timedelta(days=2))
    link = _begin(api)
    total, newest = entries.count(), entries.last()
    assert change_feed.change_feed_prune() == total - 1
    assert list(entries) == [newest]
    # The link is of now: it goes on as before, and sees what comes.
    added = _currency(api, "CHF")
    assert _told(api.read(link)) == ({id_of(added)}, {})


def test_the_worker_prunes_the_feed_by_the_clock(settings: Any) -> None:
    from django_q.models import Schedule

    from foundation.schedules import ensure_schedules

    broker = "broker" if "broker" in settings.DATABASES else "default"
    for _ in range(2):
        ensure_schedules(apps.get_app_config("django_q"), using=broker)
    (found,) = Schedule.objects.using(broker).filter(func="domain.wiring.tasks.prune")
    assert found.schedule_type == Schedule.HOURLY
    kinds = ("change feed", "transactions", "history", "stored responses", "information messages")
    assert tasks.prune() == f"{', '.join(f'0 {kind}' for kind in kinds)} removed"


def test_a_restored_database_knows_no_newer_token(api: Api) -> None:
    _currency(api, "USD")
    link = _begin(api)
    ChangeFeedEntry.objects.all().delete()
    assert api.get(link).status_code == 410


@pytest.mark.skipif("connection.vendor != 'postgresql'", reason="SQLite's writers wait for one another")
def test_a_commit_that_was_under_way_is_not_missed(api: Api) -> None:
    import threading

    currency = repositories["General.Currencies.Currencies"]
    target = Collection(currency)
    written, may_commit = threading.Event(), threading.Event()
    made = _currency(api, "USD")

    def write_slowly() -> None:
        with transaction.atomic():
            ChangeFeedEntry.objects.create(
                repository=currency.name, entity_id=id_of(made), operation="U", changed_at="2026-01-01T00:00:00Z"
            )
            written.set()
            may_commit.wait(60)
        connection.close()

    thread = threading.Thread(target=write_slowly)
    thread.start()
    assert written.wait(60)
    _currency(api, "GBP")
    token = deltas.make_token(deltas.watermark_now(), target, NO_OPTIONS)
    may_commit.set()
    thread.join(60)
    body = api.read(f"{CURRENCIES}?$deltatoken={token}")
    assert _told(body)[0] == {id_of(made)}
    assert _told(api.read(_path(body["@odata.deltaLink"]))) == (set(), {})


def test_roots_can_be_pulled_by_watermark(api: Api) -> None:
    _currency(api, "USD")
    asked = f"{CURRENCIES}?$select=Id,AggregateLastUpdateTimeUtc&$orderby=AggregateLastUpdateTimeUtc desc&$top=1"
    watermark = api.read(asked)["value"][0]["AggregateLastUpdateTimeUtc"]
    later = _currency(api, "GBP")
    pulled = api.read(f"{CURRENCIES}?$filter=AggregateLastUpdateTimeUtc gt {quote(watermark)}&$select=Id")
    assert [row["Id"] for row in pulled["value"]] == [id_of(later)]
