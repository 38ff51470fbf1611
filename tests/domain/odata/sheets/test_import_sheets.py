"""Import of CSV and XLSX files (spec 11, 11.2)."""

from __future__ import annotations

import datetime
import io
import json
import zipfile
from typing import Any
from urllib.parse import urlencode

import openpyxl
import pytest
import xlsxwriter
from django.test.client import encode_multipart

from tests.domain.odata.test_writing import CURRENCIES, PRODUCTS
from tests.rules.cast import World
from tests.support.api import Api, error_of

XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
CUSTOMERS = "Crm_Sales_Customers"
SET = "General_Currencies_Currencies"


def workbook(sheets: dict[str, list[list[Any]]], **options: Any) -> bytes:
    """An XLSX file of sheets with rows; dates are dates."""
    file = io.BytesIO()
    with xlsxwriter.Workbook(file, options) as book:
        date = book.add_format({"num_format": "yyyy-mm-dd"})
        for name, rows in sheets.items():
            sheet = book.add_worksheet(name)
            for number, row in enumerate(rows):
                for place, cell in enumerate(row):
                    if isinstance(cell, datetime.date):
                        sheet.write_datetime(number, place, cell, date)
                    else:
                        sheet.write(number, place, cell)
    return file.getvalue()


def send(api: Api, content: bytes | str, media: str = "text/csv", **options: Any) -> Any:
    """The response to an import of a file."""
    texts = {name: json.dumps(value) if isinstance(value, dict) else value for name, value in options.items()}
    query = urlencode(texts)
    return api.post(f"Import?{query}", content, Content_Type=media)


def named(name: str, content: str | bytes) -> io.BytesIO:
    """A file of a form."""
    file = io.BytesIO(content.encode() if isinstance(content, str) else content)
    file.name = name
    return file


def post_form(api: Api, fields: dict[str, Any]) -> Any:
    """The response to an import of a form."""
    body = encode_multipart("boundary", fields)
    return api.post("Import", body, Content_Type="multipart/form-data; boundary=boundary")


def run(api: Api, content: bytes | str, media: str = "text/csv", **options: Any) -> dict[str, Any]:
    """The answer to an import that was read."""
    response = send(api, content, media, **options)
    assert response.status_code == 200, response.content
    body: dict[str, Any] = response.json()
    return body


def refusal(api: Api, content: bytes | str, media: str = "text/csv", **options: Any) -> str:
    """The message of a file that was refused, after which nothing is there that was not before."""
    response = send(api, content, media, **options)
    assert response.status_code == 400, response.content
    assert api.get(f"{CURRENCIES}/$count").content == b"1"
    message: str = error_of(response)["message"]
    return message


def states(body: dict[str, Any]) -> list[str]:
    return [answer["@erpnet.state"] for answer in body["objects"]]


@pytest.mark.parametrize("start,delimiter", [("", ","), ("\ufeff", ","), ("", ";"), ("", "\t")])
def test_a_csv_file_is_imported(api: Api, start: str, delimiter: str) -> None:
    lines = [["CurrencySign", "Name"], ["USD", "Dollar"], ["EUR", "The euro"]]
    text = start + "\r\n".join(delimiter.join(line) for line in lines)
    body = run(api, text.encode(), "text/csv; charset=utf-8", repository=SET)
    assert states(body) == ["Added", "Modified"]
    assert api.read(f"{CURRENCIES}?$filter=CurrencySign eq 'USD'")["value"][0]["Name"] == "Dollar"


def test_a_workbook_has_a_sheet_for_each_repository(api: Api, world: World) -> None:
    customers: list[list[Any]] = [
        ["Number", "FromDate", "CreditLimit", "Active"],
        ["C1", datetime.date(2020, 2, 29), 12.5, False],
    ]
    sheets: dict[str, list[list[Any]]] = {
        "Currencies": [["Currency sign", "Name"], ["USD", "Dollar"]],
        "General.Products.Products": [["PartNumber", "Name"], ["P1", "Table"]],
        CUSTOMERS: customers,
    }
    content = workbook(sheets)
    assert states(run(api, content, XLSX)) == ["Added", "Modified", "Modified"]
    assert api.read(f"{PRODUCTS}({world.product})")["Name"]["EN"] == "Table"
    customer = api.read(f"{CUSTOMERS}({world.customer})")
    assert (customer["FromDate"], customer["Active"]) == ("2020-02-29T00:00:00Z", False)
    assert customer["CreditLimit"]["Value"] == 12.5


