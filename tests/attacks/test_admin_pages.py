"""The admin shows and changes no more than the API does.

Who: a user whose roles open pages of the admin. What: to see rows that their row policies hide, to tick "administrator"
for themselves, or to use the pages of what administrators alone configure. What prevents it: pages take rows from the
read engine and write through a dataset, with the rights of the person who is signed in (domain.admin.context); Django's
own permissions are granted to nobody.
"""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group, Permission
from django.test import Client
from django.urls import reverse

from domain.model.registry import repositories
from identity.models import User
from tests.attacks.access import digest, save_rule
from tests.domain.conftest import api, world
from tests.domain.security.conftest import MARK, READ_POLICIES, Library, caller, give_role, library, person
from tests.identity.flows import fields_of
from tests.sample_library.models import Chapter
from tests.support.api import Api

__all__ = ["api", "library", "world"]

pytestmark = pytest.mark.once


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
        "identity_licence", "identity_ratelimits", "scripts_scriptrun", "jobs_jobrun",
        "identity_rolepermission", "identity_rowpolicy",
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


def test_an_inline_row_of_another_parent_is_neither_moved_nor_deleted(library: Library) -> None:
    """Its guid in the form of a book that mallory may change; the row's own book is hidden from mallory."""
    mallory = person("mallory")
    give_role(mallory, {"Library.*": "crud", "General.*": "r"}, READ_POLICIES)
    page = page_of(mallory)
    address = reverse("admin:sample_library_book_change", args=[library.books["A1"]])
    form = fields_of(page.get(address).content.decode())
    assert form["Chapters-INITIAL_FORMS"] == "2", form
    stored = list(Chapter._default_manager.order_by("pk").values())
    for extra in ({"Chapters-0-DELETE": "on"}, {"Chapters-0-heading": "mine"}):
        rows = {
            "Chapters-TOTAL_FORMS": "1", "Chapters-INITIAL_FORMS": "1", "Chapters-0-id": library.chapters["A3"][1],
            "Chapters-0-book": library.books["A1"], **extra,
        }  # fmt: skip
        page.post(address, {**form, **rows})
        assert list(Chapter._default_manager.order_by("pk").values()) == stored


def test_choosers_and_popups_show_no_hidden_row(library: Library) -> None:
    mallory = person("mallory")
    give_role(mallory, {"Library.*": "crud", "General.*": "r"}, READ_POLICIES)
    page = page_of(mallory)
    chooser = {"app_label": "sample_library", "model_name": "book", "field_name": "publisher", "term": MARK}
    answers = [
        page.get(reverse("admin:autocomplete"), chooser),
        page.get(reverse("admin:autocomplete"), {**chooser, "term": ""}),
        page.get(reverse("admin:sample_library_book_changelist"), {"_popup": "1", "_to_field": "id", "q": MARK}),
        page.get(reverse("admin:sample_library_book_changelist"), {"_popup": "1", "_to_field": "title"}),
        page.get(reverse("admin:sample_library_book_changelist"), {"publisher__party_name__icontains": MARK}),
        page.get(reverse("admin:sample_library_book_change", args=[library.books["A3"]])),
    ]
    assert [row["text"] for row in answers[0].json()["results"]] == []
    shown = {row["id"] for row in answers[1].json()["results"]}
    assert library.companies["open"] in shown
    assert library.companies["hidden"] not in shown
    for answer in answers:
        text = answer.content.decode().replace(f'value="{MARK}"', "").replace(f"={MARK}", "")
        assert answer.status_code < 500
        assert f"{MARK} " not in text, answer.request


@pytest.mark.parametrize(
    "name, lookup",
    [
        ("identity_user", "password__startswith=argon2"),
        ("identity_user", "password__gt=a"),
        ("domain_webhook", "signing_secret__isnull=False"),
        ("sample_library_book", "custom_property_values__contains=x"),
        # The database would match these for hours, and SQLite in this process.
        ("sample_library_book", "code__regex=(a|a)*$"),
        ("sample_library_book", "title__EN__iregex=(a|a)*$"),
        ("sample_library_book", "pk__regex=(a|a)*$"),
        # References to hidden rows are null for mallory, in conditions too.
        ("sample_library_book", "publisher__isnull=False"),
        ("sample_library_book", "publisher__id__exact={hidden}"),
        ("sample_library_book", "publisher_id={hidden}"),
        ("sample_library_book", "publisher__party_name__EN__contains=C"),
        ("sample_library_book", "chapter__id={chapter}"),
        ("sample_library_book", "chapter__heading__contains=C"),
    ],
)
def test_a_list_is_not_filtered_by_what_its_reader_may_not_read(library: Library, name: str, lookup: str) -> None:
    """Each answer to such a condition tells a letter of a secret."""
    mallory = person("mallory")
    systems = {"Systems.Security.*": "r", "Systems.Config.*": "r"}
    give_role(mallory, {"Library.*": "crud", "General.*": "r", **systems}, READ_POLICIES)
    page, address = page_of(mallory), reverse(f"admin:{name}_changelist")
    condition = lookup.format(hidden=library.companies["hidden"], chapter=library.chapters["A2"][1])
    assert page.get(address).status_code == 200
    assert page.get(f"{address}?{condition}").status_code == 400


@pytest.mark.parametrize("lookup", ["code__startswith=A", "pages__gte=100", "id__isnull=False"])
def test_a_list_is_filtered_by_what_its_reader_may_read(library: Library, lookup: str) -> None:
    mallory = person("mallory")
    give_role(mallory, {"Library.*": "r"}, READ_POLICIES)
    answer = page_of(mallory).get(f"{reverse('admin:sample_library_book_changelist')}?{lookup}")
    assert answer.status_code == 200
    assert answer.context["cl"].result_count > 0


def test_trying_a_rule_shows_no_value_that_its_reader_may_not_read(library: Library) -> None:
    """The rule is an administrator's, whose rights it has; A2 is visible, and its publisher is not."""
    condition = {"ConditionNo": 10, "AttributeName": "Publisher.PartyName", "ComparisonType": "Like", "Value": "C%"}
    administrator = caller(person("alice", is_admin=True))
    rule = save_rule(administrator, "A1", "Library.Books", "COMMIT", ("WARNING", "x"), Conditions=[condition])
    mallory = person("mallory")
    give_role(mallory, {"Library.*": "crud", "General.*": "r", "Systems.Bpm.*": "crud"}, READ_POLICIES)

    def tried(user: User) -> str:
        page, address = page_of(user), reverse("admin:rules_try", args=[rule])
        form = fields_of(page.get(address).content.decode())
        return page.post(address, {**form, "entity": library.books["A2"]}).content.decode()

    assert MARK in tried(User.objects.get(login="alice"))
    shown = tried(mallory)
    assert "Publisher.PartyName" in shown
    assert MARK not in shown
