"""General.Products: products."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from django.db import models
from django.utils.translation import gettext_lazy as _

from domain.entities.behaviour import (
    current_company,
    fill,
    find_one,
    is_taken,
    named_company,
    not_negative,
    per_commit,
    same_company,
    set_default,
)
from domain.entities.creation_and_update import TRACKED_ATTRIBUTES, Tracked, track_creation_and_update
from domain.model.admin_options import AdminOptions
from domain.model.attributes import AtCommit, Child, FromSequence
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
from foundation.models import AggregateRoot, unique

if TYPE_CHECKING:
    from domain.dataset.records.record import Record, UnitOfWork


_LAST_DIGITS = re.compile(r"\d+$")

PRODUCT_ABC_CLASS = EnumType("General.Products.ProductsRepository.ABCClass", {"A": 0, "B": 1, "C": 2})

PRODUCT_COSTING_METHOD = EnumType(
    "General.Products.ProductsRepository.CostingMethod",
    {"AverageCostForTheWholeProduct": 0, "SeparateCostForEachLot": 1, "AveragePartitionedByReservedForDocument": 2},
)

PRODUCT_FLUSHING_METHOD = EnumType(
    "General.Products.ProductsRepository.FlushingMethod", {"Backward": 0, "Forward": 1, "Manual": 2}
)

PRODUCT_LOTS_ISSUE = EnumType(
    "General.Products.ProductsRepository.LotsIssue",
    {"FirstInFirstOut": 0, "FirstExpireFirstOut": 1, "LastInFirstOut": 2},
)

PRODUCT_PLANNING_BUCKET = EnumType(
    "General.Products.ProductsRepository.PlanningBucket", {"Day": 0, "Week": 1, "TwoWeeks": 2, "Month": 3}
)

PRODUCT_USE_LOTS = EnumType(
    "General.Products.ProductsRepository.UseLots", {"Allowed": 0, "NotAllowed": 1, "Required": 2}
)


class Product(Tracked, AggregateRoot):
    """A product or service that is bought, sold or made."""

    part_number = models.CharField(max_length=32)
    name = MultilanguageField(max_length=254)
    abc_class = EnumField(PRODUCT_ABC_CLASS, default="B")
    active = models.BooleanField(default=True)
    allow_variable_measurement_ratios = models.BooleanField(default=False)
    catalog_description_html = models.TextField(null=True, blank=True)
    costing_method = EnumField(PRODUCT_COSTING_METHOD, null=True, blank=True)
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
        constraints = [unique("product", "part_number")]


def default_group(product: Record) -> None:
    """Late default: the active product group marked as default, else the first one by code.

    If the caller named a company, by the product or by the request, groups of other companies do not count.
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


@AtCommit
def group_is_known(product: Record) -> None:
    """Late default that raises Refused with the reason why there is no default group."""
    if product.is_new and product.product_group_id is None:
        raise errors.Refused(errors.NO_PRODUCT_GROUP, product.repository.entity_type, target="ProductGroup")


def defaults_from_group(product: Record) -> None:
    """Late default: unit, type and company of the product group; base category of the unit."""
    dataset, group = product.dataset, product.product_group
    if group is not None:
        set_default(product, "measurement_unit_id", group.default_measurement_unit_id)
        set_default(product, "product_type_id", group.default_product_type_id)
        set_default(product, "enterprise_company_id", group.enterprise_company_id)
    if product.product_type_id is None:
        fill(product, "product_type_id", per_commit(dataset, "default product type", lambda: _default_type(dataset)))
    if product.is_new or product.base_measurement_category_id is None:
        unit = product.measurement_unit
        set_default(product, "base_measurement_category_id", unit.measurement_category_id if unit is not None else None)


def _default_type(dataset: UnitOfWork) -> str | None:
    """The product type marked as default, else the first one by code."""
    types = "General.Products.ProductTypes"
    result = find_one(dataset, types, is_default=True) or find_one(dataset, types, order_by=("code",))
    return None if result is None else result.id


def costing_currency_of_company(product: Record) -> None:
    """Late default: the base currency of the company."""
    if product.is_new or product.costing_currency_id is None:
        company = product.enterprise_company or current_company(product.dataset)
        set_default(product, "costing_currency_id", company.base_currency_id if company is not None else None)


@FromSequence
def part_number_from_group(product: Record) -> None:
    """Late default: the next number of the product group.

    The group's NextPartNumber is the first number: "CH-0100" gives CH-0100, CH-0101 …; a group without one numbers by
    its code. The group itself is not changed, so that concurrent products do not contend for it.
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
    """Validation: the product's unit belongs to its base category, or one of its dimensions converts to it."""
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
    name = "General.Products.Products"
    base_table = "Gen_Products"
    code_member = "part_number"
    name_member = "name"
    admin = AdminOptions(
        is_subject=True,
        columns=("standard_price_per_lot", "measurement_unit", "product_group"),
        hints={
            "part_number": _("Empty: the next number of the product group, where the group has one."),
            "product_group": _("Empty: the default group. It gives number, unit and type, where they are left empty."),
        },
    )
    children = (
        Child("Codes", "General.Products.ProductCodes"),
        Child("Dimensions", "General.Products.ProductDimensions"),
        Child("Lots", "Logistics.Inventory.Lots", "Product"),
        Child("Pictures", "General.Products.ProductPictures"),
        Child("Prices", "Crm.Pricing.ProductPrices", "Product"),
    )
    filled_late = frozenset(
        {"base_measurement_category", "measurement_unit", "part_number", "product_group", "product_type"}
    )
    late_defaults = (
        default_group,
        group_is_known,
        defaults_from_group,
        costing_currency_of_company,
        part_number_from_group,
        track_creation_and_update,
    )
    filled_from = {"base_measurement_category": "measurement_unit"}
    validations = (
        same_company("product_group"),
        unit_of_base_category,
        not_negative("standard_lot_size_base", "minimal_sales_quantity_base"),
    )
    read_only = TRACKED_ATTRIBUTES
    api_names = {"abc_class": "ABCClass"}
