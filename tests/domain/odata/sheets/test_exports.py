"""Exports of the entities of a set by the API, and templates (spec 11, 11.2)."""

from __future__ import annotations

import csv
import datetime
import io
import json
import math
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlencode

import openpyxl
import pytest
from django.core.management import call_command
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from pytest_django import Settings

from tests.domain.odata.sheets.test_import_sheets import CUSTOMERS, SET, XLSX, run, states
from tests.domain.odata.test_writing import PRODUCTS
from tests.domain.security.conftest import MARK, Library, administrator, caller, give_role, library, person, restricted
from tests.domain.table_api.conftest import tables_of
from tests.rules.cast import World
from tests.support.api import Answer, Api, error_of

__all__ = ["administrator", "library", "restricted"]

BOOKS = "Library_Books"
Kind = Literal["csv", "xlsx", "json"]


def ask(api: Api, name: str, **options: Any) -> Answer:
    query = urlencode({f"${key}" if key != "template" else key: value for key, value in options.items()})
    return api.client.get(f"/api/export/{name}?{query}", headers={"Authorization": f"Bearer {api.token}"})


def content(answer: Answer) -> bytes:
    assert answer.status_code == 200, answer.content
    return b"".join(answer.streaming_content)


def rows_of(answer: Answer) -> list[list[str]]:
    """The rows of a CSV file, header first."""
    return list(csv.reader(io.StringIO(content(answer).decode("utf-8-sig"), newline="")))


def with_currencies(api: Api, *signs: str) -> None:
    lines = "\n".join(f"{sign},Name of {sign}" for sign in signs)
    run(api, f"CurrencySign,Name\n{lines}\n", repository=SET)


def test_an_export_has_the_rows_that_the_query_chooses(api: Api) -> None:
    with_currencies(api, "USD", "GBP", "CHF", "SEK")
    answer = ask(api, f"{SET}.csv", filter="CurrencySign ne 'EUR'", orderby="CurrencySign desc", skip=1, top=2)
    assert answer.headers["Content-Disposition"] == f'attachment; filename="{SET}.csv"'
    header, *rows = rows_of(answer)
    assert [row[header.index("CurrencySign")] for row in rows] == ["SEK", "GBP"]
    assert rows_of(ask(api, f"{SET}.csv", search="CHF", select="Name, CurrencySign")) == [
        ["Name", "CurrencySign"], ["Name of CHF", "CHF"],
    ]  # fmt: skip
    assert rows_of(ask(api, f"{SET}.csv", filter="CurrencySign eq 'a&b,''c'''"))[1:] == []


def test_an_export_reads_every_page(api: Api, settings: Settings) -> None:
    settings.PAGE_SIZE_MAX = 2
    with_currencies(api, "USD", "GBP", "CHF", "SEK")
    assert len(rows_of(ask(api, f"{SET}.csv"))) == 6


def test_paths_are_columns(api: Api, world: World) -> None:
    rows = rows_of(ask(api, f"{CUSTOMERS}.csv", select="Number,Party/PartyCode"))
    assert (rows[0], rows[1][0]) == (["Number", "Party.PartyCode"], "C1")


@pytest.mark.parametrize("kind", ["csv", "xlsx", "json"])
@pytest.mark.parametrize("name", [SET, PRODUCTS, CUSTOMERS])
def test_an_export_that_is_imported_changes_nothing(api: Api, world: World, name: str, kind: Kind) -> None:
    data = content(ask(api, f"{name}.{kind}"))
    if kind == "json":
        body = api.post("Import", data, Content_Type="application/json").json()
    else:
        body = run(api, data, XLSX if kind == "xlsx" else "text/csv", repository=name)
    assert set(states(body)) == {"Unchanged"}
    assert body["@erpnet.result"] == "success"


def test_a_template_has_the_headers_only(api: Api) -> None:
    (header,) = rows_of(ask(api, f"{SET}.csv", template=""))
    assert {"Id", "CurrencySign", "Name"} <= set(header)
    assert not {"ObjectVersion", "DisplayText"} & set(header)
    book = openpyxl.load_workbook(io.BytesIO(content(ask(api, f"{SET}.xlsx", template=""))))
    assert [[cell.value for cell in row] for row in book[SET]] == [header]


def test_what_an_export_cannot_be_is_told(api: Api, settings: Settings) -> None:
    with_currencies(api, "USD", "GBP")
    for options, status, told in (
        ({"filter": "Nope eq 1"}, 400, "Nope"),
        ({"filter": "Name eq"}, 400, "$filter"),
        ({"select": "Nope"}, 400, "Nope"),
        ({"apply": "groupby((Name))"}, 400, "$apply"),
        ({"top": "x"}, 400, "$top"),
    ):
        answer = ask(api, f"{SET}.csv", **options)
        assert (answer.status_code, told in error_of(answer)["message"]) == (status, True), options
    assert error_of(ask(api, "General_Currencies_Nothing.csv"))["type"] == "UnknownEntitySet"
    assert ask(api, f"{SET}.exe").status_code == 404
    secret = ask(api, "Systems_Config_WebHooks.csv", select="Name,Headers")
    assert "Headers cannot be exported" in error_of(secret)["message"]
    assert "Headers" not in rows_of(ask(api, "Systems_Config_WebHooks.csv"))[0]
    settings.EXPORT_ROWS = 2
    refused = ask(api, f"{SET}.csv")
    assert (refused.status_code, error_of(refused)["type"]) == (400, "QueryTooLarge")


