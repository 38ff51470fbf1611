"""The admin shows and changes no more than the API does.

Who: a user whose roles open pages of the admin. What: to see rows that their row policies hide, to tick "administrator"
for themselves, or to use the pages of what administrators alone configure. What prevents it: pages take rows from the
read engine and write through a dataset, with the rights of the person who is signed in (domain.admin.rights); Django's
own permissions are granted to nobody.
"""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group, Permission
from django.test import Client
from django.urls import reverse

from domain.model.registry import repositories
from identity.models import User
from tests.attacks.access import digest
from tests.domain.conftest import api, world
from tests.domain.security.conftest import READ_POLICIES, Library, caller, give_role, library, person
from tests.support.api import Api

__all__ = ["api", "library", "world"]


def page_of(user: User) -> Client:
    client = Client(raise_request_exception=False)
    client.force_login(user)
    return client


def test_each_list_has_as_many_rows_as_the_api_counts(library: Library) -> None:
    """Also where a policy hides all rows but one, as for orders of one salesperson."""
    bob = person("bob")
    one = {"Crm.Customers": "Number eq 'C1'", "General.Products.Products": "false"}
    give_role(bob, {"*": "r", "Library.*": "r"}, {**READ_POLICIES, **one})
    page, restricted, administrator = page_of(bob), caller(bob), caller(person("alice", is_admin=True))

    def counted(caller: Api, name: str) -> int:
        return int(caller.get(f"{name}/$count").content)

    fewer = 0
    for repository in repositories:
        address = reverse(f"admin:{repository.model._meta.app_label}_{repository.model._meta.model_name}_changelist")
        shown, asked = page.get(address), restricted.get(f"{repository.set_name}/$count")
        if asked.status_code == 403:
            assert shown.status_code in (302, 403, 404), address
            continue
        assert shown.context["cl"].result_count == int(asked.content), address
        fewer += int(asked.content) < counted(administrator, repository.set_name)
    assert fewer >= len(READ_POLICIES)


def test_no_box_makes_an_administrator(library: Library) -> None:
    mallory = person("mallory")
    give_role(mallory, {"*": "crud", "Systems.Security.*": "crud"})
    page = page_of(mallory)
    before = digest()
    form = {"login": "root", "is_admin": "on", "active": "on", "email": "m@example.com", "user_type": "InternalUser"}
    rows = {"RoleUsers-TOTAL_FORMS": "0", "RoleUsers-INITIAL_FORMS": "0"}
    for address in ("change", "add"):
        keys = [mallory.pk] if address == "change" else []
        page.post(reverse(f"admin:identity_user_{address}", args=keys), {**form, **rows})
    assert digest() == before


def test_permissions_and_groups_of_django_grant_nothing(library: Library) -> None:
    """They are tables of Django that nothing here fills; a row in them must not count either."""
    mallory = person("mallory")
    give_role(mallory, {"Library.*": "r"})
    group = Group.objects.create(name="all")
    group.permissions.set(Permission.objects.all())
    assert mallory.get_all_permissions() == set()
    page = page_of(mallory)
    assert page.get(reverse("admin:sample_library_book_changelist")).status_code == 200
    for name in ("identity_user", "identity_licence", "identity_ratelimits", "domain_product", "identity_signingkey"):
        assert page.get(reverse(f"admin:{name}_changelist")).status_code in (302, 403, 404), name


@pytest.mark.parametrize(
    "name",
    [
        "identity_session", "identity_accesstoken", "identity_referencetoken", "identity_signingkey",
        "identity_licence", "identity_ratelimits", "scripts_scriptrun", "identity_rolepermission", "identity_rowpolicy",
    ],
)  # fmt: skip
def test_what_administrators_configure_is_changed_by_no_role(library: Library, name: str) -> None:
    mallory = person("mallory")
    give_role(mallory, {"*": "crud", "Systems.*": "crud", "Systems.Security.*": "crud"})
    page, before = page_of(mallory), digest()
    addresses = [reverse(f"admin:{name}_add"), reverse(f"admin:{name}_change", args=["1"])]
    assert {page.post(address, {"post": "yes"}).status_code for address in addresses} <= {302, 403, 404}
    chosen = {"action": "delete_selected", "_selected_action": ["1"], "post": "yes"}
    assert page.post(reverse(f"admin:{name}_changelist"), chosen).status_code in (302, 403, 404)
    assert digest() == before
