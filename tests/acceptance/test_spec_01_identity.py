"""spec 01 Identity"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests

from tests.acceptance.caller import Caller, answered, error_of, id_of
from tests.acceptance.licence import Licence
from tests.acceptance.objects import APPLICATIONS, GROUPS, ORDERS, USERS, Maker, order
from tests.acceptance.people import (
    DUAL,
    PUBLIC,
    RETURN_TO,
    SECRET,
    WEB,
    Browser,
    Fields,
    Person,
    claims_of,
    header_of,
    parameters_of,
    pkce,
    redeem,
    token_request,
)
from tests.acceptance.statements import statement

SERVICE = "ServiceDemoClient"
SECRET_HASH = base64.b64encode(hashlib.sha256(SECRET.encode()).digest()).decode()
REVOKE = "/id/connect/revocation"


@pytest.fixture(scope="module")
def provider(anyone: Caller) -> dict[str, Any]:
    """The provider's metadata."""
    found: dict[str, Any] = anyone.read("/id/.well-known/openid-configuration")
    return found


@pytest.fixture(scope="module")
def browser(anyone: Caller) -> Browser:
    """A browser in which `demo` is signed in."""
    signed_in = Browser(anyone)
    answered(signed_in.log_in("demo"), 302)
    return signed_in


@pytest.fixture(scope="module")
def admin(anyone: Caller) -> Browser:
    """A browser in which `admin` is signed in."""
    signed_in = Browser(anyone)
    answered(signed_in.log_in("admin"), 302)
    return signed_in


@pytest.fixture(scope="module")
def service_user(service: Caller) -> dict[str, str]:
    """The reference of the demo's system user."""
    (found,) = service.rows(f"{USERS}?$filter=Login eq 'service'&$select=Login")
    return {"@odata.id": found["@odata.id"]}


def application(mark: str, **values: Any) -> dict[str, Any]:
    """The body of a valid confidential application with the secret DEMO."""
    uri = f"App-{mark}"
    return {"ApplicationUri": uri, "Name": uri, "ApplicationSecretHash": SECRET_HASH, "Scope": "read", **values}


def service_application(make: Maker, user: dict[str, str], **values: Any) -> tuple[dict[str, Any], str]:
    """(a new service application, an access token of it)."""
    made = make.new(APPLICATIONS, application(make.mark, SystemUserAllowed=True, SystemUser=user, **values))
    return made, service_token(make.caller, made["ApplicationUri"])


def service_token(site: Caller, client_id: str) -> str:
    """An access token by client credentials."""
    anonymous = Caller(site.base_url)
    answer = token_request(anonymous, grant_type="client_credentials", client_id=client_id)
    return str(answered(answer, 200).json()["access_token"])


class TestDiscovery:
    @statement("spec 01", "The API site is listed once more as DomainAPI")
    def test_domain_api(self, anyone: Caller) -> None:
        sites = {site["Type"]: site for site in anyone.read("/sys/auto-discovery")["WebSites"]}
        assert {**sites["DomainAPI"], "Type": "API"} == sites["API"]

    @statement("spec 01", "tools/auto-discovery answers the same as sys/auto-discovery")
    def test_alias(self, anyone: Caller) -> None:
        assert anyone.read("/tools/auto-discovery") == anyone.read("/sys/auto-discovery")

    @statement("spec 01", "Discovery is Cache-Control: no-store and open to all origins")
    def test_headers(self, anyone: Caller) -> None:
        answer = anyone.get("/sys/auto-discovery", Origin="https://elsewhere.example")
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["Access-Control-Allow-Origin"] == "*"

    @statement("spec 01", "Only sites that are served are reported: each address answers")
    def test_served(self, anyone: Caller) -> None:
        for site in anyone.read("/sys/auto-discovery")["WebSites"]:
            assert site["Status"] in {"Working", "NotWorking", "Unknown"}
            probe = f"{site['Url']}/.well-known/openid-configuration" if site["Type"] == "ID" else site["Url"]
            assert requests.get(probe, timeout=60).status_code < 400, site

    @statement("spec 01", "sys/tools/sha256 answers the base64 SHA-256 of secret, by GET and POST")
    def test_sha256(self, anyone: Caller) -> None:
        expected = {"sha256": SECRET_HASH}
        assert anyone.read("/sys/tools/sha256?secret=DEMO") == expected
        assert anyone.form("/sys/tools/sha256", secret="DEMO").json() == expected

    @pytest.mark.parametrize("path", ["/sys/ver", "/sys/server-info", "/healthz", "/readyz"])
    @statement("spec 01", "{path} answers anybody")
    def test_tools(self, anyone: Caller, path: str) -> None:
        answered(anyone.get(path), 200)

    @pytest.mark.parametrize("part", ["database", "cache", "queue", "sandbox"])
    @statement("spec 01", "readyz examines the {part}")
    def test_ready(self, anyone: Caller, part: str) -> None:
        assert anyone.read("/readyz")["checks"][part]["ok"] is True