def test_nobody_exports_more_than_so_many_rows_in_a_minute(api: Api, settings: Settings) -> None:
    settings.EXPORT_ROWS = 40  # an export counts as two rows at least
    for _ in range(21):  # a minute allows 20
        limited = ask(api, f"{SET}.csv")
        if limited.status_code != 200:
            break
    assert limited.status_code == 429
    assert error_of(limited)["type"] == "ExportsLimited"
    assert int(limited.headers["Retry-After"]) > 0


def test_an_export_has_what_its_caller_may_see(library: Library, restricted: Api, administrator: Api) -> None:
    assert MARK in content(ask(administrator, f"{BOOKS}.csv")).decode()
    for kind in ("csv", "json"):
        assert MARK not in content(ask(restricted, f"{BOOKS}.{kind}")).decode()
    _, *rows = rows_of(ask(restricted, f"{BOOKS}.csv", select="Code,Publisher.PartyName"))
    assert sorted(row[0] for row in rows) == ["A1", "A2", "A4", "A6"]
    assert MARK not in str(rows)
    refused = ask(restricted, f"{BOOKS}.csv", filter=f"startswith(Title/EN,'{MARK}')")
    assert rows_of(refused)[1:] == []


def test_columns_and_sets_that_the_caller_may_not_read_are_not_there(library: Library) -> None:
    carol = person("carol")
    give_role(carol, {"Library.Books": "r"})
    api = caller(carol)
    header = rows_of(ask(api, f"{BOOKS}.csv"))[0]
    assert "Publisher" not in header
    assert "Code" in header
    for hidden in ("Publisher", "Publisher.Id", "Publisher.PartyName"):
        _, *rows = rows_of(ask(api, f"{BOOKS}.csv", select=hidden))
        assert {row[0] for row in rows} == {""}, hidden
    for name in ("General_Contacts_Companies.csv", "Systems_Security_Users.json"):
        for options in ({}, {"template": ""}):
            assert ask(api, name, **options).status_code in (400, 404), name
    assert ask(caller(person("dave"), scopes="update"), f"{BOOKS}.csv").status_code == 403
    assert api.client.get(f"/api/export/{BOOKS}.csv").status_code == 401


def test_an_import_finds_only_what_its_caller_may_see(library: Library, restricted: Api) -> None:
    """A path as a header must not tell what a hidden entity's attribute is."""
    hidden = f"Code,Publisher.PartyName\nA1,{MARK} Press\n"
    nothing = "Code,Publisher.PartyName\nA1,No such Press\n"
    told = []
    for text in (hidden, nothing):
        for is_preview in (False, True):
            options = {"preview": "1"} if is_preview else {}
            (answer,) = run(restricted, text, repository=BOOKS, **options)["objects"]
            assert answer["@erpnet.result"] == "fail"
            told.append(answer["@erpnet.error"]["message"].replace(f"{MARK} Press", "No such Press"))
    assert len(set(told)) == 1
    body = run(restricted, f"Code,Pages\nA3,{7}\n", repository=BOOKS, preview=1)
    assert MARK not in json.dumps(body)


# --- the same values as the Table API -----------------------------------------------------------------------------

_TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20)


@hypothesis_settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    name=_TEXT,
    german=st.none() | _TEXT,
    limit=st.none() | st.decimals(0, 10**9, places=2, allow_nan=False, allow_infinity=False),
    day=st.none() | st.dates(datetime.date(1, 1, 1), datetime.date(9999, 12, 31)),
    active=st.booleans(),
)
def test_an_export_has_the_values_of_the_table_api(
    api: Api,
    world: World,
    tmp_path: Path,
    name: str,
    german: str | None,
    limit: Decimal | None,
    day: datetime.date | None,
    active: bool,
) -> None:
    text = {"EN": name} | ({} if german is None else {"DE": german})
    product = api.patch(f"{PRODUCTS}({world.product})", {"Name": text, "Active": active})
    amount = None if limit is None else {"Value": str(limit), "Currency": "EUR"}
    customer = api.patch(
        f"{CUSTOMERS}({world.customer})", {"CreditLimit": amount, "FromDate": day and f"{day.isoformat()}T00:00:00Z"}
    )
    assert (product.status_code, customer.status_code) == (204, 204), (product.content, customer.content)
    tables = tables_of(api)
    (stored,) = tables.rows("Gen_Products?$select=Id,Part_Number,Name,Active")
    assert sheet(tmp_path, PRODUCTS, "Id,PartNumber,Name,Active") == [
        [stored["Id"], stored["Part_Number"], json.loads(stored["Name"]), stored["Active"]]
    ]
    (stored,) = tables.rows("Crm_Customers?$select=Id,Number,From_Date,Credit_Limit_Value")
    (row,) = sheet(tmp_path, CUSTOMERS, "Id,Number,FromDate,CreditLimit")
    assert row[:3] == [stored["Id"], stored["Number"], stored["From_Date"] and stored["From_Date"][:10]]
    assert (row[3] is None) == (stored["Credit_Limit_Value"] is None)
    assert row[3] is None or math.isclose(row[3], stored["Credit_Limit_Value"], abs_tol=0.005)


def sheet(folder: Path, name: str, select: str) -> list[list[Any]]:
    """The cells behind the header, by a library; texts without the prefix of formulas, dates as ISO has them."""
    # The command: nobody exports so often by the API.
    file = folder / "out.xlsx"
    call_command("export_data", name, "--select", select, "--output", str(file))
    book = openpyxl.load_workbook(file)
    return [[_plain(cell.value) for cell in row] for row in list(book[name])[1:]]


def _plain(value: Any) -> Any:
    match value:
        case datetime.datetime():
            return value.date().isoformat()
        case str() if value.startswith("{"):
            return json.loads(value)
        case str():  # a day that Excel does not know
            return value.removesuffix("T00:00:00Z")
    return value
