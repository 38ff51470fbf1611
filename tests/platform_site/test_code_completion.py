"""Names of the model that editors of scripts and webhooks complete: those that the person may read."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from foundation import cache_versions
from identity.models import Role, RolePermission, RoleUser, User

pytestmark = pytest.mark.django_db
PAGES = ("script", "userbusinessrule", "webhook")
ORDERS = "Crm.Sales.SalesOrders"


def names(client: Client, repository: str = "", page: str = "script") -> Any:
    return client.get(f"/admin/domain/{page}/completion/", {"repository": repository} if repository else {})


def person(*readable: str, admin: bool = False) -> Client:
    user = User.objects.create(login="person", name={"EN": "Person"}, is_admin=admin)  # type: ignore[misc]
    role = Role.objects.create(name="Readers")
    RoleUser.objects.create(user=user, role=role)
    for repository in readable:
        RolePermission.objects.create(role=role, repository=repository, can_read=True)
    cache_versions.expire()
    client = Client()
    client.force_login(user)
    return client


@pytest.mark.parametrize("page", PAGES)
def test_an_administrator_gets_every_name(page: str) -> None:
    client = person(admin=True)
    listed = names(client, page=page).json()
    assert {ORDERS, "General.Products.Products"} <= set(listed["repositories"])
    assert "$newguid" in listed["known"]
    order = names(client, ORDERS, page).json()
    assert ["DocumentNo", "string", None] in order["attributes"]
    assert ["Customer", "reference", "Crm.Sales.Customers"] in order["attributes"]
    assert ["CustomerId", "guid"] in order["parts"]
    assert ["Lines", "Crm.Sales.SalesOrderLines"] in order["collections"]
    assert "ChangeState" in order["operations"]
    assert "$ToState" in order["events"]


def test_names_of_what_one_may_not_read_are_left_out() -> None:
    client = person("Systems.Core.Scripts", ORDERS)
    assert set(names(client).json()["repositories"]) == {"Systems.Core.Scripts", ORDERS}
    order = names(client, ORDERS).json()
    assert ["Customer", "reference", None] in order["attributes"]
    assert order["collections"] == []
    assert names(client, "General.Products.Products").status_code == 404
    assert names(client, "No.Such").status_code == 404
    assert names(client, page="webhook").status_code == 403
    assert names(Client()).status_code == 302


def test_secrets_are_no_names() -> None:
    offered = [name for name, *_ in names(person(admin=True), "Systems.Config.WebHooks").json()["attributes"]]
    assert "Body" in offered
    assert not {"Headers", "SigningSecret"} & set(offered)