def test_dates_count_from_1904_where_the_workbook_does(api: Api, world: World) -> None:
    rows: list[list[Any]] = [["Number", "FromDate"], ["C1", datetime.date(2024, 3, 1)]]
    run(api, workbook({CUSTOMERS: rows}, date_1904=True), XLSX)
    assert api.read(f"{CUSTOMERS}({world.customer})")["FromDate"] == "2024-03-01T00:00:00Z"


@pytest.mark.parametrize("header,value", [("CostingCurrency.CurrencySign", "USD"), ("CostingCurrency", "USD")])
def test_a_path_finds_the_referenced_entity(api: Api, world: World, header: str, value: str) -> None:
    dollar = api.create(CURRENCIES, {"CurrencySign": "USD", "Name": "Dollar"})
    run(api, f"PartNumber,{header}\nP1,{value}\n", repository=PRODUCTS)
    found = api.read(f"{PRODUCTS}({world.product})")["CostingCurrency"]["@odata.id"]
    assert found == dollar["@odata.id"]
    refused = run(api, f"PartNumber,{header}\nP1,XXX\n", repository=PRODUCTS)["objects"][0]
    assert "XXX" in refused["@erpnet.error"]["message"]


def test_a_path_finds_by_any_attribute(api: Api, world: World) -> None:
    api.create(CURRENCIES, {"CurrencySign": "USD", "Name": "Dollar"})
    run(api, "PartNumber,CostingCurrency.Name\nP1,Dollar\n", repository=PRODUCTS)
    found = api.read(f"{PRODUCTS}({world.product})?$expand=CostingCurrency")["CostingCurrency"]
    assert found["CurrencySign"] == "USD"


def test_a_row_says_where_it_is_and_a_refused_one_what_it_holds(api: Api) -> None:
    body = run(api, "CurrencySign,Name\nUSD,Dollar\n,Nothing\n", repository=SET)
    good, bad = body["objects"]
    assert good["@erpnet.source"] == {"sheet": "", "row": 2}
    assert bad["@erpnet.source"] == {"sheet": "", "row": 3, "cells": {"CurrencySign": "", "Name": "Nothing"}}
    assert api.get(f"{CURRENCIES}/$count").content == b"2"


def test_all_objects_or_none(api: Api) -> None:
    body = run(api, "CurrencySign,Name\nUSD,Dollar\n,Nothing\n", repository=SET, transaction="all-objects")
    assert [answer["@erpnet.result"] for answer in body["objects"]] == ["fail", "fail"]
    assert api.get(f"{CURRENCIES}/$count").content == b"1"


def test_a_preview_tells_what_each_row_would_do_and_writes_nothing(api: Api) -> None:
    text = "CurrencySign,Name,Color\nUSD,Dollar,red\nUSD,Buck,red\nEUR,Euro2,\n,x,\nGBP,Pound,\n"
    body = run(api, text, repository=SET, preview=4)
    assert states(body) == ["Added", "Modified", "Modified", "Unchanged"]
    assert [answer["@erpnet.source"]["row"] for answer in body["objects"]] == [2, 3, 4, 5]
    assert body["objects"][3]["@erpnet.error"]["type"] == "RequiredAttributeMissing"
    assert body["rows"] == 5
    (sheet,) = body["sheets"]
    assert sheet["repository"] == SET
    assert [column["attribute"] for column in sheet["columns"]] == ["CurrencySign", "Name", None]
    assert "Color" in sheet["columns"][2]["problem"]
    assert api.get(f"{CURRENCIES}/$count").content == b"1"
    assert api.read(CURRENCIES)["value"][0]["Name"] != "Euro2"
    assert api.get("Systems_Exchange_DataExchanges/$count").content == b"0"


def test_a_preview_without_a_number_is_one_of_twenty_rows_and_imports_nothing(api: Api) -> None:
    text = "CurrencySign,Name\n" + "".join(f"X{row:02},Money\n" for row in range(25))
    answers = [
        api.post(f"Import?repository={SET}&preview{ending}", text, Content_Type="text/csv") for ending in ("", "=")
    ]
    answers.append(post_form(api, {"file": named("money.csv", text), "repository": SET, "preview": "", "limit": ""}))
    for answer in answers:
        assert answer.status_code == 200, answer.content
        assert states(answer.json()) == ["Added"] * 20
    assert api.get(f"{CURRENCIES}/$count").content == b"1"


