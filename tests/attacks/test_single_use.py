"""Proofs and codes work once, for whom and for what they were made (spec 01, 1.2 and 1.4).

Who: an attacker with a sign-in of their own, and whoever has an old code or refresh token. What: to make a victim's
`prompt=login` or `max_age` pass by the attacker's proof; to use a code or token again, also after it expired. What
prevents it: the proof is in the browser's session, for one request (identity.oauth.fresh_login); a second use revokes
the family of tokens (identity.oauth.codes and refresh).
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.test import Client

from foundation.fields import utc_now
from identity.models import Grant, RefreshToken
from identity.oauth.issue import tokens_prune
from tests.identity.flows import WEB, Browser, fields_of, parameters_of, token_request

LOGIN = "/id/account/login"
#: Requests that ask for a fresh login.
FRESH: tuple[dict[str, Any], ...] = ({"prompt": "login"}, {"prompt": "select_account"}, {"max_age": 0})


def way_back(response: Any) -> str:
    """The authorization request to which the login page returns."""
    location = str(response.headers["Location"])
    assert location.startswith(LOGIN), location
    return parse_qs(urlsplit(location).query)["next"][0]


def asks_to_log_in(response: Any) -> bool:
    return str(response.headers.get("Location", "")).startswith(LOGIN)


def status_of(token: str) -> int:
    answer = Client().get("/api/domain/odata/", headers={"Authorization": f"Bearer {token}"})
    return int(answer.status_code)


@pytest.mark.parametrize("fresh", FRESH, ids=str)
def test_a_login_answers_one_request_once(browser: Browser, fresh: dict[str, Any]) -> None:
    browser.sign_in()
    asked = browser.authorize(**fresh)
    back = way_back(asked)
    browser.log_in("demo", at=asked.headers["Location"])
    assert "code" in parameters_of(browser.client.get(back).headers["Location"])
    assert asks_to_log_in(browser.client.get(back))


@pytest.mark.parametrize("fresh", FRESH, ids=str)
def test_the_proof_of_one_request_is_none_for_another(browser: Browser, fresh: dict[str, Any]) -> None:
    asked = browser.authorize(**fresh)
    back = way_back(asked)
    browser.log_in("demo", at=asked.headers["Location"])
    assert asks_to_log_in(browser.client.get(back.replace("state=xyz", "state=other")))
    assert asks_to_log_in(browser.client.get(back.replace("nonce=n-1", "nonce=n-2")))
    assert "code" in parameters_of(browser.client.get(back).headers["Location"])


@pytest.mark.parametrize("fresh", FRESH, ids=str)
def test_an_attackers_proof_is_worth_nothing_in_another_browser(browser: Browser, fresh: dict[str, Any]) -> None:
    attacker = Browser(Client(enforce_csrf_checks=True))
    attacker.sign_in()
    lure = way_back(attacker.authorize(**fresh))
    browser.sign_in()  # later than the attacker's visit, and not for this request
    assert asks_to_log_in(browser.client.get(lure))


def test_a_proof_that_a_sibling_host_has_set_is_worth_nothing(demo: None, settings: Any) -> None:
    """The attacker's proof lies in the victim's browser before the victim logs in for another reason."""
    settings.COOKIE_PREFIX, settings.SESSION_COOKIE_SECURE = "__Host-", True
    attacker, victim = (Browser(Client(enforce_csrf_checks=True)) for _ in range(2))
    asked = attacker.authorize(prompt="login")
    proof = asked.cookies["__Host-asked_logins"]
    assert (proof["path"], proof["domain"], proof["secure"]) == ("/", "", True)
    victim.client.cookies["asked_logins"] = proof.value  # no browser lets a sibling set the name with the prefix
    victim.sign_in("demo")
    assert asks_to_log_in(victim.client.get(way_back(asked)))


def test_another_person_may_log_in_where_prompt_asks_for_it(browser: Browser) -> None:
    browser.sign_in("demo")
    answer = parameters_of(browser.sign_in("admin", prompt="login").headers["Location"])
    assert "code" in answer


def test_a_proof_survives_the_consent_page_and_ends_with_its_answer(browser: Browser) -> None:
    asked = browser.authorize(prompt="login consent")
    back = way_back(asked)
    browser.log_in("demo", at=asked.headers["Location"])
    page = browser.client.get(back).content.decode()
    refused = browser.client.get("/id/connect/authorize", {**fields_of(page), "_consent": "no"})
    assert parameters_of(refused.headers["Location"])["error"] == "access_denied"
    assert asks_to_log_in(browser.client.get(back))


def test_a_code_replayed_after_it_expired_ends_what_it_issued(browser: Browser) -> None:
    code = browser.code(scope="openid read offline_access")
    tokens = browser.redeem(code).json()
    assert status_of(tokens["access_token"]) == 200
    Grant.objects.update(expires=utc_now() - timedelta(hours=23))
    tokens_prune()
    assert browser.redeem(code).json()["error"] == "invalid_grant"
    assert status_of(tokens["access_token"]) == 401
    refreshed = token_request(
        browser.client, grant_type="refresh_token", client_id=WEB, client_secret="DEMO",
        refresh_token=tokens["refresh_token"],
    )  # fmt: skip
    assert refreshed.json()["error"] == "invalid_grant"


def test_a_refresh_token_replayed_after_it_expired_ends_its_family(browser: Browser) -> None:
    first = browser.tokens(scope="openid read offline_access")

    def refresh(token: str) -> Any:
        form = {"grant_type": "refresh_token", "client_id": WEB, "client_secret": "DEMO", "refresh_token": token}
        return token_request(browser.client, **form).json()

    second = refresh(first["refresh_token"])
    third = refresh(second["refresh_token"])
    past = utc_now() - timedelta(hours=23)
    RefreshToken.objects.exclude(revoked=None).update(expires=past, revoked=past)
    tokens_prune()
    assert status_of(third["access_token"]) == 200
    assert refresh(first["refresh_token"])["error"] == "invalid_grant"
    assert status_of(third["access_token"]) == 401
