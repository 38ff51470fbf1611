"""The current company, location and role of a request are the user's own, whatever the request says (spec 01, 1.7).

Who: a user whose row policies ask for $company, $location or $role. What: to see another company's rows by naming it in
a header, the query, a batch or one of its parts. What prevents it: identity.permissions.Assignments takes what a
membership of the user names, and memberships are an administrator's.
"""

from __future__ import annotations

from typing import Any

import pytest

from domain.dataset.dataset import Dataset
from foundation import cache_versions
from identity.models import Role
from tests.domain.conftest import api, world
from tests.domain.security.conftest import caller, give_role, person
from tests.rules.cast import World
from tests.support.api import Api, id_of

__all__ = ["api", "world"]
CUSTOMERS = "Crm_Sales_Customers"
MEMBERSHIPS = "Systems_Security_RoleUsers"
ROLE_POLICY = "$role.Id eq {0}"


class Office:
    """Two companies with a customer each, and an employee whose role sees the current company's customers."""

    def __init__(self, world: World, administrator: Api, policy: str = "EnterpriseCompany/Id eq $company.Id") -> None:
        ds = Dataset(world.context)
        parties = [ds.create("General.Contacts.Companies", {"PartyName": {"EN": name}}).id for name in ("Other", "X")]
        self.theirs = ds.create(
            "General.EnterpriseCompanies", {"Company": parties[0], "BaseCurrency": world.currency}
        ).id
        ds.create("Crm.Sales.Customers", {"Number": "C2", "Party": parties[1], "EnterpriseCompany": self.theirs})
        ds.commit()
        self.ours = world.company
        self.administrator = administrator
        self.employee = person("bob")
        give_role(self.employee, {"Crm.*": "r", "General.*": "r"}, {"Crm.Sales.Customers": policy})
        self.role = str(Role.objects.get(name__endswith="of bob").pk)
        self.api = caller(self.employee)

    def seen(self, **headers: str) -> list[str]:
        rows = self.api.read(f"{CUSTOMERS}?$select=Number&$orderby=Number", **headers)["value"]
        return [row["Number"] for row in rows]

    def assign(self, api: Api, **references: str) -> Any:
        body = {f"{name}@odata.bind": target for name, target in references.items()}
        bound = {"User@odata.bind": f"Systems_Security_Users({self.employee.pk})",
                 "Role@odata.bind": f"Systems_Security_Roles({self.role})"}  # fmt: skip
        answer = api.post(MEMBERSHIPS, {**bound, **body})
        cache_versions.expire()
        return answer


@pytest.fixture
def office(world: World, api: Api) -> Office:
    return Office(world, api)


def named(company: str) -> list[dict[str, str]]:
    """The ways to name a current company."""
    return [
        {"Prefer": f"CurrentEnterpriseCompanyId={company}"},
        {"ErpContextParameters": f"CurrentEnterpriseCompanyId={company}"},
    ]


def test_a_header_does_not_choose_whose_rows_are_seen(office: Office) -> None:
    for headers in (*named(office.ours), *named(office.theirs)):
        assert office.seen(**headers) == []
    in_query = office.api.read(f"{CUSTOMERS}?$select=Number&CurrentEnterpriseCompanyId={office.theirs}")
    assert in_query["value"] == []


def test_an_assigned_company_may_be_chosen_and_no_other(office: Office) -> None:
    made = office.assign(office.administrator, EnterpriseCompany=f"General_EnterpriseCompanies({office.ours})")
    assert made.status_code == 201, made.content
    for headers in named(office.ours):
        assert office.seen(**headers) == ["C1"]
    for headers in named(office.theirs):
        assert office.seen(**headers) == []
    assert office.administrator.delete(f"{MEMBERSHIPS}({id_of(made.json())})").status_code == 204
    cache_versions.expire()
    assert office.seen(**named(office.ours)[0]) == []


def test_one_role_may_be_held_in_several_companies(office: Office) -> None:
    for company in (office.ours, office.theirs):
        made = office.assign(office.administrator, EnterpriseCompany=f"General_EnterpriseCompanies({company})")
        assert made.status_code == 201, made.content
    assert [office.seen(**named(company)[0]) for company in (office.ours, office.theirs)] == [["C1"], ["C2"]]
    assert office.seen() == []
    again = office.assign(office.administrator, EnterpriseCompany=f"General_EnterpriseCompanies({office.ours})")
    assert (again.status_code, again.json()["error"]["code"]) == (500, 2129)


def test_nobody_assigns_a_company_to_themselves(office: Office) -> None:
    give_role(office.employee, {"*": "crud"})
    refused = office.assign(office.api, EnterpriseCompany=f"General_EnterpriseCompanies({office.theirs})")
    assert refused.status_code == 403


def test_a_batch_and_its_parts_choose_no_other_company_either(office: Office) -> None:
    part = {"id": "1", "method": "GET", "url": f"{CUSTOMERS}?$select=Number", "headers": named(office.theirs)[0]}
    answer = office.api.post("$batch", {"requests": [part]}, **named(office.theirs)[0]).json()
    assert answer["responses"][0]["body"]["value"] == []


def test_the_current_role_is_one_that_the_user_has(world: World, api: Api) -> None:
    stranger = Role.objects.create(name="Auditors")
    office = Office(world, api, f"$role.Id eq {stranger.pk}")
    assert office.seen(Prefer=f"CurrentRoleId={stranger.pk}") == []
    own = Office.__new__(Office)
    own.employee, own.role = office.employee, str(stranger.pk)
    assert own.assign(api).status_code == 201
    assert office.seen(Prefer=f"CurrentRoleId={stranger.pk}") == ["C1", "C2"]
    assert office.seen() == []
