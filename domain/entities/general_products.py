"""General.Products: products, their groups and types, units of measurement."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from django.db import models

from domain.entities.behaviour import (
    at_commit,
    current_company,
    fill,
    find_all,
    find_one,
    is_taken,
    line_numbered,
    named_company,
    no_loop,
    not_negative,
    numbered,
    per_commit,
    propose,
    same_company,
    stamped_by_user,
)
from domain.model.attributes import Calculation, Child
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation import errors
from foundation.enums import EnumType
from foundation.fields import (
    AmountField,
    EnumField,
    ExactDecimalField,
    GuidField,
    MultilanguageField,
    QuantityField,
    ReferenceField,
)
from foundation.models import AggregateRoot, Entity
from foundation.phrases import Phrase

if TYPE_CHECKING:
    from domain.dataset.records.record import Record, UnitOfWork


_LAST_DIGITS = re.compile(r"\d+$")
#: Beyond what decimal(9,3) holds.
_RATIO_LIMIT = Decimal(10) ** 6

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
    edm_name="General_Products_MeasurementUnits_SystemUnit",
)

PRODUCT_GROUP_CONFIGURATOR_STATUS = EnumType(
    "General.Products.ProductGroupsRepository.ConfiguratorStatus",
    {"NotAllowed": 0, "Allowed": 1, "Obligatory": 2},
    edm_name="General_Products_ProductGroups_ConfiguratorStatus",
)

PRODUCT_GROUP_USE_LOTS = EnumType(
    "General.Products.ProductGroupsRepository.UseLots",
    {"Allowed": 0, "NotAllowed": 1, "Required": 2},
    edm_name="General_Products_ProductGroups_UseLots",
)

PRODUCT_PICTURE_SIZE_CLASS = EnumType(
    "General.Products.ProductPicturesRepository.PictureSizeClass",
    {"SmallPictureThumbnail": 0, "LargePictureFullSize": 1},
    edm_name="General_Products_ProductPictures_PictureSizeClass",
)

PRODUCT_ABC_CLASS = EnumType(
    "General.Products.ProductsRepository.ABCClass",
    {"A": 0, "B": 1, "C": 2},
    edm_name="General_Products_Products_ABCClass",
)

PRODUCT_COSTING_METHOD = EnumType(
    "General.Products.ProductsRepository.CostingMethod",
    {"AverageCostForTheWholeProduct": 0, "SeparateCostForEachLot": 1, "AveragePartitionedByReservedForDocument": 2},
    edm_name="General_Products_Products_CostingMethod",
)

PRODUCT_FLUSHING_METHOD = EnumType(
    "General.Products.ProductsRepository.FlushingMethod",
    {"Backward": 0, "Forward": 1, "Manual": 2},
    edm_name="General_Products_Products_FlushingMethod",
)

PRODUCT_LOTS_ISSUE = EnumType(
    "General.Products.ProductsRepository.LotsIssue",
    {"FirstInFirstOut": 0, "FirstExpireFirstOut": 1, "LastInFirstOut": 2},
    edm_name="General_Products_Products_LotsIssue",
)

PRODUCT_PLANNING_BUCKET = EnumType(
    "General.Products.ProductsRepository.PlanningBucket",
    {"Day": 0, "Week": 1, "TwoWeeks": 2, "Month": 3},
    edm_name="General_Products_Products_PlanningBucket",
)

PRODUCT_USE_LOTS = EnumType(
    "General.Products.ProductsRepository.UseLots",
    {"Allowed": 0, "NotAllowed": 1, "Required": 2},
    edm_name="General_Products_Products_UseLots",
)


class CodingSystem(AggregateRoot):
    """A system of product codes."""

    name = MultilanguageField(max_length=254)
    description = models.TextField(null=True, blank=True)
    is_unique = models.BooleanField(default=True)
    default_measurement_unit = ReferenceField("MeasurementUnit", null=True, blank=True)


@repositories.register
class CodingSystems(Repository[CodingSystem]):
    """Declares General.Products.CodingSystems."""

    name = "General.Products.CodingSystems"
    name_member = "name"
    display_format = "{Name:T}"
    search_members = ("name",)


class MeasurementCategory(AggregateRoot):
    """Units that convert into each other, such as mass or length."""

    name = MultilanguageField(max_length=64)
    is_default = models.BooleanField(default=False)
    # Not listed in the model facts as a member, but every path of a base quantity's unit ends in it.
    base_unit = ReferenceField("MeasurementUnit", null=True, blank=True)


@repositories.register
class MeasurementCategories(Repository[MeasurementCategory]):
    """Declares General.Products.MeasurementCategories."""

    name = "General.Products.MeasurementCategories"
    name_member = "name"
    display_format = "{Name:T}"
    search_members = ("name",)
    children = (Child("MeasurementUnits", "General.Products.MeasurementUnits"),)
    read_only = frozenset({"base_unit"})
    old_names = ("General.MeasurementCategories",)


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
        constraints = [
            models.UniqueConstraint(fields=["code"], name="measurement_unit_code_key"),
        ]


def base_unit_of_category(unit: Record) -> None:
    """Late default of the category: its first unit with the ratio one is what base quantities are in."""
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
    """Declares General.Products.MeasurementUnits."""

    name = "General.Products.MeasurementUnits"
    code_member = "code"
    name_member = "name"
    display_format = "{Name:T}"
    search_members = ("code", "name")
    late_defaults = (base_unit_of_category,)
    validations = (ratio_is_positive,)
    old_names = ("General.MeasurementUnits",)


class ProductGroup(AggregateRoot):
    """A branch of the product tree; it lends its products their defaults and numbers."""

    code = models.CharField(max_length=16)
    name = MultilanguageField(max_length=180)
    active = models.BooleanField(default=True)
    configurator_creates_recipe = models.BooleanField(default=False)
    configurator_status = EnumField(PRODUCT_GROUP_CONFIGURATOR_STATUS, default="NotAllowed")
    # Not in the model facts: the group of products that were given none (spec 08, 8.4).
    is_default = models.BooleanField(default=False)
    full_path = models.CharField(max_length=254, default="", db_index=True)
    next_part_number = models.CharField(max_length=16, null=True, blank=True)
    next_serial_number = models.CharField(max_length=40, null=True, blank=True)
    notes = models.CharField(max_length=254, null=True, blank=True)
    picture = models.BinaryField(editable=True, null=True, blank=True)
    picture_last_update_time = models.DateTimeField(null=True, blank=True)
    product_description_mask = MultilanguageField(max_length=1000, null=True, blank=True)
    product_name_mask = MultilanguageField(max_length=1000, null=True, blank=True)
    use_lots = EnumField(PRODUCT_GROUP_USE_LOTS, null=True, blank=True)
    default_measurement_unit = ReferenceField("MeasurementUnit", null=True, blank=True)
    default_product_type = ReferenceField("ProductType", null=True, blank=True)
    enterprise_company = ReferenceField("EnterpriseCompany", null=True, blank=True)
    parent_group = ReferenceField("self", null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["code"], name="product_group_code_key"),
        ]


@at_commit
def code_under_parent(group: Record) -> None:
    """Late default: the parent's code and two digits more."""
    if group.code:
        return
    parent = group.parent_group
    prefix = parent.code if parent is not None else ""
    while not group.code:
        code = prefix + group.dataset.next_number(f"product-group:{group.parent_group_id or ''}", width=2)
        if not is_taken(group, "code", code):
            group.code = code


