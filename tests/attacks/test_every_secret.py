"""No place where a secret can be guessed at any speed (spec 01, 1.9).

Who: anybody, from one address. What: to try passwords, client secrets, codes, tokens, links and session keys until one
is right, at whichever endpoint is not limited. What prevents it: identity.rate_limits counts wrong secrets of every
kind, and answers 429 or lets one try in five seconds through.

ENDPOINTS names the secrets that each address takes. It is compared with the URL configuration, so a new address fails
until it is classified here, and each kind of secret is tried at each address that takes it.
"""

from __future__ import annotations

import base64
import re
import secrets
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.sessions.models import Session as Sessions
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from pytest_django import Settings

from foundation.errors import TooManyRequests
from foundation.fields import utc_now
from identity.models import RegistrationPolicy, User
from identity.password_reset import password_link_make as password_link
from platform_site.serving import bodies
from platform_site.serving.callers import Callers
from tests.identity.factors import phone_of, recovery_codes_of
from tests.identity.flows import REDIRECT, SERVICE, WEB, Browser, fields_of, service_token
from tests.support.authenticator import Authenticator, ceremony_of

pytestmark = pytest.mark.once

#: More than any limit of wrong secrets of one kind from one address.
TRIES = 40
FORM = "application/x-www-form-urlencoded"
UID = base64.urlsafe_b64encode(b"00000000-0000-4000-8000-000000000001").decode().rstrip("=")

