"""A stored secret is sent to a server of the attacker's.

Who: an administrator of the pages of upstream providers or event sinks, who does not know the secrets there. What: to
name a server of theirs, which is then sent the stored secret. What prevents it: where a secret goes to is changed only
by who enters it again (identity.stored_secrets).
"""

from __future__ import annotations

from typing import Any

import pytest
from django.forms import PasswordInput
from django.test import Client
from django.urls import reverse

from event_sinks.models import EventSink
from identity.models import IdentityProvider, User


def save(client: Client, page: str, **changed: str) -> Any:
    """What the page answers to its own form with these changes."""
    form = client.get(page).context["adminform"].form
    shown = [field for field in form if not isinstance(field.field.widget, PasswordInput)]
    values = {field.html_name: field.value() for field in shown if field.value() not in (None, False)}
    return client.post(page, {**values, **changed})


@pytest.fixture
def administrator(demo: None) -> Client:
    client = Client()
    client.force_login(User.objects.get(login="admin"))
    return client


def test_the_secret_of_a_provider(administrator: Client) -> None:
    provider = IdentityProvider.objects.create(
        code="contoso", name="Contoso", issuer="https://login.contoso.example", client_id="us", client_secret="s3cret"
    )
    page = reverse("admin:identity_identityprovider_change", args=[provider.pk])
    form: dict[str, str] = {}
    for prefix in administrator.get(page).context["inline_admin_formsets"]:
        form |= {f"{prefix.formset.prefix}-TOTAL_FORMS": "0", f"{prefix.formset.prefix}-INITIAL_FORMS": "0"}
    refused = save(administrator, page, **form, issuer="https://attacker.example")
    assert "Enter it again" in refused.content.decode()
    provider.refresh_from_db()
    assert (provider.issuer, provider.client_secret) == ("https://login.contoso.example", "s3cret")
    assert save(administrator, page, **form, name="Contoso Ltd").status_code == 302
    provider.refresh_from_db()
    assert (provider.name, provider.client_secret) == ("Contoso Ltd", "s3cret")
    entered = save(administrator, page, **form, issuer="https://login.contoso.example/v2", client_secret="n3w")
    assert entered.status_code == 302, entered.content
    provider.refresh_from_db()
    assert (provider.issuer, provider.client_secret) == ("https://login.contoso.example/v2", "n3w")


def test_the_password_of_a_sink(administrator: Client, settings: Any) -> None:
    settings.EGRESS_ALLOW = ["broker.example", "attacker.example"]
    sink = EventSink.objects.create(
        name="erp", broker="Nats", servers="broker.example", user_name="us", password="s3cret",
        destination="erp.events", reader=User.objects.get(login="admin"),
    )  # fmt: skip
    page = reverse("admin:event_sinks_eventsink_change", args=[sink.pk])
    refused = save(administrator, page, servers="attacker.example")
    assert "Enter it again" in refused.content.decode()
    sink.refresh_from_db()
    assert (sink.servers, sink.password) == ("broker.example", "s3cret")
