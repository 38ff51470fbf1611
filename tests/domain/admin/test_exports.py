"""Exports of lists: what the list shows, all of it and nothing else, as CSV and XLSX (issue O)."""

from __future__ import annotations

import csv
import datetime
import io
import json
import tracemalloc
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import IO, Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from playwright.sync_api import Browser
from pytest_django import Settings

from domain.admin.cells import Cell, Percent
from domain.admin.list_files import CsvListWriter, XlsxListWriter
from domain.entities.crm_sales import SalesOrder
from domain.entities.general_currencies import Currency
from domain.odata.sheets.writing import SheetWriter
from foundation.execution_slot import STEP
from identity.models import Role, RolePermission, RoleUser, RowPolicy, User
from tests.rules.cast import World, dataset, new_line, new_order
from tests.support.chromium import administrators_page
from tests.support.platform import LivePlatform
from tests.support.spreadsheets import read_sheet

CURRENCIES, ORDERS = "/admin/domain/currency/", "/admin/domain/salesorder/"


def new_currencies(world: World, **names: str) -> None:
    """Currencies: sign → name."""
    changes = dataset(world.context)
    for sign, name in names.items():
        changes.create("General.Currencies.Currencies", {"CurrencySign": sign, "Name": name})
    changes.commit()


def content(answer: Any) -> bytes:
    assert answer.status_code == 200, answer
    return b"".join(answer.streaming_content)


def csv_rows(answer: Any) -> list[list[str]]:
    """The rows of a CSV file, heading first."""
    data = content(answer)
    assert data.startswith(b"\xef\xbb\xbf")  # Excel takes a file without it for one of the machine's code page
    return list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline="")))


def said(answer: Any) -> list[str]:
    return [str(message) for message in answer.context["messages"]]


def test_a_file_has_the_rows_of_the_list_as_filtered_searched_and_ordered(boss: Client, world: World) -> None:
    new_currencies(world, ABA="Åland crown", ABB="Aland pound", XXX="Other")
    Currency.objects.filter(currency_sign="ABB").update(is_active=False)
    for query, signs in (
        ({"q": "land", "o": "1"}, ["Aland pound (ABB)", "Åland crown (ABA)"]),
        ({"is_active__exact": "0"}, ["Aland pound (ABB)"]),
        ({"is_active__exact": "1", "q": "land"}, ["Åland crown (ABA)"]),
        ({"q": "nothing like it"}, []),
    ):
        listed = boss.get(CURRENCIES, query).context["cl"].result_list
        heading, *rows = csv_rows(boss.get(f"{CURRENCIES}export/csv/", query))
        assert [row[0] for row in rows] == [str(each) for each in listed], query
        assert sorted(row[0] for row in rows) == signs
        assert heading[0] == "Currency"


def test_a_file_has_every_page_of_the_list(boss: Client, world: World) -> None:
    Currency.objects.bulk_create(Currency(currency_sign=f"Q{n}", name=f"N {n}") for n in range(STEP + 30))
    _, *rows = csv_rows(boss.get(f"{CURRENCIES}export/csv/", {"q": "Q", "p": "2"}))
    assert len({row[0] for row in rows}) == STEP + 30


def new_stored_order(world: World) -> SalesOrder:
    changes = dataset(world.context)
    header = new_order(changes, world, DocumentDate=datetime.date(2026, 3, 1))
    new_line(changes, world, header, Quantity=Decimal(3), UnitPrice=Decimal("1000.05"))
    changes.commit()
    return SalesOrder.objects.get(pk=header.id)