#: Kinds of secrets. All but the session key are tried by a function of the same name in ATTEMPTS.
CLIENT_SECRET, CODE, REFRESH_TOKEN, TOKEN = "client secret", "code", "refresh token", "token to introspect or revoke"
ONE_TIME_CODE, RECOVERY_CODE, PASSKEY = "one-time code", "recovery code", "passkey"
USER_CODE, INITIAL_TOKEN = "user code", "initial access token"
REFERENCE_TOKEN, REFERENCE_TOKEN_IN_FORM = "reference token", "reference token in a form"
REFERENCE_TOKEN_IN_BASIC, PASSWORD_IN_BASIC = "reference token in HTTP Basic", "password in HTTP Basic"
REFERENCE_TOKEN_OF_A_POST = "reference token of a POST"
PASSWORD, OLD_PASSWORD, LINK, METRICS_TOKEN = "password", "current password", "link", "metrics token"
OF_A_CLIENT = (CLIENT_SECRET, TOKEN)
#: Route → secrets that are compared with something there, besides the browser's session key, which every page takes
#: and addresses of the API do not. Access and id tokens, pages' and delta links are not among them: they are signed or
#: encrypted, and nothing is looked up before their signature is right.
ENDPOINTS: dict[str, tuple[str, ...]] = {
    "": (),
    "favicon.ico": (),
    "brand/logo": (),
    "brand/style.css": (),
    "id/.well-known/openid-configuration": (),
    "id/.well-known/openid-configuration/jwks": (),
    "id/connect/authorize": (),  # id_token_hint is signed
    "id/connect/token": (CLIENT_SECRET, CODE, REFRESH_TOKEN),
    "id/connect/userinfo": (REFERENCE_TOKEN, REFERENCE_TOKEN_IN_FORM),
    "id/connect/revocation": OF_A_CLIENT,
    "id/connect/par": (CLIENT_SECRET,),
    "id/connect/introspect": OF_A_CLIENT,
    "id/connect/endsession": (),  # id_token_hint is signed
    "id/account/login": (PASSWORD,),
    "id/account/logout": (),
    "id/account/password": (OLD_PASSWORD,),
    "id/account/email": (OLD_PASSWORD,),
    "id/account/email/<str:uid>/set": (),  # the token is in the session, which the link has filled
    "id/account/email/<str:uid>/<str:token>": (LINK,),
    "id/account/view-as/stop": (),
    "id/account/reset": (),
    "id/account/reset/<str:uid>/set": (),  # as above
    "id/account/reset/<str:uid>/<str:token>": (LINK,),
    "id/account/passkey": (PASSKEY,),
    "id/account/second-factor": (ONE_TIME_CODE, RECOVERY_CODE),  # and passkeys, as above
    "id/account/second-factor/new": (),
    "id/account/factors/passkey": (),  # registers a key of the caller's own
    "id/account/factors/passkey/<str:passkey_id>/rename": (),  # the id of one of one's own
    "id/account/factors/passkey/<str:passkey_id>/remove": (),  # as above
    "id/account/factors/app": (),  # the code of a key that the page itself shows
    "id/account/factors/app/remove": (),
    "id/account/factors/recovery-codes": (),
    "id/connect/deviceauthorization": (CLIENT_SECRET,),
    "id/connect/register": (INITIAL_TOKEN,),
    "id/device": (USER_CODE,),
    "id/federation/<slug:code>/start": (),
    "id/federation/<slug:code>/callback": (),  # the state is compared with the browser's own encrypted cookie
    "id/federation/<slug:code>/connect": (),
    "id/federation/<slug:code>/disconnect": (),
    "id/federation/<slug:code>/signed-out": (),
    "id": (),
    "id/": (),
    "profile/": (),
    "profile/me": (REFERENCE_TOKEN,),
    "profile/me/picture": (REFERENCE_TOKEN,),
    "profile/me/picture/<str:size>": (REFERENCE_TOKEN,),
    "profile/picture": (),
    "profile/devices/<str:session_id>/sign-out": (),  # the id of one of one's own sessions
    "profile/browsers/<str:key>/sign-out": (),  # a digest, of a session that must be one's own
    "profile/applications/<str:application_id>/revoke": (),  # the id of an application that one has given access
    "profile/tokens/<str:token_id>/revoke": (),  # the id of one of one's own tokens
    "sys/auto-discovery": (),
    "tools/auto-discovery": (),
    "sys/sha256": (),  # compares its secret with nothing
    "sys/tools/sha256": (),  # as above
    "sys/audit/head": (),
    "sys/ver": (),
    "sys/demo-receiver/<path:what>": (),
    "sys/server-info": (),
    "sys/resource-monitor": (METRICS_TOKEN, REFERENCE_TOKEN),
    "tools/sha256": (),  # as above
    "tools/ver": (),
    "tools/server-info": (),
    "tools/resource-monitor": (METRICS_TOKEN, REFERENCE_TOKEN),
    "scim/v2/Users": (REFERENCE_TOKEN,),
    "scim/v2/Users/<str:id>": (REFERENCE_TOKEN,),
    "scim/v2/Groups": (REFERENCE_TOKEN,),
    "scim/v2/Groups/<str:id>": (REFERENCE_TOKEN,),
    "scim/v2/ServiceProviderConfig": (REFERENCE_TOKEN,),
    "scim/v2/Schemas": (REFERENCE_TOKEN,),
    "scim/v2/Schemas/<str:id>": (REFERENCE_TOKEN,),
    "scim/v2/ResourceTypes": (REFERENCE_TOKEN,),
    "scim/v2/ResourceTypes/<str:id>": (REFERENCE_TOKEN,),
    "scim/v2/^.*$": (REFERENCE_TOKEN,),
    "tableapi/": (),
    "tableapi": (),
    **{
        route.format(root): (REFERENCE_TOKEN, REFERENCE_TOKEN_IN_BASIC, PASSWORD_IN_BASIC)
        for root in ("odata", "data")
        for route in (
            "tableapi/{}",
            "tableapi/{}/",
            "tableapi/{}/$metadata",
            "tableapi/{}/<str:table>",
            "tableapi/{}/<str:table>/$count",
            "tableapi/^{}/(?P<rest>.+)$",
        )
    },
    "manage/apps/install": (),
    "manage/apps/uninstall": (),
    "api/^domain/odata/[Rr]eset(?:\\(\\))?/?$": (REFERENCE_TOKEN,),
    "api/^domain/odata(?:/.*)?$": (REFERENCE_TOKEN,),
    "api/^domain/reset/?$": (REFERENCE_TOKEN,),
    "api/^domain/standardmodel/?$": (),
    "api/^domain/standardmodel/(?P<set_name>[\\w.]+)/?$": (),
    "api/^domain/currentmodel/?$": (REFERENCE_TOKEN,),
    "api/^domain/currentmodel/(?P<set_name>[\\w.]+)/?$": (REFERENCE_TOKEN,),
    "api/domain/login": (),  # refused without a look at the password
    "api/domain/logout": (),
    "api/domain/query": (),
    "api/domain/querybuilder": (),
    "api/domain/docs": (),
    "api/model/standard.json": (),
    "api/model/current.json": (REFERENCE_TOKEN,),
    "api/openapi.json": (REFERENCE_TOKEN,),
    "api/asyncapi.json": (),
    "api/domain/events": (REFERENCE_TOKEN,),
    "api/": (),
    "api/query": (),
    "api/builder": (),
    "api/domain/import": (),
    "api/model": (),
    "api/model/sets": (REFERENCE_TOKEN,),
    "api/model/set": (REFERENCE_TOKEN,),
    "api/model/query": (REFERENCE_TOKEN_OF_A_POST,),
    "api/chart": (REFERENCE_TOKEN_OF_A_POST,),
    "api/explorer": (),
    "api/session": (),
    "api/queries": (),
    "api/queries/<uuid:query_id>": (),
    "api/import/sheets": (REFERENCE_TOKEN_OF_A_POST,),
    "api/^export/(?P<set_name>\\w+)\\.(?P<kind>csv|xlsx|json)$": (REFERENCE_TOKEN,),
    "api/domain/dry-runs/<str:id>": (REFERENCE_TOKEN,),
    "healthz": (),
    "readyz": (),
    "metrics": (METRICS_TOKEN,),
}
#: Pages of the admin by what follows "admin/<app>/<model>/". They take no secret but the session key; "token/" hands an
#: administrator's client secret to the token endpoint, whose limits apply.
ADMIN = {
    "", "(?P<url>.*)$", "<path:object_id>/", "<path:object_id>/cancel/", "<path:object_id>/change-state/",
    "<path:object_id>/change/", "<path:object_id>/delete/", "<path:object_id>/duplicate/",
    "<path:object_id>/factors/", "<path:object_id>/history/",
    "<path:object_id>/make-void/", "<path:object_id>/password-link/", "<path:object_id>/recalculate/",
    "<path:object_id>/redeliver/", "<path:object_id>/replay/", "<path:object_id>/resume/", "<path:object_id>/rotate/",
    "<path:object_id>/run/",
    "<path:object_id>/secret/", "<path:object_id>/start/", "<path:object_id>/switch/",
    "<path:object_id>/test/", "<path:object_id>/token/",
    "<path:object_id>/run-now/", "<path:object_id>/output/",
    "<path:object_id>/try/", "<path:object_id>/unsign/", "<path:object_id>/versions/",
    "<path:object_id>/view-as/", "permissions/",
    "events/", "demo-receiver/", "tiles/<uuid:query_id>/",
    "add/", "autocomplete/", "check/", "completion/", "jsi18n/",
    "board/", "configuration/", "export/csv/", "export/import-csv/", "export/import-xlsx/", "export/json/",
    "export/xlsx/", "views/",
    "login/", "logout/", "password_change/", "r/<path:content_type_id>/<path:object_id>/", "search/",
}  # fmt: skip
#: Routes with regular expressions, as addresses.
EXAMPLES = {
    **{f"tableapi/^{root}/(?P<rest>.+)$": f"tableapi/{root}/a/b/c" for root in ("odata", "data")},
    "api/queries/<uuid:query_id>": "api/queries/0187d2a0-0050-7000-8000-000000000000",
    "api/^export/(?P<set_name>\\w+)\\.(?P<kind>csv|xlsx|json)$": "api/export/General_Currencies.csv",
    "api/^domain/odata/[Rr]eset(?:\\(\\))?/?$": "api/domain/odata/Reset",
    "api/^domain/odata(?:/.*)?$": "api/domain/odata/General_Currencies",
    "api/^domain/reset/?$": "api/domain/reset",
    "api/^domain/currentmodel/?$": "api/domain/currentmodel",
    "api/^domain/currentmodel/(?P<set_name>[\\w.]+)/?$": "api/domain/currentmodel/General_Currencies",
}


