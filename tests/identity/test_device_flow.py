"""The device flow (RFC 8628): codes, the page on which a person decides, polling, and guessing."""

from __future__ import annotations

import datetime
from typing import Any

import jwt
import pytest
from django.test import Client

from foundation.fields import utc_now
from identity.models import DeviceGrant, TrustedApplication
from identity.oauth.clients import DEVICE_CODE
from tests.identity.flows import PUBLIC, SECRET, WEB, Browser, Response, token_request

REQUEST, PAGE = "/id/connect/deviceauthorization", "/id/device"


@pytest.fixture
def device(browser: Browser) -> Client:
    """A device's client; two applications may use the flow."""
    allowed = TrustedApplication.objects.filter(application_uri__in=[WEB, PUBLIC])
    for application in allowed:
        application.device_flow_allowed = True
        application.save()
    return Client()


def ask(device: Client, client_id: str = WEB, **form: str) -> Response:
    secret = {} if client_id == PUBLIC else {"client_secret": SECRET}
    form = {"client_id": client_id, **secret, **form}
    return device.post(REQUEST, "&".join(f"{name}={value}" for name, value in form.items()),
                       content_type="application/x-www-form-urlencoded")  # fmt: skip


def poll(device: Client, device_code: str, client_id: str = WEB) -> Response:
    secret = {} if client_id == PUBLIC else {"client_secret": SECRET}
    return token_request(device, grant_type=DEVICE_CODE, client_id=client_id, device_code=device_code, **secret)


def answers(browser: Browser, user_code: str, decision: str | None = None) -> Response:
    """A person enters the code and, with a decision, answers the page that follows."""
    token = str(browser.client.get(PAGE).context["csrf_token"])
    form = {"user_code": user_code, "csrfmiddlewaretoken": token}
    page = browser.client.post(PAGE, form)
    return browser.client.post(PAGE, {**form, "decision": decision}) if decision else page


def may_poll() -> None:
    """As if the interval had passed."""
    DeviceGrant.objects.update(last_checked=utc_now() - datetime.timedelta(seconds=6))


def error_of(response: Response) -> Any:
    assert response.status_code == 400, response.content
    assert response.json()["error_description"]
    return response.json()["error"]


@pytest.mark.parametrize("client_id", [WEB, PUBLIC])
def test_a_person_allows_a_device(browser: Browser, device: Client, client_id: str) -> None:
    asked = ask(device, client_id, scope="openid+read").json()
    assert asked["verification_uri"] == "http://testserver/id/device"
    assert asked["verification_uri_complete"].endswith(f"?user_code={asked['user_code']}")
    assert error_of(poll(device, asked["device_code"], client_id)) == "authorization_pending"
    assert error_of(poll(device, asked["device_code"], client_id)) == "slow_down"
    browser.log_in("demo")
    page = answers(browser, asked["user_code"].lower().replace("-", " ")).content.decode()
    assert "asks for access" in page
    assert "is connected" in answers(browser, asked["user_code"], "allow").content.decode()
    may_poll()
    tokens = poll(device, asked["device_code"], client_id).json()
    assert jwt.decode(tokens["id_token"], options={"verify_signature": False})["sub"] == "demo"
    headers = {"Authorization": f"Bearer {tokens['access_token']}"}
    assert device.get("/profile/me", headers=headers).json()["login"] == "demo"
    # A device code gives tokens once.
    assert error_of(poll(device, asked["device_code"], client_id)) == "invalid_grant"


def test_a_device_gets_no_refresh_token(browser: Browser, device: Client) -> None:
    """The owner's document, 5.3: "only to interactive confidential applications using the authorization code flow"."""
    asked = ask(device, scope="openid+read+offline_access").json()
    browser.log_in("demo")
    answers(browser, asked["user_code"], "allow")
    tokens = poll(device, asked["device_code"]).json()
    assert (tokens["scope"], "refresh_token" in tokens) == ("openid read", False)


def test_a_device_gets_what_the_person_has_seen(browser: Browser, device: Client) -> None:
    TrustedApplication.objects.filter(application_uri=WEB).update(scope="openid read update exec")
    asked = ask(device, scope="read").json()
    browser.log_in("demo")
    page = answers(browser, asked["user_code"]).content.decode()
    assert ("Read data" in page, "Run scripts" in page) == (True, False)
    answers(browser, asked["user_code"], "allow")
    assert poll(device, asked["device_code"]).json()["scope"] == "read"


def test_the_page_of_an_external_user_names_no_scope_of_the_api(browser: Browser, device: Client) -> None:
    asked = ask(device, scope="openid").json()
    browser.log_in("customer")
    page = answers(browser, asked["user_code"]).content.decode()
    assert ("Who you are" in page, "Read data" in page) == (True, False)


