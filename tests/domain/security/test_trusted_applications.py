"""Trusted applications in the admin and over OData (spec 01, 1.3)."""

from __future__ import annotations

import json
import re
from typing import Any

import jwt
import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse

from foundation import cache_versions
from identity.applications import secret_hash
from identity.models import Licence, Role, RolePermission, RowPolicy, TrustedApplication, User
from tests.domain.security.conftest import Library, caller, give_role, person
from tests.identity.flows import token_request
from tests.support.api import Api, error_of
from tests.support.client_keys import ClientKey, assertion_claims, assertion_fields

pytestmark = pytest.mark.once

SET = "Systems_Security_TrustedApplications"
ADD = "admin:identity_trustedapplication_add"


@pytest.fixture
def admin(api: Api) -> Client:
    client = Client()
    client.force_login(User.objects.get(login="admin"))
    return client


def form(**changes: str) -> dict[str, str]:
    service = str(User.objects.get(login="service").pk)
    values = {
        "application_uri": "Till",
        "name": "Till",
        "client_type": "Confidential",
        "system_user_allowed": "on",
        "system_user": service,
        "scope": "read",
        "access_tokens": "None",
        "client_authentication": "Secret",
        "is_enabled": "on",
    }
    return {**values, **changes}


def shown_secret(page: str) -> str:
    found = re.search(r'<code class="secret">([^<]+)</code>', page)
    assert found, page
    return found[1]


def works(secret: str) -> bool:
    answer = token_request(Client(), grant_type="client_credentials", client_id="Till", client_secret=secret)
    return bool(answer.status_code == 200)


def test_the_secret_is_made_shown_once_and_rotated(admin: Client) -> None:
    answer = admin.post(reverse(ADD), form())
    secret = shown_secret(answer.content.decode())
    assert len(secret) * 6 >= 256  # base64: six bits a character
    assert "no-store" in answer.headers["Cache-Control"]
    assert works(secret)
    application = TrustedApplication.objects.get(application_uri="Till")
    assert secret not in str(vars(application))
    change = reverse("admin:identity_trustedapplication_change", args=[application.pk])
    page = admin.get(change).content.decode()
    assert secret not in page
    assert str(application.application_secret_hash) not in page

    rotate = reverse("admin:identity_trustedapplication_secret", args=[application.pk])
    assert "<code" not in admin.get(rotate).content.decode()
    second = shown_secret(admin.post(rotate, {"days": "7"}).content.decode())
    assert works(secret)
    assert works(second)
    assert "the one before is good until" in admin.get(change).content.decode()
    third = shown_secret(admin.post(rotate, {"days": "0"}).content.decode())
    assert [works(each) for each in (secret, second, third)] == [False, False, True]


def test_public_applications_have_no_secret(admin: Client) -> None:
    values = form(client_type="Public", impersonate_login_url="http://localhost/cb", system_user="")
    del values["system_user_allowed"]
    assert admin.post(reverse(ADD), values).status_code == 302
    application = TrustedApplication.objects.get(application_uri="Till")
    assert application.application_secret_hash is None
    rotate = reverse("admin:identity_trustedapplication_secret", args=[application.pk])
    assert admin.post(rotate, {"days": "0"}).status_code == 403


@pytest.mark.parametrize(
    "field, changes",
    [
        ("system_user", {"system_user": ""}),
        ("impersonate_login_url", {"impersonate_as_internal_user_allowed": "on"}),
        ("impersonate_login_url", {"impersonate_login_url": "http://example.com/cb"}),
        ("impersonate_logout_url", {"impersonate_logout_url": "https://example.com/#x"}),
        ("scope", {"scope": "read everything"}),
        ("max_sessions", {"max_sessions": "0"}),
        (
            "impersonate_logout_url",
            {"impersonate_as_internal_user_allowed": "on", "impersonate_login_url": "http://localhost/cb"},
        ),
        ("client_type", {"client_type": "Public"}),
        ("client_authentication", {"client_type": "Public", "client_authentication": "PrivateKeyJwt"}),
        ("json_web_key_set", {"client_authentication": "PrivateKeyJwt"}),
        ("json_web_key_set_url", {"json_web_key_set_url": "http://example.com/jwks"}),
        ("json_web_key_set_url", {"json_web_key_set_url": "app://keys"}),
        ("json_web_key_set_url", {"json_web_key_set_url": "https://app.example/jwks", "json_web_key_set": "{}"}),
        ("application_uri", {"application_uri": "WebDemoClient"}),
    ],
)
def test_problems_are_shown_at_their_fields(admin: Client, field: str, changes: dict[str, str]) -> None:
    answer = admin.post(reverse(ADD), form(**changes))
    assert answer.status_code == 200
    assert field in answer.context["adminform"].form.errors
    assert not TrustedApplication.objects.filter(application_uri="Till").exists()