def routes(resolver: Any, prefix: str = "") -> Iterator[str]:
    """Every route of the instance, as the URL configuration has it."""
    for pattern in resolver.url_patterns:
        route = f"{prefix}{pattern.pattern}"
        if isinstance(pattern, URLResolver):
            yield from routes(pattern, route)
        else:
            assert isinstance(pattern, URLPattern)
            yield route


@pytest.fixture(autouse=True)
def metrics_token(settings: Settings) -> str:
    token = "right-metrics-token"
    settings.METRICS_TOKEN = token
    return token


def address(route: str) -> str:
    """An address of the route, with values that were never given out."""
    path = EXAMPLES.get(route, route).replace("<str:uid>", UID).replace("<str:token>", f"c1-{secrets.token_hex(16)}")
    return "/" + re.sub(r"<str:\w+>", "General_Currencies", path)


# --- one try of each kind -----------------------------------------------------------------------------------------


def client_form(path: str, **form: str) -> Any:
    return Client().post(path, urlencode(form), content_type=FORM)


def client_secret(path: str, browser: Browser) -> Any:
    wrong = secrets.token_urlsafe(32)
    return client_form(path, grant_type="client_credentials", client_id=SERVICE, client_secret=wrong, token="x")


def code(path: str, browser: Browser) -> Any:
    form = {"grant_type": "authorization_code", "code": secrets.token_urlsafe(22), "redirect_uri": REDIRECT}
    return client_form(path, client_id=WEB, client_secret="DEMO", **form)