def test_a_csv_file_without_a_repository_is_told_how_to_name_one(api: Api) -> None:
    message = error_of(send(api, "CurrencySign,Name\nUSD,Dollar\n"))["message"]
    assert "choose one (repository) or use a mapping" in message
    assert "''" not in message


@pytest.mark.parametrize("preview", ["0", "201", "999999999", "true", "-1", "1.5", " "])
def test_a_preview_has_one_to_two_hundred_rows(api: Api, preview: str) -> None:
    text = "CurrencySign,Name\nUSD,Dollar\n"
    form = {"file": named("money.csv", text), "repository": SET, "preview": preview}
    for refused in (send(api, text, repository=SET, preview=preview), post_form(api, form)):
        assert (refused.status_code, error_of(refused)["target"]) == (400, "preview"), refused.content
    assert len(run(api, text, repository=SET, preview=200)["objects"]) == 1
    assert api.get(f"{CURRENCIES}/$count").content == b"1"


def test_objects_in_json_have_no_preview_and_are_not_imported_with_one(api: Api) -> None:
    objects = {"objects": [{"@odata.type": "Erp.General_Currencies_Currency", "CurrencySign": "USD", "Name": "Dollar"}]}
    for query in ("preview", "preview=", "preview=5"):
        refused = api.post(f"Import?{query}", objects)
        assert (refused.status_code, error_of(refused)["target"]) == (400, "preview"), refused.content
        assert "erpnet.dry-run" in error_of(refused)["message"]
    assert api.get(f"{CURRENCIES}/$count").content == b"1"


def test_a_preview_shows_the_columns_of_sheets_without_a_repository(api: Api) -> None:
    body = run(api, workbook({"Geld": [["Zeichen"], ["USD"]], SET: [["Name"], ["x"]]}), XLSX, preview=5)
    sheet, known = body["sheets"]
    assert (sheet["name"], sheet["repository"]) == ("Geld", None)
    assert sheet["columns"] == [{"header": "Zeichen", "attribute": None}]
    assert (known["repository"], known["columns"]) == (SET, [{"header": "Name", "attribute": "Name"}])
    assert "Geld" in sheet["problem"]
    assert body["objects"] == []


def test_a_preview_tells_which_sheets_are_left_out(api: Api) -> None:
    content = workbook({"Notes": [["a"], ["b"]], SET: [["CurrencySign", "Name"], ["USD", "x"]], "Empty": []})
    body = run(api, content, XLSX, preview=5, mapping={"sheets": {"Notes": None}})
    assert [(each["name"], each.get("isLeftOut", False)) for each in body["sheets"]] == [("Notes", True), (SET, False)]
    assert states(body) == ["Added"]


def test_a_form_has_the_file_and_a_mapping_of_any_length(api: Api) -> None:
    columns = {f"Column of a very long name indeed {number:04}": None for number in range(500)}
    mapping = json.dumps({"repository": SET, "columns": {**columns, "Zeichen": "CurrencySign"}})
    assert len(mapping) > 2 * 8192  # what a URL takes
    text = ",".join(["Zeichen", "Name", *columns]) + "\nUSD,Dollar" + ",x" * len(columns) + "\n"
    form: dict[str, Any] = {"file": named("money.CSV", text), "preview": "5"}
    for given in (mapping, named("mapping.json", "\ufeff" + mapping)):
        response = post_form(api, {**form, "mapping": given})
        assert response.status_code == 200, response.content
        assert states(response.json()) == ["Added"]
        form["file"].seek(0)
    assert states(post_form(api, {"file": form["file"], "mapping": mapping}).json()) == ["Added"]
    refused = post_form(api, {"file": named("money.csv", "CurrencySign,Name\nCHF,\nx,y,z\n"), "repository": SET})
    assert "row 3, column C" in error_of(refused)["message"]


@pytest.mark.parametrize(
    "form, status, said",
    [
        ({"mapping": "{}"}, 400, "no file"),
        ({"file": "text"}, 400, "no file"),
        ({"file": ("a.exe", "MZ")}, 415, "text/csv"),
        ({"file": ("a.csv", "a\n1\n"), "mapping": "{"}, 400, "mapping"),
        ({"file": ("a.csv", "a\n1\n"), "mapping": ("m.json", b"\xff" * 200_000)}, 400, "mapping"),
    ],
)
def test_a_form_that_cannot_be_used_is_refused(api: Api, form: dict[str, Any], status: int, said: str) -> None:
    fields = {name: named(*value) if isinstance(value, tuple) else value for name, value in form.items()}
    response = post_form(api, fields)
    assert (response.status_code, said in error_of(response)["message"]) == (status, True), response.content