def path_from_parents(group: Record) -> None:
    """Calculation: /parent's code/own code/, in the groups below too."""
    _renew_path(group, set())


def _renew_path(group: Record, seen: set[str]) -> None:
    parent = group.parent_group
    if not group.code or group.id in seen:  # a loop is refused by the validations
        return
    seen.add(group.id)
    path = f"{parent.full_path or '/' if parent is not None else '/'}{group.code}/"
    if path == group.full_path:
        return
    group.full_path = path
    if not group.is_new:
        for below in find_all(group.dataset, "General.Products.ProductGroups", parent_group_id=group.id):
            _renew_path(below, seen)


def picture_stamped(group: Record) -> None:
    """Calculation: when the picture was changed last."""
    group.picture_last_update_time = group.dataset.now()


@repositories.register
class ProductGroups(Repository[ProductGroup]):
    """Declares General.Products.ProductGroups."""

    name = "General.Products.ProductGroups"
    code_member = "code"
    name_member = "name"
    display_format = "{Name:T}"
    search_members = ("code", "name")
    late_defaults = (code_under_parent,)
    calculations = (
        Calculation(path_from_parents, ("Code", "ParentGroup"), always=True),
        Calculation(picture_stamped, ("Picture",), always=True),
    )
    validations = (no_loop(lambda group: group.parent_group, "ParentGroup"),)
    read_only = frozenset({"picture_last_update_time"})


