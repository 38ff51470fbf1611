"""Keys that are none, in the forms and lists of the admin, are a refusal and no failure of the platform.

Who: anybody who is signed in to the admin. What: a tampered form, which would fill log and recent errors with
tracebacks. What prevents it: identity.admin_bases, and the fields of forms.
"""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib import admin
from django.test import Client
from django.urls import reverse

from identity.admin_bases import PageAdmin
from identity.models import User
from tests.domain.security.conftest import person

KEYS = ("nope", "9" * 40, "", "-1", "\u0660")


@pytest.fixture
def boss(demo: None) -> Client:
    """An administrator's browser."""
    client = Client()
    client.force_login(person("boss", is_admin=True))
    return client


def test_every_list_takes_them_for_keys_of_nothing(boss: Client, rf: Any) -> None:
    tried = 0
    for model, page in admin.site._registry.items():
        assert isinstance(page, PageAdmin), model
        request = rf.get("/")
        request.user = User.objects.get(login="boss")
        if not (page.has_view_permission(request) and page.get_actions(request)):
            continue
        address = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
        for action in page.get_actions(request):
            answer = boss.post(address, {"action": action, "_selected_action": KEYS, "index": "0", "post": "yes"})
            assert answer.status_code == 302, (address, action)
            tried += 1
    assert tried > 30


@pytest.mark.parametrize("key", KEYS)
def test_a_sink_s_reader(boss: Client, key: str) -> None:
    form = {
        "name": "x", "broker": "nats", "servers": "localhost", "destination": "a", "operations": "C", "reader": key,
    }  # fmt: skip
    answer = boss.post(reverse("admin:event_sinks_eventsink_add"), form)
    assert (answer.status_code, bool(answer.context["adminform"].form.errors["reader"])) == (200, True)
