"""The Domain API site in Chromium, by people who type, choose, import and look things up (spec 09, 9.5)."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, StorageState, expect

from tests.support.c_sharp import syntax_errors
from tests.support.chromium import log_in, watched_page
from tests.support.platform import LivePlatform
from tests.support.programs import requires_program

pytestmark = [pytest.mark.browser, pytest.mark.process]

ORDERS = "Crm_Sales_SalesOrders"
PRODUCTS = "General_Products_Products"
PAYMENTS = "Finance_Payments_PaymentTypes"


@pytest.fixture(scope="module")
def signed_in(live_platform: LivePlatform, chromium: Browser) -> StorageState:
    """The cookies of an administrator who has signed in once."""
    with watched_page(chromium, live_platform.base_url) as page:
        page.goto("/id/account/login?next=/api/")
        log_in(page)
        return page.context.storage_state()


@pytest.fixture
def page(live_platform: LivePlatform, chromium: Browser, signed_in: StorageState) -> Iterator[Page]:
    """A page of the administrator's."""
    with watched_page(chromium, live_platform.base_url, storage_state=signed_in) as opened:
        yield opened


def _open(page: Page, path: str) -> None:
    page.goto(path)
    page.wait_for_selector("html[data-model]")


def _ask(page: Page, text: str) -> None:
    """Type into the query tool and run."""
    page.locator(".path .cm-content").fill(text)
    page.keyboard.press("Escape")
    page.keyboard.press("Control+Enter")


def _answered(page: Page, status: int) -> None:
    page.wait_for_selector(f"#answer[data-status='{status}']:not([aria-busy])")


def _raw(page: Page) -> Any:
    page.click("#tab-raw")
    return json.loads(page.inner_text(".raw"))


# --- the query tool -----------------------------------------------------------------------------------------------


def test_links_to_try_a_request_lead_from_the_addresses_of_the_reference_platform(page: Page) -> None:
    """`?GET+~/Set?…` behind the old addresses fills the query tool, ready to run, and chooses the builder's set."""
    _open(page, f"/api/domain/query?GET+~/{ORDERS}?$filter=State+eq+'Released'&$top=1")
    assert page.input_value("#method") == "GET"
    assert page.input_value("#path") == f"{ORDERS}?$filter=State eq 'Released'&$top=1"
    page.keyboard.press("Control+Enter")
    _answered(page, 200)
    assert len(_raw(page)["value"]) == 1
    _open(page, f"/api/domain/querybuilder?GET+~/{PRODUCTS}?$top=5")
    assert page.input_value("#set") == PRODUCTS


def _choices(page: Page) -> Any:
    """The list under the address."""
    return page.locator(".path .code-editor .cm-tooltip-autocomplete")


def test_a_request_is_typed_with_completion_and_run_by_keyboard_alone(page: Page) -> None:
    _open(page, "/api/query")
    steps = {
        "salesor": ORDERS,
        "?$fil": "$filter",
        "Sta": "State",
        " eq 'Rel": "'Released'",
        " and Customer/Num": "Number",
    }
    for typed, offered in steps.items():
        page.keyboard.type(typed)
        marked = _choices(page).locator("[aria-selected] .cm-completionLabel")
        expect(marked).to_have_text(offered)
        page.keyboard.press("Enter")
        expect(_choices(page)).to_be_hidden()
    assert page.input_value("#path") == f"{ORDERS}?$filter=State eq 'Released' and Customer/Number"
    page.keyboard.type(" ne '0'&$ord")
    expect(marked).to_have_text("$orderby")
    page.keyboard.press("Tab")
    page.keyboard.type("DocumentNo&$top=3")
    expect(_choices(page)).to_be_hidden()
    page.keyboard.press("Enter")
    _answered(page, 200)
    expect(page.locator(".status")).to_contain_text("Rows: 3")
    assert {row["State"] for row in _raw(page)["value"]} == {"Released"}
    page.click("#tab-json")
    read = page.locator("#answer .cm-content")
    # The JSON is one stop of the Tab key; a line is folded, and Enter follows its link.
    # A slow browser reads the text to its end after it has shown the beginning.
    expect(page.locator("#answer .cm-foldGutter [title='Fold line']").first).to_be_visible()
    read.focus()
    page.keyboard.press("Control+Home")
    page.keyboard.press("Control+Shift+[")
    expect(page.locator("#answer .cm-foldPlaceholder")).to_be_visible()
    page.keyboard.press("Control+Shift+]")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    _answered(page, 200)
    expect(page.locator("#path")).to_have_value("$metadata")


