"""5 Authentication"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from http.client import HTTPConnection

import pytest
from playwright.sync_api import Browser as Chromium

from tests.acceptance.caller import ODATA, Caller, answered, error_of
from tests.acceptance.licence import Licence
from tests.acceptance.objects import ORDERS, Maker
from tests.acceptance.people import (
    DUAL,
    PUBLIC,
    SIGNED_OUT,
    Browser,
    Person,
    claims_of,
    parameters_of,
    pkce,
    redeem,
    token_request,
)
from tests.acceptance.statements import statement
from tests.support.chromium import log_in, watched_page
from tests.support.platform import LivePlatform
from tests.support.processes import connection_to_each


@pytest.fixture
def without_exec(anyone: Caller) -> Iterator[Caller]:
    """The service with the scopes read and update only."""
    form = {"grant_type": "client_credentials", "client_id": "ServiceDemoClient", "client_secret": "DEMO"}
    token = answered(anyone.form("/id/connect/token", scope="read update", **form), 200).json()["access_token"]
    yield anyone.with_token(token)
    anyone.form("/id/connect/revocation", token=token, **{**form, "grant_type": ""})


@statement("5.1", "The identity provider is discovered through sys/auto-discovery, as the site of type ID")
def test_discovered(anyone: Caller) -> None:
    (site,) = [found for found in anyone.read("/sys/auto-discovery")["WebSites"] if found["Type"] == "ID"]
    metadata = anyone.http.get(f"{site['Url'].rstrip('/')}/.well-known/openid-configuration", timeout=60).json()
    assert metadata["issuer"] == site["Url"].rstrip("/")


@pytest.mark.browser
@statement("5.2", "A person logs in to an interactive application on the identity provider's page, in a web browser")
def test_in_a_browser(anyone: Caller, chromium: Chromium) -> None:
    with watched_page(chromium, anyone.base_url) as page:
        page.goto("/profile/")
        assert "/id/account/login" in page.url
        log_in(page, "demo", "demo")
        assert page.url.rstrip("/").endswith("/profile")
        assert "demo" in page.inner_text("body")


@statement("5.2", "Interactive applications must use the authorization code flow: other response types are refused")
def test_code_flow_only(anyone: Caller) -> None:
    answer = Browser(anyone).authorize(response_type="token")
    assert "access_token" not in answer.headers.get("Location", "")
    assert "unsupported_response_type" in answer.headers.get("Location", "") or answer.status_code == 400


@statement("5.2", "After login the application can obtain an identity token and an access token")
def test_both_tokens(demo: Person) -> None:
    assert {"id_token", "access_token"} <= set(demo.tokens)


@statement("5.2", "An application that is not a service gets no token by client credentials")
def test_not_a_service(anyone: Caller) -> None:
    refused = token_request(anyone, grant_type="client_credentials")
    assert answered(refused, 400).json()["error"] == "unauthorized_client"


@statement("5.2", "A service application's session is created from its system user")
def test_system_user(anyone: Caller) -> None:
    answer = token_request(anyone, grant_type="client_credentials", client_id="ServiceDemoClient")
    claims = claims_of(answer.json()["access_token"])
    assert (claims["client_system_user"], claims["client_system_user_type"]) == ("service", "SystemUserNoLogin")


@statement("5.3", "A refresh token is issued with the scope offline_access only")
def test_offline_access(anyone: Caller) -> None:
    with Person.signed_in(anyone, "demo", scope="openid read") as person:
        assert "refresh_token" not in person.tokens


@statement("5.3", "A refresh token is issued to confidential applications only: a public one gets none")
def test_public(anyone: Caller) -> None:
    verifier, challenge = pkce()
    browser = Browser(anyone)
    asked = {"code_challenge": challenge, "code_challenge_method": "S256", "client_id": PUBLIC}
    answer = parameters_of(browser.sign_in("demo", scope="openid read offline_access", **asked))
    if "error" in answer:
        assert answer["error"] == "invalid_scope"
        return
    redeemed = redeem(anyone, answer["code"], client_id=PUBLIC, client_secret="", code_verifier=verifier)
    assert "refresh_token" not in answered(redeemed, 200).json()


@statement("5.3", "A refresh yields a new access token and a new refresh token; the old refresh token is used up")
def test_refresh(anyone: Caller) -> None:
    with Person.signed_in(anyone, "demo") as person:
        form = {"grant_type": "refresh_token", "refresh_token": person.tokens["refresh_token"]}
        fresh = answered(token_request(anyone, **form), 200).json()
        assert fresh["refresh_token"] != person.tokens["refresh_token"]
        next_form = {"grant_type": "refresh_token", "refresh_token": fresh["refresh_token"]}
        answered(token_request(anyone, **next_form), 200)
        assert token_request(anyone, **form).json()["error"] == "invalid_grant"


@statement("5.4", "An external user who logs in receives only an id_token")
def test_external_user(anyone: Caller) -> None:
    tokens = answered(redeem(anyone, Browser(anyone).code("customer")), 200).json()
    assert claims_of(tokens["id_token"])["sub"] == "customer"
    assert not {"access_token", "refresh_token"} & set(tokens)


@statement("5.4", "An external user's id_token opens no API")
def test_id_token_opens_nothing(anyone: Caller) -> None:
    tokens = answered(redeem(anyone, Browser(anyone).code("customer")), 200).json()
    error_of(anyone.with_token(tokens["id_token"]).get(f"{ORDERS}?$top=1"), 401, 403)


@statement("5.5", "A call without Authorization, or with another token, is refused with 401 and WWW-Authenticate")
def test_bearer(anyone: Caller) -> None:
    for caller in (anyone, anyone.with_token("nonsense")):
        refused = caller.get(f"{ORDERS}?$top=1")
        error_of(refused, 401)
        assert refused.headers["WWW-Authenticate"].startswith("Bearer")


@statement("5.6", "ExecuteScript needs the scope exec")
def test_exec(without_exec: Caller) -> None:
    error_of(without_exec.script("1"), 403)


@statement("5.6", "Execute of a managed script needs the same scope")
def test_exec_managed(without_exec: Caller, make: Maker) -> None:
    error_of(without_exec.post(f"{make.script('return 1;')}/Execute", {}), 403)


@statement("5.6", "An application is granted exec only if it is configured with it")
def test_exec_not_granted(anyone: Caller) -> None:
    location = Browser(anyone).authorize(scope="openid exec").headers["Location"]
    assert "invalid_scope" in location


@statement("5.6", "Both need the instance's licence for advanced business process management")
def test_feature(make: Maker, licence: Licence, acceptance_instance: LivePlatform) -> None:
    script = make.script("return 1;")
    calls = (partial(make.caller.script, "1"), partial(make.caller.post, f"{script}/Execute", {}))
    with licence.changed(features=""):
        assert [error_of(call(), 403)["type"] for call in calls] == ["FeatureNotLicensed"] * 2
    # What is saved is in force for the next request of every process.
    for connection in connection_to_each(acceptance_instance.base_url, acceptance_instance.process.pid).values():
        assert _script_runs(connection, make.caller)
        connection.close()


def _script_runs(connection: HTTPConnection, caller: Caller) -> bool:
    headers = {**caller.headers, "Content-Type": "text/plain"}
    connection.request("POST", f"{ODATA}ExecuteScript", body="1", headers=headers)
    answer = connection.getresponse()
    answer.read()
    return answer.status == 200


@statement("5.7", "A request needs a live session, which its token opens")
def test_session(service: Caller) -> None:
    assert service.run("console.log(Action.session.id)")["console"] == service.run("1")["sessionId"]


@statement("5.7", "A session needs a licence: without a free slot the request is refused with 503")
def test_licence(anyone: Caller, licence: Licence) -> None:
    form = {"client_id": f"{DUAL}-service", "grant_type": "client_credentials"}
    token = token_request(anyone, **form).json()["access_token"]
    with licence.changed(sessions="1"):
        error_of(anyone.with_token(token).get(f"{ORDERS}?$top=1"), 503)


@statement("5.8", "Single sign-out goes by the end session endpoint with id_token_hint and post_logout_redirect_uri")
def test_sign_out(anyone: Caller) -> None:
    with Person.signed_in(anyone, "demo") as person:
        answer = answered(person.sign_out(post_logout_redirect_uri=SIGNED_OUT, state="s"), 302)
        assert answer.headers["Location"] == f"{SIGNED_OUT}?state=s"
        assert person.api.is_refused()
