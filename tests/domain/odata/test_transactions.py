"""Domain transactions through HTTP (spec 03, 3.2)."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client

from domain.dataset.tables.models import DomainTransaction, PendingChange
from domain.dataset.transactions import domain_transactions, pending_rows
from foundation.fields import utc_now
from tests.domain.odata.test_writing import CURRENCIES, ORDERS, PRODUCTS, order_body
from tests.rules.cast import World
from tests.support.api import Api, error_of, service_api


def names(api: Api) -> list[str]:
    """What a query for currencies shows this caller."""
    return [row["Name"] for row in api.read(f"{CURRENCIES}?$orderby=Name&$select=Name")["value"]]


def test_begin_answers_the_id_as_plain_text(api: Api) -> None:
    response = api.post("BeginTransaction", {})
    assert response["Content-Type"] == "text/plain;charset=utf-8"
    assert len(response.content) == 32
    assert int(response.content, 16) >= 0
    for body in ("", "{}", '{"model": "frontend", "trackChanges": true}'):
        assert api.post("BeginTransaction", body, Content_Type="text/plain").status_code == 200, body
    assert api.post("BeginTransaction", "{}", Content_Type="text/html").status_code == 415
    as_json = api.post("BeginTransaction", {}, Accept="application/json")
    assert len(as_json.json()["value"]) == 32


@pytest.mark.parametrize(
    "body", [{"model": {}}, {"model": ""}, {"model": "backend"}, {"model": 0}, {"trackChanges": 1}]
)
def test_begin_takes_what_it_knows(api: Api, body: dict[str, object]) -> None:
    refused = api.post("BeginTransaction", body)
    assert (refused.status_code, error_of(refused)["type"]) == (400, "InvalidLiteral")
    assert not DomainTransaction.objects.exists()


def test_pending_changes_are_seen_inside_and_not_outside(api: Api, world: World) -> None:
    inside = api.begin()
    made = inside.create(CURRENCIES, {"CurrencySign": "USD", "Name": "Dollar"})
    assert inside.patch(f"{CURRENCIES}({world.currency})", {"Name": "Aeuro"}).status_code == 204
    assert names(inside) == ["Aeuro", "Dollar"]
    assert names(api) == ["Euro"]
    assert inside.get(f"{CURRENCIES}/$count?$filter=startswith(Name,'D')").content == b"1"
    assert inside.read(made["@odata.id"])["Name"] == "Dollar"
    assert api.get(made["@odata.id"]).status_code == 404
    assert inside.end().status_code == 204
    assert names(api) == ["Aeuro", "Dollar"]
    gone = inside.get(CURRENCIES)
    assert (gone.status_code, error_of(gone)["message"]) == (
        400,
        f"Invalid TransactionId {inside.headers['TransactionId']}",
    )


def test_what_is_discarded_was_never_there(api: Api, world: World) -> None:
    inside = api.begin()
    inside.create(CURRENCIES, {"CurrencySign": "USD", "Name": "Dollar"})
    assert inside.delete(f"{PRODUCTS}({world.product})").status_code == 204
    assert inside.get(f"{PRODUCTS}({world.product})").status_code == 404
    assert inside.end(commit=False).status_code == 204
    assert names(api) == ["Euro"]
    assert api.get(f"{PRODUCTS}({world.product})").status_code == 200
    assert not PendingChange.objects.exists()


def test_filters_orders_expansions_and_aggregates_see_pending_rows(api: Api, world: World) -> None:
    values = "Systems_Bpm_CustomPropertyAllowedValues"
    inside = api.begin()
    made = inside.create(
        "Systems_Bpm_CustomProperties",
        {
            "Code": "colour",
            "Name": {"EN": "Colour"},
            "EntityName": "General.Products.Products",
            "AllowedValues": [{"PropertyAllowedValueField": "red"}, {"PropertyAllowedValueField": "blue"}],
        },
    )
    path = made["@odata.id"]
    found = inside.read(f"{values}?$filter=Property/Code eq 'colour'&$orderby=PropertyAllowedValueField desc")["value"]
    assert [value["PropertyAllowedValueField"] for value in found] == ["red", "blue"]
    shown = inside.read(f"{path}?$expand=AllowedValues($orderby=PropertyAllowedValueField;$top=1)")
    assert [value["PropertyAllowedValueField"] for value in shown["AllowedValues"]] == ["blue"]
    counted = inside.read(f"{values}?$apply=groupby((Property/Code),aggregate($count as Number))")["value"]
    assert [group["Number"] for group in counted] == [2]
    assert api.get(f"{values}/$count").content == b"0"


def test_later_requests_build_on_earlier_ones(api: Api, world: World) -> None:
    inside = api.begin()
    order = inside.create(ORDERS, order_body(world))
    line = inside.create(f"{order['@odata.id']}/Lines", {"Product@odata.bind": f"{PRODUCTS}({world.product})"})
    assert inside.patch(line["@odata.id"], {"Quantity": 4, "UnitPrice": 2.5}).status_code == 204
    assert inside.end().status_code == 204
    after = api.read(f"{order['@odata.id']}?$select=TotalLineAmount&$expand=Lines")
    assert after["TotalLineAmount"]["Value"] == 10
    assert [entry["Quantity"]["Value"] for entry in after["Lines"]] == [4]


@pytest.mark.parametrize("model", ["common", "frontend"])
@pytest.mark.parametrize("pending", [[], [{"Quantity": 7}]], ids=["as stored", "changed before"])
def test_totals_follow_lines_that_went_in_an_earlier_request(
    api: Api, world: World, model: str, pending: list[dict[str, int]]
) -> None:
    price = {"UnitPrice": 10}
    made = api.create(f"{ORDERS}?$expand=Lines($orderby=LineNo)", order_body(world, price, {**price, "Quantity": 2}))
    other = api.create(f"{ORDERS}?$expand=Lines", order_body(world, price))["@odata.id"]
    order, (first, second) = made["@odata.id"], (line["@odata.id"] for line in made["Lines"])
    inside = api.begin(model=model)
    for body in pending:
        assert inside.patch(first, body).status_code == 204
    assert inside.delete(first).status_code == 204
    added = inside.create(f"{other}/Lines", {"Product@odata.bind": f"{PRODUCTS}({world.product})", **price})
    assert inside.delete(added["@odata.id"]).status_code == 204
    assert inside.patch(second, {"SalesOrder": {"@odata.id": other}}).status_code == 204
    if model == "frontend":
        assert _totals(inside, order, other) == [0, 30]
    assert inside.end().status_code == 204
    assert _totals(api, order, other) == [0, 30]
    # Both are others than they were, also where no value of their own had changed.
    assert [api.read(f"{path}?$select=ObjectVersion")["ObjectVersion"] for path in (order, other)] == [2, 2]


def _totals(api: Api, *orders: str) -> list[float]:
    return [api.read(f"{order}?$select=TotalLineAmount")["TotalLineAmount"]["Value"] for order in orders]


def test_a_line_that_moves_takes_its_amount_along(api: Api, world: World) -> None:
    made = [api.create(f"{ORDERS}?$expand=Lines", order_body(world, {"UnitPrice": price})) for price in (10, 5)]
    moved = {"SalesOrder": {"@odata.id": made[1]["@odata.id"]}}
    assert api.patch(made[0]["Lines"][0]["@odata.id"], moved).status_code == 204
    assert _totals(api, *(order["@odata.id"] for order in made)) == [0, 15]


def test_an_incomplete_entity_is_found_by_key_only(api: Api) -> None:
    inside = api.begin()
    response = inside.post(CURRENCIES, {"CurrencySign": "USD"})
    assert response.status_code == 201, response.content
    made = response.json()
    assert (made["CurrencySign"], made["Name"]) == ("USD", None)
    assert names(inside) == ["Euro"]
    assert inside.read(made["@odata.id"])["CurrencySign"] == "USD"


def test_a_failed_commit_keeps_the_transaction_and_its_changes(api: Api) -> None:
    inside = api.begin()
    made = inside.post(CURRENCIES, {"CurrencySign": "USD"}).json()
    refused = inside.end()
    assert (refused.status_code, error_of(refused)["type"]) == (500, "RequiredAttributeMissing")
    assert inside.patch(made["@odata.id"], {"Name": "Dollar"}).status_code == 204
    assert inside.end().status_code == 204
    assert names(api) == ["Dollar", "Euro"]


def test_anothers_commit_in_between_is_a_conflict_and_nothing_is_lost(api: Api, world: World) -> None:
    inside = api.begin()
    path = f"{CURRENCIES}({world.currency})"
    assert inside.patch(path, {"Name": "Mine"}).status_code == 204
    assert api.patch(path, {"Name": "Theirs"}).status_code == 204
    refused = inside.end()
    assert (refused.status_code, error_of(refused)["type"]) == (412, "VersionConflict")
    assert inside.read(path)["Name"] == "Mine"
    assert api.read(path)["Name"] == "Theirs"


@pytest.mark.parametrize("mine", ["DELETE", "PATCH"])
@pytest.mark.parametrize("theirs", ["DELETE", "PATCH"])
@pytest.mark.parametrize("part", [False, True], ids=["root", "line"])
def test_whatever_others_did_to_what_a_transaction_changed_or_deleted_is_a_conflict(
    api: Api, world: World, mine: str, theirs: str, part: bool
) -> None:
    """Without the check a deletion would take the others' change with it, and a change would miss its values."""
    made = api.create(f"{ORDERS}?$expand=Lines", order_body(world, {"Quantity": 1}))
    path, notes = (made["Lines"][0]["@odata.id"], "Notes") if part else (made["@odata.id"], "DocumentNotes")
    inside = api.begin()
    body = {"PATCH": {notes: "mine"}, "DELETE": None}
    assert inside.request(mine, path, body[mine]).status_code == 204
    assert api.request(theirs, path, body[theirs] and {notes: "theirs"}).status_code == 204
    for _ in range(2):
        refused = inside.end()
        kind = "DeletedMeanwhile" if theirs == "DELETE" else "VersionConflict"
        assert (refused.status_code, error_of(refused)["type"]) == (412, kind)
        assert path in error_of(refused)["message"]
    if theirs == "PATCH":
        assert api.read(f"{path}?$select={notes}")[notes] == "theirs"
    assert inside.end(commit=False).status_code == 204


