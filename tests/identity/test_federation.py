"""Sign-in at another OpenID provider: accounts, roles by claim, and what it must not be talked into."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from django.db import connection
from django.test import Client

from identity.demo import seed_identity  # noqa: F401  (the demo's users are those of the fixture)
from identity.federation.accounts import account_enter
from identity.federation.provider import MAX_REQUESTS, Identity, _requests, documents
from identity.models import (
    AuthenticatorApp,
    FederatedAccount,
    IdentityProvider,
    IdentityProviderRole,
    Role,
    RoleUser,
    User,
)
from tests.identity.factors import SECOND, phone_of, prove, set_up_app, signed_in
from tests.identity.flows import LOGOUT_REDIRECT, REDIRECT, WEB, Browser, Response, parameters_of
from tests.support.upstream import CLIENT, SECRET, UpstreamProvider, upstream_provider

pytestmark = pytest.mark.once

START, CALLBACK = "/id/federation/contoso/start", "/id/federation/contoso/callback"


@pytest.fixture(scope="module")
def running() -> Iterator[UpstreamProvider]:
    with upstream_provider() as provider:
        yield provider


@pytest.fixture
def upstream(running: UpstreamProvider, demo: None, settings: Any) -> Iterator[UpstreamProvider]:
    """A provider that tells the truth, unless a test has it say something else."""
    settings.EGRESS_ALLOW = ["127.0.0.0/8"]
    documents.clear()
    yield running
    running.claims, running.userinfo, running.metadata = {}, {}, {}
    running.signing_key, running.algorithm = None, "RS256"
    documents.clear()


@pytest.fixture
def provider(upstream: UpstreamProvider) -> IdentityProvider:
    return IdentityProvider.objects.create(
        code="contoso", name="Contoso", issuer=upstream.issuer, client_id=CLIENT, client_secret=SECRET,
        new_users="ExternalCommunityUser",
    )  # fmt: skip


def enter(browser: Browser, upstream: UpstreamProvider, start: str = START) -> Response:
    """A whole sign-in; the answer of the callback."""
    response = browser.client.get(start)
    assert response.status_code == 302, response.content
    return browser.client.get(CALLBACK, upstream.approve(response.headers["Location"]))


def refused(response: Response, said: str) -> None:
    """A page that says so, and nobody is signed in."""
    assert response.status_code == 403, response
    assert said in response.content.decode(), response.content.decode()
    assert "_auth_user_id" not in response.client.session


def test_the_login_page_offers_each_active_provider(browser: Browser, provider: IdentityProvider) -> None:
    page = browser.client.get("/id/account/login?next=/profile/").content.decode()
    assert f"{START}?next=%2Fprofile%2F" in page
    assert "Contoso" in page
    IdentityProvider.objects.update(is_active=False)
    assert "Contoso" not in browser.client.get("/id/account/login").content.decode()
    assert browser.client.get(START).status_code == 404


def test_a_person_gets_a_user_of_the_type_that_the_policy_says(
    browser: Browser, upstream: UpstreamProvider, provider: IdentityProvider
) -> None:
    assert enter(browser, upstream).headers["Location"] == "/profile/"
    user = User.objects.get(login="anna")
    assert (user.user_type, user.email, user.is_admin, user.has_usable_password()) == (
        "ExternalCommunityUser", "anna@upstream.example", False, False
    )  # fmt: skip
    assert "anna" in browser.client.get("/profile/").content.decode()
    # The next time it is the same user, though the login upstream is another one.
    upstream.claims = {"preferred_username": "renamed"}
    enter(Browser(Client()), upstream)
    assert FederatedAccount.objects.get().user == user


def test_an_application_gets_a_code_after_the_sign_in(
    browser: Browser, upstream: UpstreamProvider, provider: IdentityProvider
) -> None:
    provider.new_users = "InternalUser"
    provider.save()
    login = browser.authorize().headers["Location"]
    answer = enter(browser, upstream, login.replace("/id/account/login", START))
    answer = browser.client.get(answer.headers["Location"])
    assert answer.headers["Location"].startswith(REDIRECT), answer.headers
    token = browser.redeem(parameters_of(answer.headers["Location"])["code"], WEB).json()["id_token"]
    claims = jwt.decode(token, options={"verify_signature": False})
    assert (claims["sub"], claims["idp"]) == ("anna", "contoso")


def test_the_claim_idp_of_a_password_sign_in_is_local(browser: Browser) -> None:
    claims = jwt.decode(browser.tokens()["id_token"], options={"verify_signature": False})
    assert claims["idp"] == "local"
    assert "tid" not in claims


def test_a_tenant_of_the_provider_is_in_the_tokens(
    browser: Browser, upstream: UpstreamProvider, provider: IdentityProvider
) -> None:
    provider.new_users = "InternalUser"
    provider.save()
    upstream.claims = {"tid": "9f1c"}
    login = browser.authorize().headers["Location"]
    answer = enter(browser, upstream, login.replace("/id/account/login", START))
    answer = browser.client.get(answer.headers["Location"])
    answer = browser.redeem(parameters_of(answer.headers["Location"])["code"], WEB).json()
    for name in ("id_token", "access_token"):
        claims = jwt.decode(answer[name], options={"verify_signature": False})
        assert (claims["idp"], claims["tid"]) == ("contoso", "9f1c")


def test_a_fresh_sign_in_is_asked_for_and_checked(
    browser: Browser, upstream: UpstreamProvider, provider: IdentityProvider
) -> None:
    provider.new_users = "InternalUser"
    provider.save()
    login = browser.authorize(prompt="login").headers["Location"].replace("/id/account/login", START)
    location = browser.client.get(login).headers["Location"]
    assert parameters_of(location)["prompt"] == "login"
    upstream.claims = {"auth_time": 1_700_000_000}
    refused(browser.client.get(CALLBACK, upstream.approve(location)), "did not ask you to sign in again")
    upstream.claims = {"auth_time": None}
    refused(enter(browser, upstream, login), "did not ask you to sign in again")
    upstream.claims = {}
    answer = browser.client.get(enter(browser, upstream, login).headers["Location"])
    assert answer.headers["Location"].startswith(REDIRECT)


def test_roles_follow_the_claim(browser: Browser, upstream: UpstreamProvider, provider: IdentityProvider) -> None:
    provider.role_claim = "groups"
    provider.save()
    seller, buyer, own = (Role.objects.create(name=name) for name in ("Seller", "Buyer", "Own"))
    IdentityProviderRole.objects.create(provider=provider, claim_value="g-sales", role=seller)
    IdentityProviderRole.objects.create(provider=provider, claim_value="g-buy", role=buyer)
    upstream.claims = {"groups": ["g-sales", "g-other"]}
    enter(browser, upstream)
    user = User.objects.get(login="anna")
    RoleUser.objects.create(user=user, role=own)
    assert set(user.roles.all()) == {seller, own}
    upstream.claims = {"groups": "g-buy"}
    enter(browser, upstream)
    assert set(user.roles.all()) == {buyer, own}
    upstream.claims = {}
    enter(browser, upstream)
    assert set(user.roles.all()) == {own}


@pytest.mark.django_db(transaction=True)
def test_sign_ins_of_one_account_at_once_add_a_role_once() -> None:
    user, role = User.objects.create_user("anna", name={"EN": "Anna"}), Role.objects.create(name="Sales")
    provider = IdentityProvider.objects.create(code="c", name="C", issuer="https://c.example", role_claim="role")
    IdentityProviderRole.objects.create(provider=provider, claim_value="sales", role=role)
    FederatedAccount.objects.create(provider=provider, subject="1", user=user)
    barrier = threading.Barrier(4)

    def enter_once(_number: int) -> None:
        barrier.wait(60)
        try:
            account_enter(provider, Identity("1", {"role": "sales"}, "", None))
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(enter_once, range(4)))
    assert RoleUser.objects.filter(user=user, role=role).count() == 1


def test_without_a_policy_nobody_is_created(
    browser: Browser, upstream: UpstreamProvider, provider: IdentityProvider
) -> None:
    provider.new_users = ""
    provider.save()
    refused(enter(browser, upstream), "No user here is connected")
    assert not User.objects.filter(login="anna").exists()


@pytest.mark.parametrize(
    "claims",
    [
        {"preferred_username": "demo"},
        {"preferred_username": "DEMO"},
        {"preferred_username": "admin", "email": "admin@example.com", "email_verified": True},
    ],
)
def test_an_equal_login_or_address_proves_nothing(
    browser: Browser, upstream: UpstreamProvider, provider: IdentityProvider, claims: dict[str, Any]
) -> None:
    upstream.claims = claims
    refused(enter(browser, upstream), "belongs to another user here")
    assert not FederatedAccount.objects.exists()


def test_an_unverified_address_is_not_taken(
    browser: Browser, upstream: UpstreamProvider, provider: IdentityProvider
) -> None:
    upstream.claims = {"email": "admin@example.com", "email_verified": False}
    enter(browser, upstream)
    assert User.objects.get(login="anna").email is None


@pytest.mark.parametrize(
    "email",
    [
        f"{'a' * 242}@example.com.evil.example",
        "anna@example.com, demo@example.com",
        "a@example.com\nBcc: b@example.com",
    ],
)
def test_an_address_that_is_none_is_not_taken(
    browser: Browser, upstream: UpstreamProvider, provider: IdentityProvider, email: str
) -> None:
    """Least of all cut off to the address of somebody else."""
    upstream.claims = {"email": email, "email_verified": True}
    enter(browser, upstream)
    assert User.objects.get(login="anna").email is None


def test_odd_characters_of_a_name_are_left_out(
    browser: Browser, upstream: UpstreamProvider, provider: IdentityProvider
) -> None:
    """Databases refuse them: the sign-in ended in an internal error."""
    upstream.claims = {"name": "An\x00n\ud800a\n\u200d Ü", "role": ["\ud800", "\x00"]}
    enter(browser, upstream)
    assert User.objects.get(login="anna").name == {"EN": "Anna\u200d Ü"}


@pytest.mark.parametrize("subject", ["\x00", "\ud800", "a" * 256, ""])
def test_a_subject_that_cannot_be_one_is_refused(
    browser: Browser, upstream: UpstreamProvider, provider: IdentityProvider, subject: str
) -> None:
    upstream.claims = {"sub": subject}
    refused(enter(browser, upstream), "no usable subject")


@pytest.mark.parametrize("login", [None, "", " ", "x" * 65, "a\nb", "a b", 7, ["a"]])
def test_a_login_that_cannot_be_one_is_refused(
    browser: Browser, upstream: UpstreamProvider, provider: IdentityProvider, login: Any
) -> None:
    upstream.claims = {"preferred_username": login}
    upstream.userinfo = {"sub": "u-1"}
    refused(enter(browser, upstream), "no usable login")


def test_userinfo_has_what_the_id_token_lacks(
    browser: Browser, upstream: UpstreamProvider, provider: IdentityProvider
) -> None:
    upstream.claims = {"preferred_username": None}
    upstream.userinfo = {"sub": "somebody else", "preferred_username": "admin2"}
    refused(enter(browser, upstream), "somebody else")
    upstream.userinfo = {"sub": "u-1", "preferred_username": "berta"}
    enter(browser, upstream)
    assert User.objects.filter(login="berta").exists()


def test_a_disabled_user_does_not_enter(
    browser: Browser, upstream: UpstreamProvider, provider: IdentityProvider
) -> None:
    enter(browser, upstream)
    User.objects.filter(login="anna").update(active=False)
    refused(enter(Browser(Client()), upstream), "disabled")


# --- connecting ---------------------------------------------------------------------------------------------------


CONNECT = "/id/federation/contoso/connect"


def connect(browser: Browser, upstream: UpstreamProvider) -> Response:
    """Connect the account of the person upstream to the signed-in user."""
    token = browser.client.get(CONNECT).context["csrf_token"]
    response = browser.client.post(CONNECT, {"csrfmiddlewaretoken": token})
    return browser.client.get(CALLBACK, upstream.approve(response.headers["Location"]), follow=True)


def test_a_user_connects_and_disconnects_an_account(
    browser: Browser, upstream: UpstreamProvider, provider: IdentityProvider
) -> None:
    browser.log_in("demo")
    assert "is connected" in connect(browser, upstream).content.decode()
    other = Browser(Client(enforce_csrf_checks=True))
    enter(other, upstream)
    page = other.client.get("/profile/")
    assert "demo@example.com" in page.content.decode()
    token = page.context["csrf_token"]
    said = other.client.post(
        "/id/federation/contoso/disconnect", {"csrfmiddlewaretoken": str(token)}, follow=True
    ).content.decode()
    assert "has been disconnected" in said
    assert not FederatedAccount.objects.exists()


def test_connecting_needs_a_recent_sign_in_and_a_form_of_this_site(
    browser: Browser, upstream: UpstreamProvider, provider: IdentityProvider
) -> None:
    browser.log_in("demo")
    assert browser.client.post(CONNECT).status_code == 403
    session = browser.client.session
    session["auth_time"] -= 3600
    session.save()
    assert browser.client.get(CONNECT).headers["Location"].startswith("/id/account/login")


def test_a_role_that_requires_a_factor_does_so_after_an_upstream_sign_in(
    browser: Browser, upstream: UpstreamProvider, provider: IdentityProvider
) -> None:
    enter(browser, upstream)
    role = Role.objects.create(name="Strict", required_factor="SecondFactor")
    RoleUser.objects.create(user=User.objects.get(login="anna"), role=role)
    upstream.claims = {"amr": ["pwd", "mfa"]}
    other = Browser(Client())
    assert enter(other, upstream).headers["Location"] == "/id/account/second-factor/new"
    assert "_auth_user_id" not in other.client.session
    # Set up, it is a second factor beside the provider's sign-in, as beside a password.
    phone, _answer = set_up_app(other)
    assert signed_in(other)
    other.client.logout()
    assert enter(other, upstream).headers["Location"] == SECOND
    assert prove(other, code=phone.code()).headers["Location"] == "/profile/"
    AuthenticatorApp.objects.all().delete()

    # What the provider says of factors counts only where an administrator says so.
    IdentityProvider.objects.update(trusts_factors=True)
    assert enter(other, upstream).headers["Location"] == "/profile/"


def test_an_account_belongs_to_one_user(
    browser: Browser, upstream: UpstreamProvider, provider: IdentityProvider
) -> None:
    enter(browser, upstream)
    browser = Browser(Client(enforce_csrf_checks=True))
    browser.log_in("demo")
    assert "connected to another user" in connect(browser, upstream).content.decode()


def test_the_only_way_to_sign_in_stays(
    browser: Browser, upstream: UpstreamProvider, provider: IdentityProvider
) -> None:
    enter(browser, upstream)
    token = browser.client.get("/profile/").context["csrf_token"]
    said = browser.client.post(
        "/id/federation/contoso/disconnect", {"csrfmiddlewaretoken": str(token)}, follow=True
    ).content.decode()
    assert "your only way to sign in" in said
    assert FederatedAccount.objects.exists()


def test_connecting_ends_where_another_user_is_signed_in_meanwhile(
    browser: Browser, upstream: UpstreamProvider, provider: IdentityProvider
) -> None:
    browser.log_in("demo")
    token = browser.client.get(CONNECT).context["csrf_token"]
    begun = browser.client.post(CONNECT, {"csrfmiddlewaretoken": token}).headers["Location"]
    browser.log_in("admin")
    answer = browser.client.get(CALLBACK, upstream.approve(begun))
    assert "signed out meanwhile" in answer.content.decode()
    assert not FederatedAccount.objects.exists()


# --- attacks ------------------------------------------------------------------------------------------------------


def test_an_answer_in_another_browser_is_refused(
    browser: Browser, upstream: UpstreamProvider, provider: IdentityProvider
) -> None:
    location = browser.client.get(START).headers["Location"]
    answer = upstream.approve(location)
    refused(Browser(Client()).client.get(CALLBACK, answer), "not begun in this browser")
    refused(browser.client.get(CALLBACK, {**answer, "state": "other"}), "not begun in this browser")
    assert browser.client.get(CALLBACK, answer).status_code == 302
    assert "not begun in this browser" in browser.client.get(CALLBACK, answer).content.decode()


@pytest.mark.parametrize(
    "claims, said",
    [
        ({"nonce": "other"}, "another sign-in"),
        ({"nonce": None}, "another sign-in"),
        ({"aud": "another application"}, "not valid"),
        ({"aud": [CLIENT, "another"]}, "another application"),
        ({"aud": [CLIENT, "another"], "azp": "another"}, "another application"),
        ({"azp": "another"}, "another application"),
        ({"iss": "https://evil.example"}, "not valid"),
        ({"exp": 1_700_000_000}, "not valid"),
        ({"exp": None}, "not valid"),
        ({"sub": None}, "not valid"),
        ({"sub": ""}, "subject"),
        ({"sub": "x" * 256}, "subject"),
        ({"iat": 4_000_000_000}, "not valid"),
    ],
)
def test_an_id_token_that_is_not_ours_is_refused(
    browser: Browser, upstream: UpstreamProvider, provider: IdentityProvider, claims: dict[str, Any], said: str
) -> None:
    upstream.claims = claims
    refused(enter(browser, upstream), said)
    assert not FederatedAccount.objects.exists()


@pytest.mark.parametrize("algorithm", ["none", "HS256", "RS256"])
def test_a_signature_that_is_not_the_providers_is_refused(
    browser: Browser, upstream: UpstreamProvider, provider: IdentityProvider, algorithm: str
) -> None:
    upstream.algorithm = algorithm
    upstream.signing_key = rsa.generate_private_key(65537, 2048)
    refused(enter(browser, upstream), "not valid")


@pytest.mark.parametrize(
    "metadata, said",
    [
        ({"issuer": "https://evil.example"}, "names the issuer"),
        ({"jwks_uri": None}, "has no jwks_uri"),
        ({"authorization_endpoint": "javascript:alert(1)"}, "has no authorization_endpoint"),
    ],
)
def test_a_discovery_document_that_cannot_be_trusted_is_refused(
    browser: Browser, upstream: UpstreamProvider, provider: IdentityProvider, metadata: dict[str, Any], said: str
) -> None:
    upstream.metadata = metadata
    refused(browser.client.get(START), said)


def test_an_answer_of_another_issuer_is_refused(
    browser: Browser, upstream: UpstreamProvider, provider: IdentityProvider
) -> None:
    upstream.metadata = {"authorization_response_iss_parameter_supported": True}
    answer = upstream.approve(browser.client.get(START).headers["Location"])
    refused(browser.client.get(CALLBACK, answer), "another issuer")
    answer = upstream.approve(browser.client.get(START).headers["Location"])
    refused(browser.client.get(CALLBACK, {**answer, "iss": "https://evil.example"}), "another issuer")
    answer = upstream.approve(browser.client.get(START).headers["Location"])
    assert browser.client.get(CALLBACK, {**answer, "iss": upstream.issuer}).status_code == 302


@pytest.mark.parametrize("answer", [{"error": "access_denied"}, {"code": "wrong"}, {"code": "\x00"}, {}])
def test_an_error_of_the_provider_is_shown(
    browser: Browser, upstream: UpstreamProvider, provider: IdentityProvider, answer: dict[str, str]
) -> None:
    state = upstream.approve(browser.client.get(START).headers["Location"])["state"]
    refused(browser.client.get(CALLBACK, {"state": state, **answer}), answer.get("error", "invalid_grant"))


def test_it_leads_only_to_this_instance(
    browser: Browser, upstream: UpstreamProvider, provider: IdentityProvider
) -> None:
    assert enter(browser, upstream, f"{START}?next=https://evil.example/").headers["Location"] == "/profile/"
    long = browser.client.get(f"{START}?next=/profile/?{'%F0%9F%98%80x' * 900}")
    assert long.status_code in (302, 403)


def test_few_requests_wait_for_providers_at_once(
    browser: Browser, upstream: UpstreamProvider, provider: IdentityProvider
) -> None:
    """Anybody can begin a sign-in, and a provider may be slow."""
    with ExitStack() as waiting:
        for _ in range(MAX_REQUESTS):
            waiting.enter_context(_requests)
        refused(browser.client.get(START), "Too many people sign in there")
    assert browser.client.get(START).status_code == 302


def test_a_login_hint_is_handed_on(browser: Browser, upstream: UpstreamProvider, provider: IdentityProvider) -> None:
    page = browser.client.get("/id/account/login?login_hint=anna%26").content.decode()
    assert f"{START}?login_hint=anna%26" in page
    location = browser.client.get(f"{START}?login_hint=anna%26").headers["Location"]
    assert parameters_of(location)["login_hint"] == "anna&"


def test_an_unreachable_provider_says_so(browser: Browser, provider: IdentityProvider, settings: Any) -> None:
    settings.EGRESS_ALLOW = []
    response = browser.client.get(START)
    refused(response, "cannot be reached")
    assert "127.0.0.1" not in response.content.decode()


# --- sign-out -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("before", ["nobody", "demo"])
def test_the_sign_out_goes_through_the_provider(
    browser: Browser, upstream: UpstreamProvider, provider: IdentityProvider, before: str
) -> None:
    if before == "demo":
        browser.log_in(before)
    enter(browser, upstream)
    token = browser.client.get("/id/account/logout").context["csrf_token"]
    response = browser.client.post("/id/account/logout", {"csrfmiddlewaretoken": str(token)})
    assert response.status_code == 302, response.content
    assert response.headers["Location"].startswith(f"{upstream.issuer}/logout?")
    asked = parameters_of(response.headers["Location"])
    assert asked["post_logout_redirect_uri"] == "http://testserver/id/federation/contoso/signed-out"
    assert "_auth_user_id" not in browser.client.session
    back = browser.client.get("/id/federation/contoso/signed-out", {"state": asked["state"]})
    assert back.status_code == 200
    assert browser.client.get("/id/federation/contoso/signed-out?state=x").status_code == 200


def test_the_sign_out_of_an_application_comes_back_to_it(
    browser: Browser, upstream: UpstreamProvider, provider: IdentityProvider
) -> None:
    provider.new_users = "InternalUser"
    provider.save()
    login = browser.authorize().headers["Location"]
    answer = browser.client.get(enter(browser, upstream, login.replace("/id/account/login", START)).headers["Location"])
    token = browser.redeem(parameters_of(answer.headers["Location"])["code"], WEB).json()["id_token"]
    asked = {"id_token_hint": token, "post_logout_redirect_uri": LOGOUT_REDIRECT, "state": "s-1"}
    location = browser.client.get("/id/connect/endsession", asked).headers["Location"]
    assert location.startswith(f"{upstream.issuer}/logout?")
    back = {"state": parameters_of(location)["state"]}
    answer = browser.client.get("/id/federation/contoso/signed-out", back)
    assert answer.headers["Location"] == f"{LOGOUT_REDIRECT}?state=s-1"


def test_another_user_signs_out_nobody_at_the_provider(
    browser: Browser, upstream: UpstreamProvider, provider: IdentityProvider
) -> None:
    """Somebody got no further than the second factor in this browser; the id token is not for whoever comes next."""
    enter(browser, upstream)
    phone_of("anna")
    other = Browser(Client())
    assert enter(other, upstream).headers["Location"] == SECOND
    other.log_in("demo")
    token = other.client.get("/id/account/logout").context["csrf_token"]
    response = other.client.post("/id/account/logout", {"csrfmiddlewaretoken": str(token)})
    assert response.status_code == 200, response.headers["Location"]


def test_a_local_sign_out_stays_here(browser: Browser, upstream: UpstreamProvider, provider: IdentityProvider) -> None:
    provider.signs_out = False
    provider.save()
    enter(browser, upstream)
    token = browser.client.get("/id/account/logout").context["csrf_token"]
    assert browser.client.post("/id/account/logout", {"csrfmiddlewaretoken": str(token)}).status_code == 200