class ProductType(AggregateRoot):
    """How products of a kind behave: stocked, shipped, serviced."""

    code = models.CharField(max_length=16)
    name = MultilanguageField(max_length=254)
    is_default = models.BooleanField(default=False)
    is_fixed_asset = models.BooleanField(default=False)
    is_service_activity_service = models.BooleanField(default=False)
    is_serviced = models.BooleanField(default=False)
    is_shipped = models.BooleanField(default=False)
    is_stocked = models.BooleanField(default=True)
    lot_auto_creation = models.BooleanField(default=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["code"], name="product_type_code_key"),
        ]


@repositories.register
class ProductTypes(Repository[ProductType]):
    """Declares General.Products.ProductTypes."""

    name = "General.Products.ProductTypes"
    code_member = "code"
    name_member = "name"
    display_format = "{Name:T}"
    search_members = ("code", "name")
    late_defaults = (numbered("code", "product-types", width=2),)


class Product(AggregateRoot):
    """Something that is bought, sold, made or rendered as a service."""

    part_number = models.CharField(max_length=32)
    name = MultilanguageField(max_length=254)
    abc_class = EnumField(PRODUCT_ABC_CLASS, default="B")
    active = models.BooleanField(default=True)
    allow_variable_measurement_ratios = models.BooleanField(default=False)
    catalog_description_html = models.TextField(null=True, blank=True)
    costing_method = EnumField(PRODUCT_COSTING_METHOD, null=True, blank=True)
    creation_time = models.DateTimeField(null=True, blank=True)
    creation_user = models.CharField(max_length=64, null=True, blank=True)
    description = MultilanguageField(null=True, blank=True)
    expiry_period_days = models.IntegerField(null=True, blank=True)
    flushing_method = EnumField(PRODUCT_FLUSHING_METHOD, default="Manual")
    guarantee_period_days = models.IntegerField(null=True, blank=True)
    is_featured = models.BooleanField(default=False)
    is_serialized = models.BooleanField(default=False)
    lots_issue = EnumField(PRODUCT_LOTS_ISSUE, null=True, blank=True)
    manufacturing_policy = models.CharField(max_length=3, default="MTS")
    minimal_sales_price_per_lot = AmountField(18, 4, currency="CostingCurrency", null=True, blank=True)
    minimal_sales_quantity_base = ExactDecimalField(18, 3, null=True, blank=True)
    planning_bucket = EnumField(PRODUCT_PLANNING_BUCKET, null=True, blank=True, default="Week", db_index=True)
    planning_demand_time_fence_days = models.IntegerField(null=True, blank=True)
    planning_horizon_days = models.IntegerField(null=True, blank=True)
    planning_time_fence_days = models.IntegerField(null=True, blank=True)
    scrap_rate = ExactDecimalField(7, 6, default=Decimal(0))
    short_name = MultilanguageField(max_length=128, null=True, blank=True)
    show_in_catalog = models.BooleanField(default=False)
    standard_cost_per_lot = AmountField(18, 4, currency="CostingCurrency", default=Decimal(0))
    standard_lot_size_base = QuantityField(18, 3, unit="BaseMeasurementCategory.BaseUnit", default=Decimal(1))
    standard_price_per_lot = AmountField(18, 4, currency="CostingCurrency", default=Decimal(0))
    supply_schema_id = GuidField(null=True, blank=True)
    update_time = models.DateTimeField(null=True, blank=True)
    update_user = models.CharField(max_length=64, null=True, blank=True)
    use_lots = EnumField(PRODUCT_USE_LOTS, default="Allowed")
    base_measurement_category = ReferenceField("MeasurementCategory")
    costing_currency = ReferenceField("Currency", null=True, blank=True)
    enterprise_company = ReferenceField("EnterpriseCompany", null=True, blank=True)
    intrastat_supplementary_unit = ReferenceField("MeasurementUnit", null=True, blank=True)
    measurement_unit = ReferenceField("MeasurementUnit")
    product_group = ReferenceField("ProductGroup")
    product_type = ReferenceField("ProductType")
    purchase_measurement_unit = ReferenceField("MeasurementUnit", null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["part_number"], name="product_part_number_key"),
        ]