def test_a_foreign_transaction_is_an_unknown_one(api: Api, client: Client) -> None:
    inside = api.begin()
    other = service_api(client, application="DualDemoClient-service").within(inside.headers["TransactionId"])
    unknown = api.within("0" * 32)
    for caller in (other, unknown):
        response = caller.get(CURRENCIES)
        assert response.status_code == 400
        assert error_of(response)["message"] == f"Invalid TransactionId {caller.headers['TransactionId']}"


def test_header_and_query_may_not_disagree(api: Api) -> None:
    inside = api.begin()
    id = inside.headers["TransactionId"]
    assert api.get(f"{CURRENCIES}?tr={id}").status_code == 200
    assert inside.get(f"{CURRENCIES}?tr={'0' * 32}").status_code == 400


@pytest.mark.parametrize("query, header", [("?tr=", None), ("?tr", None), ("?tr=%20", None), ("", ""), ("", "  ")])
def test_no_transaction_at_all_is_not_an_empty_one(api: Api, world: World, query: str, header: str | None) -> None:
    """The caller's variable is empty: without a transaction the change would be committed."""
    path = f"{CURRENCIES}({world.currency})"
    headers = {} if header is None else {"TransactionId": header}
    before = api.read(path)
    refused = api.patch(path + query, {"Name": "never"}, **headers)
    assert (refused.status_code, error_of(refused)["type"]) == (400, "InvalidTransactionId")
    part = {"id": "1", "method": "PATCH", "url": path + query, "body": {"Name": "never"}, "headers": headers}
    answers = api.begin().post("$batch", {"requests": [part]}).json()["responses"]
    assert [answer["status"] for answer in answers] == [400]
    assert api.read(path) == before