COMPLETIONS = [
    ("General_Prod", "General_Products_Products"),
    ("BeginTr", "BeginTransaction"),
    (f"{ORDERS}(0187d2a0-0050-7000-8000-000000000000)/Chan", "ChangeState"),
    (f"{ORDERS}(0187d2a0-0050-7000-8000-000000000000)/Customer/Par", "Party"),
    (f"{ORDERS}/$c", "$count"),
    (f"{ORDERS}?$sel", "$select"),
    (f"{ORDERS}?$select=DocumentNo,Tot", "TotalLineAmount"),
    (f"{ORDERS}?$expand=Li", "Lines"),
    (f"{ORDERS}?$expand=Lines($sel", "$select"),
    (f"{ORDERS}?$expand=Lines($select=LineNo;$expand=Prod", "Product"),
    (f"{ORDERS}?$expand=Lines($expand=Product($select=Part", "PartNumber"),
    (f"{ORDERS}?$filter=State ", "eq"),
    (f"{ORDERS}?$filter=State in ('New','Rel", "'Released'"),
    (f"{ORDERS}?$filter=Void eq ", "true"),
    (f"{ORDERS}?$filter=starts", "startswith"),
    (f"{ORDERS}?$filter=contains(DocumentNo,'&x') and Docu", "DocumentNo"),
    (f"{ORDERS}?$filter=Lines/", "any"),
    (f"{ORDERS}?$filter=Lines/any(l:l/Product/Part", "PartNumber"),
    (f"{ORDERS}?$filter=Lines/any(l:l/Quantity ", "gt"),
    (f"{ORDERS}?$orderby=DocumentDate ", "desc"),
    (f"{ORDERS}?$apply=group", "groupby"),
    (f"{ORDERS}?$apply=groupby((Custo", "Customer"),
    (f"{ORDERS}?$apply=groupby((Customer),aggregate(TotalLineAmount with su", "sum"),
    (f"{ORDERS}?$count=", "true"),
]


def _offered(page: Page, text: str) -> list[str]:
    """What the list shows behind a text, when it is asked for."""
    page.keyboard.press("Escape")
    page.locator(".path .cm-content").fill(text)
    page.keyboard.press("Control+Space")
    expect(_choices(page)).to_be_visible()
    return list(_choices(page).locator(".cm-completionLabel").all_inner_texts())


def test_completion_knows_the_model_everywhere_in_the_address(page: Page) -> None:
    _open(page, "/api/query")
    assert [text for text, wanted in COMPLETIONS if wanted not in _offered(page, text)] == []
    # What does not fit is not offered: no collection as an order, no option twice.
    assert "Lines" not in _offered(page, f"{ORDERS}?$orderby=Li")
    assert "$top" not in _offered(page, f"{ORDERS}?$top=1&$")
    # Nothing is offered behind a wrong path.
    for text in (f"{ORDERS}?$filter=Nothing/", "Nothing(1)/x"):
        page.locator(".path .cm-content").fill(text)
        page.keyboard.press("Control+Space")
        expect(_choices(page)).to_be_hidden()