def test_dates_and_amounts_are_typed_and_currencies_stand_beside_them(boss: Client, world: World) -> None:
    order = new_stored_order(world)
    titles, values = csv_rows(boss.get(f"{ORDERS}export/csv/"))
    row = dict(zip(titles, values, strict=True))
    assert (row["Document date"], row["Total line amount"], row["Total line amount: Currency"]) == (
        "2026-03-01", "3000.15", "EUR",
    )  # fmt: skip
    assert row["State"] == order.state
    heading, cells = read_sheet(content(boss.get(f"{ORDERS}export/xlsx/")))
    sheet = {cell.text: cells[letters] for letters, cell in heading.items() if letters in cells}
    assert (sheet["Total line amount"].kind, sheet["Total line amount"].text) == ("n", "3000.15")
    days = (datetime.date(2026, 3, 1) - datetime.date(1899, 12, 30)).days
    assert (sheet["Document date"].text, sheet["Document date"].format) == (str(days), "yyyy-mm-dd")
    assert "str" in sheet["State"].kind.lower()


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx"], ids=str.strip)
def test_no_text_becomes_a_formula(text: str) -> None:
    row: list[Cell] = [text, Decimal("-1.50"), Percent("-0.125"), None, True, datetime.date(1812, 6, 24)]

    def written(kind: Callable[[IO[bytes]], SheetWriter]) -> bytes:
        file = io.BytesIO()
        writer = kind(file)
        writer.begin("A list: of [everything] that there is", ["=heading"] * 6)
        writer.write(row)
        writer.close()
        return file.getvalue()

    heading, values = csv.reader(io.StringIO(written(CsvListWriter).decode("utf-8-sig"), newline=""))
    assert heading[0] == "'=heading"
    assert values == [f"'{text}", "-1.5", "-12.5%", "", "TRUE", "1812-06-24"]
    first, second = read_sheet(written(XlsxListWriter))
    assert first["A"].text == "'=heading"
    assert (second["A"].kind, second["B"].kind, second["C"].format) == (first["A"].kind, "n", "0.00%")
    assert second["A"].text.replace("_x000D_", "\r") == f"'{text}"
    assert (second["B"].text, second["C"].text, second["E"].text) == ("-1.5", "-0.125", "1")
    assert (second["F"].kind, second["F"].text) == (first["A"].kind, "1812-06-24")


def test_a_file_shows_what_its_reader_may_see(world: World) -> None:
    role = Role.objects.create(name="Clerks")
    user = User.objects.create_user("clerk", "vast-Harbour-42")
    RoleUser.objects.create(role=role, user=user)
    browser = Client()
    browser.force_login(user)
    RolePermission.objects.create(role=role, repository="Crm.Sales.Customers", can_read=True)
    assert browser.get(f"{CURRENCIES}export/csv/").status_code == 403
    assert browser.post("/admin/domain/customer/export/csv/").status_code == 405
    titles, *rows = csv_rows(browser.get("/admin/domain/customer/export/csv/"))
    assert [row[titles.index("Number")] for row in rows] == ["C1"]
    assert not {"Party", "Phone"} & set(titles)
    RolePermission.objects.create(role=role, repository="General.Contacts.*", can_read=True)
    titles, row = csv_rows(browser.get("/admin/domain/customer/export/csv/"))
    assert row[titles.index("Party")].startswith("Buyers & Sons")
    RowPolicy.objects.create(
        role=role, repository="General.Contacts.Parties", filter="PartyCode eq 'none'", on_read=True, is_active=True
    )
    titles, row = csv_rows(browser.get("/admin/domain/customer/export/csv/"))
    assert row[titles.index("Party")] == ""
    RowPolicy.objects.create(
        role=role, repository="Crm.Sales.Customers", filter="Number ne 'C1'", on_read=True, is_active=True
    )
    assert len(csv_rows(browser.get("/admin/domain/customer/export/csv/"))) == 1


@pytest.mark.parametrize("name", ["import-csv", "import-xlsx", "json"])
def test_a_list_is_exported_to_be_imported_again(boss: Client, world: World, name: str, tmp_path: Path) -> None:
    new_currencies(world, ABA="=Crown", ABB="Pound")
    answer = boss.get(f"{CURRENCIES}export/{name}/", {"q": "AB"})
    ending = name.removeprefix("import-")
    assert answer.headers["Content-Disposition"] == f'attachment; filename="General_Currencies_Currencies.{ending}"'
    file, answers = tmp_path / f"General_Currencies_Currencies.{ending}", tmp_path / "answers"
    file.write_bytes(content(answer))
    call_command("import_data", str(file), "--answers", str(answers), "--logging-level", "0")
    assert answers.read_text().count('"Unchanged"') == len(answers.read_text().splitlines()) == 2


