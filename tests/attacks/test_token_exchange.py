"""An application acts for the users of others only where an administrator allowed it, and never with more rights.

Who: whoever runs an application, or has an access token of another one. What: to get a token of that user with more
scopes, for longer, or after the user's access ended. What prevents it: RFC 8693 here is for delegation by a list of
applications, and each use of the new token checks what it was exchanged for (identity.oauth.exchange).
"""

from __future__ import annotations

import base64
import datetime
from collections.abc import Callable
from typing import Any

import jwt as pyjwt
import pytest
from django.core.exceptions import ValidationError
from django.test import Client

from audit.actors import OPERATOR
from foundation.fields import utc_now
from identity.access_revocation import user_access_revoke
from identity.applications import check_application
from identity.changes import access_changed, tokens_revoked
from identity.dpop import nonce_now
from identity.models import AccessToken, Role, RoleUser, Session, TrustedApplication, User
from identity.oauth.clients import TOKEN_EXCHANGE
from identity.oauth.exchange import ACCESS_TOKEN
from tests.domain.security.conftest import caller
from tests.identity.flows import DUAL, PUBLIC, SECRET, SERVICE, WEB, Browser, Response, service_token, token_request
from tests.support.client_keys import TOKEN_ENDPOINT, ClientKey

pytestmark = pytest.mark.once


def allow(actor: str, *others: str) -> None:
    TrustedApplication.objects.filter(application_uri=actor).update(token_exchange_applications=",".join(others))
    access_changed(TrustedApplication)


@pytest.fixture
def token(browser: Browser) -> str:
    """A token of the web application, which the service may exchange."""
    allow(SERVICE, WEB)
    return str(browser.tokens(scope="openid read update")["access_token"])


def exchanged(token: str, client_id: str = SERVICE, headers: dict[str, str] | None = None, **form: str) -> Response:
    secret = {} if client_id == PUBLIC else {"client_secret": SECRET}
    form = {"grant_type": TOKEN_EXCHANGE, "client_id": client_id, **secret, "subject_token": token,
            "subject_token_type": ACCESS_TOKEN, **form}  # fmt: skip
    sent = {name: value for name, value in form.items() if value != "-"}
    return token_request(Client(headers=headers or {}), **sent)


def of(response: Response) -> str:
    assert response.status_code == 200, response.content
    return str(response.json()["access_token"])


def refusal(response: Response, error: str = "invalid_request") -> str:
    assert (response.status_code, response.json()["error"]) == (400, error), response.content
    return str(response.json()["error_description"])


def claims(token: str) -> dict[str, Any]:
    found: dict[str, Any] = pyjwt.decode(token, options={"verify_signature": False})
    return found


def status(token: str) -> int:
    return int(Client().get("/profile/me", headers={"Authorization": f"Bearer {token}"}).status_code)


def asked(endpoint: str, token: str, client_id: str = SERVICE) -> dict[str, Any]:
    form = f"client_id={client_id}&client_secret={SECRET}&token={token}"
    found: dict[str, Any] = (
        Client().post(f"/id/connect/{endpoint}", form, content_type="application/x-www-form-urlencoded").json()
    )
    return found


def test_a_service_acts_for_the_user_who_called_it(token: str) -> None:
    response = exchanged(token, scope="read")
    found = response.json()
    assert set(found) == {"access_token", "issued_token_type", "token_type", "expires_in", "scope"}
    assert (found["issued_token_type"], found["token_type"], found["scope"]) == (ACCESS_TOKEN, "Bearer", "read")
    subject, new = claims(token), claims(found["access_token"])
    assert (new["sub"], new["client_id"], new["act"]) == ("demo", SERVICE, {"sub": SERVICE})
    assert new["exp"] <= subject["exp"]
    assert (new["sid"], new["auth_time"], new["amr"]) == (subject["sid"], subject["auth_time"], subject["amr"])
    assert status(found["access_token"]) == 200
    state = asked("introspect", found["access_token"])
    assert (state["active"], state["username"], state["act"]) == (True, "demo", {"sub": SERVICE})
    # Client and user are those of one session, which takes one slot.
    for each in (found["access_token"], token):
        Client().get("/api/domain/odata/", headers={"Authorization": f"Bearer {each}"})
    assert [session.application.application_uri for session in Session.objects.all()] == [WEB]


def test_a_service_ends_its_own_token_alone(token: str) -> None:
    new = of(exchanged(token))
    asked("revocation", new)
    assert (status(new), status(token)) == (401, 200)


def test_the_chain_of_actors_is_named_and_bounded(token: str) -> None:
    allow(DUAL, SERVICE)
    allow(WEB, DUAL)
    allow(SERVICE, WEB)
    second = of(exchanged(of(exchanged(token)), DUAL))
    assert claims(second)["act"] == {"sub": DUAL, "act": {"sub": SERVICE}}
    third = of(exchanged(second, WEB))
    assert asked("introspect", third, WEB)["act"] == {"sub": WEB, "act": {"sub": DUAL, "act": {"sub": SERVICE}}}
    assert "At most 3" in refusal(exchanged(third))
    # An end in the middle of the chain is an end of what follows.
    allow(DUAL, PUBLIC)
    assert [status(each) for each in (token, second, third)] == [200, 401, 401]


