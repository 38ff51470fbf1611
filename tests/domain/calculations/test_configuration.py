"""Calculated attributes are part of export_config and import_config (spec 09, 9.4; spec 10.1)."""

from __future__ import annotations

from domain.model.registry import repositories
from platform_site import configuration, configuration_changes
from tests.domain.calculations.conftest import Orders


def test_attributes_that_use_each_other_come_back(orders: Orders) -> None:
    orders.define("10: LEN ATTRIB:DocumentNo", name="Width")
    name = orders.define("10: ADD ATTRIB:#Width CONST:1", name="Area")
    exported = configuration.dump(configuration.export())
    assert "Crm.Sales.SalesOrders/Area" in exported
    model = repositories["Systems.Bpm.CalculatedAttributes"].model
    repositories["Systems.Bpm.CalculatedAttributeExpressions"].model._default_manager.all().delete()
    model._default_manager.all().delete()
    differences = configuration_changes.compare(configuration.load(exported))
    configuration_changes.apply(differences)
    assert orders.read(name, orders.full) == 6
    assert configuration.dump(configuration.export()) == exported
