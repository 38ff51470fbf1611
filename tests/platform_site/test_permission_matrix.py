"""The matrix of roles and repositories tells what the permissions of each role come to, and leads to them."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from identity.models import Role, RolePermission, RowPolicy, User
from tests.domain.security.conftest import give_role, person

pytestmark = pytest.mark.django_db
PAGE = "/admin/permissions/"


@pytest.fixture
def boss(client: Client) -> Client:
    client.force_login(User.objects.create_superuser("boss", "vast-Harbour-42"))
    return client


def cell(client: Client, role: str, repository: str) -> tuple[str, list[str]]:
    """(text, links) of the cell, with the page filtered to it."""
    page = client.get(PAGE, {"role": role, "repository": repository})
    assert page.status_code == 200
    found = re.search(rf'<th scope="row" title="{re.escape(repository)}">.*?</tr>', page.content.decode(), re.S)
    assert found, repository
    html = found[0].partition("</th>")[2]
    text = " ".join(unescape(re.sub(r"<[^>]*>", " ", html)).split())
    return text, [unescape(url) for url in re.findall(r'href="([^"]*)"', html)]


def test_a_cell_shows_what_the_most_specific_permission_grants(boss: Client) -> None:
    role = Role.objects.create(name="Clerks")
    wildcard = RolePermission.objects.create(role=role, repository="Crm.*", can_read=True, can_create=True)
    own = RolePermission.objects.create(role=role, repository="Crm.Sales.Customers", can_read=True, can_delete=True)
    text, links = cell(boss, "Clerks", "Crm.Sales.SalesOrders")
    assert text == "read, create R C · · ↳ Crm.*"
    assert links == [reverse("admin:identity_rolepermission_change", args=[wildcard.pk])]
    text, links = cell(boss, "Clerks", "Crm.Sales.Customers")
    assert text == "read, delete R · · D"
    assert links == [reverse("admin:identity_rolepermission_change", args=[own.pk])]


def test_where_nothing_is_granted_the_cell_leads_to_the_form_that_grants(boss: Client) -> None:
    role = Role.objects.create(name="Clerks")
    text, [link] = cell(boss, "Clerks", "Crm.Sales.Customers")
    assert text == "nothing –"
    form = boss.get(link).content.decode()
    assert 'value="Crm.Sales.Customers"' in form
    assert f'value="{role.pk}" selected' in form


def test_what_no_role_can_grant_is_not_shown_as_granted(boss: Client) -> None:
    role = Role.objects.create(name="Clerks")
    for name in ("*", "Systems.Security.*", "Systems.Monitoring.*"):
        RolePermission.objects.create(
            role=role, repository=name, can_read=True, can_create=True, can_update=True, can_delete=True
        )
    assert cell(boss, "Clerks", "Systems.Security.Roles")[0] == "read R ↳ Systems.Security.*"
    # A star does not grant what runs code or sends data.
    assert cell(boss, "Clerks", "Systems.Bpm.UserBusinessRules")[0] == "nothing –"


def test_row_policies_are_counted_and_listed(boss: Client) -> None:
    role = give_role(person("ivy"), {"Crm.*": "r"}, {"Crm.Sales.Customers": "false"})
    RowPolicy.objects.create(role=role, repository="Crm.Sales.Customers", filter="true", is_active=False)
    text, links = cell(boss, role.name, "Crm.Sales.Customers")
    assert text.endswith("▽ 1 row policy")
    assert boss.get(links[-1]).context["cl"].result_count == 2
    assert "▽" not in cell(boss, role.name, "Crm.Sales.SalesOrders")[0]


def test_the_table_is_bounded_and_its_queries_are(boss: Client) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as asked:
            page = boss.get(PAGE)
        assert page.content.decode().count("<td>") <= 240
        return len(asked)

    give_role(person("first"), {"*": "r"})
    queries()
    few = queries()
    for number in range(12):
        give_role(person(f"p{number}"), {"*": "r", "Crm.*": "crud"}, {"Crm.Sales.Customers": "true"})
    queries()  # the rights have changed, and are read anew
    assert queries() == few
    pages = boss.get(PAGE, {"columns": "2", "page": "2"}).content.decode()
    assert 'rel="prev"' in pages
    assert boss.get(PAGE, {"columns": "x", "page": "99999"}).status_code == 200
    assert boss.get(PAGE, {"role": "\0", "repository": "<b>"}).status_code == 200


def test_it_is_found_from_home_search_and_roles_by_administrators_alone(boss: Client) -> None:
    role = Role.objects.create(name="Clerks & co")
    assert f'href="{PAGE}"' in boss.get("/admin/").content.decode()
    assert PAGE in boss.get(reverse("admin:search"), {"s": "permissions by"}).content.decode()
    page = boss.get(reverse("admin:identity_role_change", args=[role.pk])).content.decode()
    assert f"{PAGE}?role=Clerks+%26+co" in page
    ivy = person("ivy")
    give_role(ivy, {"*": "crud", "Systems.*": "crud"})
    reader = Client()
    reader.force_login(ivy)
    assert reader.get(PAGE).status_code == 403
    assert PAGE not in reader.get("/admin/").content.decode()