@pytest.mark.parametrize("scope,granted", [("DomainApi", "read update"), ("DomainApi read", "read")])
def test_the_scope_of_older_clients_is_ignored(token: str, scope: str, granted: str) -> None:
    assert exchanged(token, scope=scope).json()["scope"] == granted


@pytest.mark.parametrize("scope", ["exec", "read openid", "offline_access", "scim", "sec", "nonsense", "read exec"])
def test_no_scope_is_added(token: str, scope: str) -> None:
    assert "read update" in refusal(exchanged(token, scope=scope), "invalid_scope")


def test_no_scope_in_common_is_an_error(browser: Browser, token: str) -> None:
    TrustedApplication.objects.filter(application_uri=SERVICE).update(scope="exec")
    assert "no scope" in refusal(exchanged(token), "invalid_scope")


def test_nothing_is_longer_than_the_subject_token(token: str) -> None:
    soon = utc_now() + datetime.timedelta(seconds=90)
    AccessToken.objects.update(expires=soon)
    tokens_revoked()
    response = exchanged(token).json()
    assert response["expires_in"] <= 90
    assert claims(response["access_token"])["exp"] <= soon.timestamp()
    AccessToken.objects.update(expires=utc_now())
    tokens_revoked()
    assert "refused" in refusal(exchanged(token))


def test_the_list_of_the_administrator_decides(browser: Browser, token: str) -> None:
    assert "TokenExchangeApplications" in refusal(exchanged(token, DUAL), "unauthorized_client")
    allow(DUAL, SERVICE)
    assert "TokenExchangeApplications" in refusal(exchanged(token, DUAL))
    allow(WEB, WEB)
    refusal(exchanged(token, WEB))
    new = of(exchanged(token))
    assert status(new) == 200
    allow(SERVICE)
    assert status(new) == 401


def test_a_public_application_exchanges_nothing(token: str) -> None:
    allow(PUBLIC, WEB)
    assert "public" in refusal(exchanged(token, PUBLIC), "unauthorized_client")


def test_a_wrong_secret_exchanges_nothing(token: str) -> None:
    response = exchanged(token, client_secret="wrong")
    assert (response.status_code, response.json()["error"]) == (401, "invalid_client")


def deactivate() -> None:
    user = User.objects.get(login="demo")
    User.objects.filter(pk=user.pk).update(active=False)
    access_changed(User)
    user_access_revoke(user.pk, by=OPERATOR)


def make_external() -> None:
    User.objects.filter(login="demo").update(user_type="ExternalCommunityUser")
    access_changed(User)


def disable(application_uri: str) -> Callable[[], None]:
    def act() -> None:
        TrustedApplication.objects.filter(application_uri=application_uri).update(is_enabled=False)
        access_changed(TrustedApplication)

    return act


def revoke_family() -> None:
    asked("revocation", _subject, WEB)


def forbid_people() -> None:
    TrustedApplication.objects.filter(application_uri=WEB).update(impersonate_as_internal_user_allowed=False)
    access_changed(TrustedApplication)


_subject = ""


@pytest.mark.parametrize("end", [deactivate, make_external, disable(WEB), revoke_family, forbid_people])
def test_what_ends_the_subject_token_ends_the_new_one(
    token: str, end: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "_subject", token)
    new = of(exchanged(token))
    assert status(new) == 200
    end()
    assert status(new) in (401, 403)
    assert asked("introspect", new) == {"active": False}
    assert "refused" in refusal(exchanged(token))


def test_nothing_is_left_after_a_sign_out(browser: Browser, token: str) -> None:
    new = of(exchanged(token))
    page = browser.client.get("/id/account/logout")
    browser.client.post("/id/account/logout", {"csrfmiddlewaretoken": str(page.context["csrf_token"])})
    assert (status(token), status(new)) == (401, 401)
    assert "refused" in refusal(exchanged(token))
    assert not AccessToken.objects.exists()


def test_a_disabled_actor_exchanges_nothing(token: str) -> None:
    disable(SERVICE)()
    refusal(exchanged(token), "unauthorized_client")


def test_tokens_of_services_and_reference_tokens_are_refused(browser: Browser, http: Client, token: str) -> None:
    allow(DUAL, SERVICE)
    assert "service" in refusal(exchanged(service_token(http), DUAL))
    assert "reference" in refusal(exchanged(caller(User.objects.get(login="demo"), scopes="read").token))


def test_a_role_that_requires_a_factor_now_refuses(token: str) -> None:
    role = Role.objects.create(name="Strict", required_factor="Passkey")
    RoleUser.objects.create(role=role, user=User.objects.get(login="demo"))
    access_changed(Role)
    assert "factor" in refusal(exchanged(token))