class TestProvider:
    @pytest.mark.parametrize(
        "name, path",
        [
            ("userinfo_endpoint", "connect/userinfo"),
            ("revocation_endpoint", "connect/revocation"),
            ("introspection_endpoint", "connect/introspect"),
            ("jwks_uri", ".well-known/openid-configuration/jwks"),
        ],
    )
    @statement("spec 01", "The metadata names {name} at id/{path}")
    def test_endpoint(self, anyone: Caller, provider: dict[str, Any], name: str, path: str) -> None:
        assert provider[name] == f"{anyone.base_url}/id/{path}"

    @pytest.mark.parametrize(
        "name, value",
        [
            ("response_types_supported", ["code", "code id_token"]),
            ("response_modes_supported", ["query", "fragment", "form_post"]),
            ("code_challenge_methods_supported", ["S256"]),
            ("scopes_supported", ["openid", "profile", "email", "offline_access", "read", "update", "exec", "sec"]),
            ("id_token_signing_alg_values_supported", ["RS256"]),
            ("authorization_response_iss_parameter_supported", True),
        ],
        ids=lambda value: value if isinstance(value, str) else "",
    )
    @statement("spec 01", "The metadata says {name}: {value}")
    def test_metadata(self, provider: dict[str, Any], name: str, value: Any) -> None:
        assert provider[name] == value

    @statement("spec 01", "The metadata names the three grants, client_secret_basic, client_secret_post and the claims")
    def test_lists(self, provider: dict[str, Any]) -> None:
        assert {"authorization_code", "client_credentials", "refresh_token"} <= set(provider["grant_types_supported"])
        assert {"client_secret_basic", "client_secret_post"} <= set(provider["token_endpoint_auth_methods_supported"])
        assert {"sub", "sid", "nonce", "auth_time", "at_hash", "email", "name"} <= set(provider["claims_supported"])

    @statement("spec 01", "jwks has RSA keys with kid, without a private part, cacheable")
    def test_keys(self, anyone: Caller, provider: dict[str, Any], demo: Person) -> None:
        answer = requests.get(provider["jwks_uri"], timeout=60)
        assert "max-age" in answer.headers["Cache-Control"]
        keys = {key["kid"]: key for key in answer.json()["keys"]}
        assert header_of(demo.tokens["access_token"])["kid"] in keys
        assert all(key["kty"] == "RSA" and "d" not in key for key in keys.values())

    @statement("spec 01", "userinfo answers the claims of the token's user, and 401 without a token")
    def test_userinfo(self, anyone: Caller, demo: Person) -> None:
        claims = demo.api.read("/id/connect/userinfo")
        assert (claims["sub"], claims["name"]) == ("demo", "Demo User")
        answered(anyone.get("/id/connect/userinfo"), 401)

    @statement("spec 01", "introspect tells an authenticated client about a token, and refuses others (RFC 7662)")
    def test_introspection(self, anyone: Caller, demo: Person) -> None:
        form = {"client_id": WEB, "client_secret": SECRET}
        known = answered(anyone.form("/id/connect/introspect", token=demo.tokens["access_token"], **form), 200).json()
        assert (known["active"], known["client_id"]) == (True, WEB)
        assert anyone.form("/id/connect/introspect", token="nonsense", **form).json() == {"active": False}
        answered(anyone.form("/id/connect/introspect", token=demo.tokens["access_token"]), 401)

    @statement("spec 01", "revocation answers 200 for a token that does not exist, too (RFC 7009)")
    def test_revocation(self, anyone: Caller) -> None:
        answered(anyone.form(REVOKE, token="nonsense", client_id=WEB, client_secret=SECRET), 200)


