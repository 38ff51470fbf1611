"""Units and quantities of document lines (spec 08, 8.4)."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from domain.entities.behaviour import fill, set_computed
from domain.entities.units import Equation, Unit, to_base
from foundation import errors

if TYPE_CHECKING:
    from domain.dataset.records.record import Record


def unit_of(record: Record) -> Unit:
    """The Unit value of a MeasurementUnits record."""
    return Unit(record.id, record.measurement_category_id, record.multiplier, record.divisor)


def equations_of(product: Record) -> list[Equation]:
    """Conversions of the product's quantities to units of other categories."""
    return [
        Equation(
            dimension.source_quantity,
            unit_of(dimension.source_quantity_unit),
            dimension.dest_quantity,
            unit_of(dimension.dest_quantity_unit),
        )
        for dimension in product.children("Dimensions")
        if dimension.source_quantity_unit is not None and dimension.dest_quantity_unit is not None
    ]


def base_quantity(line: Record) -> Decimal | None:
    """The line's quantity in the product's base unit; None while product, unit or quantity are missing."""
    product, unit = line.product, line.quantity_unit
    if product is None or unit is None or line.quantity is None:
        return None
    category = product.base_measurement_category_id
    same_category = unit.measurement_category_id == category
    return to_base(line.quantity, unit_of(unit), category, () if same_category else equations_of(product))


def unit_from_product(line: Record) -> None:
    """Late default: the product's unit."""
    if line.quantity_unit_id is None and (product := line.product) is not None:
        fill(line, "quantity_unit_id", product.measurement_unit_id)


def description_from_product(line: Record) -> None:
    """Late default: the product's name."""
    if not line.product_description and (product := line.product) is not None:
        fill(line, "product_description", product.name)


def copy_product(line: Record) -> None:
    """Calculation: a changed product sets its description and unit."""
    product = line.product
    if product is not None:
        set_computed(line, "product_description", product.name)
        set_computed(line, "quantity_unit_id", product.measurement_unit_id)


def quantities_in_base(line: Record) -> None:
    """Calculation: the quantity in the product's base unit."""
    quantity = base_quantity(line)
    if quantity is None and line.product_id is None and line.quantity is not None:
        quantity = line.quantity  # a text line has no base unit
    if quantity is not None:
        set_computed(line, "quantity_base", quantity)
        set_computed(line, "standard_quantity_base", quantity)
    elif line.dataset.model == "common":
        # Reported here; otherwise the uncomputable values would be reported as missing.
        unit_fits_product(line)


def unit_fits_product(line: Record) -> None:
    """Validation: the unit belongs to the product's category, or one of the product's dimensions converts to it."""
    if line.is_deleted:
        return
    product, unit = line.product, line.quantity_unit
    if product is not None and unit is not None and line.quantity is not None and base_quantity(line) is None:
        raise errors.Refused(errors.UNIT_CATEGORY, unit.describe(), product.describe(), target="QuantityUnit")
