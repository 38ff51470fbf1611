"""The change history (spec 12, 12.2): what is written with each commit, by whom, why and by which rule."""

from __future__ import annotations

import html
import json
import re
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from domain.dataset.tables.history import LastChange, ObjectChange, ObjectChangeset, RepositoryTracking
from foundation import cache_versions
from foundation.fields import utc_now
from foundation.texts import utc_text
from identity.models import User
from tests.rules.cast import LINES, ORDERS, PRODUCTS, World, set_value, write_rule
from tests.support.api import Api, error_of, id_of

ORDER_SET, PRODUCT_SET, SETTINGS = (
    "Crm_Sales_SalesOrders",
    "General_Products_Products",
    "Systems_Core_RepositoryTracking",
)


def set_level(api: Api, repository: str, level: str, **values: Any) -> dict[str, Any]:
    """A setting of the history."""
    result = api.create(SETTINGS, {"RepositoryName": repository, "TrackingLevel": level, **values})
    cache_versions.expire()
    return dict(result)


def make_order(api: Api, world: World, *, lines: int = 2, **headers: str) -> str:
    """An order with lines, by one POST."""
    body = {
        "DocumentType@odata.bind": f"Systems_Documents_DocumentTypes({world.document_type})",
        "EnterpriseCompany@odata.bind": f"General_EnterpriseCompanies({world.company})",
        "Customer@odata.bind": f"Crm_Sales_Customers({world.customer})",
        "DocumentCurrency@odata.bind": f"General_Currencies_Currencies({world.currency})",
        "FromParty@odata.bind": f"General_Contacts_Parties({world.party})",
        "Lines": [
            {
                "Product@odata.bind": f"General_Products_Products({world.product})",
                "QuantityUnit@odata.bind": f"General_Products_MeasurementUnits({world.unit})",
                "Notes": f"line {number}",
            }
            for number in range(lines)
        ],
    }
    return id_of(api.create(ORDER_SET, body, **headers))


def changes_of(api: Api, id: str) -> list[dict[str, Any]]:
    """What the API tells of the entity, oldest first."""
    query = f"$filter=EntityItemId eq {id}&$orderby=ItemVersion&$expand=Changeset"
    return list(api.read(f"Systems_Core_ObjectChanges?{query}")["value"])


def test_a_commit_has_one_change_set_with_who_when_and_why(api: Api, world: World) -> None:
    reason = "Ordered by phone – Ж".encode().decode("latin-1")
    id = make_order(api, world, X_Change_Reason=reason, X_Request_Id="req-1")
    (created,) = changes_of(api, id)
    done = created["Changeset"]
    assert (done["UserLogin"], done["Application"], done["RequestId"]) == ("service", "ServiceDemoClient", "req-1")
    assert done["Reason"] == "Ordered by phone – Ж"
    assert "SessionId" not in done
    assert (created["Operation"], created["RepositoryName"], created["ItemVersion"]) == ("Create", ORDERS, 1)
    assert json.loads(created["Changes"])["Customer"] == [None, world.customer]
    assert created["OldValues"] is None
    (changeset,) = ObjectChangeset.objects.filter(request_id="req-1")
    assert ObjectChangeset.objects.get(pk=changeset.pk).session_id is not None
    rows = ObjectChange.objects.filter(changeset=changeset)
    assert rows.filter(repository_name=LINES, root_item_id=id).count() == 2
    assert {row.change_time_utc for row in rows} == {changeset.change_time_utc}
    stored = api.read(f"{ORDER_SET}({id})?$select=AggregateLastUpdateTimeUtc")
    assert stored["AggregateLastUpdateTimeUtc"] == done["ChangeTimeUtc"]


def test_attributes_are_kept_from_what_to_what(api: Api, world: World) -> None:
    id = make_order(api, world, lines=1)
    api.patch(f"{ORDER_SET}({id})", {"DocumentNotes": "first"})
    api.patch(f"{ORDER_SET}({id})", {"DocumentNotes": "second", "ReferenceDocumentNo": "R7"})
    (line,) = api.read(f"{ORDER_SET}({id})/Lines")["value"]
    api.patch(line["@odata.id"], {"Notes": "of the line"})
    assert api.delete(line["@odata.id"]).status_code == 204
    kept = changes_of(api, id)
    assert [each["ItemVersion"] for each in kept] == [1, 2, 3, 4, 5]
    changed = json.loads(kept[2]["Changes"])
    changed.pop("UpdateTime", None)  # which has seconds
    assert changed == {"DocumentNotes": ["first", "second"], "ReferenceDocumentNo": [None, "R7"]}
    assert json.loads(kept[2]["OldValues"])["DocumentNotes"] == "first"
    # The root of a changed part has a new version, and nothing else of its own.
    assert [set(json.loads(each["Changes"])) - {"UpdateTime"} for each in kept[3:]] == [set(), set()]
    of_line = changes_of(api, id_of(line))
    assert [each["Operation"] for each in of_line] == ["Create", "Update", "Delete"]
    assert json.loads(of_line[1]["Changes"])["Notes"] == ["line 0", "of the line"]
    assert json.loads(of_line[2]["OldValues"])["Notes"] == "of the line"
    assert of_line[2]["Changes"] is None