@pytest.mark.parametrize("body", [b"", b"--x", b"--x\r\n\r\n", b"--x\r\nContent-Disposition: form-data; name=file\r\n"])
@pytest.mark.parametrize("boundary", ["; boundary=x", "", "; boundary=" + "y" * 300])
def test_what_is_no_form_is_refused(api: Api, body: bytes, boundary: str) -> None:
    response = api.post("Import", body or b" ", Content_Type=f"multipart/form-data{boundary}")
    assert response.status_code == 400, response.content


def test_a_part_of_the_rows_is_imported(api: Api) -> None:
    text = "CurrencySign,Name\nUSD,Dollar\nGBP,Pound\n,x\nCHF,Franc\n"
    body = run(api, text, repository=SET, offset=1, limit=2)
    assert states(body) == ["Added", "Unchanged"]
    assert body["objects"][1]["@erpnet.source"]["row"] == 4
    assert api.get(f"{CURRENCIES}/$count").content == b"2"
    for wrong in ("x", "-1", "99999999999"):
        assert send(api, text, repository=SET, offset=wrong).status_code == 400


def test_a_mapping_names_sheets_and_columns(api: Api) -> None:
    content = workbook({"Währungen": [["Zeichen", "Titel", "Notiz"], ["USD", "Dollar", "x"]], "Notes": [["a"]]})
    columns = {"Zeichen": "CurrencySign", "Titel": "Name", "Notiz": None}
    money = {"repository": SET, "columns": columns}
    assert states(run(api, content, XLSX, mapping={"sheets": {"Währungen": money, "Notes": None}})) == ["Added"]
    assert "Notes" in error_of(send(api, content, XLSX, mapping={"sheets": {"Währungen": money}}))["message"]


def test_a_key_finds_the_entities_of_rows(api: Api, world: World) -> None:
    mapping = {"repository": SET, "key": "Name"}
    name = api.read(f"{CURRENCIES}({world.currency})")["Name"]
    name = name if isinstance(name, str) else name["EN"]
    assert states(run(api, f"Name,CurrencySign\n{name},EU2\nOther,USD\n", mapping=mapping)) == ["Modified", "Added"]
    assert api.read(f"{CURRENCIES}({world.currency})")["CurrencySign"] == "EU2"


def test_an_empty_cell_says_nothing_unless_the_mapping_clears(api: Api, world: World) -> None:
    api.patch(f"{PRODUCTS}({world.product})", {"ExpiryPeriodDays": 7})
    text = "PartNumber,ExpiryPeriodDays\nP1,\n"
    run(api, text, repository=PRODUCTS)
    assert api.read(f"{PRODUCTS}({world.product})")["ExpiryPeriodDays"] == 7
    run(api, text, mapping={"repository": PRODUCTS, "empty": "clear"})
    assert api.read(f"{PRODUCTS}({world.product})")["ExpiryPeriodDays"] is None


@pytest.mark.parametrize(
    "content,told",
    [
        ("CurrencySign,Name\nUSD,D\xf6llar\n".encode("latin-1"), ["row 2", "column B", "0xF6", "UTF-8"]),
        ("CurrencySign,Name\nUSD,Dollar\n".encode("utf-16"), ["UTF-16"]),
        (b"CurrencySign,Name\nUSD,Dollar\nGBP\n", ["row 3", "column B", "1 cells"]),
        (b"CurrencySign,Name\nUSD,Dollar,much\n", ["row 2", "column C", "3 cells"]),
        (b'CurrencySign,Name\nUSD,Dollar\nGBP,"Pound\n', ["row 3"]),
        (b"CurrencySign,Nam\nUSD,Dollar\n", ["row 1", "column B", "Nam"]),
        (b"CurrencySign,Name,Name\nUSD,Dollar,x\n", ["row 1", "column C", "Name"]),
        (b"CurrencySign,,Name\nUSD,Dollar,x\n", ["row 1", "column B", "no header"]),
        (b"CurrencySign,CreationTime\nUSD,2020-01-01\n", ["row 1", "column B", "CreationTime"]),
        (b"\n", ["no rows"]),
    ],
)  # fmt: skip
def test_a_broken_csv_file_does_nothing(api: Api, content: bytes, told: list[str]) -> None:
    message = refusal(api, content, repository=SET)
    assert [part for part in told if part not in message] == [], message