def test_a_token_bound_to_a_key_is_refused(token: str) -> None:
    AccessToken.objects.update(dpop_jkt="x" * 43)
    tokens_revoked()
    assert "bound" in refusal(exchanged(token))


def test_the_new_token_is_bound_to_the_actors_proof(token: str) -> None:
    proof = ClientKey().proof("POST", TOKEN_ENDPOINT, nonce=nonce_now())
    response = exchanged(token, headers={"DPoP": proof})
    assert response.json()["token_type"] == "DPoP"
    new = of(response)
    assert set(claims(new)["cnf"]) == {"jkt"}
    assert status(new) == 401


def test_the_list_names_other_applications_that_exist(demo: None) -> None:
    application = TrustedApplication.objects.get(application_uri=PUBLIC)
    application.token_exchange_applications = f"{WEB}, nobody, {PUBLIC}"
    with pytest.raises(ValidationError) as caught:
        check_application(application)
    assert caught.value.message_dict == {
        "token_exchange_applications": [
            "A public application may not exchange tokens.",
            "An application does not exchange its own tokens.",
            "Unknown applications: nobody.",
        ]
    }


@pytest.mark.parametrize(
    "form, error, said",
    [
        ({"subject_token": "-"}, "invalid_request", "no subject_token."),
        ({"subject_token": ""}, "invalid_request", "no subject_token."),
        ({"subject_token": "x"}, "invalid_request", "refused"),
        ({"subject_token": "a.b.c"}, "invalid_request", "refused"),
        ({"subject_token": "\x00ü"}, "invalid_request", "refused"),
        ({"subject_token": "x" * 9000}, "invalid_request", "refused"),
        ({"subject_token_type": "-"}, "invalid_request", "no subject_token_type"),
        ({"subject_token_type": "urn:ietf:params:oauth:token-type:id_token"}, "invalid_request", "must be"),
        ({"requested_token_type": "urn:ietf:params:oauth:token-type:refresh_token"}, "invalid_request", "must be"),
        ({"actor_token": "x"}, "invalid_request", "actor_token"),
        ({"actor_token_type": ACCESS_TOKEN}, "invalid_request", "actor_token"),
        ({"audience": "https://other.test"}, "invalid_target", "audience"),
        ({"resource": "https://other.test/"}, "invalid_target", "resource"),
        ({"resource": "http://testserver.other.test/"}, "invalid_target", "resource"),
        ({"resource": "nonsense"}, "invalid_target", "resource"),
    ],
)
def test_a_wrong_parameter_is_named(token: str, form: dict[str, Any], error: str, said: str) -> None:
    assert said in refusal(exchanged(token, **form), error)
    assert AccessToken.objects.count() == 1


def test_targets_of_this_instance_may_be_named(token: str) -> None:
    response = exchanged(token, audience="DomainAPI", resource="http://testserver/api/domain/odata",
                         requested_token_type=ACCESS_TOKEN)  # fmt: skip
    assert response.status_code == 200


def test_a_token_for_one_audience_is_refused_by_the_other(token: str) -> None:
    def is_refused(token: str, path: str) -> bool:
        return Client().get(path, headers={"Authorization": f"Bearer {token}"}).status_code == 401

    paths = {"DomainAPI": "/api/domain/odata/General_Currencies", "TableAPI": "/tableapi/odata/Gen_Currencies"}
    assert not any(is_refused(token, path) for path in paths.values())
    for audience, path in paths.items():
        narrow = of(exchanged(token, audience=audience))
        for _ in ("first", "cached"):
            assert not is_refused(narrow, path)
            assert all(is_refused(narrow, other) for name, other in paths.items() if name != audience)
        access_changed()
        assert all(is_refused(narrow, other) for name, other in paths.items() if name != audience)


@pytest.mark.parametrize(
    "more, status_code, error",
    [
        ("&subject_token=x", 400, "invalid_request"),
        ("&resource=http://testserver&resource=https://other.test", 400, "invalid_target"),
        ("&resource=https://other.test&resource=http://testserver", 400, "invalid_target"),
        (f"&scope={'x' * 70000}", 413, "invalid_request"),
    ],
)
def test_repeated_and_large_parameters(token: str, more: str, status_code: int, error: str) -> None:
    body = f"grant_type={TOKEN_EXCHANGE}&subject_token={token}&subject_token_type={ACCESS_TOKEN}{more}"
    basic = base64.b64encode(f"{SERVICE}:{SECRET}".encode()).decode()
    response = Client().post("/id/connect/token", body, content_type="application/x-www-form-urlencoded",
                             headers={"Authorization": f"Basic {basic}"})  # fmt: skip
    assert (response.status_code, response.json()["error"]) == (status_code, error)
    assert response.json()["error_description"]
    assert AccessToken.objects.count() == 1
