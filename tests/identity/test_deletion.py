"""Users and roles that are deleted through the API, whatever they have left (spec 01, 1.5)."""

from __future__ import annotations

import pytest
from django.db import models
from django.test import Client

from foundation.models import Entity
from identity.models import (
    FederatedAccount,
    IdentityProvider,
    IdentityProviderRole,
    Role,
    Session,
    User,
)
from tests.identity.factors import phone_of, recovery_codes_of
from tests.identity.flows import Browser
from tests.support.api import Api, service_api

# The database looks at references when a transaction commits.
pytestmark = pytest.mark.django_db(transaction=True)


def own_models() -> list[tuple[type[models.Model], str]]:
    return [
        (related.related_model, related.field.name)
        for related in User._meta.related_objects
        if related.on_delete is models.CASCADE and not issubclass(related.related_model, Entity)
    ]


def test_a_user_who_has_signed_in_can_be_deleted(demo: None) -> None:
    user = User.objects.create_superuser("leaver", "vast-Harbour-42")
    browser = Browser(Client())
    asked = {"scope": "openid read offline_access", "password": "vast-Harbour-42"}
    person = Api(Client(), browser.tokens("leaver", **asked)["access_token"])
    assert person.get("General_Currencies_Currencies").status_code == 200
    phone_of("leaver")
    recovery_codes_of("leaver")
    provider = IdentityProvider.objects.create(code="c", name="C", issuer="https://c.example")
    FederatedAccount.objects.create(provider=provider, subject="x", user=user)
    left = {model.__name__ for model, name in own_models() if model._base_manager.filter(**{name: user.pk}).exists()}
    assert {"AccessToken", "AuthenticatorApp", "FederatedAccount", "RecoveryCode", "Session"} <= left
    answer = service_api(Client()).delete(f"Systems_Security_Users({user.pk})")
    assert answer.status_code == 204, answer.content
    for model, name in own_models():
        assert not model._base_manager.filter(**{name: user.pk}).exists(), model
    assert person.get("General_Currencies_Currencies").status_code == 401
    assert not Session.objects.filter(user_id=user.pk).exists()


def test_a_role_that_a_provider_gives_can_be_deleted(demo: None) -> None:
    role = Role.objects.create(name="From elsewhere")
    provider = IdentityProvider.objects.create(code="c", name="C", issuer="https://c.example", role_claim="groups")
    IdentityProviderRole.objects.create(provider=provider, claim_value="g", role=role)
    answer = service_api(Client()).delete(f"Systems_Security_Roles({role.pk})")
    assert answer.status_code == 204, answer.content
    assert not IdentityProviderRole.objects.exists()