def test_what_a_rule_changed_names_the_rule(api: Api, world: World) -> None:
    write_rule(world, ORDERS, ["COMMIT"], actions=[set_value("DocumentNotes", "by the rule")], code="NOTES")
    id = make_order(api, world)
    (created,) = changes_of(api, id)
    assert created["Rules"] == "NOTES"
    assert json.loads(created["Changes"])["DocumentNotes"] == [None, "by the rule"]
    lines = ObjectChange.objects.filter(root_item_id=id, repository_name=LINES)
    assert {line.rules for line in lines} == {""}
    inside = api.begin(model="frontend")
    inside.patch(f"{ORDER_SET}({id})", {"ReferenceDocumentNo": "R1", "DocumentNotes": "mine"})
    assert inside.end().status_code in (200, 204)
    assert [each["Rules"] for each in changes_of(api, id)] == ["NOTES", "NOTES"]


def test_what_is_not_committed_is_not_kept(api: Api, world: World) -> None:
    id = make_order(api, world)
    write_rule(world, ORDERS, ["COMMIT"], actions=[("FAIL", ("Constant", "No."))])
    before = ObjectChange.objects.count(), ObjectChangeset.objects.count()
    assert api.patch(f"{ORDER_SET}({id})", {"DocumentNotes": "refused"}).status_code >= 400
    inside = api.begin()
    inside.patch(f"{ORDER_SET}({id})", {"DocumentNotes": "refused"})
    inside.end(commit=False)
    assert (ObjectChange.objects.count(), ObjectChangeset.objects.count()) == before


def test_each_level_keeps_what_it_says(api: Api, world: World) -> None:
    path = f"{PRODUCT_SET}({world.product})"
    api.patch(path, {"PartNumber": "L1"})
    assert changes_of(api, world.product) == []
    last = LastChange.objects.get(pk=world.product)
    assert (last.user_login, last.application, last.repository) == ("service", "ServiceDemoClient", PRODUCTS)
    setting = set_level(api, PRODUCTS, "TrackObjectChanges")
    assert setting["TrackedSince"] is None
    api.patch(path, {"PartNumber": "L2"})
    (kept,) = changes_of(api, world.product)
    assert (kept["Changes"], kept["OldValues"]) == (None, None)
    api.patch(setting["@odata.id"], {"TrackingLevel": "TrackObjectAndAttributeChanges"})
    cache_versions.expire()
    assert api.read(setting["@odata.id"])["TrackedSince"] is not None
    api.patch(path, {"PartNumber": "L3"})
    assert json.loads(changes_of(api, world.product)[-1]["Changes"])["PartNumber"] == ["L2", "L3"]
    api.patch(setting["@odata.id"], {"TrackingLevel": "DoNotTrackChanges"})
    cache_versions.expire()
    api.patch(path, {"PartNumber": "L4"})
    assert len(changes_of(api, world.product)) == 2
    assert api.read(setting["@odata.id"])["TrackedSince"] is None


def test_the_level_of_all_moves_the_begin_of_what_lost_changes(api: Api, world: World) -> None:
    """Also of a repository whose own setting says nothing of the level; between levels 3 and 4 nothing is lost."""
    everywhere = api.read(f"{SETTINGS}?$filter=RepositoryName eq '*'")["value"][0]["@odata.id"]

    def set_all(level: str) -> None:
        assert api.patch(everywhere, {"TrackingLevel": level}).status_code == 204
        cache_versions.expire()

    set_all("TrackObjectAndAttributeChanges")
    api.create(SETTINGS, {"RepositoryName": ORDERS, "RetentionDays": 400})
    cache_versions.expire()
    order = f"{ORDER_SET}({make_order(api, world)})"
    before = utc_text(utc_now())
    for level in ("TrackObjectAttributeAndBlobChanges", "TrackObjectAndAttributeChanges"):
        set_all(level)
        assert api.get(f"{order}?$at={before}").status_code == 200
    set_all("TrackLastChangesOnly")
    api.patch(order, {"DocumentNotes": "in the gap"})
    set_all("TrackObjectAndAttributeChanges")
    assert api.get(f"{order}?$at={before}").status_code == 400