def test_what_can_never_work_is_said_when_it_is_saved(admin: Client) -> None:
    values = form(impersonate_login_url="http://localhost/cb", scope="read offline_access")
    page = admin.post(reverse(ADD), values, follow=True)
    change = reverse("admin:identity_trustedapplication_change", args=[TrustedApplication.objects.get(name="Till").pk])
    said = page.content.decode() + admin.get(change).content.decode()
    assert "may sign nobody in" in said
    assert "offline_access gives nothing here" in said
    assert "has no secret" not in said  # it has just got one


KEY = ClientKey()


def private_half(key: ClientKey) -> str:
    return json.dumps({"keys": [{**key.jwk, "d": "AAAA"}]})


@pytest.mark.parametrize(
    "keys",
    [
        "no JSON",
        "[" * 5000,
        "{}",
        '{"keys": {}}',
        '{"keys": []}',
        '{"keys": [{"kty": "oct", "k": "c2VjcmV0"}]}',
        '{"keys": [{"kty": "RSA", "n": 5, "e": "AQAB"}]}',
        '{"keys": [{"kty": "RSA", "n": "AQAB", "e": "AQAB"}]}',
        '{"keys": [{"kty": ["RSA"], "crv": ["P-256"]}]}',
        '{"keys": [{"kty": "EC", "crv": "P-256", "x": "AQAB", "y": "AQAB"}]}',
        '{"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "%%%"}]}',
        private_half(KEY),
        json.dumps({"keys": [{**KEY.jwk, "use": "enc"}]}),
        json.dumps({"keys": [KEY.jwk] * 21}),
        json.dumps({"keys": [{**KEY.jwk, "x": "A" * 701}]}),
        json.dumps({"keys": [{"kty": "RSA", "n": ClientKey("RS256").jwk["n"], "e": "AQAAAAAB"}]}),
        json.dumps({"keys": [KEY.jwk], "padding": "x" * 17_000}),
    ],
    # Test processes must agree on the names, and the keys are new in each of them.
    ids=[
        "no JSON",
        "deep",
        "no keys",
        "keys an object",
        "none",
        "symmetric",
        "number for a text",
        "weak",
        "lists",
        "no point",
        "no base64",
        "private",
        "for encryption",
        "too many",
        "too long a coordinate",
        "large exponent",
        "too long",
    ],
)
def test_unusable_key_sets_are_refused_at_their_field(admin: Client, keys: str) -> None:
    answer = admin.post(reverse(ADD), form(client_authentication="PrivateKeyJwt", json_web_key_set=keys))
    assert answer.status_code == 200
    assert "json_web_key_set" in answer.context["adminform"].form.errors


def test_keys_make_a_secret_superfluous(admin: Client) -> None:
    answer = admin.post(reverse(ADD), form(client_authentication="PrivateKeyJwt", json_web_key_set=KEY.jwks))
    assert answer.status_code == 302  # no page that shows a secret
    application = TrustedApplication.objects.get(application_uri="Till")
    assert application.application_secret_hash is None
    rotate = reverse("admin:identity_trustedapplication_secret", args=[application.pk])
    assert admin.post(rotate, {"days": "0"}).status_code == 403
    asked = token_request(Client(), grant_type="client_credentials", **KEY.assertion("Till"))
    assert asked.status_code == 200