def test_two_transactions_in_the_query_are_refused(api: Api) -> None:
    ids = [api.begin().headers["TransactionId"] for _ in range(2)]
    assert api.get(f"{CURRENCIES}?tr={ids[0]}&tr={ids[1]}").status_code == 400
    assert api.get(f"{CURRENCIES}?tr={ids[0]}&tr={ids[0]}").status_code == 200


def test_it_ends_by_itself_after_25_minutes(api: Api) -> None:
    inside = api.begin()
    DomainTransaction.objects.update(expires_at=utc_now() - timedelta(seconds=1))
    assert error_of(inside.get(CURRENCIES))["type"] == "InvalidTransactionId"
    row = DomainTransaction.objects.get()
    assert row.expires_at - row.began_at <= timedelta(minutes=25)
    assert domain_transactions.transactions_expire() == 1


def test_it_ends_with_its_session_and_no_other_does(api: Api, client: Client) -> None:
    inside, other = api.begin(), service_api(client).begin()
    inside.create(CURRENCIES, {"CurrencySign": "USD", "Name": "Dollar"})
    body = f"token={api.token}&client_id=ServiceDemoClient&client_secret=DEMO"
    revoked = client.post("/id/connect/revocation", body, content_type="application/x-www-form-urlencoded")
    assert revoked.status_code == 200
    kept = [row.id for row in DomainTransaction.objects.all()]
    assert kept == [other.headers["TransactionId"]]
    assert not PendingChange.objects.exists()
    assert other.end().status_code == 204


def test_a_session_has_ten_open_transactions_at_most(api: Api) -> None:
    for _ in range(10):
        api.begin()
    refused = api.post("BeginTransaction", {})
    assert (refused.status_code, error_of(refused)["type"]) == (500, "TransactionLimit")


def test_pending_entities_are_bounded(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending_rows, "MAX_PENDING", 2)
    inside = api.begin()
    for number in range(2):
        inside.create(CURRENCIES, {"CurrencySign": f"C{number}", "Name": "x"})
    refused = inside.post(CURRENCIES, {"CurrencySign": "C9", "Name": "x"})
    assert error_of(refused)["type"] == "PendingLimit"
    assert PendingChange.objects.count() == 2


