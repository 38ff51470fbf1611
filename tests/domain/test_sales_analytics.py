"""The view over the lines of sales orders: what it shows, to whom, and that nothing writes it."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from domain.model.checks import check_repository
from domain.model.registry import repositories
from domain.odata.metadata.openapi import repository_paths
from foundation import errors
from tests.domain.security.conftest import caller, give_role, person
from tests.rules.cast import ORDERS, World, dataset, fail, new_line, new_order, new_product, write_rule
from tests.scripts.cast import execute
from tests.support.api import Api, error_of

SET, LINE_SET, ORDER_SET = "Crm_Sales_SalesAnalytics", "Crm_Sales_SalesOrderLines", "Crm_Sales_SalesOrders"
VIEW, LINES, EVERYTHING = "Crm.Sales.SalesAnalytics", "Crm.Sales.SalesOrderLines", {"*": "r"}
#: (order's notes, product, quantity, unit price, discount)
SOLD = (
    ("open", "P1", "2", "10", "0"),
    ("open", "P2", "3", "33.33333", "0.1"),
    ("secret", "P1", "5", "7.5", "0.25"),
    ("secret", "P2", "1", "1000000", "0"),
    ("other", "P2", "4", "0.00375", "0"),
)


@dataclass(frozen=True)
class Sales:
    """What was sold: guids of orders by their notes and of lines in the order of SOLD."""

    world: World
    orders: dict[str, str]
    lines: list[str]
    product: str


@pytest.fixture
def sales(world: World, api: Api) -> Sales:
    """Three orders with five lines."""
    unit = dataset(world.context.with_(company_id=world.company))
    other = new_product(unit, world)
    products = {"P1": world.product, "P2": other.id}
    orders: dict[str, Any] = {}
    lines = []
    for notes, product, quantity, price, discount in SOLD:
        order = orders.get(notes) or new_order(unit, world, DocumentNotes=notes)
        orders[notes] = order
        line = new_line(unit, world, order, Product=products[product])
        for name, value in (("Quantity", quantity), ("UnitPrice", price), ("LineCustomDiscountPercent", discount)):
            unit.set(line, name, Decimal(value))
        lines.append(line.id)
    unit.commit()
    return Sales(world, {notes: order.id for notes, order in orders.items()}, lines, other.id)


def amounts(rows: list[dict[str, Any]], name: str = "LineAmount") -> Decimal:
    """The sum of an attribute, an amount or a plain number."""
    values = [row[name] for row in rows]
    return sum((Decimal(str(each["Value"] if isinstance(each, dict) else each)) for each in values), Decimal(0))


def ids(api: Api, query: str = "") -> set[str]:
    """Keys of the visible entries."""
    return {row["Id"] for row in api.read(f"{SET}?$select=Id{query}")["value"]}


# --- reading ------------------------------------------------------------------------------------------------------


def test_an_entry_has_the_attributes_of_its_line_and_order(api: Api, sales: Sales) -> None:
    entry = api.read(f"{SET}({sales.lines[1]})?$expand=Product($select=PartNumber),Customer($select=Number)")
    order = api.read(f"{ORDER_SET}({sales.orders['open']})")
    assert entry["SalesAnalyticId"] == sales.lines[1]
    assert entry["DocumentDate"] == order["DocumentDate"]
    assert (entry["Product"]["PartNumber"], entry["Customer"]["Number"]) == ("P2", "C1")
    assert entry["DocumentCurrency"]["@odata.id"] == order["DocumentCurrency"]["@odata.id"]
    assert entry["EnterpriseCompany"]["@odata.id"] == order["EnterpriseCompany"]["@odata.id"]
    assert (entry["SalesPerson"], entry["Store"]) == (None, None)
    assert [Decimal(str(entry[name])) for name in ("QuantityBase", "StandardQuantityBase")] == [3, 3]
    # 3 × 33.33333 = 99.99999, less 10 %.
    assert (entry["LineAmount"], entry["LineDiscountAmount"]) == (90, 10)
    display = api.read(f"{SET}({sales.lines[1]})?$select=DisplayText")["DisplayText"]
    assert display.startswith(f"{sales.lines[1]}: ")
    assert api.get(f"{SET}({sales.orders['open']})").status_code == 404


def test_discounts_are_rounded_half_away_from_zero(api: Api, sales: Sales) -> None:
    rows = api.read(f"{SET}?$select=Id,LineAmount,LineDiscountAmount")["value"]
    found = {row["Id"]: (Decimal(str(row["LineAmount"])), Decimal(str(row["LineDiscountAmount"]))) for row in rows}
    # 4 × 0.00375 = 0.015; 5 × 7.5 less 25 % = 28.125.
    expected = [("20", "0"), ("90", "10"), ("28.13", "9.37"), ("1000000", "0"), ("0.02", "0")]
    assert [found[line] for line in sales.lines] == [tuple(map(Decimal, each)) for each in expected]


@pytest.mark.parametrize(
    "query, expected",
    [
        ("&$filter=LineAmount gt 50", {1, 3}),
        ("&$filter=LineDiscountAmount gt 9.5", {1}),
        ("&$filter=Product/PartNumber eq 'P1'", {0, 2}),
        ("&$filter=SalesAnalyticId eq {first}", {0}),
        ("&$filter=SalesPerson eq null and DocumentDate gt 2020-01-01", {0, 1, 2, 3, 4}),
        ("&$orderby=LineAmount desc&$top=2", {3, 1}),
        ("&$search=nothing", set()),
    ],
)
def test_entries_are_filtered_and_ordered(api: Api, sales: Sales, query: str, expected: set[int]) -> None:
    assert ids(api, query.format(first=sales.lines[0])) == {sales.lines[number] for number in expected}


def test_pages_and_counts_have_every_entry_once(api: Api, sales: Sales) -> None:
    assert api.get(f"{SET}/$count").content == b"5"
    seen: list[str] = []
    link = f"{SET}?$select=Id&$count=true&$orderby=DocumentDate"
    while link:
        page = api.read(link.rpartition("/odata/")[2] or link, Prefer="odata.maxpagesize=2")
        seen += [row["Id"] for row in page["value"]]
        link = page.get("@odata.nextLink", "")
    assert sorted(seen) == sorted(sales.lines)


def test_groups_have_the_totals_of_the_lines(api: Api, sales: Sales) -> None:
    lines = api.read(f"{LINE_SET}?$expand=Product($select=PartNumber)")["value"]
    by_product: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in lines:
        by_product[line["Product"]["PartNumber"]].append(line)
    total = "LineAmount with sum as Total,QuantityBase with sum as Quantity,$count as N"
    groups = api.read(f"{SET}?$apply=groupby((Product/PartNumber),aggregate({total}))")["value"]
    found = {
        g["Product"]["PartNumber"]: (Decimal(str(g["Total"])), Decimal(str(g["Quantity"])), g["N"]) for g in groups
    }
    assert found == {
        number: (amounts(part), amounts(part, "QuantityBase"), len(part)) for number, part in by_product.items()
    }
    (whole,) = api.read(f"{SET}?$apply=filter(LineAmount lt 100)/aggregate(LineAmount with sum as Total)")["value"]
    assert Decimal(str(whole["Total"])) == sum(v for v in (amounts([line]) for line in lines) if v < 100)


def test_a_domain_transaction_reads_its_pending_lines(api: Api, sales: Sales) -> None:
    inside = api.begin()
    amount = {"LineAmount": {"Value": 70, "Currency": "EUR"}}
    assert inside.patch(f"{LINE_SET}({sales.lines[0]})", amount).status_code == 204
    assert inside.delete(f"{LINE_SET}({sales.lines[1]})").status_code == 204
    rows = {row["SalesAnalyticId"]: row for row in inside.read(SET)["value"]}
    assert rows.keys() == set(sales.lines) - {sales.lines[1]}
    assert rows[sales.lines[0]]["LineAmount"] == 70
    assert len(ids(api)) == 5


def test_changes_are_not_tracked(api: Api, sales: Sales) -> None:
    answer = api.get(SET, Prefer="odata.track-changes")
    assert "@odata.deltaLink" not in answer.json()
    assert "Preference-Applied" not in answer
    assert api.get(f"{SET}?$deltatoken=x").status_code == 501


def test_a_view_does_not_keep_its_targets_from_being_deleted(api: Api, sales: Sales) -> None:
    with CaptureQueriesContext(connection) as queries:
        refused = api.delete(f"Crm_Sales_Customers({sales.world.customer})")
    assert error_of(refused)["type"] == "ReferenceInUse", refused.content
    assert not any("domain_salesanalytics" in query["sql"] for query in queries)
    for notes in sales.orders:
        assert api.delete(f"{ORDER_SET}({sales.orders[notes]})").status_code == 204
    assert api.delete(f"Crm_Sales_Customers({sales.world.customer})").status_code == 204
    assert ids(api) == set()


# --- what the model says --------------------------------------------------------------------------------------------


def test_the_model_says_that_it_is_only_read(api: Api) -> None:
    metadata = api.get("$metadata", Accept="application/json").json()
    entity_set = metadata["Erp"]["Container"][SET]
    assert entity_set["$Type"] == "Erp.Crm_Sales_SalesAnalyticsEntry"
    assert entity_set["@Capabilities.InsertRestrictions"] == {"Insertable": False}
    assert entity_set["@Capabilities.UpdateRestrictions"] == {"Updatable": False}
    assert entity_set["@Capabilities.DeleteRestrictions"] == {"Deletable": False}
    paths = dict(repository_paths(repositories[VIEW], custom=False))
    assert paths.keys() >= {f"/{SET}", f"/{SET}({{Id}})"}
    assert not any({"post", "patch", "delete"} & paths[path].keys() for path in (f"/{SET}", f"/{SET}({{Id}})"))
    assert f'Name="{SET}"'.encode() in api.get("$metadata").content


def test_a_wrong_declaration_of_a_view_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    view = repositories[VIEW]
    assert list(check_repository(view)) == []
    monkeypatch.setattr(type(view), "access", "ReadWrite")
    assert [each.id for each in check_repository(view)] == ["domain.E007"]
    monkeypatch.setattr(type(view), "view_of", "Crm.Sales.Nothing")
    assert [each.id for each in check_repository(view)] == ["domain.E007"]


# --- writing ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "method, below, body",
    [
        ("POST", "", {"LineAmount": 1}),
        ("POST", "", {"LineAmount": 1, "Customer": {"Number": "C2"}}),
        ("PATCH", "({line})", {"LineAmount": 1}),
        ("PUT", "({line})", {"LineAmount": 1}),
        ("DELETE", "({line})", None),
        ("PUT", "({line})/LineAmount", {"value": 1}),
        ("DELETE", "({line})/DocumentDate", None),
        ("PUT", "({line})/Customer/$ref", {"@odata.id": "Crm_Sales_Customers({customer})"}),
        ("DELETE", "({line})/Store/$ref", None),
    ],
)
def test_requests_write_nothing(api: Api, sales: Sales, method: str, below: str, body: Any) -> None:
    before = api.get(SET).content
    path = f"{SET}{below}".format(line=sales.lines[0])
    assert api.request("OPTIONS", path)["Allow"] == "GET, HEAD, OPTIONS"
    for each in (api, api.begin()):
        answer = each.request(method, path, body)
        assert (answer.status_code, answer["Allow"]) == (405, "GET, HEAD, OPTIONS")
        assert error_of(answer)["code"] == errors.METHOD_NOT_ALLOWED.number
    assert api.get(SET).content == before


def test_nor_do_batches_imports_and_operations(api: Api, sales: Sales) -> None:
    part = {"id": "1", "method": "DELETE", "url": f"{SET}({sales.lines[0]})"}
    for more in ({}, {"atomicityGroup": "g"}):
        (answer,) = api.post("$batch", {"requests": [{**part, **more}]}).json()["responses"]
        assert answer["status"] == 405
    for values in ({}, {"Id": sales.lines[0], "LineAmount": 5}):
        result = api.post("Import", {"objects": [{"@odata.type": "Erp.Crm_Sales_SalesAnalyticsEntry", **values}]})
        assert result.json()["@erpnet.result"] == "fail", result.content
    assert api.post(f"{SET}({sales.lines[0]})/CreateCopy", {}).status_code in (403, 405)
    # Deep inserts and updates through an order end at the line itself: the view is nobody's collection.
    refused = api.patch(f"{ORDER_SET}({sales.orders['open']})", {"SalesAnalytics": [{"LineAmount": 1}]})
    assert refused.status_code == 400
    assert len(ids(api)) == 5


@pytest.mark.parametrize(
    "change",
    [
        "view.createNew()",
        "entry.LineAmount = 1",
        "entry.Customer = null",
        "entry.delete()",
    ],
)
def test_scripts_write_nothing(api: Api, sales: Sales, change: str) -> None:
    source = "const view = Domain.Crm.Sales.SalesAnalyticsRepository; const [entry] = view.query({});"
    answer = execute(api, f"{source} {change}; Transaction.commit();")
    assert answer.status_code == 403, answer.content
    assert error_of(answer)["type"] == "PermissionDenied"
    read = execute(api, f"{source} console.log(view.query({{}}).length, entry.LineAmount !== undefined);")
    assert "5 true" in read.content.decode()


def test_datasets_and_rules_write_nothing(world: World, sales: Sales) -> None:
    for change in ("create", "assign", "delete"):
        unit = dataset(world.context)
        entry = unit.load(VIEW, sales.lines[0])
        assert entry is not None
        match change:
            case "create":
                values = {name: entry.values[name] for name in entry.values if name not in ("Id", "ObjectVersion")}
                unit.create(VIEW, values)
            case "assign":
                unit.assign(entry, "LineAmount", Decimal(1))
            case "delete":
                unit.delete(entry)
        with pytest.raises(errors.MethodNotAllowed):
            unit.commit()
    with pytest.raises(errors.PlatformError):
        write_rule(world, VIEW, ["COMMIT"], actions=[fail()])
    assert dataset(world.context).load(LINES, sales.lines[0]) is not None


# --- rights -------------------------------------------------------------------------------------------------------


def restricted(letters: dict[str, str], policies: dict[str, str] | None = None) -> Api:
    """A person with one role."""
    bob = person("bob")
    give_role(bob, letters, policies)
    return caller(bob)


def check_visible(bob: Api, sales: Sales, expected: set[int]) -> None:
    """Values, counts, groups, keys and scripts show these lines only, as the set of lines does."""
    lines = {sales.lines[number] for number in expected}
    assert ids(bob) == lines
    assert ids(bob, "&$filter=LineAmount gt -1 or LineAmount eq null&$orderby=LineAmount") == lines
    assert bob.get(f"{SET}/$count").content == str(len(lines)).encode()
    assert bob.read(f"{SET}?$count=true&$top=0")["@odata.count"] == len(lines)
    groups = bob.read(f"{SET}?$apply=groupby((SalesAnalyticId),aggregate($count as N))")["value"]
    assert {group["SalesAnalyticId"] for group in groups} == lines
    (total,) = bob.read(f"{SET}?$apply=aggregate($count as N,LineAmount with max as Most)")["value"]
    assert total["N"] == len(lines)
    for number, line in enumerate(sales.lines):
        assert bob.get(f"{SET}({line})").status_code == (200 if number in expected else 404)
        assert bob.get(f"{SET}({line})/LineAmount").status_code == (200 if number in expected else 404)


def test_an_order_that_a_policy_hides_has_no_entries(sales: Sales) -> None:
    bob = restricted(EVERYTHING, {ORDERS: "DocumentNotes ne 'secret'"})
    check_visible(bob, sales, {0, 1, 4})
    assert ids(bob) == {row["Id"] for row in bob.read(f"{LINE_SET}?$select=Id")["value"]}


def test_a_document_that_a_policy_hides_has_no_entries(sales: Sales) -> None:
    check_visible(restricted(EVERYTHING, {"General.Documents.Documents": "DocumentNotes eq 'open'"}), sales, {0, 1})


def test_a_line_that_a_policy_hides_has_no_entry(sales: Sales) -> None:
    check_visible(restricted(EVERYTHING, {LINES: "Product/PartNumber eq 'P1'"}), sales, {0, 2})


def test_policies_of_order_line_and_view_are_all_applied(sales: Sales) -> None:
    policies = {ORDERS: "DocumentNotes ne 'other'", LINES: "Quantity ne 5", VIEW: "LineAmount lt 1000"}
    check_visible(restricted(EVERYTHING, policies), sales, {0, 1})


def test_roles_that_grant_lines_and_orders_apart_show_what_both_show(sales: Sales) -> None:
    bob = person("bob")
    give_role(bob, {LINES: "r", VIEW: "r"})
    give_role(bob, {ORDERS: "r"}, {ORDERS: "DocumentNotes ne 'secret'"})
    check_visible(caller(bob), sales, {0, 1, 4})


@pytest.mark.parametrize("missing", [ORDERS, LINES])
def test_without_the_permission_on_orders_or_lines_there_are_no_entries(sales: Sales, missing: str) -> None:
    granted = {VIEW: "r", ORDERS: "r", LINES: "r", "General.*": "r"}
    check_visible(restricted({name: letters for name, letters in granted.items() if name != missing}), sales, set())


def test_without_the_permission_on_the_view_it_is_refused(sales: Sales) -> None:
    bob = restricted({ORDERS: "r", LINES: "r", "General.*": "r"})
    for path in (SET, f"{SET}/$count", f"{SET}({sales.lines[0]})"):
        assert bob.get(path).status_code == 403, path
    assert bob.delete(f"{SET}({sales.lines[0]})").status_code == 403


def test_with_all_three_permissions_every_entry_is_there_and_hidden_targets_are_null(sales: Sales) -> None:
    bob = restricted({VIEW: "r", ORDERS: "r", LINES: "r"})
    check_visible(bob, sales, {0, 1, 2, 3, 4})
    assert {row["Customer"] for row in bob.read(SET)["value"]} == {None}


def test_unrestricted_readers_pay_for_no_check(api: Api, sales: Sales) -> None:
    with CaptureQueriesContext(connection) as queries:
        api.read(f"{SET}?$select=LineAmount")
    (read,) = [query["sql"] for query in queries if "domain_salesanalytics" in query["sql"]]
    assert re.findall(r'\bJOIN "?(\w+)', read) == []


def test_the_admin_shows_entries_and_edits_none(sales: Sales, client: Client) -> None:
    client.force_login(person("alice", is_admin=True))
    page = "/admin/domain/salesanalyticsentry/"
    assert client.get(page).status_code == 200
    shown = client.get(f"{page}{sales.lines[0]}/change/")
    assert shown.status_code == 200
    assert b'name="_save"' not in shown.content
    for refused in (f"{page}add/", f"{page}{sales.lines[0]}/delete/"):
        assert client.get(refused).status_code == 403
