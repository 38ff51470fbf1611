"""UI5 (@openui5), ODataModel v4

In Chromium, on pages of another origin, against an instance; unmodified, as npm has it. UI5 knows no base types, so its
models read `$metadata?options=flat`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, Page

from tests.compatibility import ui5
from tests.compatibility.node_clients import packages_of
from tests.support.chromium import launched
from tests.support.platform import LivePlatform, start_platform

pytestmark = [pytest.mark.process, pytest.mark.once, pytest.mark.browser]

CURRENCIES = "/General_Currencies_Currencies"
LINES = "/Crm_Sales_SalesOrderLines"
ORDERS = "/Crm_Sales_SalesOrders"
PRODUCTS = "/General_Products_Products"
NAMED: dict[str, Any] = {"$select": ["Id", "CurrencySign", "Name"]}
#: UI5 loads several hundred modules one by one.
START_MILLISECONDS = 120_000

Call = Callable[..., Any]
Open = Callable[[str], Any]


@pytest.fixture(scope="module")
def platform() -> Iterator[LivePlatform]:
    """An instance of its own: what these tests register and create would be in the way of others."""
    packages_of("openui5")
    with start_platform(settings={"WEB_PROCESSES": "1"}) as started:
        yield started


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched() as found:
        yield found


@pytest.fixture(scope="module")
def opened(platform: LivePlatform, browser: Browser) -> Iterator[Open]:
    """Opens a page of tests/clients/openui5 for the service."""
    with ui5.served() as server:
        token = ui5.token_for_pages(platform, server.url)
        context = browser.new_context()

        @contextmanager
        def open_page(name: str) -> Iterator[Page]:
            page = context.new_page()
            page.goto(f"{server.url}/{name}?{urlencode({'service': platform.odata_url, 'token': token})}")
            page.wait_for_function("window.ui5", timeout=START_MILLISECONDS)
            yield page
            page.close()

        yield open_page
        context.close()


@pytest.fixture(scope="module")
def call(opened: Open) -> Iterator[Call]:
    """Calls a function of tests/clients/openui5/model.js."""
    with opened("model.html") as page:

        def run(name: str, *arguments: Any) -> Any:
            return page.evaluate("([name, values]) => window.ui5[name](...values)", [name, list(arguments)])

        yield run


@pytest.fixture
def two(call: Call) -> Iterator[dict[str, str]]:
    """Two currencies that UI5 created: sign → path. They are gone afterwards."""
    call("clear")
    changes = [{"create": {"CurrencySign": sign, "Name": sign}} for sign in ("UI1", "UI2")]
    created = call("submit", CURRENCIES, {"parameters": NAMED, "changes": changes})["created"]
    yield {entry["object"]["CurrencySign"]: entry["path"] for entry in created}
    delete_all(call)


def ours(call: Call) -> list[dict[str, Any]]:
    """What is stored of these currencies."""
    options = {"parameters": NAMED, "conditions": [["CurrencySign", "StartsWith", "UI"]], "orders": [["CurrencySign"]]}
    rows: list[dict[str, Any]] = call("list", CURRENCIES, options)["pages"][0]
    return rows


def delete_all(call: Call) -> None:
    """Remove them."""
    changes = [{"delete": f"{CURRENCIES}({row['Id']})"} for row in ours(call)]
    call("submit", CURRENCIES, {"parameters": NAMED, "changes": changes})


def stored(call: Call) -> list[tuple[str, str]]:
    """(sign, name) of each."""
    return [(row["CurrencySign"], row["Name"]) for row in ours(call)]


# --- reading ------------------------------------------------------------------------------------------------------


def test_list_binding(call: Call) -> None:
    """A list binding with `$count`, filters, sorters and pages"""
    options = {
        "parameters": {"$count": True, "$select": ["Id", "PartNumber"]},
        "conditions": [["PartNumber", "StartsWith", "PA-"], ["ProductGroup/Code", "NE", "none"]],
        "orders": [["PartNumber", True]],
        "pages": [[0, 4], [4, 4]],
    }
    found = call("list", PRODUCTS, options)
    numbers = [[row["PartNumber"] for row in page] for page in found["pages"]]
    assert [len(page) for page in numbers] == [4, 4]
    in_order = [number for page in numbers for number in page]
    assert in_order == sorted(set(in_order), reverse=True)
    assert found["count"] > 8


@pytest.mark.parametrize(
    "condition, holds",
    [
        (["PartNumber", "EQ", "PA-0003"], lambda number: number == "PA-0003"),
        (["PartNumber", "BT", "PA-0003", "PA-0005"], lambda number: "PA-0003" <= number <= "PA-0005"),
        (["PartNumber", "EndsWith", "3"], lambda number: number.endswith("3")),
        (["PartNumber", "NotContains", "PA"], lambda number: "PA" not in number),
    ],
)
def test_filters(call: Call, condition: list[str], holds: Callable[[str], bool]) -> None:
    """Filters: equal, between, ends with, does not contain"""
    options = {"parameters": {"$select": ["PartNumber"]}, "conditions": [condition], "pages": [[0, 1000]]}
    every = call("list", PRODUCTS, {**options, "conditions": []})["pages"][0]
    rows = [row["PartNumber"] for row in call("list", PRODUCTS, options)["pages"][0]]
    assert sorted(rows) == sorted(row["PartNumber"] for row in every if holds(row["PartNumber"]))
    assert 0 < len(rows) < len(every)


def test_expand(call: Call) -> None:
    """`$expand` of references and collections, and of references in these, of a document"""
    product = {"$select": ["Id", "PartNumber"]}
    lines = {"$select": ["Id", "LineNo", "Quantity"], "$expand": {"Product": product}, "$orderby": "LineNo"}
    parameters = {
        "$select": ["Id", "DocumentNo"],
        "$expand": {"Customer": {"$select": ["Id", "DisplayText"]}, "Lines": lines},
    }
    (page,) = call("list", ORDERS, {"parameters": parameters, "orders": [["DocumentNo"]], "pages": [[0, 3]]})["pages"]
    for order in page:
        assert order["Customer"]["DisplayText"]
        numbers = [line["LineNo"] for line in order["Lines"]]
        assert numbers == sorted(numbers)
        assert all(line["Product"]["PartNumber"] and line["Quantity"]["Unit"] for line in order["Lines"])
    assert call("value", f"{ORDERS}({page[0]['Id']})/Customer/DisplayText") == page[0]["Customer"]["DisplayText"]
    owned = {"parameters": {"$count": True, "$select": ["Id", "LineNo"]}, "pages": [[0, 100]]}
    assert call("list", f"{ORDERS}({page[0]['Id']})/Lines", owned)["count"] == len(page[0]["Lines"])


def test_operations(call: Call) -> None:
    """A function, and a bound action that is refused with its message"""
    assert call("invoke", "/GetVersion(...)")["version"]
    # UI5's own filters know no enumerations.
    parameters = {"$select": ["Id"], "$filter": "State eq 'Released'"}
    (order,) = call("list", ORDERS, {"parameters": parameters, "pages": [[0, 1]]})["pages"][0]
    path = f"{ORDERS}({order['Id']})/Erp.ChangeState(...)"
    refused = call("invoke", path, {"newState": "Planned", "userStatus": None})
    assert refused["status"] == 500
    assert "cannot go from Released to Planned" in refused["error"]


# --- aggregation --------------------------------------------------------------------------------------------------


def test_grand_total(call: Call) -> None:
    """`$$aggregation` with a grand total: concat inside concat, page by page"""
    aggregation = {"aggregate": {"LineNo": {"grandTotal": True, "with": "sum"}}, "group": {"Id": {}}}
    options = {
        "parameters": {"$count": True, "$$aggregation": aggregation},
        "orders": [["Id"]],
        "pages": [[0, 5], [5, 5]],
    }
    found = call("list", LINES, options)
    first, second = found["pages"]
    every = call("list", LINES, {"parameters": {"$select": ["Id", "LineNo"]}, "orders": [["Id"]], "pages": [[0, 1000]]})
    lines = every["pages"][0]
    assert first[0]["LineNo"] == sum(line["LineNo"] for line in lines)
    assert [row["LineNo"] for row in (*first[1:], *second)] == [line["LineNo"] for line in lines[:9]]
    assert found["count"] == len(lines)


def test_groups(call: Call) -> None:
    """`$$aggregation` with group levels, subtotals and a grand total, over what a filter leaves"""
    amount = {"grandTotal": True, "subtotals": True, "name": "ObjectVersion", "with": "sum"}
    aggregation = {
        "aggregate": {"Versions": amount},
        "group": {"DocumentDate": {}, "DocumentNo": {}},
        "groupLevels": ["DocumentDate"],
    }
    conditions = [["DocumentNo", "LE", "0000000020"]]
    options = {
        "parameters": {"$$aggregation": aggregation}, "conditions": conditions, "orders": [["DocumentDate"]],
        "pages": [[0, 100]],
    }  # fmt: skip
    total, *groups = call("list", ORDERS, options)["pages"][0]
    selected = {"$select": ["Id", "DocumentDate", "ObjectVersion"]}
    (orders,) = call("list", ORDERS, {"parameters": selected, "conditions": conditions, "pages": [[0, 100]]})["pages"]
    expected: dict[str, int] = {}
    for order in orders:
        expected[order["DocumentDate"]] = expected.get(order["DocumentDate"], 0) + order["ObjectVersion"]
    # A sum is Edm.Decimal, which UI5 asks for as a string (IEEE754Compatible).
    assert total["Versions"] == str(sum(expected.values()))
    assert {group["DocumentDate"]: int(group["Versions"]) for group in groups} == expected
    assert [group["DocumentDate"] for group in groups] == sorted(expected)


# --- writing ------------------------------------------------------------------------------------------------------


def test_create(call: Call, two: dict[str, str]) -> None:
    """Create in a changeset: the new entities have their keys, and can be changed at once"""
    assert stored(call) == [("UI1", "UI1"), ("UI2", "UI2")]
    assert {f"{CURRENCIES}({row['Id']})" for row in ours(call)} == set(two.values())


def test_change_create_and_delete_together(call: Call, two: dict[str, str]) -> None:
    """Edit, create and delete by one `submitBatch`"""
    changes = [
        {"change": two["UI1"], "path": "Name", "value": "First"},
        {"delete": two["UI2"]},
        {"create": {"CurrencySign": "UI3", "Name": "Third"}},
    ]
    done = call("submit", CURRENCIES, {"parameters": NAMED, "changes": changes})
    assert (done["pending"], done["left"], done["messages"]) == (True, False, [])
    assert stored(call) == [("UI1", "First"), ("UI3", "Third")]


def test_messages_of_a_refused_commit(call: Call, two: dict[str, str]) -> None:
    """A changeset refused at its commit: nothing is stored, and the message is at the entity that is to blame"""
    changes = [
        {"change": two["UI2"], "path": "Name", "value": "Second"},
        {"create": {"CurrencySign": "UI4", "Name": "Fourth"}},
        {"create": {"CurrencySign": "UI1", "Name": "Duplicate"}},
    ]
    done = call("submit", CURRENCIES, {"parameters": NAMED, "changes": changes})
    assert stored(call) == [("UI1", "UI1"), ("UI2", "UI2")]
    assert done["left"]
    (message,) = done["messages"]
    assert "CurrencySign = UI1" in message["text"]
    (duplicate,) = [each for each in done["created"] if each["object"]["Name"] == "Duplicate"]
    assert message["targets"] == [f"{duplicate['path']}/CurrencySign"]


def test_messages_of_a_refused_request(call: Call, two: dict[str, str]) -> None:
    """A changeset with a request that cannot be read: the message is at its member"""
    changes = [
        {"change": two["UI2"], "path": "Name", "value": "Second"},
        {"create": {"CurrencySign": "UI4", "NoSuchMember": 1}},
    ]
    done = call("submit", CURRENCIES, {"parameters": NAMED, "changes": changes})
    assert stored(call) == [("UI1", "UI1"), ("UI2", "UI2")]
    (message,) = done["messages"]
    (created,) = done["created"]
    assert message["targets"] == [f"{created['path']}/NoSuchMember"]


def test_messages_of_several_requests(call: Call) -> None:
    """A changeset with several incomplete entities: each missing value is a message at its own entity"""
    call("clear")
    changes = [{"create": {"PartNumber": number}} for number in ("UI-1", "UI-2")]
    done = call("submit", PRODUCTS, {"parameters": {"$select": ["Id", "PartNumber"]}, "changes": changes})
    targets = {target for message in done["messages"] for target in message["targets"]}
    assert {f"{each['path']}/Name" for each in done["created"]} <= targets
    assert len(done["created"]) == 2


def test_others_changed_it_meanwhile(call: Call, two: dict[str, str]) -> None:
    """A change of what another has changed meanwhile is refused by its ETag, and says so"""
    done = call("conflict", two["UI1"], "Name", "Mine", "Theirs")
    assert done["status"] == 412
    assert ("UI1", "Theirs") in stored(call)


# --- a page -------------------------------------------------------------------------------------------------------


def test_a_page_with_a_table(opened: Open, call: Call) -> None:
    """A page with sap.m.Table: growing, search, sort, a reference's member, input and save"""
    complaints: list[str] = []
    with opened("table.html") as page:
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        rows = page.locator("#table tbody tr.sapMListTblRow")
        page.wait_for_function("sap.ui.require('sap/ui/core/Element').getElementById('count').getText() > 5")
        assert rows.count() == 5
        group = rows.first.locator("td").nth(2).inner_text()
        assert group
        page.locator("#table-trigger").click()
        page.wait_for_function("document.querySelectorAll('#table tbody tr.sapMListTblRow').length === 10")

        page.locator("#search input").fill("PA-000")
        page.locator("#search input").press("Enter")
        page.wait_for_function("sap.ui.require('sap/ui/core/Element').getElementById('count').getText() === '9'")
        page.locator("#descending").click()
        page.locator("#table tbody tr.sapMListTblRow").first.get_by_text("PA-0009").wait_for()

        page.locator("#table tbody tr.sapMListTblRow input").first.fill("From UI5")
        page.locator("#table tbody tr.sapMListTblRow input").first.press("Tab")
        page.locator("#save").click()
        page.wait_for_function("document.body.dataset.saved")
    # Of the model only: without the stylesheets that UI5's build makes, controls miss sizes of themes.
    assert [text for text in complaints if "odata" in text.lower()] == []
    options = {"parameters": {"$select": ["CatalogDescriptionHtml"]}, "conditions": [["PartNumber", "EQ", "PA-0009"]]}
    (row,) = call("list", PRODUCTS, options)["pages"][0]
    assert row["CatalogDescriptionHtml"] == "From UI5"