def test_a_secret_that_signs_is_kept_encrypted_as_long_as_it_signs(admin: Client, api: Api) -> None:
    secret = shown_secret(admin.post(reverse(ADD), form(client_authentication="SecretJwt")).content.decode())
    application = TrustedApplication.objects.get(application_uri="Till")
    assert application.encrypted_secret == secret
    with connection.cursor() as cursor:
        cursor.execute("SELECT encrypted_secret FROM identity_trustedapplication WHERE application_uri = 'Till'")
        assert secret not in cursor.fetchone()[0]
    signed = jwt.encode(assertion_claims("Till"), secret, algorithm="HS256")
    asked = token_request(Client(), grant_type="client_credentials", **assertion_fields(signed))
    assert asked.status_code == 200
    assert not works(secret)  # sent, not signed with
    read = api.get(f"{SET}({application.pk})").json()
    assert secret not in str(read)
    assert "EncryptedSecret" not in read

    change = reverse("admin:identity_trustedapplication_change", args=[application.pk])
    rotate = reverse("admin:identity_trustedapplication_secret", args=[application.pk])
    second = shown_secret(admin.post(rotate, {"days": "1"}).content.decode())
    application.refresh_from_db()
    assert (application.encrypted_secret, application.previous_encrypted_secret) == (second, secret)
    values = form(client_authentication="Secret", object_version=str(application.object_version))
    assert admin.post(change, values).status_code == 302
    application.refresh_from_db()
    assert (application.encrypted_secret, application.previous_encrypted_secret) == (None, None)
    assert works(second)


@pytest.mark.parametrize("sent, stored", [("true", True), ("false", False), ("unknown", None)])
def test_top_paging_has_a_field_of_three_values(admin: Client, sent: str, stored: bool | None) -> None:
    assert b'name="top_paging"' in admin.get(reverse(ADD), {"kind": "all"}).content
    admin.post(reverse(ADD), form(top_paging=sent))
    assert TrustedApplication.objects.get(application_uri="Till").top_paging is stored


# --- OData --------------------------------------------------------------------------------------------------------

HASH = "T/AGymuI51LwjLeIFxRQXOs9IHnupDKs/ajhWODR2C4="  # of the secret DEMO


def payloads() -> dict[str, dict[str, Any]]:
    """What administrators post: an interactive confidential, an interactive public and a service application."""
    interactive = {
        "ImpersonateAsInternalUserAllowed": True,
        "ImpersonateAsCommunityUserAllowed": False,
        "ImpersonateLoginUrl": "https://app.example/signin-oidc",
        "ImpersonateLogoutUrl": "https://app.example/signout-callback-oidc",
        "Scope": "openid profile offline_access read update",
        "SystemUserAllowed": False,
        "ReferenceTokens": "None",
        "IsEnabled": True,
    }
    service = User.objects.get(login="service").pk
    return {
        "confidential": {
            **interactive,
            "ApplicationUri": "my.web",
            "Name": "My web app",
            "ClientType": "Confidential",
            "ApplicationSecretHash": HASH,
        },
        "public": {
            **interactive,
            "ApplicationUri": "my.spa",
            "Name": "My SPA",
            "ClientType": "Public",
            "ApplicationSecretHash": None,
            "ReferenceTokens": "AuthenticatedUsers",
        },
        "service": {
            "ApplicationUri": "my.service",
            "Name": "My service",
            "ClientType": "Confidential",
            "ApplicationSecretHash": HASH,
            "SystemUserAllowed": True,
            "SystemUser@odata.bind": f"Systems_Security_Users({service})",
            "Scope": "read update exec",
            "ReferenceTokens": "AdministratorsOnly",
            "IsEnabled": True,
        },
    }


@pytest.mark.parametrize("kind", ["confidential", "public", "service"])
def test_administrators_register_applications_over_odata(library: Library, administrator: Api, kind: str) -> None:
    body = payloads()[kind]
    made = administrator.create(f"{SET}?$expand=SystemUser", body)
    for name, value in body.items():
        if "@" not in name and name != "ApplicationSecretHash":
            assert made[name] == value, name
    assert made["ApplicationSecretHash"] is None
    stored = TrustedApplication.objects.get(application_uri=body["ApplicationUri"])
    assert stored.application_secret_hash == body["ApplicationSecretHash"]
    read = administrator.read(f"{made['@odata.id']}?$select=ApplicationUri,ReferenceTokens,ClientType")
    assert read["ReferenceTokens"] == body["ReferenceTokens"]
    assert administrator.patch(made["@odata.id"], {"IsEnabled": False}).status_code == 204
    assert not TrustedApplication.objects.get(application_uri=body["ApplicationUri"]).is_enabled
    assert administrator.delete(made["@odata.id"]).status_code == 204