class TestAuthorize:
    @pytest.mark.parametrize("mode, part", [("query", "query"), ("fragment", "fragment"), ("", "query")])
    @statement("spec 01", "response_mode '{mode}' answers the code in the {part}, with iss")
    def test_response_mode(self, anyone: Caller, browser: Browser, mode: str, part: str) -> None:
        target = urlsplit(browser.authorize(response_mode=mode).headers["Location"])
        assert "code=" in getattr(target, part)
        assert "iss=" in getattr(target, part)
        assert not getattr(target, {"query": "fragment", "fragment": "query"}[part])

    @statement("spec 01", "response_mode form_post answers a form that is sent to redirect_uri")
    def test_form_post(self, browser: Browser) -> None:
        page = answered(browser.authorize(response_mode="form_post"), 200)
        assert f'action="{RETURN_TO}"' in page.text
        assert Fields(page.text).values["code"]

    @statement("spec 01", "code id_token answers in the fragment, with c_hash of the code and the nonce")
    def test_hybrid(self, browser: Browser) -> None:
        target = urlsplit(browser.authorize(response_type="code id_token", nonce="n").headers["Location"])
        assert not target.query
        answer = parameters_of(target.geturl())
        half = hashlib.sha256(answer["code"].encode()).digest()[:16]
        claims = claims_of(answer["id_token"])
        assert claims["c_hash"] == base64.urlsafe_b64encode(half).rstrip(b"=").decode()
        assert claims["nonce"] == "n"

    @pytest.mark.parametrize(
        "what, asked, error",
        [
            ("code id_token without nonce", {"response_type": "code id_token", "nonce": ""}, "invalid_request"),
            ("an unknown prompt", {"prompt": "dance"}, "invalid_request"),
            ("a code_challenge_method plain", {"code_challenge": "x" * 43, "code_challenge_method": "plain"},
             "invalid_request"),
            ("an unknown scope", {"scope": "openid nothing"}, "invalid_scope"),
            ("a scope that the application may not have", {"scope": "openid exec"}, "invalid_scope"),
            ("a public application without PKCE", {"client_id": PUBLIC, "scope": "openid"}, "invalid_request"),
        ],
        ids=lambda value: value.replace(" ", "-") if isinstance(value, str) else "",
    )  # fmt: skip
    @statement("spec 01", "authorize with {what} is redirected back with the error {error} and the state")
    def test_errors(self, browser: Browser, what: str, asked: dict[str, str], error: str) -> None:
        answer = parameters_of(browser.authorize(state="s", **asked).headers["Location"])
        assert (answer["error"], answer["state"]) == (error, "s")
        assert "code" not in answer

    @pytest.mark.parametrize(
        "what, asked",
        [
            ("an unknown client_id", {"client_id": "Nobody"}),
            ("a redirect_uri in another case", {"redirect_uri": RETURN_TO.upper()}),
            ("a longer redirect_uri", {"redirect_uri": f"{RETURN_TO}/more"}),
            ("a redirect_uri with a query", {"redirect_uri": f"{RETURN_TO}?a=b"}),
            ("another host", {"redirect_uri": "https://elsewhere.example/signin-callback"}),
        ],
        ids=lambda value: value.replace(" ", "-") if isinstance(value, str) else "",
    )
    @statement("spec 01", "authorize with {what} shows an error page and never redirects")
    def test_never_redirects(self, browser: Browser, what: str, asked: dict[str, str]) -> None:
        answer = answered(browser.authorize(**asked), 400)
        assert "Location" not in answer.headers
        assert answer.headers["Content-Type"].startswith("text/html")

    @statement("spec 01", "prompt=none answers login_required where nobody is signed in, and a code where somebody is")
    def test_prompt_none(self, anyone: Caller, browser: Browser) -> None:
        refused = parameters_of(Browser(anyone).authorize(prompt="none").headers["Location"])
        assert refused["error"] == "login_required"
        assert "code" in parameters_of(browser.authorize(prompt="none").headers["Location"])

    @pytest.mark.parametrize("asked", [{"prompt": "login"}, {"prompt": "select_account"}, {"max_age": "0"}])
    @statement("spec 01", "{asked} shows the login page to somebody who is signed in")
    def test_again(self, browser: Browser, asked: dict[str, str]) -> None:
        assert "/id/account/login" in browser.authorize(**asked).headers["Location"]

    @statement("spec 01", "No consent page is shown unless prompt=consent asks for it")
    def test_consent(self, browser: Browser) -> None:
        answered(browser.authorize(), 302)
        assert "Web demo client" in answered(browser.authorize(prompt="consent"), 200).text

    @statement("spec 01", "login_hint fills in the login; ui_locales chooses the page's language")
    def test_hints(self, anyone: Caller) -> None:
        browser = Browser(anyone)
        answer = browser.authorize(login_hint="somebody", ui_locales="de")
        page = answered(browser.get(answer.headers["Location"]), 200).text
        assert Fields(page).values["login"] == "somebody"
        assert '<html lang="de"' in page

    @statement("spec 01", "authorize takes POST, too")
    def test_post(self, browser: Browser) -> None:
        asked = {"client_id": WEB, "redirect_uri": RETURN_TO, "response_type": "code", "scope": "openid", "state": "s"}
        address = f"{browser.site.base_url}/id/connect/authorize"
        answer = answered(browser.http.post(address, asked, timeout=60, allow_redirects=False), 302, 303)
        if answer.headers["Location"].startswith("/"):
            answer = browser.get(answer.headers["Location"])
        assert "code" in parameters_of(answer.headers["Location"])

    @pytest.mark.parametrize("client", [WEB, PUBLIC])
    @statement("spec 01", "A code with a challenge is redeemed with its verifier only ({client})")
    def test_pkce(self, anyone: Caller, browser: Browser, client: str) -> None:
        secret = SECRET if client == WEB else ""
        verifier, challenge = pkce()
        asked = {"client_id": client, "code_challenge": challenge, "code_challenge_method": "S256", "scope": "openid"}
        for given, status in (("", 400), ("w" * 43, 400), (verifier, 200)):
            code = parameters_of(browser.authorize(**asked).headers["Location"])["code"]
            answered(redeem(anyone, code, client_id=client, client_secret=secret, code_verifier=given), status)