def default_group(product: Record) -> None:
    """Late default: the active product group marked as default, else the first one by code.

    Where the caller named a company, by the product or by the request, a group of another company does not count.
    """
    if not product.is_new or product.product_group_id is not None:
        return
    dataset = product.dataset
    company = product.enterprise_company_id
    if company is None and (named := named_company(dataset)) is not None:
        company = named.id

    def find_default() -> str | None:
        scopes: list[dict[str, Any]] = [{}]
        if company is not None:
            scopes = [{"enterprise_company_id": of} for of in (company, None)]
        groups = [
            find_one(dataset, "General.Products.ProductGroups", order_by=("-is_default", "code"), active=True, **scope)
            for scope in scopes
        ]
        best = min((group for group in groups if group is not None), key=_default_first, default=None)
        return None if best is None else best.id

    fill(product, "product_group_id", per_commit(dataset, ("default product group", company), find_default))


def _default_first(group: Record) -> tuple[bool, str]:
    return not group.is_default, group.code


@at_commit
def group_is_known(product: Record) -> None:
    """Late default that only refuses: says why there is no default group. Other missing values are told by name."""
    if product.is_new and product.product_group_id is None:
        raise errors.Refused(errors.NO_PRODUCT_GROUP, product.repository.entity_type, target="ProductGroup")


def defaults_from_group(product: Record) -> None:
    """Late default: unit, type and company of the product group; the base category is the unit's."""
    dataset, group = product.dataset, product.product_group
    if group is not None:
        propose(product, "measurement_unit_id", group.default_measurement_unit_id)
        propose(product, "product_type_id", group.default_product_type_id)
        propose(product, "enterprise_company_id", group.enterprise_company_id)
    if product.product_type_id is None:
        fill(product, "product_type_id", per_commit(dataset, "default product type", lambda: _default_type(dataset)))
    if product.is_new or product.base_measurement_category_id is None:
        unit = product.measurement_unit
        propose(product, "base_measurement_category_id", unit.measurement_category_id if unit is not None else None)


def _default_type(dataset: UnitOfWork) -> str | None:
    """The product type marked as default, else the first one by code."""
    types = "General.Products.ProductTypes"
    found = find_one(dataset, types, is_default=True) or find_one(dataset, types, order_by=("code",))
    return None if found is None else found.id


def costing_currency_of_company(product: Record) -> None:
    """Late default: costs and standard prices are in the base currency of the company."""
    if product.is_new or product.costing_currency_id is None:
        company = product.enterprise_company or current_company(product.dataset)
        propose(product, "costing_currency_id", company.base_currency_id if company is not None else None)


@at_commit
def part_number_from_group(product: Record) -> None:
    """Late default: the next number of the product group.

    The group's NextPartNumber is where its numbers begin: "CH-0100" gives CH-0100, CH-0101 …; a group without one
    numbers by its code. The group itself is not changed, so that products created at once do not contend for it.
    """
    group = product.product_group
    if product.part_number or group is None or not group.code:
        return
    template = group.next_part_number or f"{group.code}-000001"
    digits = _LAST_DIGITS.search(template)
    prefix, start = (template[: digits.start()], digits[0]) if digits else (template, "1")
    while not product.part_number:
        number = product.dataset.next_number(f"product:{group.id}:{template}", width=len(start), start=int(start))
        if not is_taken(product, "part_number", prefix + number):
            product.part_number = prefix + number


def unit_of_base_category(product: Record) -> None:
    """Validation: the product's unit is of its base category, or one of its dimensions leads there."""
    if product.is_deleted or not any(
        product.is_changed(name) for name in ("measurement_unit", "base_measurement_category")
    ):
        return
    unit, category = product.measurement_unit, product.base_measurement_category
    if unit is None or category is None or unit.measurement_category_id == category.id:
        return
    reached = {
        dimension.dest_quantity_unit.measurement_category_id
        for dimension in product.children("Dimensions")
        if dimension.dest_quantity_unit is not None
    } | {
        dimension.source_quantity_unit.measurement_category_id
        for dimension in product.children("Dimensions")
        if dimension.source_quantity_unit is not None
    }
    if not {unit.measurement_category_id, category.id} <= reached:
        raise errors.Refused(errors.UNIT_CATEGORY, unit.describe(), product.describe(), target="MeasurementUnit")