@pytest.mark.parametrize("model", ["common", "frontend"])
def test_a_domain_transaction_keeps_the_secret_until_it_ends(library: Library, administrator: Api, model: str) -> None:
    inside = administrator.begin(model=model)
    made = inside.create(SET, payloads()["confidential"])
    action = {"user@odata.bind": f"Systems_Security_Users({User.objects.get(login='service').pk})"}
    notified = {**action, "notificationClass": "T", "subject": "s", "priority": "Normal"}
    assert inside.post(f"{made['@odata.id']}/CreateNotification", notified).status_code < 300
    assert inside.end().status_code == 204
    assert TrustedApplication.objects.get(application_uri="my.web").application_secret_hash == HASH


@pytest.mark.parametrize(
    "kind, changes, said",
    [
        ("confidential", {}, None),
        ("public", {"Scope": "openid read"}, None),
        ("service", {"MaxSessions": 3}, None),
        ("service", {"ApplicationSecretHash": None}, "has no secret"),
        ("service", {"Scope": "openid"}, "A service without a scope of the API"),
        ("service", {"ImpersonateLoginUrl": "https://app.example/cb"}, "may sign nobody in"),
        ("public", {}, "offline_access gives nothing here"),
        ("service", {"SystemUserAllowed": False, "ReferenceTokens": "None"}, "Nobody can use the application"),
        (
            "confidential",
            {"ImpersonateAsInternalUserAllowed": False, "ImpersonateAsCommunityUserAllowed": True},
            "Community users get an id_token only",
        ),
    ],
)
def test_odata_warns_of_what_can_never_work(
    library: Library, administrator: Api, kind: str, changes: dict[str, Any], said: str | None
) -> None:
    answer = administrator.post(SET, {**payloads()[kind], **changes})
    assert answer.status_code == 201, answer.content
    warnings = answer.json().get("@erpnet.warnings", [])
    assert len(warnings) == (said is not None), warnings
    if said is not None:
        assert said in warnings[0]
        assert said in answer.headers["X-Warnings"]


def test_exec_without_the_licence_for_scripts_is_warned_of(library: Library, administrator: Api) -> None:
    Licence.objects.update(features=[])
    cache_versions.expire()
    (warning,) = administrator.create(SET, payloads()["service"])["@erpnet.warnings"]
    assert "AdvancedBpm" in warning


@pytest.mark.parametrize(
    "changes, target",
    [
        ({"ImpersonateLogoutUrl": None}, "ImpersonateLogoutUrl"),
        ({"ClientType": "Public"}, "ClientType"),
        ({"MaxSessions": 0}, "MaxSessions"),
        ({"MaxSessions": -1}, "MaxSessions"),
    ],
)
def test_a_dual_mode_application_that_cannot_work_is_refused(
    library: Library, administrator: Api, changes: dict[str, Any], target: str
) -> None:
    both = {**payloads()["confidential"], **payloads()["service"], "ApplicationUri": "my.both"}
    made = administrator.create(SET, both)
    refused = administrator.patch(made["@odata.id"], changes)
    assert refused.status_code in {400, 500}
    assert error_of(refused)["target"].rpartition("/")[2] == target
    assert administrator.post(SET, {**both, **changes, "ApplicationUri": "my.other"}).status_code in {400, 500}


def test_a_service_registered_over_odata_gets_tokens(library: Library, administrator: Api) -> None:
    administrator.create(SET, payloads()["service"])
    cache_versions.expire()
    answer = token_request(Client(), grant_type="client_credentials", client_id="my.service", client_secret="DEMO")
    assert answer.status_code == 200, answer.content


def test_the_hash_of_a_secret_is_written_and_never_read(library: Library, administrator: Api) -> None:
    made = administrator.create(SET, payloads()["service"])
    where = "ApplicationUri eq 'my.service'".replace(" ", "%20")
    by_hash = f"ApplicationSecretHash eq '{HASH}'".replace(" ", "%20").replace("+", "%2B")
    assert administrator.read(f"{SET}?$filter={by_hash}")["value"] == []
    assert administrator.read(f"{SET}?$filter=ApplicationSecretHash%20ne%20null")["value"] == []
    for path in (
        made["@odata.id"],
        f"{SET}?$filter={where}&$select=ApplicationSecretHash",
        f"{SET}?$apply=groupby((ApplicationSecretHash))",
        f"{SET}?$search=my.service",
    ):
        assert HASH[:20] not in administrator.get(path).content.decode()
    # A second one replaces it; writing back what was read does not.
    cache_versions.expire()
    assert administrator.patch(made["@odata.id"], {"ApplicationSecretHash": secret_hash("second")}).status_code == 204
    assert administrator.patch(made["@odata.id"], {"ApplicationSecretHash": None, "Name": "x"}).status_code == 204
    answers = [
        token_request(Client(), grant_type="client_credentials", client_id="my.service", client_secret=secret)
        for secret in ("DEMO", "second")
    ]
    assert [answer.status_code for answer in answers] == [401, 200]