class TestApplications:
    @pytest.mark.parametrize(
        "what, values",
        [
            ("a service without a system user", {"SystemUserAllowed": True}),
            ("an interactive flag without a login URL", {"ImpersonateAsInternalUserAllowed": True}),
            ("a relative URL", {"ImpersonateLoginUrl": "/callback"}),
            ("a URL with a fragment", {"ImpersonateLoginUrl": "https://a.example/x#y"}),
            ("http that is not loopback", {"ImpersonateLogoutUrl": "http://a.example/x"}),
            ("an unknown scope", {"Scope": "read everything"}),
        ],
        ids=lambda value: value.replace(" ", "-") if isinstance(value, str) else "",
    )
    @statement("spec 01", "A trusted application with {what} is refused when saved")
    def test_refused(self, service: Caller, mark: str, what: str, values: dict[str, Any]) -> None:
        assert error_of(service.post(APPLICATIONS, application(mark, **values)), 500)["message"]

    @statement("spec 01", "The system user must be an internal or system user")
    def test_external(self, make: Maker) -> None:
        (user,) = make.caller.rows(f"{USERS}?$filter=Login eq 'customer'&$select=Login")
        body = application(make.mark, SystemUserAllowed=True, SystemUser={"@odata.id": user["@odata.id"]})
        error_of(make.caller.post(APPLICATIONS, body), 500)

    @pytest.mark.parametrize("url", ["https://a.example/x", "http://localhost:1/x", "com.example.app:/callback"])
    @statement("spec 01", "{url} is a login URL that may be saved")
    def test_urls(self, make: Maker, url: str) -> None:
        made = make.new(APPLICATIONS, application(make.mark, ImpersonateLoginUrl=f"{url},https://b.example/"))
        assert made["ImpersonateLoginUrl"] == f"{url},https://b.example/"

    @statement("spec 01", "The hash of a secret is written and never read")
    def test_hash(self, service: Caller) -> None:
        assert SECRET_HASH not in answered(service.get(APPLICATIONS), 200).text

    @statement("spec 01", "The repository is for administrators")
    def test_administrators(self, demo: Person) -> None:
        error_of(demo.api.get(APPLICATIONS), 403, 404)

    @statement("spec 01", "The admin refuses what the API refuses")
    def test_admin(self, make: Maker, admin: Browser) -> None:
        made = make.new(APPLICATIONS, application(make.mark))
        page = answered(admin.get(f"/admin/identity/trustedapplication/{id_of(made)}/change/"), 200)
        refused = answered(admin.submit(page, scope="read everything"), 200)
        assert "everything" in refused.text

    @statement("spec 01", "The admin makes a secret and shows it once; the one before stays good as long as was chosen")
    def test_secret(self, make: Maker, service_user: dict[str, str], admin: Browser, anyone: Caller) -> None:
        made, _token = service_application(make, service_user)
        address = f"/admin/identity/trustedapplication/{id_of(made)}/secret/"
        asked = {"grant_type": "client_credentials", "client_id": made["ApplicationUri"]}
        before = SECRET
        for days, still in (("1", 200), ("0", 401)):
            shown = answered(admin.submit(answered(admin.get(address), 200), days=days), 200)
            (new,) = set(re.findall(r"(?<![\w-])[\w-]{43}(?![\w-])", shown.text))
            assert new not in admin.get(address).text
            answered(token_request(anyone, client_secret=new, **asked), 200)
            answered(token_request(anyone, client_secret=before, **asked), still)
            before = new

    @statement("spec 01", "A disabled application gets unauthorized_client at the very next token request")
    def test_edited(self, make: Maker, service_user: dict[str, str], anyone: Caller) -> None:
        made, _token = service_application(make, service_user)
        make.caller.change(made["@odata.id"], {"IsEnabled": False})
        refused = token_request(anyone, grant_type="client_credentials", client_id=made["ApplicationUri"])
        assert refused.json()["error"] == "unauthorized_client"