@repositories.register
class Products(Repository[Product]):
    """Declares General.Products.Products."""

    name = "General.Products.Products"
    code_member = "part_number"
    name_member = "name"
    display_format = "{Name:T}"
    search_members = ("part_number", "name")
    children = (
        Child("Codes", "General.Products.ProductCodes"),
        Child("Dimensions", "General.Products.ProductDimensions"),
        Child("Lots", "Logistics.Inventory.Lots", "Product"),
        Child("Pictures", "General.Products.ProductPictures"),
        Child("Prices", "Crm.Pricing.ProductPrices", "Product"),
    )
    late_defaults = (
        default_group,
        group_is_known,
        defaults_from_group,
        costing_currency_of_company,
        part_number_from_group,
        stamped_by_user,
    )
    validations = (
        same_company("product_group"),
        unit_of_base_category,
        not_negative("standard_lot_size_base", "minimal_sales_quantity_base"),
    )
    read_only = frozenset({"creation_time", "creation_user", "update_time", "update_user"})
    api_names = {"abc_class": "ABCClass"}


class ProductCode(Entity):
    """One code of a product in a coding system, such as a barcode."""

    product = ReferenceField("Product", owner=True)
    product_code_field = models.CharField(max_length=32, db_index=True)
    active = models.BooleanField(default=True)
    coding_system = ReferenceField("CodingSystem")


def code_once_in_unique_system(code: Record) -> None:
    """Validation: where the coding system says so, a code names one product."""
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
            Phrase("unique codes of the coding system"),
            target="ProductCodeField",
        )


@repositories.register
class ProductCodes(Repository[ProductCode]):
    """Declares General.Products.ProductCodes."""

    name = "General.Products.ProductCodes"
    copied_with_owner = False  # each is of one product
    code_member = "product_code_field"
    display_format = "{ProductCodeField}"
    search_members = ("product_code_field",)
    validations = (code_once_in_unique_system,)


class ProductDimension(Entity):
    """How a quantity of a product in one unit is expressed in another."""

    product = ReferenceField("Product", owner=True)
    convert_to_base_divisor = ExactDecimalField(9, 3, null=True, blank=True)
    convert_to_base_multiplier = ExactDecimalField(9, 3, null=True, blank=True)
    dest_quantity = QuantityField(9, 3, unit="DestQuantityUnit", default=Decimal(1))
    source_quantity = QuantityField(9, 3, unit="SourceQuantityUnit", default=Decimal(1))
    dest_quantity_unit = ReferenceField("MeasurementUnit")
    measurement_category = ReferenceField("MeasurementCategory", null=True, blank=True)
    source_quantity_unit = ReferenceField("MeasurementUnit")


def category_of_source(dimension: Record) -> None:
    """Calculation: the category of units that the dimension is about."""
    if (unit := dimension.source_quantity_unit) is not None:
        dimension.measurement_category_id = unit.measurement_category_id


def ratio_to_base(dimension: Record) -> None:
    """Calculation: how base units of the one category become base units of the other."""
    source, dest = dimension.source_quantity_unit, dimension.dest_quantity_unit
    if source is None or dest is None or dimension.source_quantity is None or dimension.dest_quantity is None:
        return
    multiplier = dimension.dest_quantity * dest.multiplier * source.divisor
    divisor = dimension.source_quantity * source.multiplier * dest.divisor
    # Kept for readers of the table only; conversions use the quantities, which always fit.
    fits = max(abs(multiplier), abs(divisor)) < _RATIO_LIMIT
    dimension.convert_to_base_multiplier = multiplier if fits else None
    dimension.convert_to_base_divisor = divisor if fits else None


@repositories.register
class ProductDimensions(Repository[ProductDimension]):
    """Declares General.Products.ProductDimensions."""

    name = "General.Products.ProductDimensions"
    name_member = "product.name"
    display_format = "{Product.Name:T}"
    search_members = ("product.name",)
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
    """Calculation: when the picture was changed last."""
    picture.last_update_time = picture.dataset.now()


@repositories.register
class ProductPictures(Repository[ProductPicture]):
    """Declares General.Products.ProductPictures."""

    name = "General.Products.ProductPictures"
    name_member = "product.name"
    display_format = "{Product.Name:T}"
    search_members = ("product.name",)
    late_defaults = (line_numbered("picture_no", "Pictures", step=1),)
    calculations = (Calculation(picture_updated, ("Picture",), always=True),)
    read_only = frozenset({"last_update_time"})
