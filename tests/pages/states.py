"""What there is to look at: each page type in each state that looks different, and how it is reached."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from urllib.parse import urlencode

from playwright.sync_api import Page, expect

from tests.pages.cast import APPLICATION, CAREFUL, SELF_REGISTERED, Cast
from tests.support.chromium import PHONE, WIDE, log_in

ORDERS = "Crm_Sales_SalesOrders"
PAYMENTS = "Finance_Payments_PaymentTypes"


def _nothing(page: Page) -> None:
    """The page is ready when it has been loaded."""


@dataclass(frozen=True, slots=True)
class State:
    """A page, opened at `path`; `prepare` brings it into the state. `public` ones are opened without signing in."""

    name: str
    path: str
    prepare: Callable[[Page], None] = _nothing
    public: bool = False
    status: int = 200


#: RFC 7636, appendix B.
PKCE = {"code_challenge": "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM", "code_challenge_method": "S256"}


def states(cast: Cast) -> list[State]:
    """All of them, in the order in which somebody would come across them."""
    return [*_entering(cast), *_admin(cast), *_domain_api(), *_leaving(cast)]


def _entering(cast: Cast) -> Iterator[State]:
    yield State("landing", "/", public=True)
    yield State("login", "/id/account/login", public=True)
    yield State("login-refused", "/id/account/login", _refused_login, public=True)
    yield State("not-found", "/id/nowhere", public=True, status=404)
    yield State("not-from-its-page", "/id/account/login", _without_cookies, public=True)
    yield State("forbidden", "/admin/", _without_rights, public=True)
    yield State("no-application", "/id/connect/authorize?client_id=Nobody", public=True, status=400)
    yield State("consent", _authorize(cast, prompt="consent"))
    yield State("consent-self-registered", _authorize(cast, client_id=SELF_REGISTERED, **PKCE))
    yield State("profile", "/profile/", _new_token)
    yield State("passkey-add", "/id/account/factors/passkey")
    yield State("app-add", "/id/account/factors/app")
    yield State("second-factor", "/id/account/login", _second_factor, public=True)
    yield State("factor-new", _authorize(cast, acr_values="mfa"))
    yield State("device", "/id/device?user_code=BCDF-GHJK", _refused_code)
    yield State("password", "/id/account/password")
    yield State("email", "/id/account/email")


def _admin(cast: Cast) -> Iterator[State]:
    ids = cast.ids
    yield State("home", "/admin/", _charts)
    yield State("home-search", "/admin/", _searched)
    yield State("list", "/admin/domain/salesorder/", _sorted_on_a_phone)
    yield State("list-filters", "/admin/domain/salesorder/", _filters)
    yield State("list-searched", "/admin/domain/product/?q=mouse")
    yield State("list-nothing", "/admin/domain/salesorder/?q=there-is-none")
    yield State("list-empty", "/admin/domain/invoice/")
    yield State("list-editable", "/admin/identity/rolepermission/")
    yield State("list-rules", "/admin/domain/userbusinessrule/")
    yield State("list-deliveries", "/admin/webhooks/webhookdelivery/")
    yield State("list-runs", "/admin/scripts/scriptrun/")
    yield State("list-sessions", "/admin/identity/session/?state=all")
    yield State("list-tokens", "/admin/identity/accesstoken/")
    yield State("list-requests", "/admin/platform_site/recordedrequest/")
    yield State("request", "/admin/platform_site/recordedrequest/", _first_row)
    yield State("list-audit", "/admin/audit/auditentry/", _labels_whole_on_a_phone)
    yield State("audit-entry", "/admin/audit/auditentry/", _first_row)
    yield State("list-failures", "/admin/django_q/failure/")
    yield State("list-schedules", "/admin/django_q/schedule/")
    yield State("list-queue", "/admin/django_q/ormq/")
    yield State("order", f"/admin/domain/salesorder/{ids['order']}/change/", _unfolded)
    yield State("product", f"/admin/domain/product/{ids['product']}/change/")
    yield State("add", "/admin/domain/salesorder/add/")
    yield State("add-refused", "/admin/domain/customer/add/", _refused_save)
    yield State("delete", f"/admin/domain/currency/{ids['currency']}/delete/")
    yield State("delete-chosen", "/admin/domain/paymenttype/", _delete_chosen)
    yield State("history", f"/admin/domain/product/{ids['product']}/history/")
    yield State("order-history", f"/admin/domain/salesorder/{ids['order']}/history/")
    yield State("order-board", "/admin/domain/salesorder/board/")
    yield State("demo-receiver", "/admin/demo-receiver/")
    yield State("rule", f"/admin/domain/userbusinessrule/{ids['rule']}/change/", _rule_help)
    yield State("rule-versions", f"/admin/domain/userbusinessrule/{ids['rule']}/versions/", _compared)
    yield State("rule-restore", f"/admin/domain/userbusinessrule/{ids['rule']}/versions/", _restore_asked)
    yield State("rule-broken", f"/admin/domain/userbusinessrule/{ids['broken']}/change/")
    yield State("rule-add", "/admin/domain/userbusinessrule/add/")
    yield State("rule-start", "/admin/domain/userbusinessrule/add/?start=require-a-value", _draft_tried)
    yield State("rule-try", f"/admin/domain/userbusinessrule/{ids['rule']}/try/?q=QP", _tried)
    yield State("list-calculated", "/admin/domain/salesorder/?columns=__str__,CalculatedAttribute_PagesWorth")
    yield State("calculation", f"/admin/domain/calculatedattribute/{ids['calculation']}/change/", _calculated)
    yield State("calculation-add", "/admin/domain/calculatedattribute/add/", _mistaken)
    yield State("custom-entity", f"/admin/domain/customentity/{ids['entity']}/change/")
    yield State("custom-entity-plan", f"/admin/domain/customentity/{ids['entity']}/delete/")
    yield State("document-type", "/admin/domain/documenttype/?q=SO", _first_row)
    yield State("events", "/admin/events/")
    yield State("events-of-currencies", "/admin/events/?repository=General.Currencies.Currencies")
    yield State("events-of-orders", "/admin/events/?repository=Crm.Sales.SalesOrders")
    yield State("script", f"/admin/domain/script/{ids['script']}/change/", _script_run)
    yield State("script-run", "/admin/scripts/scriptrun/", _first_row)
    yield State("webhook", f"/admin/domain/webhook/{ids['hook']}/change/", _charts)
    yield State("webhook-add", "/admin/domain/webhook/add/", _composed)
    yield State("webhook-versions", f"/admin/domain/webhook/{ids['hook']}/versions/", _compared)
    yield State("script-versions", f"/admin/domain/script/{ids['script']}/versions/", _compared)
    yield State("webhook-replay", f"/admin/domain/webhook/{ids['hook']}/change/", _replay_counted)
    yield State("delivery", f"/admin/webhooks/webhookdelivery/{ids['failed']}/change/")
    yield State("signing-secret", f"/admin/domain/webhook/{ids['hook']}/change/", _new_signing_secret)
    yield State("application", f"/admin/identity/trustedapplication/{ids['application']}/change/")
    yield State("application-kinds", "/admin/identity/trustedapplication/add/")
    yield State("application-kind", "/admin/identity/trustedapplication/add/?kind=dual", _scopes_whole)
    yield State("application-start", f"/admin/identity/trustedapplication/{ids['service']}/start/")
    yield State("application-secret", f"/admin/identity/trustedapplication/{ids['application']}/secret/")
    yield State("user", f"/admin/identity/user/{ids['user']}/change/")
    yield State("user-factors", f"/admin/identity/user/{ids['careful']}/factors/")
    yield State("permissions", "/admin/permissions/")
    yield State("configuration", "/admin/configuration/")
    yield State("user-view-as", f"/admin/identity/user/{ids['user']}/view-as/")
    yield State("role", f"/admin/identity/role/{ids['role']}/change/")
    yield State("session", "/admin/identity/session/?state=all", _first_row)
    yield State("signing-key", "/admin/identity/signingkey/", _first_row)
    yield State("licence", "/admin/identity/licence/1/change/", _charts)
    yield State("reference-token", "/admin/identity/referencetoken/add/")
    yield State("registration-policy", "/admin/identity/registrationpolicy/add/")
    yield State("initial-access-token", "/admin/identity/registrationtoken/add/", _issued_token)
    yield State("failure", f"/admin/django_q/failure/{ids['task']}/change/")
    yield State("message", f"/admin/domain/informationmessage/{ids['message']}/change/")


def _domain_api() -> Iterator[State]:
    yield State("api", "/api/")
    yield State("query", "/api/query", _query_with_an_answer)
    yield State("query-chart", "/api/query", _query_with_a_chart)
    yield State("query-refused", "/api/query", _query_with_an_error)
    yield State("builder", "/api/builder", _built)
    yield State("import", "/api/domain/import", _imported)
    yield State("model", f"/api/model#{ORDERS}", _model_read)
    yield State("explorer", "/api/explorer#Finance.Payments", _explored)


def _leaving(cast: Cast) -> Iterator[State]:
    yield State("logout", "/id/account/logout")


def _authorize(cast: Cast, **changes: str) -> str:
    asked = {
        "client_id": APPLICATION,
        "redirect_uri": cast.application_url,
        "response_type": "code",
        "scope": "openid read",
        **changes,
    }
    return f"/id/connect/authorize?{urlencode(asked)}"


# --- what people do ---------------------------------------------------------------------------------------------------


def _refused_code(page: Page) -> None:
    page.click("button")
    page.wait_for_selector(".problem")


def _refused_login(page: Page) -> None:
    log_in(page, password="wrong")


def _without_cookies(page: Page) -> None:
    page.context.clear_cookies()
    log_in(page)
    expect(page.locator("h1")).to_have_text("The form was not sent from its page")


def _without_rights(page: Page) -> None:
    log_in(page, "demo", "demo")
    page.goto("/admin/identity/ratelimits/")
    expect(page.locator("h1")).to_have_text("You may not do this")
    page.context.clear_cookies()


def _second_factor(page: Page) -> None:
    log_in(page, CAREFUL, CAREFUL)
    page.click("summary")


def _new_token(page: Page) -> None:
    page.fill("[name=name]", "A laptop with quite a long name")
    page.check("[name=scopes][value=read]")
    with page.expect_navigation():
        page.click("form:has([name=name]) button")


def _unfolded(page: Page) -> None:
    # Unfold's menu of further tabs cannot be opened by keyboard.
    expect(page.locator("#tabs-items > a")).not_to_have_count(0)
    expect(page.locator("#tabs-dropdown > a")).to_have_count(0)
    page.evaluate("document.querySelectorAll('fieldset details').forEach((each) => { each.open = true; })")


def _sorted_on_a_phone(page: Page) -> None:
    """Where there are no heads of columns."""
    page.set_viewport_size(PHONE)
    page.get_by_text("Sort", exact=True).press("Enter")
    with page.expect_navigation():
        page.locator(".sort-by").get_by_role("link", name="Document date").press("Enter")
    assert "o=" in page.url
    page.set_viewport_size(WIDE)


def _labels_whole_on_a_phone(page: Page) -> None:
    page.set_viewport_size(PHONE)
    label = "getComputedStyle(document.querySelector('#result_list td'), '::before')"
    assert page.evaluate(f"{label}.flexShrink") == "0"  # a narrower one would break words
    page.set_viewport_size(WIDE)


def _scopes_whole(page: Page) -> None:
    cut = "labels => labels.filter((each) => each.scrollWidth > each.clientWidth).map((each) => each.textContent)"
    assert page.locator("label > span").evaluate_all(cut) == []


def _refused_save(page: Page) -> None:
    with page.expect_navigation():
        page.click("[name=_save] >> nth=0")
    expect(page.locator(".errornote").first).to_be_visible()


def _searched(page: Page) -> None:
    page.keyboard.press("Control+k")
    expect(page.locator("#search-input-command")).to_be_focused()
    page.keyboard.type("0000000002")
    expect(page.locator("#command-results-list a").first).to_be_visible()


def _filters(page: Page) -> None:
    page.click("text=Filters")
    expect(page.locator("#changelist-filter")).to_be_visible()


def _delete_chosen(page: Page) -> None:
    page.check("#action-toggle")
    page.select_option("[name=action] >> nth=0", "delete_selected")
    with page.expect_navigation():
        page.click(".actions button >> nth=0")


def _rule_help(page: Page) -> None:
    page.click(".rule-help summary")
    page.click(".rule-traces summary >> nth=0")


def _tried(page: Page) -> None:
    with page.expect_navigation():
        page.click(".rule-entities button >> nth=0")


def _calculated(page: Page) -> None:
    """The value on an order."""
    page.locator("#try_entity").select_option(index=1)
    expect(page.locator("#calculation-value output")).to_be_visible()


def _mistaken(page: Page) -> None:
    """A row that names another one, which is not there."""
    page.fill("[name=repository_name]", "Crm.Sales.SalesOrders")
    page.locator("#add-row").click()
    expect(page.locator("[name=Expressions-0-operator]")).to_be_focused()
    page.keyboard.type("LEN")
    page.locator("[name=Expressions-0-parameter_1_type]").select_option("Expression")
    page.locator("[name=Expressions-0-parameter_1_value]").fill("20")
    page.locator("[name=Expressions-0-parameter_1_value]").press("Tab")
    expect(page.locator("#row-10 .errorlist")).to_be_visible()


def _draft_tried(page: Page) -> None:
    page.select_option("#try_entity", index=1)
    expect(page.locator("#rule-tried table").first).to_be_visible()


def _compared(page: Page) -> None:
    expect(page.locator("[data-differences] .cm-content").first).to_be_visible()
    page.click("[data-as-text] summary")


def _restore_asked(page: Page) -> None:
    with page.expect_navigation():
        page.click("button[name=version] >> nth=0")
    _compared(page)


def _script_run(page: Page) -> None:
    expect(page.locator(".code-editor .cm-content")).to_have_count(2)
    page.fill("[name='arg:documentNo']", "0000000002")
    page.click("#script-run button")
    expect(page.locator("#script-result pre").first).to_be_visible()
    page.locator("#script-result").scroll_into_view_if_needed()


def _first_row(page: Page) -> None:
    page.goto(str(page.locator("#result_list tbody th a").first.get_attribute("href")))


def _charts(page: Page) -> None:
    expect(page.locator(".chart-figure canvas").first).to_be_visible()
    page.click(".chart-figure summary >> nth=0")


def _composed(page: Page) -> None:
    page.fill("[name=repository_name]", "General.Currencies.Currencies")
    page.fill("[name=url]", "https://example.com/{CurrencySign}")
    page.click("#show-preview")
    expect(page.locator(".webhook-preview")).to_be_visible()


def _replay_counted(page: Page) -> None:
    page.fill("[name=since]", "2020-01-01T00:00")
    page.fill("[name=until]", "2099-01-01T00:00")
    with page.expect_navigation():
        page.click("form[action$='/replay/'] button")


def _new_signing_secret(page: Page) -> None:
    with page.expect_navigation():
        page.click("form[action$='/rotate/'] button")


def _issued_token(page: Page) -> None:
    page.fill("[name=name]", "A tool of the team")
    with page.expect_navigation():
        page.click("[name=_save] >> nth=0")
    expect(page.locator("code.secret")).to_be_visible()


def _model_read(page: Page) -> None:
    page.wait_for_selector("html[data-model]")


def _explored(page: Page) -> None:
    page.locator(".expand-operation").first.click()
    page.locator(".opblock-summary-control").first.click()
    page.locator(".execute").click()
    expect(page.locator(".live-responses-table")).to_be_visible()


def _query_with_an_answer(page: Page) -> None:
    _model_read(page)
    _ask(page, f"{ORDERS}?$select=DocumentNo,State&$expand=Lines($select=LineNo)&$top=2", 200)


def _query_with_a_chart(page: Page) -> None:
    _model_read(page)
    _ask(page, f"{ORDERS}?$apply=groupby((State),aggregate($count as Orders))", 200)
    page.click("#tab-chart")
    expect(page.locator("#answer canvas")).to_be_visible()


def _query_with_an_error(page: Page) -> None:
    _model_read(page)
    page.click("#access summary")
    page.select_option("#method", "PATCH")
    page.select_option("#method", "GET")
    _ask(page, f"{ORDERS}?$filter=DocumentNo eqq 'x'", 400)
    page.locator(".path .cm-content").fill(f"{ORDERS}?$filter=Sta")
    expect(page.locator(".path .cm-tooltip-autocomplete")).to_be_visible()


def _ask(page: Page, text: str, status: int) -> None:
    page.locator(".path .cm-content").fill(text)
    page.keyboard.press("Escape")
    page.keyboard.press("Control+Enter")
    _answered(page, status)


def _answered(page: Page, status: int) -> None:
    page.wait_for_selector(f"#answer[data-status='{status}']:not([aria-busy])")


def _built(page: Page) -> None:
    _model_read(page)
    page.fill("#set", PAYMENTS)
    page.click("#filter-add")
    page.click("#order-add")
    page.click("#run")
    _answered(page, 200)


def _imported(page: Page) -> None:
    content = json.dumps([{"@odata.type": "Erp.Finance_Payments_PaymentType", "Nope": 1}]).encode()
    page.set_input_files("#file", {"name": "one.json", "mimeType": "application/json", "buffer": content})
    page.click("#run")
    page.wait_for_selector("#rows .problem")
