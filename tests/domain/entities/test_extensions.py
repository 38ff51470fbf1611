"""Systems.Core.Extensions: applications on the home page of the admin."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from domain.dataset.dataset import Dataset
from foundation import errors
from identity.context import system_context
from identity.models import User

pytestmark = [pytest.mark.django_db, pytest.mark.once]


def add(data: Any = None, **values: Any) -> None:
    """Register an extension of the main menu."""
    dataset = Dataset(system_context())
    given = {"uri": "https://app.example/?u={$user}&lang={$language}", "slug": "my-app", **(data or {})}
    attributes = {
        "Name": "App",
        "ApplicationUri": "internal.erp.net/webclient",
        "ExtensionPath": "/mainmenu/apps",
        "ExtensionUri": "my-app.example",
        "ExtensionData": json.dumps(given),
        **values,
    }
    dataset.create("Systems.Core.Extensions", attributes)
    dataset.commit()


def home() -> str:
    client = Client()
    client.force_login(User.objects.create_superuser("root & co", name={"EN": "Root & Co"}))
    return client.get("/admin/").content.decode()


def test_an_active_one_is_a_link_with_the_users_values() -> None:
    add(Title={"EN": "My <App>", "DE": "Meine App"}, Hint={"EN": "Opens it"})
    page = home()
    assert 'href="https://app.example/?u=Root%20%26%20Co&amp;lang=en"' in page
    assert "My &lt;App&gt;" in page
    assert "Opens it" in page


def test_others_are_not_shown() -> None:
    add(IsActive=False)
    add({"slug": "b"}, ExtensionPath="/forms/panels")
    assert "app.example" not in home()


@pytest.mark.parametrize(
    "data, why",
    [
        ({"uri": ""}, "no uri"),
        ({"uri": "javascript:alert(1)"}, "https"),
        ({"uri": "{$rooturl}"}, "https"),
        ({"uri": "https://app.example/{$nothing}"}, "nothing"),
        ({"slug": "My App"}, "slug"),
        ({"slug": "-a"}, "slug"),
    ],
)
def test_wrong_data_is_refused(data: dict[str, str], why: str) -> None:
    with pytest.raises(errors.Refused, match=why):
        add(data)


def test_what_is_no_json_object_or_has_a_used_slug_is_refused() -> None:
    for text in ("[]", "{", "", None):
        with pytest.raises(errors.Refused, match="JSON"):
            add(ExtensionData=text)
    add()
    with pytest.raises(errors.Refused, match="slug"):
        add()
