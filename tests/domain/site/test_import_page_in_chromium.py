"""Spreadsheets on the import page (spec 11, 11.2): mapping, preview, import, refused rows, templates."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, StorageState, expect

from tests.domain.odata.sheets.test_import_sheets import workbook
from tests.support.accessibility import violations
from tests.support.chromium import PHONE, WIDE, fits, log_in, watched_page
from tests.support.platform import LivePlatform
from tests.support.spreadsheets import read_sheet

pytestmark = [pytest.mark.browser, pytest.mark.process, pytest.mark.once]
PAYMENTS = "Finance_Payments_PaymentTypes"


@pytest.fixture(scope="module")
def signed_in(live_platform: LivePlatform, chromium: Browser) -> StorageState:
    """The cookies of an administrator who has signed in once."""
    with watched_page(chromium, live_platform.base_url) as page:
        page.goto("/id/account/login?next=/api/")
        log_in(page)
        return page.context.storage_state()


@pytest.fixture(params=[WIDE, PHONE], ids=["desktop", "phone"])
def page(
    request: pytest.FixtureRequest, live_platform: LivePlatform, chromium: Browser, signed_in: StorageState
) -> Iterator[Page]:
    """The import page."""
    with watched_page(chromium, live_platform.base_url, storage_state=signed_in, viewport=request.param) as opened:
        opened.goto("/api/domain/import")
        yield opened


def _downloaded(page: Page, button: str) -> tuple[str, str]:
    with page.expect_download() as download:
        page.locator(button).press("Enter")  # a pointer may miss the button while results are laid out
    return download.value.suggested_filename, Path(download.value.path()).read_text(encoding="utf-8-sig")


def _failures(page: Page) -> tuple[str, str]:
    """The refused rows. The page draws the results until it says that it has finished."""
    expect(page.locator("#progress-text")).to_have_text("Finished.", timeout=60_000)
    # A grid that takes the focus scrolls the page, away from under the pointer that presses a button.
    assert page.evaluate("document.activeElement.closest('.tabulator')") is None
    return _downloaded(page, "#download")


def test_a_workbook_is_mapped_previewed_and_imported(
    page: Page, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    prefix = "XD" if "desktop" in request.node.name else "XP"
    rows: list[list[Any]] = [
        ["Kürzel", "Name", "Notiz"],
        [f"{prefix}1", "=Bar", "x"],
        [f"{prefix}2", None, "x"],
        [f"{prefix}3", "Karte", None],
    ]
    file = tmp_path / "arten.xlsx"
    file.write_bytes(workbook({"Zahlarten": rows}, strings_to_formulas=False))
    page.set_input_files("#file", file)
    expect(page.locator("#findings")).to_contain_text("there is no repository 'Zahlarten'")
    expect(page.locator("#run")).to_be_disabled()
    page.get_by_label("Set", exact=True).last.fill(PAYMENTS)
    page.keyboard.press("Tab")
    expect(page.locator("#findings")).to_contain_text("column A (Kürzel)")
    page.get_by_label("Kürzel", exact=True).fill("Code")
    page.keyboard.press("Tab")
    expect(page.locator("#findings .problem")).to_have_count(1)
    page.get_by_role("button", name="Leave the column out").click()
    expect(page.locator("#findings")).to_have_text("Rows read: 3.")
    told = page.locator("#preview-rows td:nth-child(2)")
    assert told.all_inner_texts() == ["added", "failed", "added"]
    expect(page.locator("#preview-rows")).to_contain_text("needs values for: Name")
    assert fits(page)
    assert violations(page) == []
    expect(page.locator("#preview-counts")).to_have_text("2 added · 1 failed")
    page.click("text=Mapping as a file")
    name, text = _downloaded(page, "#mapping-download")
    assert name == "arten-mapping.json"
    columns = {"Kürzel": "Code", "Notiz": None}
    assert json.loads(text) == {"sheets": {"Zahlarten": {"repository": PAYMENTS, "columns": columns}}}
    page.select_option("#logging", "0")
    page.locator("#try").press("Enter")
    expect(page.locator("#summary")).to_have_text("2 would be imported, 1 failed, of 3", timeout=60_000)
    # The rows of the file, as the preview of the mapping counts them.
    expect(page.locator("#rows .tabulator-cell[tabulator-field=index]")).to_have_text(["2", "3", "4"])
    expect(page.locator("#progress-text")).to_have_text("This was a preview: nothing has been imported.")
    page.click("#run")
    expect(page.locator("#summary")).to_have_text("2 imported, 1 failed, of 3", timeout=60_000)
    name, text = _failures(page)
    assert name == "arten-Zahlarten-failures.csv"
    page.locator("#rows .tabulator-cell").first.click()
    page.keyboard.press("Enter")  # edits nothing, and the console stays empty
    (refused,) = csv.DictReader(io.StringIO(text))
    assert (refused["Kürzel"], refused["Name"]) == (f"{prefix}2", "")
    assert "needs values for: Name" in refused["Error"]
    # The saved mapping is used for the mended file.
    mapping = tmp_path / "mapping.json"
    mapping.write_text(json.dumps({"repository": PAYMENTS, "columns": columns}), encoding="utf-8")
    mended = tmp_path / "mended.csv"
    mended.write_text(text.replace(f'"{prefix}2",""', f'"{prefix}2","Scheck"'), encoding="utf-8")
    page.set_input_files("#file", mended)
    expect(page.locator("#findings")).to_contain_text("mapping")
    page.click("text=Mapping as a file")
    page.set_input_files("#mapping-load", mapping)
    expect(page.locator("#findings")).to_have_text("Rows read: 1.")
    page.select_option("#transaction", "all-objects")
    page.click("#run")
    expect(page.locator("#summary")).to_have_text("1 imported, 0 failed, of 1", timeout=60_000)


def test_a_mapping_is_saved_chosen_and_deleted(page: Page, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    mapping = f"{'Kasse' if 'desktop' in request.node.name else 'Kassa'} <b>"
    file = tmp_path / "kasse.csv"
    file.write_text("Kürzel,Name\nZZ1,Bar\n", encoding="utf-8")
    page.set_input_files("#file", file)
    expect(page.locator("#findings")).to_contain_text("no set is named for it")
    page.get_by_label("Set", exact=True).last.fill(PAYMENTS)
    page.keyboard.press("Tab")
    page.get_by_label("Kürzel", exact=True).fill("Code")
    page.keyboard.press("Tab")
    expect(page.locator("#findings")).to_have_text("Rows read: 1.")
    page.click("#mapping-save")
    assert page.evaluate("document.activeElement.id") == "mapping-name"  # it needs a name
    page.fill("#mapping-name", mapping)
    page.check("#mapping-shared")
    page.click("#mapping-save")
    expect(page.locator("#announce")).to_have_text("Saved.")
    expect(page.locator("#mapping-choice option:checked")).to_have_text(f"{mapping} (shared)")
    page.reload()
    page.set_input_files("#file", file)
    expect(page.locator("#findings .problem")).to_have_count(1)
    page.select_option("#mapping-choice", label=f"{mapping} (shared)")
    expect(page.locator("#findings")).to_have_text("Rows read: 1.")
    assert page.input_value("#mapping-name") == mapping
    assert fits(page)
    assert violations(page) == []
    page.click("#mapping-delete")
    expect(page.locator("#mapping-choice option")).to_have_count(1)
    expect(page.locator("#mapping-delete")).to_be_hidden()


def test_texts_of_a_file_are_only_texts(page: Page, tmp_path: Path) -> None:
    """The page has a policy against scripts of others, too: neither element nor attempt may be there."""
    attack = "<img src=x onerror=alert(1)><b>x</b>"
    file = tmp_path / "a.xlsx"
    sheets: dict[str, list[list[Any]]] = {
        "<b>S": [["Code", "Name", attack], ["ZX", attack, "x"], ["ZY", None, attack]],
    }
    file.write_bytes(workbook(sheets))
    mapping = tmp_path / "mapping.json"
    mapping.write_text(json.dumps({"repository": PAYMENTS, "columns": {attack: None}}), encoding="utf-8")
    page.set_input_files("#file", file)
    expect(page.locator("#findings")).to_contain_text("there is no repository '<b>S'")
    page.click("text=Mapping as a file")
    page.set_input_files("#mapping-load", mapping)
    expect(page.locator("#findings")).to_have_text("Rows read: 2.")
    expect(page.locator("#preview-rows")).to_contain_text(attack)
    page.select_option("#logging", "0")
    page.select_option("#transaction", "all-objects")
    page.click("#run")
    expect(page.locator("#summary")).to_have_text("0 imported, 2 failed, of 2", timeout=60_000)
    assert page.locator("main img, main b, main script").count() == 0
    name, text = _failures(page)
    assert "/" not in name
    assert attack in text


@pytest.mark.parametrize("ending", ["csv", "xlsx"])
def test_a_template_has_the_headers_that_can_be_set(page: Page, ending: str) -> None:
    page.click("text=Template of a spreadsheet")
    page.fill("#template-set", PAYMENTS)
    with page.expect_download() as download:
        page.click(f"#template-{ending}")
    assert download.value.suggested_filename == f"{PAYMENTS}.{ending}"
    data = Path(download.value.path()).read_bytes()
    if ending == "csv":
        (headers,) = csv.reader(io.StringIO(data.decode("utf-8-sig")))
    else:
        (headers,) = [[cell.text for cell in row.values()] for row in read_sheet(data)]
    assert {"Id", "Code", "Name"} <= set(headers)
    assert "ObjectVersion" not in headers


def test_all_rows_of_a_query_are_exported(page: Page) -> None:
    query = "$filter=PartNumber%20ne%20'x'&$orderby=PartNumber&$top=3&$select=PartNumber,Name"
    page.goto(f"/api/query#GET%20General_Products_Products?{query}")
    page.click("#run")
    expect(page.locator("#answer")).to_have_attribute("data-status", "200")
    for ending in ("csv", "xlsx", "json"):
        with page.expect_download() as download:
            page.click(f"[data-export={ending}]")
        assert download.value.suggested_filename == f"General_Products_Products.{ending}"
        data = Path(download.value.path()).read_bytes()
        if ending == "csv":
            heading, *rows = csv.reader(io.StringIO(data.decode("utf-8-sig")))
            assert heading == ["PartNumber", "Name"]
            assert len(rows) == 3
        elif ending == "xlsx":
            assert [row["A"].text for row in read_sheet(data)][1:] == [row[0] for row in rows]
        else:
            assert [each["PartNumber"] for each in json.loads(data)["objects"]] == [row[0] for row in rows]
    assert fits(page)
    page.goto("/api/query#GET%20General_Products_Products?$apply=aggregate($count%20as%20N)")
    page.click("#run")
    expect(page.locator("#answer")).to_contain_text("N")
    expect(page.locator("[data-export]")).to_have_count(0)


def test_a_broken_file_is_refused_before_it_is_sent(page: Page, tmp_path: Path) -> None:
    file = tmp_path / f"{PAYMENTS}.csv"
    file.write_text("Code,Name\nA,B,C\n", encoding="utf-8")
    page.set_input_files("#file", file)
    expect(page.locator("#findings .problem")).to_contain_text("row 2, column C")
    expect(page.locator("#run")).to_be_disabled()
