"""A small cast: a euro company with a product group, two units, a customer and a type of orders."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest

from domain.dataset.dataset import Dataset
from domain.dataset.records.record import ModelName, Record
from identity.context import CallContext, Caller, system_context


@dataclass(frozen=True)
class Cast:
    """Guids of what is there before each test."""

    euro: str
    dollar: str
    count: str
    piece: str
    dozen: str
    kilogram: str
    company: str
    party: str
    location: str
    goods: str
    group: str
    product: str
    customer: str
    person: str
    order_type: str

    def dataset(self, model: ModelName = "common", **context: Any) -> Dataset:
        """A dataset of the platform in the company."""
        return Dataset(system_context(company_id=self.company, **context), model=model)

    def order(self, dataset: Dataset, **values: Any) -> Record:
        """A new order of the customer, as a caller makes it."""
        return dataset.create("Crm.Sales.SalesOrders", {"Customer": self.customer, **values}, by_client=True)

    def line(self, order: Record, **values: Any) -> Record:
        """A new line of the order, as a caller makes it: the reference to the order, then the values in their order."""
        line = order.dataset.create("Crm.Sales.SalesOrderLines", {}, parent=order, by_client=True)
        for name, value in {"Product": self.product, **values}.items():
            order.dataset.set(line, name, value)
        return line


def as_person(dataset: Dataset) -> CallContext:
    """The dataset's context, as a person holds it."""
    return dataset.context.with_(user=Caller(id="", login="ann"), client_initiated=True)


@pytest.fixture
def cast(db: None) -> Cast:
    """What the tests of behaviours begin with."""
    dataset = Dataset(system_context())
    create = dataset.create
    euro = create("General.Currencies.Currencies", {"CurrencySign": "EUR", "Name": "Euro"})
    dollar = create("General.Currencies.Currencies", {"CurrencySign": "USD", "Name": "US dollar"})
    count = create("General.Products.MeasurementCategories", {"Name": {"EN": "Count"}})
    piece = create("General.Products.MeasurementUnits", {"Name": {"EN": "piece"}, "Code": "pcs"}, parent=count)
    dozen = create(
        "General.Products.MeasurementUnits",
        {"Name": {"EN": "dozen"}, "Code": "dz", "Multiplier": Decimal(12)},
        parent=count,
    )
    mass = create("General.Products.MeasurementCategories", {"Name": {"EN": "Mass"}})
    kilogram = create("General.Products.MeasurementUnits", {"Name": {"EN": "kilogram"}, "Code": "kg"}, parent=mass)
    party = create("General.Contacts.Companies", {"Name": {"EN": "Danubia"}})
    company = create("General.EnterpriseCompanies", {"Company": party.id, "BaseCurrency": euro.id})
    location = create("General.Contacts.CompanyLocations", {"LocationName": {"EN": "HQ"}, "Company": party.id})
    goods = create("General.Products.ProductTypes", {"Name": {"EN": "Goods"}, "IsDefault": True})
    dataset.commit()
    group = create(
        "General.Products.ProductGroups",
        {"Name": {"EN": "Chairs"}, "DefaultMeasurementUnit": piece.id, "EnterpriseCompany": company.id},
    )
    product = create(
        "General.Products.Products",
        {"Name": {"EN": "Chair"}, "ProductGroup": group.id, "StandardPricePerLot": Decimal(50)},
    )
    person = create("General.Contacts.Persons", {"FirstName": {"EN": "Ann"}, "LastName": {"EN": "Lee"}})
    customer = create("Crm.Sales.Customers", {"Party": person.id, "DefaultPaymentTermDays": 14})
    order_type = create(
        "Systems.Documents.DocumentTypes",
        {"Code": "SO", "TypeName": {"EN": "Sales order"}, "EntityName": "Crm.Sales.SalesOrders"},
    )
    dataset.commit()
    return Cast(
        euro.id, dollar.id, count.id, piece.id, dozen.id, kilogram.id, company.id, party.id, location.id, goods.id,
        group.id, product.id, customer.id, person.id, order_type.id,
    )  # fmt: skip