def saved(book: openpyxl.Workbook) -> bytes:
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def edited(rows: list[list[Any]]) -> tuple[openpyxl.Workbook, Any]:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.title = SET
    for row in rows:
        sheet.append(row)
    return book, sheet


def test_a_formula_without_a_value_is_refused(api: Api) -> None:
    book, _ = edited([["CurrencySign", "Name"], ["USD", "Dollar"], ["GBP", "=A2&A3"]])
    message = refusal(api, saved(book), XLSX)
    assert message.count(f"sheet {SET}, row 3, column B: the formula") == 1


def test_a_formula_with_a_value_counts_as_that(api: Api) -> None:
    file = io.BytesIO()
    with xlsxwriter.Workbook(file) as book:
        sheet = book.add_worksheet(SET)
        sheet.write_row(0, 0, ["CurrencySign", "Name"])
        sheet.write_string(1, 0, "USD")
        sheet.write_formula(1, 1, '="Dol"&"lar"', None, "Dollar")
    assert states(run(api, file.getvalue(), XLSX)) == ["Added"]
    assert api.read(f"{CURRENCIES}?$filter=CurrencySign eq 'USD'")["value"][0]["Name"] == "Dollar"


def test_merged_cells_are_refused(api: Api) -> None:
    book, sheet = edited([["CurrencySign", "Name"], ["USD", "Dollar"], ["GBP", "Pound"]])
    sheet.merge_cells("B2:B3")
    message = refusal(api, saved(book), XLSX)
    assert f"sheet {SET}, cells B2:B3" in message


def test_errors_and_cells_beside_the_header_are_refused(api: Api) -> None:
    book, sheet = edited([["CurrencySign", "Name"], ["USD", "Dollar"], ["GBP", "Pound"]])
    sheet["D3"] = "x"
    assert "row 3, column D" in refusal(api, saved(book), XLSX)
    sheet["D3"] = None
    sheet["B3"] = "#REF!"
    assert "row 3, column B" in refusal(api, saved(book), XLSX)


def test_archives_that_decompress_to_too_much_are_refused(api: Api) -> None:
    content = workbook({SET: [["CurrencySign", "Name"]]})
    bomb = io.BytesIO(content)
    with zipfile.ZipFile(bomb, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet2.xml", b" " * (40 << 20))
    assert len(bomb.getvalue()) < 1 << 20
    assert "too large" in refusal(api, bomb.getvalue(), XLSX)


@pytest.mark.parametrize("content", [b"PK\x03\x04 nothing", b"CurrencySign,Name\nUSD,Dollar\n"])
def test_what_is_no_workbook_is_refused(api: Api, content: bytes) -> None:
    assert "XLSX" in refusal(api, content, XLSX)


def test_a_document_type_is_refused(api: Api) -> None:
    content = io.BytesIO(workbook({SET: [["CurrencySign", "Name"], ["USD", "Dollar"]]}))
    changed = io.BytesIO()
    with zipfile.ZipFile(content) as old, zipfile.ZipFile(changed, "w") as new:
        for name in old.namelist():
            part = old.read(name)
            if name == "xl/worksheets/sheet1.xml":
                part = part.replace(b"<worksheet", b'<!DOCTYPE x [<!ENTITY a "b">]><worksheet', 1)
            new.writestr(name, part)
    assert refusal(api, changed.getvalue(), XLSX)


def test_another_media_type_is_refused(api: Api) -> None:
    assert send(api, b"x", "application/pdf").status_code == 415


def test_a_date_outside_the_calendar_refuses_its_row(api: Api, world: World) -> None:
    file = io.BytesIO()
    with xlsxwriter.Workbook(file) as book:
        sheet = book.add_worksheet(CUSTOMERS)
        sheet.write_row(0, 0, ["Number", "FromDate"])
        sheet.write_string(1, 0, "C1")
        sheet.write_number(1, 1, 1e9, book.add_format({"num_format": "yyyy-mm-dd"}))
    (answer,) = run(api, file.getvalue(), XLSX)["objects"]
    message = answer["@erpnet.error"]["message"]
    assert "row 2, column B (FromDate)" in message