def refresh_token(path: str, browser: Browser) -> Any:
    form = {"grant_type": "refresh_token", "refresh_token": secrets.token_urlsafe(22)}
    return client_form(path, client_id=WEB, client_secret="DEMO", **form)


def token_of_a_client(path: str, browser: Browser) -> Any:
    prefix = secrets.choice(("enrt_", ""))
    return client_form(path, client_id=WEB, client_secret="DEMO", token=prefix + secrets.token_hex(32))


def reference_token(path: str, browser: Browser) -> Any:
    return Client().get(path, headers={"Authorization": f"Bearer enrt_{secrets.token_hex(32)}"})


def reference_token_of_a_post(path: str, browser: Browser) -> Any:
    return Client().post(path, headers={"Authorization": f"Bearer enrt_{secrets.token_hex(32)}"})


def in_basic(path: str, secret: str) -> Any:
    given = base64.b64encode(f"demo:{secret}".encode()).decode()
    return Client().get(path, headers={"Authorization": f"Basic {given}"})


def reference_token_in_basic(path: str, browser: Browser) -> Any:
    return in_basic(path, f"enrt_{secrets.token_hex(32)}")


def password_in_basic(path: str, browser: Browser) -> Any:
    return in_basic(path, secrets.token_hex(8))


def reference_token_in_form(path: str, browser: Browser) -> Any:
    return client_form(path, access_token=f"enrt_{secrets.token_hex(32)}")


def password(path: str, browser: Browser) -> Any:
    return browser.log_in("demo", secrets.token_hex(8), at=path)


def old_password(path: str, browser: Browser) -> Any:
    new = {"email": "mallory@example.com", "new_password": "a-new-Password-9317", "repeated": "a-new-Password-9317"}
    form = {**fields_of(browser.client.get(path).content.decode()), **new, "old_password": secrets.token_hex(8)}
    return browser.client.post(path, form)


def link(path: str, browser: Browser) -> Any:
    return Client().get(path.rpartition("/")[0] + f"/c1-{secrets.token_hex(16)}")