class TestGrants:
    @statement("spec 01", "client_secret_basic authenticates as client_secret_post does")
    def test_basic(self, anyone: Caller) -> None:
        address = anyone.url("/id/connect/token")
        answer = requests.post(address, {"grant_type": "client_credentials"}, auth=(SERVICE, SECRET), timeout=60)
        answered(answer, 200)

    @pytest.mark.parametrize(
        "what, form, status, error",
        [
            ("an unknown grant", {"grant_type": "password"}, 400, "unsupported_grant_type"),
            ("no grant", {"grant_type": ""}, 400, "invalid_request"),
            ("an unknown client", {"client_id": "Nobody"}, 401, "invalid_client"),
            ("a wrong secret", {"client_secret": "wrong"}, 401, "invalid_client"),
            ("a scope beyond the application's", {"scope": "read sec"}, 400, "invalid_scope"),
            ("an unknown scope", {"scope": "nothing"}, 400, "invalid_scope"),
            ("an unknown code", {"grant_type": "authorization_code", "client_id": WEB, "code": "x",
                                 "redirect_uri": RETURN_TO}, 400, "invalid_grant"),
            ("an unknown refresh token", {"grant_type": "refresh_token", "client_id": WEB, "refresh_token": "x"}, 400,
             "invalid_grant"),
        ],
        ids=lambda value: value.replace(" ", "-") if isinstance(value, str) else "",
    )  # fmt: skip
    @statement("spec 01", "A token request with {what} answers {status} {error}, described, and is not stored")
    def test_errors(self, anyone: Caller, what: str, form: dict[str, str], status: int, error: str) -> None:
        asked = {"grant_type": "client_credentials", "client_id": SERVICE, **form}
        answer = answered(token_request(anyone, **asked), status)
        assert answer.json()["error"] == error
        assert answer.json()["error_description"]
        assert answer.headers["Cache-Control"] == "no-store"
        assert ("WWW-Authenticate" in answer.headers) == (status == 401)

    @statement("spec 01", "The token answer is Cache-Control: no-store and says how long the access token lives: 1 h")
    def test_headers(self, anyone: Caller) -> None:
        answer = token_request(anyone, grant_type="client_credentials", client_id=SERVICE)
        assert answer.headers["Cache-Control"] == "no-store"
        assert (answer.json()["token_type"], answer.json()["expires_in"]) == ("Bearer", 3600)
        claims = claims_of(answer.json()["access_token"])
        assert claims["exp"] - claims["iat"] == 3600

    @statement("spec 01", "The legacy scope DomainApi is accepted and ignored; no scope means all of the application")
    def test_scopes(self, anyone: Caller) -> None:
        form = {"grant_type": "client_credentials", "client_id": SERVICE}
        assert token_request(anyone, scope="read DomainApi", **form).json()["scope"] == "read"
        assert set(token_request(anyone, **form).json()["scope"].split()) == {"read", "update", "exec"}

    @pytest.mark.parametrize(
        "what, form",
        [
            ("another redirect_uri", {"redirect_uri": "http://localhost:5080/callback"}),
            ("another client", {"client_id": DUAL}),
        ],
    )
    @statement("spec 01", "A code is bound to its client and redirect_uri: {what} is invalid_grant")
    def test_bound(self, anyone: Caller, browser: Browser, what: str, form: dict[str, str]) -> None:
        code = parameters_of(browser.authorize().headers["Location"])["code"]
        assert answered(redeem(anyone, code, **form), 400).json()["error"] == "invalid_grant"

    @statement("spec 01", "A code is used once; using it again revokes at once what it issued")
    def test_reuse(self, anyone: Caller) -> None:
        browser = Browser(anyone)
        code = browser.code("demo")
        tokens = answered(redeem(anyone, code), 200).json()
        assert redeem(anyone, code).json()["error"] == "invalid_grant"
        error_of(anyone.with_token(tokens["access_token"]).get(""), 401)
        form = {"grant_type": "refresh_token", "refresh_token": tokens["refresh_token"]}
        assert token_request(anyone, **form).json()["error"] == "invalid_grant"

    @statement("spec 01", "Using a dead refresh token revokes the whole family, in force at the next request")
    def test_family(self, anyone: Caller) -> None:
        with Person.signed_in(anyone, "demo") as person:
            first = person.tokens["refresh_token"]
            second = token_request(anyone, grant_type="refresh_token", refresh_token=first).json()["refresh_token"]
            newest = token_request(anyone, grant_type="refresh_token", refresh_token=second).json()
            refused = token_request(anyone, grant_type="refresh_token", refresh_token=first)
            assert refused.json()["error"] == "invalid_grant"
            after = token_request(anyone, grant_type="refresh_token", refresh_token=newest["refresh_token"])
            assert after.json()["error"] == "invalid_grant"
            error_of(anyone.with_token(newest["access_token"]).get(""), 401)

    @statement("spec 01", "A lost answer may be fetched again: the same refresh token by the same client, at once")
    def test_grace(self, anyone: Caller) -> None:
        with Person.signed_in(anyone, "demo") as person:
            form = {"grant_type": "refresh_token", "refresh_token": person.tokens["refresh_token"]}
            answered(token_request(anyone, **form), 200)
            answered(token_request(anyone, **form), 200)

    @statement("spec 01", "A dual-mode client id with the suffix is for client_credentials only")
    def test_suffix(self, anyone: Caller, browser: Browser) -> None:
        code = parameters_of(browser.authorize(client_id=DUAL).headers["Location"])["code"]
        refused = redeem(anyone, code, client_id=f"{DUAL}-service")
        assert refused.status_code in {400, 401}

    @statement("spec 01", "An application whose ApplicationUri ends in -service works by its exact name")
    def test_exact(self, make: Maker, service_user: dict[str, str]) -> None:
        uri = f"App-{make.mark}-service"
        body = application(make.mark, ApplicationUri=uri, SystemUserAllowed=True, SystemUser=service_user)
        make.new(APPLICATIONS, body)
        assert claims_of(service_token(make.caller, uri))["client_id"] == uri