def test_next_links_are_followed_and_the_history_stays(page: Page) -> None:
    _open(page, "/api/query")
    page.click("#headers-panel summary")
    page.select_option("#headers-more", "Prefer: odata.maxpagesize=50")
    _ask(page, f"{PRODUCTS}?$select=PartNumber&$filter=contains(PartNumber,'-')&$orderby=PartNumber")
    _answered(page, 200)
    first = _raw(page)
    assert len(first["value"]) == 50
    page.click("#next-page")
    expect(page.locator("#path")).to_have_value(re.compile("skiptoken"))
    expect(page.locator("#answer .raw")).not_to_contain_text(first["value"][0]["PartNumber"])
    second = _raw(page)
    assert second["value"][0]["PartNumber"] > first["value"][-1]["PartNumber"]
    # The link in the JSON is a way there, too.
    page.click("#tab-json")
    page.locator("#answer .cm-content").focus()
    page.keyboard.press("Control+End")
    page.locator("#answer .cm-content a").filter(has_text="skiptoken").click()
    expect(page.locator("#history li")).to_have_count(3)
    page.reload()
    expect(page.locator("#history li")).to_have_count(3)
    page.fill("#history-search", "skiptoken")
    expect(page.locator("#history li")).to_have_count(2)
    page.fill("#history-search", "")
    page.locator("#history button").last.click()
    assert page.input_value("#path").endswith("$orderby=PartNumber")
    assert page.input_value("#headers") == "Prefer: odata.maxpagesize=50"