def test_what_is_exported_to_be_imported_obeys_policies(world: World) -> None:
    role, user = Role.objects.create(name="Clerks"), User.objects.create_user("clerk", "vast-Harbour-42")
    RoleUser.objects.create(role=role, user=user)
    browser = Client()
    browser.force_login(user)
    RolePermission.objects.create(role=role, repository="Crm.Sales.Customers", can_read=True)
    address = "/admin/domain/customer/export/json/"
    (customer,) = json.loads(content(browser.get(address)))["objects"]
    assert customer["Number"] == "C1"
    assert "Party" not in customer
    assert browser.get(f"{CURRENCIES}export/json/").status_code == 403
    RowPolicy.objects.create(
        role=role, repository="Crm.Sales.Customers", filter="Number ne 'C1'", on_read=True, is_active=True
    )
    assert json.loads(content(browser.get(address)))["objects"] == []


def test_a_list_that_is_too_long_is_refused_with_the_reason(boss: Client, world: World, settings: Settings) -> None:
    new_currencies(world, ABA="Crown", ABB="Pound")
    settings.EXPORT_ROWS = 2
    answer = boss.get(f"{CURRENCIES}export/xlsx/", {"is_active__exact": "1"}, follow=True)
    assert answer.redirect_chain == [("../../?is_active__exact=1", 302)]
    (message,) = said(answer)
    assert "3 rows" in message
    assert "at most 2" in message


def test_nobody_exports_more_than_so_many_rows_in_a_minute(boss: Client, world: World, settings: Settings) -> None:
    settings.EXPORT_ROWS = 40  # an export counts as two rows at least
    for _ in range(30):
        answer = boss.get(f"{CURRENCIES}export/csv/", follow=True)
        if answer.redirect_chain:
            break
    (message,) = said(answer)
    assert "exported as much as is allowed" in message
    other = Client()
    other.force_login(User.objects.create_superuser("other", "vast-Harbour-42"))
    assert other.get(f"{CURRENCIES}export/csv/").status_code == 200


def test_a_filter_that_is_none_leads_back_to_the_list(boss: Client) -> None:
    answer = boss.get(f"{ORDERS}export/csv/", {"state": "Sideways"})
    assert (answer.status_code, answer.headers["Location"]) == (302, "../../?e=1")
    assert boss.get(f"{ORDERS}export/csv/", {"customer__number__startswith": "C"}).status_code == 400


def test_neither_memory_nor_statements_grow_with_the_rows(boss: Client, world: World) -> None:
    def cost(ending: str) -> tuple[int, int]:
        """(peak of the memory in bytes, statements)"""
        boss.get(f"{CURRENCIES}export/{ending}/", {"q": "none"})  # loads the library
        tracemalloc.start()
        with CaptureQueriesContext(connection) as captured:
            answer = boss.get(f"{CURRENCIES}export/{ending}/")
            assert sum(map(len, answer)) > 0
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak, len(captured)

    signs = (f"{n:04}" for n in range(5 * STEP))
    long = [Currency(currency_sign=sign, name=f"{sign} {'x' * 40}") for sign in signs]
    Currency.objects.bulk_create(long[:STEP])
    few = {ending: cost(ending) for ending in ("csv", "xlsx")}
    Currency.objects.bulk_create(long[STEP:])
    for ending, (memory, statements) in few.items():
        more = cost(ending)
        assert more[0] < memory * 1.5, (ending, memory, more)
        assert more[1] <= statements + 2, (ending, statements, more)


@pytest.mark.browser
@pytest.mark.process
def test_a_list_is_exported_by_keyboard(live_platform: LivePlatform, chromium: Browser) -> None:
    with administrators_page(chromium, live_platform.base_url) as page:
        page.goto(f"{ORDERS}?state=Released")
        number = page.locator("#result_list tbody th a").first.inner_text()
        page.locator(".list-tools summary", has_text="Export").focus()
        page.keyboard.press("Enter")
        for ending, link in (("csv", "CSV"), ("xlsx", "Excel (XLSX)")):
            page.get_by_role("link", name=link, exact=True).focus()
            with page.expect_download() as download:
                page.keyboard.press("Enter")
            assert download.value.suggested_filename.endswith(f".{ending}")
            data = download.value.path().read_bytes()
            if ending == "csv":
                rows = list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline="")))
                assert number in [row[0] for row in rows]
                assert {row[rows[0].index("State")] for row in rows[1:]} == {"Released"}
            else:
                assert number in [row["A"].text for row in read_sheet(data)]
        page.keyboard.press("Escape")
        assert not page.get_by_role("link", name="CSV").is_visible()
