"""Rights of users: roles, repositories, row policies (spec 01, 1.7)."""

from __future__ import annotations

import pytest

from foundation import cache_versions
from identity.context import Operation, Permissions
from identity.models import Role, RolePermission, RoleUser, RowPolicy, User
from identity.permissions import permissions_for

ORDERS = "Crm.Sales.SalesOrders"


@pytest.fixture
def person(db: None) -> User:
    return User.objects.create_user("person")


def role(person: User, name: str, **repositories: str) -> Role:
    """A role of the person; keyword → letters of create, read, update, delete; `_` stands for the dot, `all` for *."""
    made = Role.objects.create(name=name)
    RoleUser.objects.create(user=person, role=made)
    for key, letters in repositories.items():
        repository = "*" if key == "all" else key.replace("__", ".*").replace("_", ".")
        RolePermission.objects.create(
            role=made,
            repository=repository,
            can_read="r" in letters,
            can_create="c" in letters,
            can_update="u" in letters,
            can_delete="d" in letters,
        )
    return made


def rights(person: User) -> Permissions:
    return permissions_for(person.pk, is_admin=False)


def test_nobody_may_anything_without_a_role(person: User) -> None:
    assert not rights(person).allows(ORDERS, "read")


def test_administrators_may_everything(person: User) -> None:
    everything = permissions_for(person.pk, is_admin=True)
    assert everything.allows(ORDERS, "delete")
    assert everything.key == "all"


@pytest.mark.parametrize(
    "repository, operation, allowed",
    [
        (ORDERS, "read", True),
        (ORDERS, "delete", False),
        ("Crm.Sales.Offers", "update", True),
        ("Crm.Leads", "read", True),
        ("Crm.Leads", "update", False),
        ("General.Products.Products", "read", False),
        ("Crm", "read", False),
    ],
)
def test_the_most_specific_entry_decides(person: User, repository: str, operation: Operation, allowed: bool) -> None:
    role(person, "Sales", Crm_Sales_SalesOrders="ru", Crm_Sales__="crud", Crm__="r")
    assert rights(person).allows(repository, operation) is allowed


def test_everything_by_a_star(person: User) -> None:
    role(person, "Auditor", all="r")
    assert rights(person).allows("Any.Thing", "read")
    assert not rights(person).allows("Any.Thing", "update")


def test_roles_add_up_and_inactive_ones_do_not_count(person: User) -> None:
    role(person, "Reader", Crm_Sales_SalesOrders="r")
    writer = role(person, "Writer", Crm_Sales_SalesOrders="u")
    assert rights(person).allows(ORDERS, "update")
    writer.is_active = False
    writer.save()
    cache_versions.expire()
    assert not rights(person).allows(ORDERS, "update")


def test_policies_of_roles_widen_each_other(person: User) -> None:
    first, second = role(person, "A", all="ru"), role(person, "B", all="r")
    for owner, text in ((first, "X eq 1"), (second, "Y eq 2")):
        RowPolicy.objects.create(role=owner, repository=ORDERS, filter=text)
    cache_versions.expire()
    found = rights(person)
    assert set(found.policies(ORDERS, "read")) == {"X eq 1", "Y eq 2"}
    assert found.policies(ORDERS, "update") == ("X eq 1",)
    assert found.policies("Crm.Leads", "read") == ()


def test_a_role_without_a_policy_sees_every_row(person: User) -> None:
    narrow = role(person, "A", all="r")
    role(person, "B", all="r")
    RowPolicy.objects.create(role=narrow, repository=ORDERS, filter="X eq 1")
    cache_versions.expire()
    assert rights(person).policies(ORDERS, "read") == ()


def test_users_of_the_same_roles_share_a_key(person: User) -> None:
    shared = role(person, "A", all="r")
    other = User.objects.create_user("other")
    RoleUser.objects.create(user=other, role=shared)
    assert rights(person).key == rights(other).key
    role(other, "B", Crm_Sales_SalesOrders="u")
    cache_versions.expire()
    assert rights(person).key != rights(other).key
