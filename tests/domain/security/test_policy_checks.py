"""Row policies are checked against the model when they are saved, with the position of the error (spec 01, 1.7)."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import translation

from domain.query.base.access import CALL_VALUES, KNOWN_VARIABLES
from identity.models import Role, RowPolicy, User
from identity.row_policies import check_filter
from tests.support.api import Api

BOOKS = "Library.Books"


@pytest.mark.parametrize(
    "expression",
    [
        "Pages le 200",
        "Code eq $user.Login or Publisher/PartyName/EN eq $user.Name",
        "Chapters/any(c: c/Heading eq $user.Email) and $user.IsAdmin eq false",
        "Code eq $application and $user.UserType ne 'ExternalCommunityUser'",
        "Code ne '$user.Nobody'",
    ],
)
def test_what_can_be_applied_is_accepted(db: None, expression: str) -> None:
    check_filter(BOOKS, expression)


@pytest.mark.parametrize(
    "expression, said",
    [
        ("", "empty"),
        ("Pages le", "position 8"),
        ("Code eq $user.Login and", "position 23"),
        ("Code eq $user.Login and Nothing eq 1", "position 24"),
        ("Code eq $user.Password", "position 8"),
        ("Code eq $user.Password", "$user.Login"),
        ("Code ne $user.Name and Pages eq 'text'", "position 32"),
    ],
)
def test_what_cannot_is_refused_with_its_position(db: None, expression: str, said: str) -> None:
    with pytest.raises(ValueError, match="(?i)" + said.replace("$", r"\$")) as refused:
        check_filter(BOOKS, expression)
    assert str(refused.value).endswith(".")


@pytest.mark.parametrize("language,said", [("bg", "позиция 32"), ("de", "Position 32")])
def test_the_position_is_the_policys_own_in_every_language(db: None, language: str, said: str) -> None:
    with translation.override(language), pytest.raises(ValueError, match=said):
        check_filter(BOOKS, "Code ne $user.Name and Pages eq 'text'")


def test_every_offered_variable_has_a_value() -> None:
    assert {name.removeprefix("$") for name in KNOWN_VARIABLES} <= set(CALL_VALUES)


def test_the_admin_shows_the_position_at_the_field(api: Api) -> None:
    client = Client()
    client.force_login(User.objects.get(login="admin"))
    form = {"role": str(Role.objects.get().pk), "repository": BOOKS, "filter": "Pages le", "on_read": "on"}
    page = client.post(reverse("admin:identity_rowpolicy_add"), form)
    assert page.context["adminform"].form.errors.keys() == {"filter"}
    assert "position 8" in page.context["adminform"].form.errors["filter"][0]
    assert not RowPolicy.objects.exists()