def one_time_code(path: str, browser: Browser, field: str = "code") -> Any:
    code = "12345" if field == "code" else secrets.token_hex(8)
    return browser.client.post(path, {**fields_of(browser.client.get(path).content.decode()), field: code})


def recovery_code(path: str, browser: Browser) -> Any:
    return one_time_code(path, browser, "recovery_code")


def passkey(path: str, browser: Browser) -> Any:
    browser.client.defaults["SERVER_NAME"] = "localhost"
    page = browser.client.get("/id/account/login").content.decode()
    response = Authenticator().prove(ceremony_of(page))
    return browser.client.post(path, {**fields_of(page), "credential": response})


def user_code(path: str, browser: Browser) -> Any:
    code = "".join(secrets.choice("BCDF") for _ in range(8))
    form = {"csrfmiddlewaretoken": str(browser.client.get(path).context["csrf_token"]), "user_code": code}
    return browser.client.post(path, form)


def initial_token(path: str, browser: Browser) -> Any:
    headers = {"Authorization": f"Bearer {secrets.token_urlsafe(32)}"}
    return Client().post(path, "{}", content_type="application/json", headers=headers)


def metrics(path: str, browser: Browser | None) -> Any:
    return Client().get(path, headers={"Authorization": f"Bearer {secrets.token_hex(16)}"})


ATTEMPTS: dict[str, Callable[[str, Browser], Any]] = {
    CLIENT_SECRET: client_secret, CODE: code, REFRESH_TOKEN: refresh_token, TOKEN: token_of_a_client,
    REFERENCE_TOKEN: reference_token, REFERENCE_TOKEN_OF_A_POST: reference_token_of_a_post,
    REFERENCE_TOKEN_IN_FORM: reference_token_in_form,
    REFERENCE_TOKEN_IN_BASIC: reference_token_in_basic, PASSWORD_IN_BASIC: password_in_basic,
    ONE_TIME_CODE: one_time_code, RECOVERY_CODE: recovery_code, PASSKEY: passkey,
    PASSWORD: password, OLD_PASSWORD: old_password, LINK: link, USER_CODE: user_code,
    INITIAL_TOKEN: initial_token, METRICS_TOKEN: metrics,
}  # fmt: skip


# --- the tests ----------------------------------------------------------------------------------------------------


def test_every_address_is_classified() -> None:
    """A new address says here which secrets it takes."""
    found = set(routes(get_resolver()))
    assert {route for route in found if not route.startswith("admin/")} == set(ENDPOINTS)
    pages = {re.sub(r"^admin/(\w+/\w+/)?", "", route) for route in found if route.startswith("admin/")}
    assert {page for page in pages if "app_label" not in page} == ADMIN


@pytest.mark.parametrize(
    "route, kind", [(route, kind) for route, kinds in ENDPOINTS.items() for kind in kinds], ids=str
)
def test_a_secret_cannot_be_tried_at_any_speed(browser: Browser, route: str, kind: str, settings: Settings) -> None:
    settings.TABLE_API_PASSWORD_APPLICATION = WEB
    if kind in (OLD_PASSWORD, USER_CODE):
        browser.log_in("demo")
    if kind == INITIAL_TOKEN:
        RegistrationPolicy.objects.create(is_allowed=True)
    if kind in (ONE_TIME_CODE, RECOVERY_CODE):
        phone_of("demo")
        recovery_codes_of("demo")
        browser.log_in("demo")
    answers = [ATTEMPTS[kind](address(route), browser) for _ in range(TRIES)]
    statuses = [answer.status_code for answer in answers]
    allowed = statuses.index(429)
    assert set(statuses[:allowed]) <= {200, 400, 401}, statuses
    assert set(statuses[allowed:]) == {429}, statuses
    assert 1 <= int(answers[-1].headers["Retry-After"]) <= 60


def with_session_key(route: str, key: str) -> Any:
    client = Client()
    client.cookies["sessionid"] = key
    return client.get(address(route))