@pytest.mark.parametrize("language", ["curl", "Python", "JavaScript"])
def test_copied_code_gives_the_same_answer_elsewhere(page: Page, language: str) -> None:
    program = {"curl": "curl", "JavaScript": "node"}.get(language)
    path = sys.executable if program is None else requires_program(program)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    _open(page, "/api/query")
    page.locator(".path .cm-content").fill(
        f"{PRODUCTS}?$filter=contains(Name,'Ä & ''+ #') or PartNumber ne 'x'&$top=1&$select=PartNumber"
    )
    page.keyboard.press("Escape")
    page.click("#headers-panel summary")
    page.fill("#headers", "Accept: application/json;odata.metadata=none")
    page.click("#code-panel summary")
    page.select_option("#language", language)
    page.click("#copy-code")
    expect(page.locator("#announce")).to_have_text("Copied.")
    code = page.evaluate("navigator.clipboard.readText()")
    command = {
        "curl": ["bash", "-c", code.replace("curl", f"{path} -sS", 1)],
        "Python": [path, "-c", code],
        "JavaScript": [path, "--input-type=module", "-e", code],
    }[language]
    environment = {**os.environ, "TOKEN": page.evaluate("site.token()")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    page.click("#run")
    _answered(page, 200)
    assert json.loads(done.stdout) == _raw(page)
    assert list(_raw(page)["value"][0]) == ["PartNumber"]


def test_code_of_a_write_has_its_body_in_every_language(page: Page) -> None:
    _open(page, "/api/query")
    page.select_option("#method", "POST")
    page.locator(".path .cm-content").fill(PAYMENTS)
    page.keyboard.press("Escape")
    page.locator("#body-panel .cm-content").fill('{"Code": "it\'s"}')
    page.click("#code-panel summary")
    for language, wanted in {
        "curl": "--data-binary '{\"Code\": \"it'\\''s\"}'",
        "Python": 'data="{\\"Code\\": \\"it\'s\\"}".encode()',
        "JavaScript": 'body: "{\\"Code\\": \\"it\'s\\"}"',
        "C#": 'GetBytes("{\\"Code\\": \\"it\'s\\"}")',
    }.items():
        page.select_option("#language", language)
        expect(page.locator("#snippet")).to_contain_text(wanted)
        expect(page.locator("#snippet")).to_contain_text("application/json")
        expect(page.locator("#snippet")).to_contain_text("TOKEN")
    assert syntax_errors(page.locator("#snippet").inner_text()) == []


def test_decimals_are_shown_as_the_service_wrote_them(page: Page) -> None:
    _open(page, "/api/query")
    page.route(
        "**/odata/Decimals*",
        lambda route: route.fulfill(
            content_type="application/json", body='{"value":[{"Price":10.50,"Big":12345678901234567890.125}]}'
        ),
    )
    _ask(page, "Decimals")
    _answered(page, 200)
    expect(page.locator("#answer .cm-content")).to_contain_text('"Price": 10.50')
    expect(page.locator("#answer .cm-content")).to_contain_text('"Big": 12345678901234567890.125')
    page.click("#tab-table")
    cells = page.locator(".tabulator-row .tabulator-cell:not(.tabulator-row-header)")
    expect(cells).to_have_text(["10.50", "12345678901234567890.125"])


def test_rows_are_sorted_followed_and_downloaded_in_the_grid(page: Page) -> None:
    _open(page, "/api/query")
    _ask(page, f"{ORDERS}?$select=DocumentNo,TotalLineAmount&$top=20")
    _answered(page, 200)
    numbers = [row["DocumentNo"] for row in _raw(page)["value"]]
    page.click("#tab-table")
    cells = page.locator(".tabulator-cell[tabulator-field=DocumentNo]")
    expect(cells.first).to_have_text(numbers[0])
    sorting = page.get_by_role("button", name="Sort by DocumentNo")
    for expected in (min(numbers), max(numbers)):
        sorting.focus()
        page.keyboard.press("Enter")
        expect(cells.first).to_have_text(expected)
    with page.expect_download() as download:
        page.get_by_role("button", name="Download as CSV").click()
    lines = Path(download.value.path()).read_text(encoding="utf-8-sig").splitlines()
    assert len(lines) == 21
    assert max(numbers) in lines[1]
    page.locator(".tabulator-row a").first.click()
    expect(page.locator("#path")).to_have_value(re.compile(rf"^{ORDERS}\("))
    _answered(page, 200)


def test_a_body_is_checked_as_it_is_typed_and_sent_when_it_is_right(page: Page) -> None:
    posted: list[str] = []
    page.on("request", lambda request: posted.append(request.method) if "/odata/" in request.url else None)
    _open(page, "/api/query")
    page.select_option("#method", "POST")
    page.locator(".path .cm-content").fill(PAYMENTS)
    page.keyboard.press("Escape")
    editor = page.locator("#body-panel .cm-content")
    editor.click()
    page.keyboard.insert_text('{"Code": "SITE", "Name": {"EN": "By hand"},}')
    expect(page.locator("#body-problem")).to_have_text("Line 1, column 44: Expected double-quoted property name.")
    expect(page.locator("#body-panel .cm-lint-marker-error")).to_be_visible()
    page.keyboard.press("Control+Enter")
    assert posted == []
    page.keyboard.press("Control+End")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Backspace")
    expect(page.locator("#body-problem")).to_have_text("")
    page.click("#body-format")
    assert page.input_value("#body").splitlines()[1] == '  "Code": "SITE",'
    page.locator("#run").focus()
    page.keyboard.press("Enter")
    _answered(page, 201)
    created = _raw(page)
    assert created["Name"] == {"EN": "By hand"}
    page.get_by_role("button", name=re.compile("^Open ")).click()
    _answered(page, 200)
    assert _raw(page)["Code"] == "SITE"
    # A refusal of the data: message, code, what it concerns, and the number under which the log has it.
    page.select_option("#method", "PATCH")
    page.locator("#body-panel .cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text('{"Name": null}')
    page.keyboard.press("Control+Enter")
    _answered(page, 500)
    error = page.locator("#answer .error")
    expect(error).to_contain_text("RequiredAttributeMissing")
    expect(error).to_contain_text("Correlation id")


def test_a_body_is_begun_from_the_model(page: Page) -> None:
    _open(page, "/api/query")
    page.select_option("#method", "POST")
    page.locator(".path .cm-content").fill(f"{ORDERS}(0187d2a0-0050-7000-8000-000000000000)/ChangeState")
    page.keyboard.press("Escape")
    page.click("#body-template")
    assert json.loads(page.input_value("#body")) == {"newState": "", "userStatus": ""}
    page.locator(".path .cm-content").fill(PAYMENTS)
    page.keyboard.press("Escape")
    page.locator("#body-panel .cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text('{"Code": "KEPT"}')
    page.click("#body-template")
    assert json.loads(page.input_value("#body")) == {"Code": "KEPT", "Name": {"EN": ""}}


def test_an_error_shows_where_in_the_query_it_is(page: Page) -> None:
    _open(page, "/api/query")
    _ask(page, f"{ORDERS}?$top=1&$filter=DocumentNo eqq 'x'")
    _answered(page, 400)
    assert page.inner_text("#answer .caret").splitlines() == ["DocumentNo eqq 'x'", " " * 11 + "^"]
    expect(page.locator("#answer .error")).to_contain_text("201 · BadQueryOption")
    _ask(page, f"{ORDERS}?$filter=DocumentDate gt 5")
    expect(page.locator("#answer .caret")).to_contain_text("DocumentDate gt 5")
    assert page.inner_text("#answer .caret").splitlines()[1] == " " * 16 + "^"
    _ask(page, f"{ORDERS}(x")
    expect(page.locator("#answer .error")).to_contain_text("BadUrl")
    assert page.inner_text("#answer .caret").splitlines()[1] == " " * 22 + "^"


def test_a_domain_transaction_holds_what_is_changed_until_it_ends(page: Page) -> None:
    _open(page, "/api/query")
    page.click("#transaction-panel summary")
    page.click("#transaction-begin")
    expect(page.locator("#transaction")).to_have_value(re.compile("^[0-9a-f]{32}$"))
    page.select_option("#method", "POST")
    page.locator("#body-panel .cm-content").click()
    page.keyboard.insert_text('{"Code": "PENDING", "Name": {"EN": "Pending"}}')
    _ask(page, PAYMENTS)
    _answered(page, 201)
    page.select_option("#method", "GET")
    _ask(page, f"{PAYMENTS}/$count?$filter=Code eq 'PENDING'")
    _answered(page, 200)
    expect(page.locator("#answer .raw")).to_have_text("1")
    page.click("#transaction-discard")
    expect(page.locator("#transaction")).to_have_value("")
    _ask(page, f"{PAYMENTS}/$count?$filter=Code eq 'PENDING'")
    expect(page.locator("#answer .raw")).to_have_text("0")


def test_who_is_not_signed_in_keeps_what_was_typed(live_platform: LivePlatform, chromium: Browser) -> None:
    with watched_page(chromium, live_platform.base_url) as page:
        _open(page, "/api/query")
        _ask(page, f"{PRODUCTS}?$top=1")
        page.locator("#answer").get_by_role("link", name="Sign in").click()
        log_in(page)
        assert page.input_value("#path") == f"{PRODUCTS}?$top=1"
        page.keyboard.press("Enter")
        _answered(page, 200)
        # The slot is given back at once, and taken again when it is needed.
        page.click("#access summary")
        page.click("#session-end")
        expect(page.locator("#announce")).to_contain_text("its slot of the licence is free")
        _ask(page, f"{PRODUCTS}/$count")
        expect(page.locator("#answer .raw")).to_have_text(re.compile(r"^\d+$"))


def test_a_pasted_token_is_used_and_stays_in_its_tab(
    live_platform: LivePlatform, chromium: Browser, page: Page
) -> None:
    _open(page, "/api/query")
    token = page.evaluate("site.token()")
    with watched_page(chromium, live_platform.base_url) as other:
        _open(other, "/api/query")
        other.fill("#token", token)
        other.click("#token-use")
        _ask(other, f"{PRODUCTS}?$top=1")
        _answered(other, 200)
        assert token in other.evaluate("sessionStorage.getItem('domain-api.token')")
        assert token not in other.evaluate("JSON.stringify({...localStorage})")
        other.click("#token-drop")
        _ask(other, f"{PRODUCTS}?$top=1")
        _answered(other, 0)
    assert token not in page.evaluate("JSON.stringify({...sessionStorage, ...localStorage})")


# --- the query builder --------------------------------------------------------------------------------------------


def test_a_query_is_built_by_choosing_and_comes_as_a_table(page: Page) -> None:
    _open(page, "/api/builder")
    page.fill("#set", ORDERS)
    for path in ("DocumentNo", "State"):
        page.fill("#column-search", path)
        page.locator("#columns .boxes").first.get_by_label(re.compile(rf"^\s*{path}\b")).check()
    page.fill("#column-search", "Customer/Number")
    page.locator("#columns details .boxes").first.get_by_label(re.compile(r"^\s*Number\b")).check()
    page.click("#filter-add")
    condition = page.locator("#filters .condition").first
    condition.get_by_label("Column").select_option("State")
    # Operators fit the type, and values are those of the enum.
    operators = ["equals", "does not equal", "is at least", "is at most", "is one of"]
    expect(condition.get_by_label("Operator").locator("option")).to_have_text(operators)
    condition.get_by_label("Operator").select_option("in")
    expect(condition.get_by_label("Value")).to_have_attribute("multiple", "")
    condition.get_by_label("Value").select_option(["Released", "Completed"])
    page.click("#filter-add")
    condition = page.locator("#filters .condition").nth(1)
    condition.get_by_label("Column").select_option("DocumentDate")
    expect(condition.get_by_label("Operator").locator("option").first).to_have_text("equals")
    condition.get_by_label("Operator").select_option("ge")
    expect(condition.get_by_label("Value")).to_have_attribute("type", "date")
    condition.get_by_label("Value").fill("2020-01-01")
    page.click("#order-add")
    page.locator("#orders").get_by_label("Column").select_option("DocumentNo")
    page.locator("#orders").get_by_label("Direction").select_option("desc")
    page.fill("#top", "7")
    page.check("#count")
    built = (
        f"{ORDERS}?$select=DocumentNo,State,Customer&$expand=Customer($select=Number)"
        "&$filter=State in ('Released','Completed') and DocumentDate ge 2020-01-01"
        "&$orderby=DocumentNo desc&$top=7&$count=true"
    )
    expect(page.locator("#address")).to_have_text(f"GET {built}")
    page.click("#run")
    _answered(page, 200)
    assert page.locator("#answer .tabulator-row").count() == 7
    heads = page.locator("#answer .tabulator-col-title").all_inner_texts()
    assert heads == ["#", "@odata.id", "DocumentNo", "State", "Customer"]
    expect(page.locator("#answer .status")).to_contain_text("Rows: 7 of ")
    page.click("#open-query")
    page.wait_for_url("**/api/query*")
    assert page.input_value("#path") == built


def test_the_builder_loses_no_click_and_is_worked_by_keyboard(page: Page) -> None:
    """A field that is left is sent; the form drawn again must not take the button away that is just being pressed."""
    _open(page, "/api/builder")
    page.fill("#set", ORDERS)
    page.locator("#filter-add").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#filters .condition select").first).to_be_focused()
    page.locator("#value-0").press_sequentially("7")
    page.locator("#order-add").hover()
    with page.expect_response("**/api/model/query"):
        page.mouse.down()
    page.mouse.up()
    expect(page.locator("#orders .condition")).to_have_count(1)
    expect(page.locator("#address")).to_contain_text("$filter=contains(DocumentNo,'7')")
    page.get_by_role("button", name="Remove").last.press("Enter")
    expect(page.locator("#orders .condition")).to_have_count(0)
    expect(page.locator("#order-add")).to_be_focused()
    page.reload()
    expect(page.locator("#value-0")).to_have_value("7")


def test_what_is_selected_stays_selected_when_the_form_is_drawn_again(page: Page) -> None:
    """Who selects the words of a search to write others meets an answer in between."""
    _open(page, "/api/builder")
    page.fill("#set", ORDERS)
    page.fill("#column-search", "DocumentNo")
    expect(page.locator("#columns")).not_to_contain_text("DeliveryTermsCode")
    held: list[Route] = []
    page.route("**/api/model/query", lambda route: held.append(route) if not held else route.continue_())
    with page.expect_request("**/api/model/query"):
        page.check("#column-DocumentNo")
    page.locator("#column-search").select_text()
    with page.expect_response("**/api/model/query"):
        held[0].continue_()
    expect(page.locator("#address")).to_contain_text("$select=DocumentNo")
    page.keyboard.insert_text("State")
    expect(page.locator("#column-search")).to_have_value("State")
    expect(page.locator("#column-State")).to_be_visible()


def test_a_field_that_becomes_another_kind_while_it_has_the_focus_is_drawn(page: Page) -> None:
    """Who chooses a date's column and goes on to its value at once meets the answer there."""
    _open(page, "/api/builder")
    page.fill("#set", ORDERS)
    page.click("#filter-add")
    expect(page.locator("#value-0")).to_have_attribute("type", "text")
    held: list[Route] = []
    page.route("**/api/model/query", lambda route: held.append(route) if not held else route.continue_())
    with page.expect_request("**/api/model/query"):
        page.select_option("#path-0", "DocumentDate")
    page.focus("#value-0")
    held[0].continue_()
    expect(page.locator("#value-0")).to_have_attribute("type", "date")
    expect(page.locator("#value-0")).to_be_focused()


# --- import -------------------------------------------------------------------------------------------------------


def _file(path: Path, objects: list[dict[str, Any]], **options: Any) -> Path:
    path.write_text(json.dumps({**options, "objects": objects}), encoding="utf-8")
    return path


def _payment(number: int, **more: Any) -> dict[str, Any]:
    return {
        "@odata.type": "Erp.Finance_Payments_PaymentType",
        "Code": f"IMP{number:03}",
        "Name": {"EN": f"Imported {number}"},
        **more,
    }


def test_a_file_is_imported_with_progress_and_its_failures_downloaded(page: Page, tmp_path: Path) -> None:
    objects = [_payment(number) for number in range(120)]
    del objects[70]["Name"]
    page.goto("/api/domain/import")
    page.set_input_files("#file", _file(tmp_path / "payments.json", objects, loggingLevel=1))
    expect(page.locator("#findings")).to_contain_text("Objects read: 120. Finance_Payments_PaymentType × 120")
    assert page.input_value("#logging") == "1"
    page.evaluate(
        """window.told = [];
        new MutationObserver(() => told.push(document.getElementById("progress-text").textContent))
            .observe(document.getElementById("progress-text"), {childList: true});"""
    )
    page.click("#run")
    # Two cores may be busy with other tests meanwhile.
    expect(page.locator("#progress-text")).to_have_text("Finished.", timeout=60_000)
    steps = [*(f"Objects: {done} of 120" for done in (0, 50, 100, 120)), "Finished."]
    assert page.evaluate("told") == steps
    expect(page.locator("#summary")).to_have_text("119 imported, 1 failed, of 120")
    page.check("#only-failures")
    expect(page.locator("#rows .tabulator-row")).to_have_count(1)
    expect(page.locator("#rows .tabulator-cell").first).to_have_text("71")
    expect(page.locator("#rows")).to_contain_text("needs values for: Name")
    with page.expect_download() as download:
        page.click("#download")
    assert download.value.suggested_filename == "payments-failures.json"
    kept = json.loads(Path(download.value.path()).read_text(encoding="utf-8"))
    assert kept["objects"] == [objects[70]]
    assert kept["@failures"][0]["object"] == 71


def test_an_import_waits_while_the_service_is_busy(page: Page, tmp_path: Path) -> None:
    answers = ["busy", "busy"]

    def busy_twice(route: Route) -> None:
        if answers:
            route.fulfill(
                status=503, headers={"Retry-After": "0"}, json={"error": {"message": answers.pop(), "code": 8}}
            )
        else:
            route.continue_()

    page.route("**/odata/Import", busy_twice)
    page.goto("/api/domain/import")
    page.set_input_files("#file", _file(tmp_path / "one.json", [_payment(300)], loggingLevel=0))
    page.click("#run")
    expect(page.locator("#summary")).to_have_text("1 imported, 0 failed, of 1")
    assert answers == []


def test_all_objects_or_none_leaves_none(page: Page, tmp_path: Path) -> None:
    objects = [_payment(200), _payment(201, Name=None), _payment(202)]
    page.goto("/api/domain/import")
    page.set_input_files("#file", _file(tmp_path / "three.json", objects, transaction="all-objects", loggingLevel=0))
    expect(page.locator("#run")).to_be_enabled()
    assert page.input_value("#transaction") == "all-objects"
    page.click("#run")
    expect(page.locator("#summary")).to_have_text("0 imported, 3 failed, of 3")
    _open(page, "/api/query")
    _ask(page, f"{PAYMENTS}/$count?$filter=startswith(Code,'IMP20')")
    expect(page.locator("#answer .raw")).to_have_text("0")


def test_a_file_is_read_before_it_is_sent_and_the_service_tells_what_is_wrong(page: Page, tmp_path: Path) -> None:
    page.goto("/api/domain/import")
    broken = tmp_path / "broken.json"
    broken.write_text('[\n  {"Code": "A" "Name": 1}\n]', encoding="utf-8")
    page.set_input_files("#file", broken)
    expect(page.locator("#findings .problem")).to_have_text(
        "Line 2, column 16: Expected ',' or '}' after property value."
    )
    assert page.inner_text("#findings .caret").splitlines()[1] == " " * 15 + "^"
    expect(page.locator("#run")).to_be_disabled()
    faulty = [
        {"Code": "A"},
        {"@odata.type": "Erp.Nothing"},
        _payment(1, Nope=1, IsActive="yes"),
        {"@odata.type": "Erp.Crm_Sales_SalesOrder", "State": "Gone", "Lines": [{"Wrong": 1}]},
        _payment(2, Code="x" * 300),
        # A former name of the type.
        {"@odata.type": "Erp.Crm_CustomerType", "Name": {"EN": "x"}, "CustomProperty_any": 1},
    ]
    page.set_input_files("#file", _file(tmp_path / "faulty.json", faulty))
    expect(page.locator("#findings .good")).to_contain_text("Objects read: 6. ? × 1, Nothing × 1")
    page.click("#run")
    expect(page.locator("#summary")).to_have_text("0 imported, 6 failed, of 6")
    told = page.locator("#rows .tabulator-cell[tabulator-field=message]").all_inner_texts()
    assert [message.rsplit(" – ", 2)[1] for message in told] == [
        "@odata.type", "@odata.type", "Nope", "State", "Code", "CustomProperty_any",
    ]  # fmt: skip
    assert told[4].startswith("Finance_Payments_PaymentType.Code holds at most 16 characters; the value has 300.")


# --- the model browser --------------------------------------------------------------------------------------------


def test_the_model_is_searched_and_references_lead_both_ways(page: Page) -> None:
    _open(page, "/api/model")
    expect(page.locator("#tree [role=status]")).to_contain_text("sets in")
    page.fill("#search", "Crm_CustomerTypes")
    page.keyboard.press("Enter")
    expect(page.locator("#entity h2")).to_have_text("Crm_Sales_CustomerTypes")
    page.fill("#search", "requireddelivery")
    page.locator("#tree .hits a", has_text="RequiredDelivery").first.click()
    expect(page.locator("tr.marked th")).to_contain_text("RequiredDelivery")
    page.fill("#search", "")
    page.goto(f"/api/model#{ORDERS}")
    expect(page.locator("#entity h2")).to_have_text(ORDERS)
    entity = page.locator("#entity")
    state = entity.locator("#m-State")
    state.locator("summary").click()
    expect(state).to_contain_text("FirmPlanned 20")
    expect(entity.locator("#m-DocumentNo")).to_contain_text("up to 20 characters")
    expect(entity.locator("#m-ChangeState")).to_contain_text("newState")
    entity.locator("#m-Customer").get_by_role("link").click()
    expect(page.locator("#entity h2")).to_have_text("Crm_Sales_Customers")
    back = page.get_by_role("region", name="Referred to by").locator("tr").filter(has_text=ORDERS)
    back.filter(has=page.get_by_role("link", name="Customer", exact=True)).get_by_role("link").first.click()
    expect(page.locator("#entity h2")).to_have_text(ORDERS)
    entity.locator("summary", has_text="Events").click()
    expect(page.get_by_role("region", name="Events")).to_contain_text("STATECHANGING")
    page.check("#mine")
    expect(page.locator("#entity h2")).to_have_text(ORDERS)
