"""General.Products: codes, dimensions and pictures of products."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from django.db import models

from domain.entities.behaviour import (
    find_all,
    line_numbered,
)
from domain.model.attributes import Calculation
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation import errors
from foundation.enums import EnumType
from foundation.fields import (
    EnumField,
    ExactDecimalField,
    MultilanguageField,
    QuantityField,
    ReferenceField,
)
from foundation.messages import TranslatableMessage as Message
from foundation.models import AggregateRoot, Entity

if TYPE_CHECKING:
    from domain.dataset.records.record import Record
#: First value beyond decimal(9,3).
_RATIO_LIMIT = Decimal(10) ** 6

PRODUCT_PICTURE_SIZE_CLASS = EnumType(
    "General.Products.ProductPicturesRepository.PictureSizeClass",
    {"SmallPictureThumbnail": 0, "LargePictureFullSize": 1},
)


class CodingSystem(AggregateRoot):
    """A system of product codes."""

    name = MultilanguageField(max_length=254)
    description = models.TextField(null=True, blank=True)
    is_unique = models.BooleanField(default=True)
    default_measurement_unit = ReferenceField("MeasurementUnit", null=True, blank=True)


@repositories.register
class CodingSystems(Repository[CodingSystem]):
    name = "General.Products.CodingSystems"
    base_table = "Gen_Coding_Systems"
    category = "Settings"
    name_member = "name"


class ProductCode(Entity):
    """One code of a product in a coding system, such as a barcode."""

    product = ReferenceField("Product", owner=True)
    product_code_field = models.CharField(max_length=32, db_index=True)
    active = models.BooleanField(default=True)
    coding_system = ReferenceField("CodingSystem")


def code_once_in_unique_system(code: Record) -> None:
    """Validation: if the coding system requires it, a code identifies one product."""
    if code.is_deleted or not (code.is_changed("product_code_field") or code.is_changed("coding_system")):
        return
    system = code.coding_system
    if system is None or not system.is_unique:
        return
    code.dataset.lock_value(code.repository, f"{system.id} {code.product_code_field}")
    others = find_all(
        code.dataset,
        "General.Products.ProductCodes",
        coding_system_id=system.id,
        product_code_field=code.product_code_field,
        limit=2,
    )
    if any(other.id != code.id for other in others):
        raise errors.Refused(
            errors.DUPLICATE_VALUE,
            code.repository.set_name,
            "CodingSystem, ProductCodeField",
            f"{system.describe()}, {code.product_code_field}",
            Message("unique codes of the coding system"),
            target="ProductCodeField",
        )


@repositories.register
class ProductCodes(Repository[ProductCode]):
    name = "General.Products.ProductCodes"
    base_table = "Gen_Product_Codes"
    copied_with_owner = False  # each belongs to one product
    code_member = "product_code_field"
    validations = (code_once_in_unique_system,)


class ProductDimension(Entity):
    """Conversion of a product's quantities between two units."""

    product = ReferenceField("Product", owner=True)
    convert_to_base_divisor = ExactDecimalField(9, 3, null=True, blank=True)
    convert_to_base_multiplier = ExactDecimalField(9, 3, null=True, blank=True)
    dest_quantity = QuantityField(9, 3, unit="DestQuantityUnit", default=Decimal(1))
    source_quantity = QuantityField(9, 3, unit="SourceQuantityUnit", default=Decimal(1))
    dest_quantity_unit = ReferenceField("MeasurementUnit")
    measurement_category = ReferenceField("MeasurementCategory", null=True, blank=True)
    source_quantity_unit = ReferenceField("MeasurementUnit")


def category_of_source(dimension: Record) -> None:
    """Calculation: the category of the dimension's unit."""
    if (unit := dimension.source_quantity_unit) is not None:
        dimension.measurement_category_id = unit.measurement_category_id


def ratio_to_base(dimension: Record) -> None:
    """Calculation: the ratio between the base units of the two categories."""
    source, dest = dimension.source_quantity_unit, dimension.dest_quantity_unit
    if source is None or dest is None or dimension.source_quantity is None or dimension.dest_quantity is None:
        return
    multiplier = dimension.dest_quantity * dest.multiplier * source.divisor
    divisor = dimension.source_quantity * source.multiplier * dest.divisor
    # Only stored for clients; conversions use the quantities, which always fit.
    fits = max(abs(multiplier), abs(divisor)) < _RATIO_LIMIT
    dimension.convert_to_base_multiplier = multiplier if fits else None
    dimension.convert_to_base_divisor = divisor if fits else None


@repositories.register
class ProductDimensions(Repository[ProductDimension]):
    name = "General.Products.ProductDimensions"
    base_table = "Gen_Product_Dimensions"
    name_member = "product.name"
    calculations = (
        Calculation(category_of_source, ("SourceQuantityUnit",), always=True),
        Calculation(
            ratio_to_base, ("SourceQuantity", "SourceQuantityUnit", "DestQuantity", "DestQuantityUnit"), always=True
        ),
    )


class ProductPicture(Entity):
    """A picture of a product."""

    product = ReferenceField("Product", owner=True)
    comments = models.CharField(max_length=254, null=True, blank=True)
    is_default = models.BooleanField(default=False)
    last_update_time = models.DateTimeField(null=True, blank=True)
    picture = models.BinaryField(editable=True, null=True, blank=True)
    picture_no = models.IntegerField()
    picture_size_class = EnumField(PRODUCT_PICTURE_SIZE_CLASS, null=True, blank=True)


def picture_updated(picture: Record) -> None:
    """Calculation: the time of the last change of the picture."""
    picture.last_update_time = picture.dataset.now()


@repositories.register
class ProductPictures(Repository[ProductPicture]):
    name = "General.Products.ProductPictures"
    base_table = "Gen_Product_Pictures"
    name_member = "product.name"
    filled_late = frozenset({"picture_no"})
    late_defaults = (line_numbered("picture_no", "Pictures", step=1),)
    calculations = (Calculation(picture_updated, ("Picture",), always=True),)
    read_only = frozenset({"last_update_time"})