def test_a_level_for_all_keeps_what_was_tracked_by_kind(api: Api, world: World) -> None:
    """Documents have level 3 anyway; products only from then on, and only as long as the level says so."""
    everywhere = api.read(f"{SETTINGS}?$filter=RepositoryName eq '*'")["value"][0]["@odata.id"]
    order, product = f"{ORDER_SET}({make_order(api, world)})", f"{PRODUCT_SET}({world.product})"
    before = utc_text(utc_now())
    for level in ("TrackObjectAndAttributeChanges", "TrackObjectAttributeAndBlobChanges", None):
        assert api.patch(everywhere, {"TrackingLevel": level}).status_code == 204
        cache_versions.expire()
        after = utc_text(utc_now())
        assert api.get(f"{order}?$at={before}").status_code == 200, level
        assert api.get(f"{product}?$at={before}").status_code == 400
        assert api.get(f"{product}?$at={after}").status_code == (400 if level is None else 200)
    api.patch(product, {"Name": {"EN": "in the gap"}})
    between = utc_text(utc_now())
    assert api.patch(everywhere, {"TrackingLevel": "TrackObjectAndAttributeChanges"}).status_code == 204
    cache_versions.expire()
    assert [api.get(f"{path}?$at={between}").status_code for path in (order, product)] == [200, 400]


def test_settings_are_for_roots_and_stay(api: Api, world: World) -> None:
    def refused(body: dict[str, Any]) -> str:
        return str(error_of(api.post(SETTINGS, body))["message"])

    assert ORDERS in refused({"RepositoryName": LINES})
    assert "There is no repository Nothing." in refused({"RepositoryName": "Nothing"})
    assert "keeps nothing" in refused({"RepositoryName": "Systems.Core.ObjectChangesets"})
    setting = set_level(api, PRODUCTS, "TrackObjectChanges")
    assert api.patch(setting["@odata.id"], {"RepositoryName": ORDERS}).status_code >= 400
    assert api.delete(setting["@odata.id"]).status_code >= 400
    assert RepositoryTracking.objects.filter(repository_name=PRODUCTS).count() == 1


def test_custom_properties_are_kept_by_code(api: Api, world: World) -> None:
    set_level(api, PRODUCTS, "TrackObjectAndAttributeChanges")
    api.create(
        "Systems_Bpm_CustomProperties",
        {"Code": "colour", "Name": {"EN": "Colour"}, "EntityName": "General_Products_Products", "PropertyType": "Text"},
    )
    cache_versions.expire()
    for value in ("red", "blue"):
        answer = api.patch(f"{PRODUCT_SET}({world.product})", {"CustomProperty_colour": {"Value": value}})
        assert answer.status_code in (200, 204), answer.content
    kept = changes_of(api, world.product)
    assert [each["Value"] for each in json.loads(kept[-1]["Changes"])["@colour"]] == ["red", "blue"]


@pytest.mark.parametrize(
    "sent, kept",
    [
        ("Preis%C3%A4nderung", "Preisänderung"),
        ("UTF-8''Preis%C3%A4nderung%20%D0%96", "Preisänderung Ж"),
        ("utf-8'de'%c3%a4", "ä"),
        ("=?utf-8?Q?Preis=C3=A4nderung?=", "Preisänderung"),
        ("=?utf-8?b?0JY=?= of =?iso-8859-1?q?M=E4rz?=", "Ж of März"),
        ("10% off", "10% off"),
        ("10%25 off", "10% off"),
        ("100 %FF", "100 %FF"),
        ("=?none?q?x?=", "=?none?q?x?="),
    ],
)
def test_a_reason_beyond_ascii_may_be_encoded(api: Api, world: World, sent: str, kept: str) -> None:
    (created,) = changes_of(api, make_order(api, world, X_Change_Reason=sent))
    assert created["Changeset"]["Reason"] == kept


@pytest.mark.parametrize(
    "reason", ["", "x" * 255, "%E2%80%AE", "a%0Ab", "a\tb", "a\x7fb", "a\x1bb", "\u202e".encode().decode("latin-1")]
)
def test_a_reason_that_could_deceive_is_refused(api: Api, world: World, reason: str) -> None:
    answer = api.patch(f"{PRODUCT_SET}({world.product})", {"PartNumber": "X"}, X_Change_Reason=reason)
    assert answer.status_code == 400
    assert "X-Change-Reason" in error_of(answer)["message"]