def test_session_keys_cannot_be_tried_at_any_page(browser: Browser) -> None:
    browser.log_in("demo")
    for _ in range(30):
        assert with_session_key("profile/", secrets.token_hex(16)).status_code == 302
    others = re.compile(r"api/(.*\^|.*json|.*dry-runs|.*log(in|out)$|.*events$)")
    pages = [route for route in ENDPOINTS if not others.match(route)]
    answers = {route: with_session_key(route, secrets.token_hex(16)) for route in [*pages, "admin/"]}
    assert {route: answer.status_code for route, answer in answers.items() if answer.status_code != 429} == {}
    refused = answers["profile/"]
    assert 1 <= int(refused.headers["Retry-After"]) <= 60
    # A browser whose session is gone is refused once; one that is signed in is not.
    assert refused.cookies["sessionid"].value == ""
    assert browser.client.get("/profile/").status_code == 200


def test_sessions_that_have_expired_are_no_guesses(browser: Browser) -> None:
    browser.log_in("demo")
    key = browser.client.cookies["sessionid"].value
    Sessions.objects.update(expire_date=utc_now() - timedelta(seconds=1))
    assert {with_session_key("profile/", key).status_code for _ in range(TRIES)} == {302}


def test_large_bodies_are_no_way_to_try_session_keys(db: None) -> None:
    """A page takes a large body from who is signed in, so its answer to the head alone tells whether a key is right."""
    page = {"PATH_INFO": "/profile/", "REMOTE_ADDR": "127.0.0.1"}

    def is_known(key: str) -> bool:
        return Callers().is_known({**page, "HTTP_COOKIE": f"sessionid={key}"})

    assert {is_known(secrets.token_hex(16)) for _ in range(30)} == {False}
    with pytest.raises(TooManyRequests):
        is_known(secrets.token_hex(16))


def test_large_bodies_are_no_way_to_try_reference_tokens(http: Client) -> None:
    """A body is received for a good token where the API answers the requests of wrong ones, and counts them."""
    token = service_token(http)
    for path in ("/api/session", "/id/account/login", "/profile/me", "/api/domain/odata/$batch", "/scim/v2/Groups"):
        known = Callers().is_known(
            {"REMOTE_ADDR": "192.0.2.1", "PATH_INFO": path, "HTTP_AUTHORIZATION": f"Bearer {token}"}
        )
        assert known is bodies.takes_data({"PATH_INFO": path})
        assert known is path.startswith(("/api/domain/odata/", "/scim/v2/"))


def test_the_right_metrics_token_is_not_found_out_beyond_the_limit(db: None, metrics_token: str) -> None:
    right = {"Authorization": f"Bearer {metrics_token}"}
    for _ in range(TRIES):
        metrics("/metrics", None)
    assert Client().get("/metrics", headers=right).status_code == 429
    assert Client(REMOTE_ADDR="198.51.100.7").get("/metrics", headers=right).status_code == 200


def test_what_is_right_is_accepted_beside_a_guesser(browser: Browser) -> None:
    tokens = browser.tokens(scope="openid read offline_access")
    good = password_link(User.objects.get(login="demo"), "")
    for route, kind in (
        ("id/account/reset/<str:uid>/<str:token>", LINK), ("id/connect/introspect", TOKEN),
        ("id/connect/revocation", TOKEN), ("id/connect/token", REFRESH_TOKEN),
    ):  # fmt: skip
        assert [ATTEMPTS[kind](address(route), browser).status_code for _ in range(TRIES)][-1] == 429
    assert Client().get(good).status_code == 302
    as_web = {"client_id": WEB, "client_secret": "DEMO"}
    for name in ("access_token", "refresh_token"):
        assert client_form("/id/connect/introspect", token=tokens[name], **as_web).json()["active"]
    assert client_form("/id/connect/revocation", token=tokens["refresh_token"], **as_web).status_code == 200
    # Revoked, and known: no guesses either.
    for _ in range(TRIES):
        assert client_form("/id/connect/revocation", token=tokens["refresh_token"], **as_web).status_code == 200
        assert client_form("/id/connect/introspect", token=tokens["access_token"], **as_web).status_code == 200
