"""The Domain API site in Chromium, by people who type, choose, import and look things up (spec 09, 9.5)."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, StorageState, expect

from tests.support.accessibility import violations
from tests.support.chromium import PHONE, WIDE, fits, log_in, watched_page
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
    page.fill("#path", text)
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


def test_a_request_is_typed_with_completion_and_run_by_keyboard_alone(page: Page) -> None:
    _open(page, "/api/query")
    for typed in ("salesor", "?$fil", "Sta", " eq 'Rel", " and Customer/Num"):
        page.keyboard.type(typed)
        expect(page.locator("#path-choices [aria-selected=true]")).to_be_visible()
        page.keyboard.press("Enter")
    assert page.input_value("#path") == f"{ORDERS}?$filter=State eq 'Released' and Customer/Number"
    page.keyboard.type(" ne '0'&$ord")
    page.keyboard.press("Tab")
    page.keyboard.type("DocumentNo&$top=3")
    expect(page.locator("#path-choices")).to_be_hidden()
    page.keyboard.press("Enter")
    _answered(page, 200)
    expect(page.locator(".status")).to_contain_text("Rows: 3")
    expect(page.locator(".json .string").filter(has_text="Released")).to_have_count(3)
    # The tree is one stop of the Tab key; arrows go through it, and fold.
    page.locator(".json .fold").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert "/$metadata" not in page.input_value("#path")
    _answered(page, 200)
    assert page.input_value("#path") == "$metadata"


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


def test_completion_knows_the_model_everywhere_in_the_address(page: Page) -> None:
    _open(page, "/api/query")
    offered: list[list[str]] = page.evaluate(
        """async (texts) => {
            const model = await site.model();
            return texts.map((text) => site.completion.complete(model, text).items.map((item) => item.label));
        }""",
        [text for text, _ in COMPLETIONS],
    )
    assert [text for (text, wanted), labels in zip(COMPLETIONS, offered, strict=True) if wanted not in labels] == []
    # What does not fit is not offered: no collection as an order, no used option, nothing of a wrong path.
    nothing: list[list[str]] = page.evaluate(
        """async (texts) => {
            const model = await site.model();
            return texts.map((text) => site.completion.complete(model, text).items.map((item) => item.label));
        }""",
        [f"{ORDERS}?$orderby=Line", f"{ORDERS}?$top=1&$to", f"{ORDERS}?$filter=Nothing/", "Nothing(1)/x"],
    )
    assert "Lines" not in nothing[0]
    assert nothing[1:] == [[], [], []]


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
    third = page.locator(".json a").filter(has_text="skiptoken")
    third.click()
    expect(page.locator("#history li")).to_have_count(3)
    page.reload()
    expect(page.locator("#history li")).to_have_count(3)
    page.fill("#history-search", "skiptoken")
    expect(page.locator("#history li")).to_have_count(2)
    page.fill("#history-search", "")
    page.locator("#history button").last.click()
    assert page.input_value("#path").endswith("$orderby=PartNumber")
    assert page.input_value("#headers") == "Prefer: odata.maxpagesize=50"


def test_copied_curl_gives_the_same_answer_in_a_shell(page: Page) -> None:
    curl = requires_program("curl")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    _open(page, "/api/query")
    page.fill("#path", f"{PRODUCTS}?$filter=contains(Name,'Ä & ''+ #') or PartNumber ne 'x'&$top=1&$select=PartNumber")
    page.keyboard.press("Escape")
    page.click("#headers-panel summary")
    page.fill("#headers", "Accept: application/json;odata.metadata=none")
    page.click("#copy-curl")
    expect(page.locator("#announce")).to_have_text("Copied.")
    command = page.evaluate("navigator.clipboard.readText()")
    assert "Bearer $TOKEN" in command
    token = page.evaluate("site.token()")
    done = subprocess.run(
        ["bash", "-c", command.replace("curl", f"{curl} -sS", 1)],
        env={**os.environ, "TOKEN": token},
        capture_output=True,
        text=True,
        check=True,
    )
    page.click("#run")
    _answered(page, 200)
    assert json.loads(done.stdout) == _raw(page)
    assert list(_raw(page)["value"][0]) == ["PartNumber"]


def test_a_body_is_checked_as_it_is_typed_and_sent_when_it_is_right(page: Page) -> None:
    posted: list[str] = []
    page.on("request", lambda request: posted.append(request.method) if "/odata/" in request.url else None)
    _open(page, "/api/query")
    page.select_option("#method", "POST")
    page.fill("#path", PAYMENTS)
    page.keyboard.press("Escape")
    page.wait_for_selector("html[data-editor=ready]")
    editor = page.locator(".code-editor .cm-content")
    editor.click()
    page.keyboard.insert_text('{"Code": "SITE", "Name": {"EN": "By hand"},}')
    expect(page.locator("#body-problem")).to_have_text("Line 1, column 44: nothing follows the comma.")
    expect(page.locator(".code-editor .cm-lint-marker-error")).to_be_visible()
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
    page.locator(".code-editor .cm-content").click()
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
    page.fill("#path", f"{ORDERS}(0187d2a0-0050-7000-8000-000000000000)/ChangeState")
    page.keyboard.press("Escape")
    page.click("#body-template")
    assert json.loads(page.input_value("#body")) == {"newState": "", "userStatus": ""}
    page.fill("#path", PAYMENTS)
    page.keyboard.press("Escape")
    page.wait_for_selector("html[data-editor=ready]")
    page.locator(".code-editor .cm-content").click()
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
    page.wait_for_selector("html[data-editor=ready]")
    page.locator(".code-editor .cm-content").click()
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
    operators = condition.get_by_label("Operator").locator("option").all_inner_texts()
    assert operators == ["equals", "does not equal", "is at least", "is at most", "is one of"]
    condition.get_by_label("Operator").select_option("in")
    condition.get_by_label("Value").select_option(["Released", "Completed"])
    page.click("#filter-add")
    condition = page.locator("#filters .condition").last
    condition.get_by_label("Column").select_option("DocumentDate")
    condition.get_by_label("Operator").select_option("ge")
    assert condition.get_by_label("Value").get_attribute("type") == "date"
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
    assert page.inner_text("#address") == f"GET {built}"
    page.click("#run")
    _answered(page, 200)
    assert page.locator("#answer tbody tr").count() == 7
    assert page.locator("#answer thead th").all_inner_texts() == ["@odata.id", "DocumentNo", "State", "Customer"]
    expect(page.locator("#answer .status")).to_contain_text("Rows: 7 of ")
    page.click("#open-query")
    page.wait_for_url("**/api/query*")
    assert page.input_value("#path") == built


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
    expect(page.locator("#findings")).to_contain_text("Objects read: 120. They fit the model")
    assert page.input_value("#logging") == "1"
    page.evaluate(
        """window.told = [];
        new MutationObserver(() => told.push(document.getElementById("progress-text").textContent))
            .observe(document.getElementById("progress-text"), {childList: true});"""
    )
    page.click("#run")
    expect(page.locator("#progress-text")).to_have_text("Finished.")
    steps = [*(f"Objects: {done} of 120" for done in (0, 50, 100, 120)), "Finished."]
    assert page.evaluate("told") == steps
    expect(page.locator("#summary")).to_have_text("119 imported, 1 failed, of 120")
    page.check("#only-failures")
    expect(page.locator("#rows tr")).to_have_count(1)
    assert page.locator("#rows td").nth(0).inner_text() == "71"
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


def test_a_file_is_checked_before_it_is_sent(page: Page, tmp_path: Path) -> None:
    page.goto("/api/domain/import")
    broken = tmp_path / "broken.json"
    broken.write_text('[\n  {"Code": "A" "Name": 1}\n]', encoding="utf-8")
    page.set_input_files("#file", broken)
    expect(page.locator("#findings .problem")).to_have_text("Line 2, column 16: a comma is missing.")
    assert page.inner_text("#findings .caret").splitlines()[1] == " " * 15 + "^"
    expect(page.locator("#run")).to_be_disabled()
    faulty = [
        {"Code": "A"},
        {"@odata.type": "Erp.Nothing"},
        _payment(1, Nope=1, IsActive="yes"),
        {"@odata.type": "Erp.Crm_Sales_SalesOrder", "State": "Gone", "Lines": [{"Wrong": 1}]},
        _payment(2, Code="x" * 300),
        # A former name of the type, and what only the service can judge.
        {"@odata.type": "Erp.Crm_CustomerType", "Name": {"EN": "x"}, "CustomProperty_any": 1},
    ]
    page.set_input_files("#file", _file(tmp_path / "faulty.json", faulty))
    expect(page.locator("#findings .notice")).to_contain_text("Objects read: 6. The model does not fit 5 of them")
    told = page.locator("#findings li").all_inner_texts()
    assert told[:2] == ["Object 1: @odata.type is missing.", "Object 2: There is no type Erp.Nothing."]
    assert set(told[2:4]) == {
        f"Object 3: {PAYMENTS} has no property Nope.",
        "Object 3: IsActive must be Edm.Boolean.",
    }
    assert set(told[4:6]) == {
        "Object 4: State cannot be Gone.",
        "Object 4: Crm_Sales_SalesOrderLines has no property Lines[0]/Wrong.",
    }
    assert told[6].startswith("Object 5: Code holds at most ")
    assert len(told) == 7


# --- the model browser --------------------------------------------------------------------------------------------


def test_the_model_is_searched_and_references_lead_both_ways(page: Page) -> None:
    _open(page, "/api/model")
    expect(page.locator("#found")).to_contain_text("sets in")
    page.fill("#search", "Crm_CustomerTypes")
    page.keyboard.press("Enter")
    expect(page.locator("#entity h2")).to_have_text("Crm_Sales_CustomerTypes")
    page.fill("#search", "requireddelivery")
    page.locator("#tree a").first.click()
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