class TestTokens:
    @statement("spec 01", "An access token is an RS256 JWT of the type at+jwt with a kid")
    def test_header(self, demo: Person) -> None:
        header = header_of(demo.tokens["access_token"])
        assert (header["alg"], header["typ"]) == ("RS256", "at+jwt")
        assert header["kid"]

    @statement("spec 01", "An access token has aud DomainAPI and TableAPI, scope as an array, jti, sid and times")
    def test_claims(self, demo: Person) -> None:
        claims = claims_of(demo.tokens["access_token"])
        assert claims["aud"] == ["DomainAPI", "TableAPI"]
        assert isinstance(claims["scope"], list)
        assert {"iss", "iat", "nbf", "exp", "jti", "sid", "client_id"} <= set(claims)

    @pytest.mark.parametrize("claim", ["sub", "id", "name", "email", "locale", "user_type", "is_admin", "auth_time"])
    @statement("spec 01", "A user's access token has the claim {claim}, a service's none that names a person")
    def test_user(self, demo: Person, service: Caller, claim: str) -> None:
        assert claim in claims_of(demo.tokens["access_token"])
        of_service = claims_of(service.headers["Authorization"].split()[1])
        assert of_service.get(claim) in (None, SERVICE)

    @statement("spec 01", "A service's token has client_system_user, client_system_user_type and client_system_user_id")
    def test_service(self, service: Caller) -> None:
        claims = claims_of(service.headers["Authorization"].split()[1])
        assert (claims["client_system_user"], claims["client_system_user_type"]) == ("service", "SystemUserNoLogin")
        assert len(claims["client_system_user_id"]) == 36

    @statement("spec 01", "An id token has sid, at_hash, nonce, auth_time, and profile and email claims when asked for")
    def test_id_token(self, anyone: Caller) -> None:
        with Person.signed_in(anyone, "demo", scope="openid profile email read", nonce="n") as person:
            claims = claims_of(person.tokens["id_token"])
            half = hashlib.sha256(person.tokens["access_token"].encode()).digest()[:16]
            assert claims["at_hash"] == base64.urlsafe_b64encode(half).rstrip(b"=").decode()
            assert {"sid", "auth_time", "name", "email"} <= set(claims)
            assert claims["sid"] == claims_of(person.tokens["access_token"])["sid"]

    @statement("spec 01", "Without the scopes profile and email an id token has no such claims")
    def test_minimal(self, anyone: Caller) -> None:
        with Person.signed_in(anyone, "demo", scope="openid read") as person:
            assert not {"name", "email"} & set(claims_of(person.tokens["id_token"]))

    @pytest.mark.parametrize("claim, value", [("alg", "none"), ("typ", "JWT")])
    @statement("spec 01", "A token whose header says {claim}: {value} is refused")
    def test_forged(self, anyone: Caller, demo: Person, claim: str, value: str) -> None:
        header, payload, signature = demo.tokens["access_token"].split(".")
        changed = {**header_of(demo.tokens["access_token"]), claim: value}
        header = base64.urlsafe_b64encode(json.dumps(changed).encode()).rstrip(b"=").decode()
        error_of(anyone.with_token(f"{header}.{payload}.{'' if claim == 'alg' else signature}").get(""), 401)

    @statement("spec 01", "An id token is no access token")
    def test_id_token_refused(self, demo: Person) -> None:
        error_of(demo.browser.site.with_token(demo.tokens["id_token"]).get(""), 401)

    @statement("5", "Revoking a token is in force at the very next request")
    def test_revoked(self, anyone: Caller) -> None:
        caller = anyone.with_token(service_token(anyone, SERVICE))
        answered(caller.get(""), 200)
        token = caller.headers["Authorization"].split()[1]
        answered(anyone.form(REVOKE, token=token, client_id=SERVICE, client_secret=SECRET), 200)
        error_of(caller.get(""), 401)

    @statement("spec 01", "Disabling an application is in force for its tokens at the next request")
    def test_disabled(self, make: Maker, service_user: dict[str, str], anyone: Caller) -> None:
        made, token = service_application(make, service_user)
        caller = anyone.with_token(token)
        answered(caller.get(""), 200)
        make.caller.change(made["@odata.id"], {"IsEnabled": False})
        error_of(caller.get(""), 401, 403)

    @statement("spec 01", "Disabling a user is in force for their tokens at the next request")
    def test_disabled_user(self, make: Maker, anyone: Caller) -> None:
        values = {"Login": f"s-{make.mark}", "Name": {"EN": "x"}, "UserType": "SystemUserNoLogin", "IsAdmin": True}
        user = make.new(USERS, values)["@odata.id"]
        caller = anyone.with_token(service_application(make, {"@odata.id": user})[1])
        answered(caller.get(""), 200)
        make.caller.change(user, {"Active": False})
        error_of(caller.get(""), 401, 403)

    @statement("spec 01", "A personal token is made on the profile page: shown once, sent as Bearer, X-Api-Key or "
               "Api-Key, not with two at once, and revoked at once")  # fmt: skip
    def test_reference_token(self, anyone: Caller, browser: Browser, mark: str) -> None:
        page = answered(browser.get("/profile/"), 200)
        shown = answered(browser.submit(page, name=mark, scopes="read", application_id=_first_choice(page.text)), 200)
        found = re.search(r"enrt_[0-9a-f]{64}\b", shown.text)
        assert found is not None
        token = found[0]
        assert token not in browser.get("/profile/").text
        bearer = anyone.with_token(token)
        assert bearer.rows(f"{ORDERS}?$top=1")
        error_of(bearer.patch(f"{ORDERS}({mark})", {}), 403, 400)
        for name in ("X_Api_Key", "Api_Key"):
            answered(anyone.with_headers(**{name: token}).get(""), 200)
        error_of(bearer.with_headers(X_Api_Key=token).get(""), 400)
        listed = answered(browser.get("/profile/"), 200)
        row = listed.text[listed.text.index(mark) :]
        action = re.search(r'action="(/profile/tokens/[^"]+/revoke)"', row)
        assert action is not None
        form = {"csrfmiddlewaretoken": Fields(listed.text).values["csrfmiddlewaretoken"]}
        revoke = browser.http.post(anyone.url(action[1]), form, headers={"Referer": listed.url}, allow_redirects=False)
        answered(revoke, 302)
        error_of(bearer.get(""), 401)