def test_a_pending_secret_counts_after_the_commit(library: Library, administrator: Api) -> None:
    inside = administrator.begin()
    made = inside.create(SET, payloads()["service"])
    stored = TrustedApplication.objects.filter(application_uri="my.service")
    assert not stored.exists()
    assert inside.end().status_code in {200, 204}
    assert stored.get().application_secret_hash == HASH
    assert stored.get().new_secret_hash is None
    assert administrator.read(made["@odata.id"])["ApplicationSecretHash"] is None


@pytest.mark.parametrize(
    "changes, target",
    [
        ({"SystemUser@odata.bind": None}, "SystemUser"),
        ({"Scope": "read everything"}, "Scope"),
        ({"ImpersonateAsInternalUserAllowed": True}, "ImpersonateLoginUrl"),
        ({"ImpersonateLogoutUrl": "http://example.com/out"}, "ImpersonateLogoutUrl"),
        ({"ApplicationSecretHash": "plain"}, "ApplicationSecretHash"),
    ],
)
def test_the_same_rules_hold_over_odata(
    library: Library, administrator: Api, changes: dict[str, Any], target: str
) -> None:
    answer = administrator.post(SET, {**payloads()["service"], **changes})
    assert answer.status_code == 500
    error = error_of(answer)
    assert (error["code"], error["target"]) == (3300, target)


@pytest.mark.parametrize(
    "path",
    [SET, f"{SET}/$count", f"{SET}?$filter=ApplicationUri eq 'x'".replace(" ", "%20"), f"{SET}?$apply=groupby((Name))"],
)
def test_others_are_refused_whatever_their_roles(library: Library, path: str) -> None:
    somebody = person("mallory")
    give_role(somebody, {"*": "crud"})
    api = caller(somebody)
    assert api.get(path).status_code in {403, 404}
    assert api.post(SET, payloads()["service"]).status_code in {403, 404}
    known = TrustedApplication.objects.get(application_uri="WebDemoClient").pk
    for answer in (
        api.get(f"{SET}({known})"),
        api.patch(f"{SET}({known})", {"Name": "x"}),
        api.delete(f"{SET}({known})"),
    ):
        assert answer.status_code in {403, 404}


# --- roles --------------------------------------------------------------------------------------------------------


def test_a_role_is_made_with_permissions_and_policies_on_one_page(admin: Client) -> None:
    management = {
        f"{prefix}-{name}": value
        for prefix in ("RoleUsers", "permissions", "row_policies")
        for name, value in (("TOTAL_FORMS", "1"), ("INITIAL_FORMS", "0"))
    }
    management["RoleUsers-TOTAL_FORMS"] = "0"
    values = {
        **management,
        "name": "Clerk",
        "is_active": "on",
        "permissions-0-repository": "Library.*",
        "permissions-0-can_read": "on",
        "row_policies-0-repository": "Library.Books",
        "row_policies-0-filter": "Code eq $user.Nobody",
        "row_policies-0-on_read": "on",
        "row_policies-0-is_active": "on",
    }
    url = reverse("admin:identity_role_add")
    refused = admin.post(url, values)
    assert refused.status_code == 200
    assert "position 8" in refused.content.decode()
    assert not Role.objects.filter(name="Clerk").exists()
    saved = admin.post(url, {**values, "row_policies-0-filter": "Code eq $user.Login"})
    assert saved.status_code == 302, saved.context["errors"]
    role = Role.objects.get(name="Clerk")
    assert RolePermission.objects.get(role=role).repository == "Library.*"
    assert RowPolicy.objects.get(role=role).filter == "Code eq $user.Login"
    page = admin.get(reverse("admin:identity_role_change", args=[role.pk])).content.decode()
    assert "Library.*" in page
    assert "Code eq $user.Login" in page