def test_the_history_cannot_be_written(api: Api, world: World) -> None:
    id = make_order(api, world)
    (kept,) = changes_of(api, id)
    for path in (kept["@odata.id"], kept["Changeset"]["@odata.id"]):
        assert api.patch(path, {"Rules": "mine", "Reason": "mine"}).status_code in (403, 405)
        assert api.delete(path).status_code in (403, 405)
    assert api.post("Systems_Core_ObjectChangesets", {}).status_code in (403, 405)


def test_a_commit_writes_the_history_with_two_statements(api: Api, world: World) -> None:
    make_order(api, world)
    with CaptureQueriesContext(connection) as captured:
        make_order(api, world, lines=20)
    written = [each["sql"] for each in captured if "INSERT INTO" in each["sql"] and "objectchange" in each["sql"]]
    assert len(written) == 2


def test_long_texts_are_shortened_among_the_changes_and_whole_before_them(api: Api, world: World) -> None:
    id = make_order(api, world)
    api.patch(f"{ORDER_SET}({id})", {"DocumentNotes": "n" * 5000})
    api.patch(f"{ORDER_SET}({id})", {"DocumentNotes": "short"})
    kept = changes_of(api, id)[-1]
    assert len(json.loads(kept["Changes"])["DocumentNotes"][0]) == 2001
    assert json.loads(kept["OldValues"])["DocumentNotes"] == "n" * 5000


def test_a_change_set_leads_to_everything_that_its_request_changed(api: Api, world: World) -> None:
    def leads(request_id: str) -> str | None:
        (created,) = changes_of(api, make_order(api, world, X_Request_Id=request_id))
        page = admin.get(f"/admin/domain/objectchangeset/{id_of(created['Changeset'])}/change/").content.decode()
        link = re.search(r'href="([^"]+request_id=[^"]+)"', page)
        assert (link is not None) == ("Everything that this request changed" in page)
        return None if link is None else html.unescape(link[1])

    admin = Client()
    admin.force_login(User.objects.get(pk=world.user))
    assert leads("another") is None
    assert leads("several") is None
    address = leads("several")
    assert address is not None
    shown = admin.get(address, follow=True).content.decode()
    for changeset in ObjectChangeset.objects.all():
        assert (f"/admin/domain/objectchangeset/{changeset.pk}/change/" in shown) == (changeset.request_id == "several")
    hours_before = utc_now() - timedelta(hours=2)
    ObjectChangeset.objects.filter(request_id="another").update(aggregate_last_update_time_utc=hours_before)
    assert leads("another") is None


def test_a_document_shows_its_versions_and_is_restored(api: Api, world: World) -> None:
    id = make_order(api, world, lines=2)
    first, second = api.read(f"{ORDER_SET}({id})/Lines?$orderby=LineNo")["value"]
    api.patch(f"{ORDER_SET}({id})", {"DocumentNotes": "unwanted"}, X_Change_Reason="a mistake")
    api.patch(first["@odata.id"], {"Notes": "unwanted"})
    api.delete(second["@odata.id"])
    admin = Client()
    admin.force_login(User.objects.get(pk=world.user))
    page = f"/admin/domain/salesorder/{id}/versions/"
    shown = admin.get(f"{page}?from=1&to=4").content.decode()
    for text in ("+DocumentNotes: unwanted", "-    Notes: line 0", "-    Notes: line 1", "a mistake", "Restore"):
        assert text in shown
    changeset = ObjectChangeset.objects.get(reason="a mistake")
    assert f"/admin/domain/objectchangeset/{changeset.pk}/change/" in shown
    assert ORDERS in admin.get(f"/admin/domain/objectchangeset/{changeset.pk}/change/").content.decode()
    answer = admin.post(page, {"version": 1, "newest": 4, "confirmed": 1}, follow=True).content.decode()
    assert "Version 1 is restored." in answer
    assert api.read(f"{ORDER_SET}({id})")["DocumentNotes"] is None
    lines = api.read(f"{ORDER_SET}({id})/Lines?$orderby=LineNo")["value"]
    assert [line["Notes"] for line in lines] == ["line 0", "line 1"]


def test_administrators_find_the_setting_on_the_list_of_a_repository(api: Api, world: World) -> None:
    admin = Client()
    admin.force_login(User.objects.get(pk=world.user))
    shown = admin.get("/admin/domain/product/").content.decode()
    assert f'href="/admin/domain/repositorytracking/add/?repository_name={PRODUCTS}"' in shown
    assert admin.get(f"/admin/domain/repositorytracking/add/?repository_name={PRODUCTS}").status_code == 200
    set_level(api, PRODUCTS, "TrackObjectChanges")
    own = RepositoryTracking.objects.get(repository_name=PRODUCTS).pk
    assert (
        f'href="/admin/domain/repositorytracking/{own}/change/"' in admin.get("/admin/domain/product/").content.decode()
    )