class TestUsers:
    @pytest.mark.parametrize("login, password", [("nobody-at-all", "x"), ("demo", "wrong"), ("service", "service")])
    @statement("spec 01", "The login page says the same for an unknown user, a wrong password and a system user")
    def test_refused(self, anyone: Caller, login: str, password: str) -> None:
        page = Browser(anyone).log_in(login, password)
        assert page.status_code in {200, 400, 401, 403}
        messages = re.findall(r'role="alert"[^>]*>\s*([^<]*?)\s*<', page.text)
        assert messages == ["The login or the password is wrong."] or len(set(messages)) == 1
        assert "sessionid" not in page.cookies

    @statement("spec 01", "Login is case-insensitive")
    def test_case(self, anyone: Caller) -> None:
        answered(Browser(anyone).log_in("DEMO", "demo"), 302)

    @pytest.mark.parametrize("target", ["https://elsewhere.example/", "//elsewhere.example/", "/\\elsewhere.example"])
    @statement("spec 01", "next leads only to this instance: {target}")
    def test_next(self, anyone: Caller, target: str) -> None:
        browser = Browser(anyone)
        page = browser.get(f"/id/account/login?{requests.compat.urlencode({'next': target})}")
        answer = answered(browser.submit(page, login="demo", password="demo", next=target), 302)
        assert "elsewhere" not in urlsplit(answer.headers["Location"]).netloc
        assert not answer.headers["Location"].startswith(("//", "/\\"))

    @pytest.mark.parametrize("language", ["en", "de", "bg"])
    @statement("spec 01", "The login page is localised: {language}")
    def test_localised(self, anyone: Caller, language: str) -> None:
        assert f'<html lang="{language}"' in anyone.get("/id/account/login", Accept_Language=language).text

    @statement("spec 01", "The login form refuses a request without its CSRF token")
    def test_csrf(self, anyone: Caller) -> None:
        assert anyone.form("/id/account/login", login="demo", password="demo").status_code == 403

    @statement("spec 01", "A login gives a browser another session than the one that it came with")
    def test_fixation(self, anyone: Caller, browser: Browser) -> None:
        before = browser.http.cookies.get_dict()
        fixed = Browser(anyone)
        for name, value in before.items():
            fixed.http.cookies.set(name, value, domain="127.0.0.1", path="/")
        answered(fixed.log_in("demo"), 302)
        after = fixed.http.cookies.get_dict()
        assert [name for name in after if after[name] != before.get(name)]
        answered(fixed.get("/profile/me"), 200)

    @statement("spec 01", "profile/me answers who one is, by token and by cookie, and is not stored")
    def test_me(self, demo: Person, browser: Browser, anyone: Caller) -> None:
        answer = answered(demo.api.get("/profile/me"), 200)
        assert "no-store" in answer.headers["Cache-Control"]
        found = answer.json()
        names = {"id", "login", "name", "email", "isAdmin", "userType", "preferredLanguage", "instance", "links"}
        assert names <= set(found)
        assert (found["login"], found["isAdmin"], found["userType"]) == ("demo", False, "InternalUser")
        assert browser.get("/profile/me").json() == found
        answered(anyone.get("/profile/me"), 401)

    @statement("spec 01", "profile/me refuses services with 403")
    def test_me_service(self, service: Caller) -> None:
        error_of(service.get("/profile/me"), 403)


class TestPermissions:
    @pytest.mark.parametrize("scope, reads, writes", [("read", 200, 403), ("update", 403, 204)])
    @statement("spec 01", "The scope {scope} alone: reading answers {reads}, creating {writes}")
    def test_scopes(self, make: Maker, anyone: Caller, scope: str, reads: int, writes: int) -> None:
        form = {"grant_type": "client_credentials", "client_id": SERVICE, "scope": scope}
        caller = anyone.with_token(token_request(anyone, **form).json()["access_token"])
        answered(caller.get(f"{GROUPS}?$top=1"), reads)
        made = answered(caller.post(GROUPS, {"Code": f"G-{make.mark}", "Name": {"EN": "x"}}), writes)
        if made.ok:
            make.remove_later(made.headers["OData-EntityId"].rpartition("/")[2])
        caller.form(REVOKE, token=caller.headers["Authorization"].split()[1], client_id=SERVICE, client_secret=SECRET)

    @statement("spec 01", "What one may not read answers 404, what one may not change 403; scripts get no more")
    def test_roles(self, demo: Person, make: Maker) -> None:
        error_of(demo.api.patch(make.group(), {"Notes": "x"}), 403)
        error_of(demo.api.delete(make.order()), 403)

    @statement("spec 01", "A row policy hides rows from reads, keys, counts, $apply and writes of its role")
    def test_row_policy(self, make: Maker, admin: Browser, demo: Person) -> None:
        hidden, shown = make.group(Notes=make.mark), make.new(
            GROUPS, {"Code": f"H-{make.mark}", "Name": {"EN": "x"}, "Notes": "shown"}
        )["@odata.id"]  # fmt: skip
        (role,) = make.caller.rows("Systems_Security_Roles?$filter=Name eq 'Sales'&$select=Name")
        values = {
            "role": id_of(role),
            "repository": "General.Products.ProductGroups",
            "filter": f"Notes ne '{make.mark}' or Notes eq null",
        }
        page = answered(admin.get("/admin/identity/rowpolicy/add/"), 200)
        saved = answered(admin.submit(page, **values), 302)
        try:
            error_of(demo.api.get(hidden), 404)
            assert demo.api.read(shown)["Notes"] == "shown"
            fits = f"endswith(Code,'{make.mark}')"
            assert [row["Code"] for row in demo.api.rows(f"{GROUPS}?$filter={fits}")] == [f"H-{make.mark}"]
            assert demo.api.read(f"{GROUPS}?$filter={fits}&$count=true&$top=0")["@odata.count"] == 1
            (total,) = demo.api.rows(f"{GROUPS}?$apply=filter({fits})/aggregate($count as N)")
            assert total["N"] == 1
        finally:
            listed = answered(admin.get("/admin/identity/rowpolicy/"), 200)
            (policy,) = set(re.findall(r"/admin/identity/rowpolicy/([^/]+)/change/", listed.text))
            question = answered(admin.get(f"/admin/identity/rowpolicy/{policy}/delete/"), 200)
            answered(admin.submit(question, post="yes"), 302)
        assert saved.headers["Location"]
        assert demo.api.read(hidden)["Notes"] == make.mark