def test_get_changes_tells_each_change_once(api: Api, world: World) -> None:
    inside = api.begin(trackChanges=True)
    assert _plain(inside.read("GetChanges()")) == {}
    made = inside.create(CURRENCIES, {"CurrencySign": "USD", "Name": "Dollar"})
    inside.patch(f"{CURRENCIES}({world.currency})", {"Name": "Renamed"})
    inside.delete(f"{PRODUCTS}({world.product})")
    key = made["@odata.id"][len(CURRENCIES) + 1 : -1]
    changes = _plain(inside.read("GetChanges()"))
    assert changes["insert"][CURRENCIES][key]["CurrencySign"] == "USD"
    assert changes["update"] == {CURRENCIES: {world.currency: {"Name": "Renamed"}}}
    assert changes["delete"][PRODUCTS] == {world.product: {}}
    assert _plain(inside.read("GetChanges()")) == {}


def test_get_changes_tells_what_changed_since_it_was_last_asked(api: Api, world: World) -> None:
    """Of an entity that the caller knows, only what is different now; of one that came and went in between, nothing."""
    inside = api.begin(trackChanges=True)
    made = inside.create(CURRENCIES, {"CurrencySign": "USD", "Name": "Dollar"})
    path, key = made["@odata.id"], made["@odata.id"][len(CURRENCIES) + 1 : -1]
    inside.patch(path, {"Name": "Buck"})
    first = inside.read("GetChanges()")["insert"][CURRENCIES][key]
    assert (first["CurrencySign"], first["Name"]) == ("USD", "Buck")
    inside.patch(path, {"Name": "US dollar"})
    inside.patch(path, {"ShowOrder": 3})
    assert inside.read("GetChanges()")["update"] == {CURRENCIES: {key: {"Name": "US dollar", "ShowOrder": 3}}}
    euro = f"{CURRENCIES}({world.currency})"
    inside.patch(euro, {"Name": "Coin", "ShowOrder": 5})
    inside.read("GetChanges()")
    inside.patch(euro, {"Name": "Euro"})
    assert inside.read("GetChanges()")["update"] == {CURRENCIES: {world.currency: {"Name": "Euro"}}}
    brief = inside.create(CURRENCIES, {"CurrencySign": "GBP", "Name": "Pound"})
    assert inside.delete(brief["@odata.id"]).status_code == 204
    assert inside.read("GetChanges()") == {}
    assert inside.delete(path).status_code == 204
    assert inside.get(path).status_code == 404
    assert names(inside) == ["Euro"]
    assert inside.read("GetChanges()")["delete"] == {CURRENCIES: {key: {}}}
    assert inside.read("GetChanges()") == {}
    again = {"Id": key, "CurrencySign": "USD", "Name": "Dollar"}
    inside.create(CURRENCIES, again)
    inside.read("GetChanges()")
    inside.delete(path)
    inside.create(CURRENCIES, again)
    assert inside.end().status_code == 204
    assert names(api) == ["Dollar", "Euro"]


def test_get_changes_needs_a_transaction_that_tracks(api: Api) -> None:
    assert error_of(api.begin().get("GetChanges()"))["type"] == "ChangesNotTracked"
    assert error_of(api.get("GetChanges()"))["type"] == "TransactionRequired"


def test_the_frontend_model_follows_each_attribute(api: Api, world: World) -> None:
    inside = api.begin(model="frontend", trackChanges=True)
    order = inside.create(ORDERS, order_body(world))
    line = inside.create(
        f"{order['@odata.id']}/Lines?$select=LineAmount,ProductDescription",
        {"Product@odata.bind": f"{PRODUCTS}({world.product})", "Quantity": 2, "UnitPrice": 4},
    )
    assert line["LineAmount"]["Value"] == 8
    assert line["ProductDescription"] == {"EN": "Chair", "BG": "Стол"}
    changes = _plain(inside.read("GetChanges()"))
    assert "insert" in changes


def test_a_patch_by_key_loads_only_what_it_touches(api: Api, django_assert_max_num_queries: object) -> None:
    inside = api.begin()
    paths = [inside.create(CURRENCIES, {"CurrencySign": f"C{n}", "Name": "x"})["@odata.id"] for n in range(20)]
    with django_assert_max_num_queries(25):  # type: ignore[operator]
        assert inside.patch(paths[3], {"Name": "y"}).status_code == 204


def _plain(body: dict[str, object]) -> dict[str, dict[str, dict[str, dict[str, object]]]]:
    return {name: value for name, value in body.items() if not name.startswith("@")}  # type: ignore[misc]
