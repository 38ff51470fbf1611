"""General.Products: units of measurement and their categories."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from django.db import models

from domain.model import reference_data
from domain.model.attributes import Child
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation import errors
from foundation.enums import EnumType
from foundation.fields import (
    EnumField,
    ExactDecimalField,
    MultilanguageField,
    ReferenceField,
)
from foundation.models import AggregateRoot, Entity, unique

if TYPE_CHECKING:
    from domain.dataset.records.record import Record

MEASUREMENT_UNIT_SYSTEM_UNIT = EnumType(
    "General.Products.MeasurementUnitsRepository.SystemUnit",
    {
        "GrossKilograms": 0,
        "HeightMeters": 1,
        "LengthMeters": 2,
        "NetKilograms": 3,
        "Pieces": 4,
        "VolumeLiters": 5,
        "WidthMeters": 6,
        "TimeHours": 7,
    },
)


class MeasurementCategory(AggregateRoot):
    """Units that convert into each other, such as mass or length."""

    name = MultilanguageField(max_length=64)
    is_default = models.BooleanField(default=False)
    # Not in the model facts as a member, but every path to a base quantity's unit ends in it.
    base_unit = ReferenceField("MeasurementUnit", null=True, blank=True)


@repositories.register
class MeasurementCategories(Repository[MeasurementCategory]):
    name = "General.Products.MeasurementCategories"
    base_table = "Gen_Measurement_Categories"
    cache_version = reference_data.CACHE_VERSION
    category = "Settings"
    name_member = "name"
    children = (Child("MeasurementUnits", "General.Products.MeasurementUnits"),)
    read_only = frozenset({"base_unit"})
    old_names = {"General.MeasurementCategories": "24.1.5.35"}


class MeasurementUnit(Entity):
    """A unit and its ratio to the base unit of its category."""

    measurement_category = ReferenceField("MeasurementCategory", owner=True)
    code = models.CharField(max_length=16, null=True, blank=True)
    name = MultilanguageField(max_length=64)
    description = MultilanguageField(null=True, blank=True)
    divisor = ExactDecimalField(9, 3, default=Decimal(1))
    is_default_unit = models.BooleanField(default=False)
    multiplier = ExactDecimalField(9, 3, default=Decimal(1))
    system_unit = EnumField(MEASUREMENT_UNIT_SYSTEM_UNIT, null=True, blank=True)

    class Meta:
        constraints = [unique("measurement_unit", "code")]


def base_unit_of_category(unit: Record) -> None:
    """Late default of the category: its first unit with the ratio one is the base unit."""
    category = unit.parent
    if category is not None and category.base_unit_id is None and unit.multiplier == unit.divisor:
        category.base_unit_id = unit.id


def ratio_is_positive(unit: Record) -> None:
    """Validation: a unit is a positive number of base units."""
    for name in ("multiplier", "divisor"):
        if not unit.is_deleted and getattr(unit, name) <= 0:
            attribute = unit.repository.by_python_name[name].name
            raise errors.Refused(errors.VALUE_OUT_OF_RANGE, attribute, getattr(unit, name), target=attribute)


@repositories.register
class MeasurementUnits(Repository[MeasurementUnit]):
    name = "General.Products.MeasurementUnits"
    base_table = "Gen_Measurement_Units"
    cache_version = reference_data.CACHE_VERSION
    code_member = "code"
    name_member = "name"
    late_defaults = (base_unit_of_category,)
    validations = (ratio_is_positive,)
    old_names = {"General.MeasurementUnits": "24.1.5.35"}