class TestSessions:
    @statement("spec 01", "A session opens at the first API request, not when the token is issued")
    def test_opens(self, anyone: Caller, licence: Licence) -> None:
        with Person.signed_in(anyone, "demo") as person:
            with licence.changed(sessions="1"):
                error_of(person.api.get(""), 503)
            answered(person.api.get(""), 200)

    @statement("spec 01", "Refreshing keeps the session")
    def test_refreshed(self, anyone: Caller) -> None:
        with Person.signed_in(anyone, "demo", client_id=DUAL, scope="openid offline_access read exec") as person:
            before = person.api.run("1")["sessionId"]
            form = {"grant_type": "refresh_token", "refresh_token": person.tokens["refresh_token"], "client_id": DUAL}
            fresh = answered(token_request(anyone, **form), 200).json()["access_token"]
            assert anyone.with_token(fresh).run("1")["sessionId"] == before

    @statement("spec 01", "The admin lists live sessions and closes one; its valid token then opens a new session")
    def test_closed(self, anyone: Caller, admin: Browser, service: Caller) -> None:
        caller = anyone.with_token(service_token(anyone, f"{DUAL}-service"))
        session = caller.run("1")["sessionId"]
        page = answered(admin.get("/admin/identity/session/"), 200)
        assert session in page.text
        chosen = {"action": "close_sessions", "_selected_action": session}
        answered(admin.submit(page, **chosen), 302)
        assert caller.run("1")["sessionId"] != session
        caller.form(REVOKE, token=caller.headers["Authorization"].split()[1], client_id=DUAL, client_secret=SECRET)

    @statement("7.3", "Without a slot $batch is refused as a whole: 503, and none of its parts is run")
    def test_batch(self, anyone: Caller, service: Caller, licence: Licence, mark: str) -> None:
        headers = {"Content-Type": "application/json"}
        body = order(DocumentNotes=mark)
        parts = [
            {"id": "1", "method": "GET", "url": f"{ORDERS}?$top=1"},
            {"id": "2", "method": "POST", "url": ORDERS, "headers": headers, "body": body},
        ]
        with Person.signed_in(anyone, "demo") as person:
            with licence.changed(sessions="1"):
                refused = person.api.post("$batch", {"requests": parts})
            assert error_of(refused, 503)["code"] == 8
            assert int(refused.headers["Retry-After"]) >= 1
        assert service.rows(f"{ORDERS}?$filter=DocumentNotes eq '{mark}'") == []

    @statement("5.8", "Sign-out is in force at the very next request, for every application of the sign-in")
    def test_sign_out(self, anyone: Caller) -> None:
        with Person.signed_in(anyone, "demo") as person:
            code = parameters_of(person.browser.authorize(client_id=DUAL).headers["Location"])["code"]
            second = anyone.with_token(redeem(anyone, code, client_id=DUAL).json()["access_token"])
            for caller in (person.api, second):
                answered(caller.get(""), 200)
            person.sign_out()
            for caller in (person.api, second):
                error_of(caller.get(""), 401)


class TestRateLimits:
    @statement("spec 01", "Over an application's requests per minute: 429, Retry-After, RateLimit headers, error body")
    def test_limit(self, make: Maker, service_user: dict[str, str], anyone: Caller) -> None:
        _made, token = service_application(make, service_user, RateLimitPerMinute=1)
        caller = anyone.with_token(token)
        refused = next(answer for answer in (caller.get("") for _ in range(4)) if answer.status_code == 429)
        error_of(refused, 429)
        assert 1 <= int(refused.headers["Retry-After"]) <= 60
        assert {name.lower() for name in refused.headers if name.lower().startswith("ratelimit-")}


def _first_choice(page: str) -> str:
    """The first application that the form for a personal token offers."""
    found = re.search(r'<select name="application_id".*?<option value="([^"]+)"', page, re.DOTALL)
    assert found is not None
    return found[1]
