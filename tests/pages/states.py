"""What there is to look at: each page type in each state that looks different, and how it is reached."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from urllib.parse import urlencode

from playwright.sync_api import Page, expect

from tests.pages.cast import APPLICATION, CAREFUL, SELF_REGISTERED, Cast
from tests.support.chromium import log_in

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
    yield State("home", "/admin/")
    yield State("home-search", "/admin/", _searched)
    yield State("list", "/admin/domain/salesorder/")
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
    yield State("rule", f"/admin/domain/userbusinessrule/{ids['rule']}/change/", _rule_help)
    yield State("rule-broken", f"/admin/domain/userbusinessrule/{ids['broken']}/change/")
    yield State("rule-add", "/admin/domain/userbusinessrule/add/")
    yield State("rule-try", f"/admin/domain/userbusinessrule/{ids['rule']}/try/?q=QP", _tried)
    yield State("script", f"/admin/domain/script/{ids['script']}/change/", _script_run)
    yield State("script-run", "/admin/scripts/scriptrun/", _first_row)
    yield State("webhook", f"/admin/domain/webhook/{ids['hook']}/change/", _charts)
    yield State("delivery", f"/admin/webhooks/webhookdelivery/{ids['failed']}/change/")
    yield State("signing-secret", f"/admin/domain/webhook/{ids['hook']}/change/", _new_signing_secret)
    yield State("application", f"/admin/identity/trustedapplication/{ids['application']}/change/")
    yield State("application-secret", f"/admin/identity/trustedapplication/{ids['application']}/secret/")
    yield State("user", f"/admin/identity/user/{ids['user']}/change/")
    yield State("user-factors", f"/admin/identity/user/{ids['careful']}/factors/")
    yield State("role", f"/admin/identity/role/{ids['role']}/change/")
    yield State("session", "/admin/identity/session/?state=all", _first_row)
    yield State("licence", "/admin/identity/licence/1/change/")
    yield State("reference-token", "/admin/identity/referencetoken/add/")
    yield State("registration-policy", "/admin/identity/registrationpolicy/add/")
    yield State("initial-access-token", "/admin/identity/registrationtoken/add/", _issued_token)
    yield State("failure", f"/admin/django_q/failure/{ids['task']}/change/")
    yield State("message", f"/admin/domain/informationmessage/{ids['message']}/change/")


def _domain_api() -> Iterator[State]:
    yield State("api", "/api/")
    yield State("query", "/api/query", _query_with_an_answer)
    yield State("query-refused", "/api/query", _query_with_an_error)
    yield State("builder", "/api/builder", _built)
    yield State("import", "/api/domain/import", _imported)
    yield State("model", f"/api/model#{ORDERS}", _model_read)
    yield State("description", "/api/description")
    yield State("set", f"/api/sets/{ORDERS}")


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


def _second_factor(page: Page) -> None:
    log_in(page, CAREFUL, CAREFUL)
    page.click("summary")


def _new_token(page: Page) -> None:
    page.fill("[name=name]", "A laptop with quite a long name")
    page.check("[name=scopes][value=read]")
    with page.expect_navigation():
        page.click("form:has([name=name]) button")


def _unfolded(page: Page) -> None:
    page.evaluate("document.querySelectorAll('fieldset details').forEach((each) => { each.open = true; })")


def _refused_save(page: Page) -> None:
    with page.expect_navigation():
        page.click("[name=_save] >> nth=0")
    expect(page.locator(".errornote").first).to_be_visible()


def _searched(page: Page) -> None:
    page.keyboard.press("Control+k")
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


def _script_run(page: Page) -> None:
    expect(page.locator(".code-editor .cm-content")).to_have_count(2)
    page.fill("[name='arg:documentNo']", "0000000002")
    page.click("#script-run button")
    expect(page.locator("#script-result pre").first).to_be_visible()
    page.locator("#script-result").scroll_into_view_if_needed()


def _first_row(page: Page) -> None:
    page.goto(str(page.locator("#result_list tbody th a").first.get_attribute("href")))


def _charts(page: Page) -> None:
    charts = page.locator("svg.webhook-chart")
    expect(charts).to_have_count(2)
    boxes = [chart.bounding_box() for chart in charts.all()]
    assert all(box is not None and box["width"] > 200 for box in boxes), boxes


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


def _query_with_an_answer(page: Page) -> None:
    _model_read(page)
    _ask(page, f"{ORDERS}?$select=DocumentNo,State&$expand=Lines($select=LineNo)&$top=2", 200)


def _query_with_an_error(page: Page) -> None:
    _model_read(page)
    page.click("#access summary")
    page.select_option("#method", "PATCH")
    page.wait_for_selector("html[data-editor=ready]")
    page.select_option("#method", "GET")
    _ask(page, f"{ORDERS}?$filter=DocumentNo eqq 'x'", 400)
    page.fill("#path", f"{ORDERS}?$filter=Sta")
    expect(page.locator("#path-choices")).to_be_visible()


def _ask(page: Page, text: str, status: int) -> None:
    page.fill("#path", text)
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
    page.wait_for_selector("#rows .bad")
