"""SYS parameters are those of the caller, in the database and on records (spec 10.1)."""

from __future__ import annotations

from django.utils import timezone

from domain.query.bind.calculations.place import SYSTEM_NAMES
from foundation.guids import new_guid
from identity.models import Role
from tests.domain.calculations.conftest import Orders, by_record
from tests.domain.calculations.test_operators import plain
from tests.domain.calculations.test_rights import read
from tests.rules.cast import World, dataset


def test_each_of_them(orders: Orders, world: World) -> None:
    role = Role.objects.create(name="Clerks")
    ctx = world.context.with_(role_id=role.pk, company_id=world.company, location_id=new_guid())
    assert ctx.user is not None
    expected = {
        "Login": ctx.user.login,
        "UserId": ctx.user.id,
        "RoleName": "Clerks",
        "RoleId": role.pk,
        "EnterpriseCompanyId": ctx.company_id,
        "EnterpriseCompanyLocationId": ctx.location_id,
    }
    moments = {"Today", "Now", "UtcNow"}
    assert {*SYSTEM_NAMES.split(", ")} == expected.keys() | moments
    began = timezone.now().isoformat()
    named = {name: orders.define(f"10: GETVALUE SYS:{name}", name=f"My{name}") for name in SYSTEM_NAMES.split(", ")}
    (row,) = read(ctx, f"$select={','.join(named.values())}&$filter=DocumentNo eq 'A-009'")
    records = {name: plain(by_record(dataset(ctx), orders.full, attribute)) for name, attribute in named.items()}
    assert {name: row[named[name]] for name in expected} == expected
    assert {name: records[name] for name in expected} == expected
    for name in moments:
        assert row[named[name]][:10] >= began[:10]
        assert records[name][:10] >= began[:10]
    assert len(row[named["Today"]]) == 10


def test_a_caller_without_them(orders: Orders, world: World) -> None:
    for name in ("RoleName", "RoleId", "EnterpriseCompanyId", "EnterpriseCompanyLocationId"):
        attribute = orders.define(f"10: GETVALUE SYS:{name}", name=f"My{name}")
        assert orders.read(attribute, orders.full) is None
        assert by_record(dataset(world.context), orders.full, attribute) is None