def test_a_device_of_a_user_whom_the_application_admits_no_more(browser: Browser, device: Client) -> None:
    asked = ask(device, scope="openid").json()
    browser.log_in("demo")
    answers(browser, asked["user_code"], "allow")
    TrustedApplication.objects.filter(application_uri=WEB).update(
        impersonate_as_internal_user_allowed=False, impersonate_as_community_user_allowed=True
    )
    assert error_of(poll(device, asked["device_code"])) == "invalid_grant"


def test_discovery_names_the_endpoint(device: Client) -> None:
    found = device.get("/id/.well-known/openid-configuration").json()
    assert found["device_authorization_endpoint"] == "http://testserver/id/connect/deviceauthorization"
    assert DEVICE_CODE in found["grant_types_supported"]


def test_a_person_denies_a_device(browser: Browser, device: Client) -> None:
    asked = ask(device).json()
    browser.log_in("demo")
    assert "is not connected" in answers(browser, asked["user_code"], "deny").content.decode()
    assert error_of(poll(device, asked["device_code"])) == "access_denied"


def test_the_page_needs_a_sign_in_and_its_own_form(browser: Browser, device: Client) -> None:
    asked = ask(device).json()
    assert browser.client.get(PAGE).headers["Location"].startswith("/id/account/login")
    browser.log_in("demo")
    assert browser.client.post(PAGE, {"user_code": asked["user_code"], "decision": "allow"}).status_code == 403
    # The code in the URL is only filled in.
    assert asked["user_code"] in browser.client.get(f"{PAGE}?user_code={asked['user_code']}").content.decode()
    assert error_of(poll(device, asked["device_code"])) == "authorization_pending"


def test_a_request_ends_after_ten_minutes(browser: Browser, device: Client) -> None:
    asked = ask(device).json()
    DeviceGrant.objects.update(expires=utc_now() - datetime.timedelta(seconds=1))
    browser.log_in("demo")
    assert "No device waits" in answers(browser, asked["user_code"]).content.decode()
    assert error_of(poll(device, asked["device_code"])) == "expired_token"


def test_a_code_belongs_to_its_client(browser: Browser, device: Client) -> None:
    asked = ask(device).json()
    browser.log_in("demo")
    answers(browser, asked["user_code"], "allow")
    assert error_of(poll(device, asked["device_code"], PUBLIC)) == "invalid_grant"
    assert poll(device, asked["device_code"]).status_code == 200


def test_guessed_codes_are_slowed_down(browser: Browser, device: Client) -> None:
    browser.log_in("demo")
    statuses = [answers(browser, f"BCDF-GH{number:02}").status_code for number in range(60)]
    assert statuses[0] == 200
    assert statuses[-1] == 429
    # Else a guesser would go on, and be told by the answer.
    user_code = ask(device).json()["user_code"]
    assert answers(browser, user_code).status_code == 429
    # Others at the same address are not locked out.
    other = Browser(Client())
    other.log_in("admin")
    assert answers(other, user_code).status_code == 200


def test_a_flood_of_requests_is_refused(device: Client) -> None:
    statuses = [ask(device, PUBLIC).status_code for _ in range(11)]
    assert statuses == [200] * 10 + [429]


def test_stored_codes_are_digests(device: Client) -> None:
    asked = ask(device).json()
    row = DeviceGrant.objects.get()
    assert asked["device_code"] not in str(row.__dict__)
    assert asked["user_code"].replace("-", "") not in str(row.__dict__)


@pytest.mark.parametrize(
    "form, error",
    [
        ({"scope": "everything"}, "invalid_scope"),
        ({"client_id": "nobody"}, "invalid_client"),
        ({"client_secret": "wrong"}, "invalid_client"),
        ({"client_id": "ServiceDemoClient"}, "unauthorized_client"),
    ],
)
def test_a_wrong_request_says_why(device: Client, form: dict[str, str], error: str) -> None:
    response = ask(device, **form)
    assert (response.status_code, response.json()["error"]) == (401 if error == "invalid_client" else 400, error)
    assert not DeviceGrant.objects.exists()


def test_an_application_needs_the_switch(browser: Browser) -> None:
    response = ask(Client())
    assert (response.status_code, response.json()["error"]) == (400, "unauthorized_client")
    assert "DeviceFlowAllowed" in response.json()["error_description"]


@pytest.mark.parametrize("code", ["", "\x00", "x" * 300, "ü"])
def test_an_unusable_device_code_is_refused(device: Client, code: str) -> None:
    assert error_of(poll(device, code)) in ("invalid_grant", "invalid_request")


def test_external_users_need_openid_and_an_application_that_admits_them(browser: Browser, device: Client) -> None:
    asked = ask(device, scope="read").json()
    browser.log_in("customer")
    assert "You may not use this application." in answers(browser, asked["user_code"], "allow").content.decode()
    assert error_of(poll(device, asked["device_code"])) == "authorization_pending"
