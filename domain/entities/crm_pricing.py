"""Crm.Pricing: prices and price lists."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from django.db import models

from domain.entities.behaviour import current_company, dates_in_order, fill, not_negative
from domain.entities.enums import PRIORITY
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation.enums import EnumType
from foundation.fields import AmountField, EnumField, QuantityField, ReferenceField
from foundation.models import AggregateRoot

if TYPE_CHECKING:
    from domain.dataset.records.record import Record


LINE_DISCOUNT_LEVEL = EnumType("Crm.Pricing.LineDiscountsRepository.DiscountLevel", {"One": 0, "Two": 1, "Three": 2})


class PriceList(AggregateRoot):
    """Prices that are agreed on together."""

    name = models.CharField(max_length=50, db_index=True)
    auto_apply_discount_level = EnumField(LINE_DISCOUNT_LEVEL, default="One")
    description = models.TextField(null=True, blank=True)
    from_date = models.DateTimeField(null=True, blank=True)
    is_active = models.BooleanField(default=True)
    thru_date = models.DateTimeField(null=True, blank=True)
    enterprise_company = ReferenceField("EnterpriseCompany", null=True, blank=True)


@repositories.register
class PriceLists(Repository[PriceList]):
    name = "Crm.Pricing.PriceLists"
    base_table = "Crm_Price_Lists"
    category = "Settings"
    name_member = "name"
    validations = (dates_in_order("from_date", "thru_date"),)
    old_names = {"Crm.PriceLists": "25.1.1.36"}


class ProductPrice(AggregateRoot):
    """The price of a product, bounded by dates, quantities and buyers."""

    from_date = models.DateField(null=True, blank=True)
    is_active = models.BooleanField(default=True)
    max_quantity = QuantityField(18, 3, unit="PriceQuantityMeasurementUnit", null=True, blank=True)
    min_quantity = QuantityField(18, 3, unit="PriceQuantityMeasurementUnit", null=True, blank=True)
    notes = models.CharField(max_length=254, null=True, blank=True)
    price = AmountField(13, 5, currency="Currency", default=Decimal(0))
    price_quantity = QuantityField(10, 3, unit="PriceQuantityMeasurementUnit", default=Decimal(1))
    priority = EnumField(PRIORITY, default="Low")
    thru_date = models.DateField(null=True, blank=True)
    currency = ReferenceField("Currency")
    customer = ReferenceField("Customer", null=True, blank=True)
    enterprise_company = ReferenceField("EnterpriseCompany", null=True, blank=True)
    enterprise_company_location = ReferenceField("CompanyLocation", null=True, blank=True)
    price_list = ReferenceField("PriceList", null=True, blank=True)
    price_quantity_measurement_unit = ReferenceField("MeasurementUnit")
    product = ReferenceField("Product")
    ship_to_customer = ReferenceField("Customer", null=True, blank=True)


def currency_of_company(price: Record) -> None:
    """Late default: the base currency of the company."""
    if price.currency_id is None:
        company = price.enterprise_company or current_company(price.dataset)
        fill(price, "currency_id", company.base_currency_id if company is not None else None)


def unit_of_product(price: Record) -> None:
    """Late default: prices are per unit that the product is measured in."""
    if price.price_quantity_measurement_unit_id is None and (product := price.product) is not None:
        fill(price, "price_quantity_measurement_unit_id", product.measurement_unit_id)


@repositories.register
class ProductPrices(Repository[ProductPrice]):
    name = "Crm.Pricing.ProductPrices"
    base_table = "Crm_Product_Prices"
    display_format = "{Price} - {FromDate}"
    search_members = ("notes",)
    filled_late = frozenset({"currency", "price_quantity_measurement_unit"})
    late_defaults = (
        currency_of_company,
        unit_of_product,
    )
    validations = (
        dates_in_order("from_date", "thru_date"),
        not_negative("price_quantity", "min_quantity", "max_quantity"),
    )
    old_names = {"Crm.ProductPrices": "25.1.1.36"}
