"""The entities that tests of rules act on, and short ways to write a rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from domain.dataset.dataset import Dataset
from domain.dataset.records.record import ModelName, Record
from domain.model.registry import repositories
from domain.model.values import parse_input
from foundation import cache_versions
from identity.context import AllPermissions, CallContext, Caller
from identity.models import User
from tests.support.prepared import Prepared

PRODUCTS = "General.Products.Products"
ORDERS = "Crm.Sales.SalesOrders"
LINES = "Crm.Sales.SalesOrderLines"
RULES = "Systems.Bpm.UserBusinessRules"


@dataclass(frozen=True, slots=True)
class World:
    """Guids of a small company and what it sells."""

    context: CallContext
    user: str
    company: str
    customer: str
    party: str
    currency: str
    unit: str
    group: str
    product: str
    document_type: str


def dataset(context: CallContext, model: ModelName = "common") -> Dataset:
    """A dataset for one request."""
    return Dataset(context, model=model)


def make_world() -> World:
    """Create it, as an administrator who is a caller."""
    user = User.objects.create(login="anna", name={"EN": "Anna"}, email="anna@example.com", is_admin=True)  # type: ignore[misc]
    context = CallContext(
        user=Caller(user.id, "anna", "Anna", "anna@example.com", is_admin=True), permissions=AllPermissions()
    )
    ds = dataset(context)
    currency = ds.create("General.Currencies.Currencies", {"CurrencySign": "EUR", "Name": "Euro"})
    owner = ds.create("General.Contacts.Companies", {"PartyName": {"EN": "Chairs Ltd"}})
    company = ds.create("General.EnterpriseCompanies", {"Company": owner.id, "BaseCurrency": currency.id})
    buyer = ds.create("General.Contacts.Companies", {"PartyName": {"EN": "Buyers & Sons", "BG": "Купувачи"}})
    customer = ds.create("Crm.Sales.Customers", {"Number": "C1", "Party": buyer.id, "EnterpriseCompany": company.id})
    category = ds.create("General.Products.MeasurementCategories", {"Name": {"EN": "Count"}})
    unit = ds.create(
        "General.Products.MeasurementUnits",
        {"Name": {"EN": "piece"}, "Code": "pcs", "MeasurementCategory": category.id},
    )
    category.values["BaseUnit"] = unit.id
    product_type = ds.create("General.Products.ProductTypes", {"Code": "T1", "Name": {"EN": "Goods"}})
    group = ds.create("General.Products.ProductGroups", {"Code": "G1", "Name": {"EN": "Chairs"}})
    product = ds.create(
        PRODUCTS,
        {
            "PartNumber": "P1",
            "Name": {"EN": "Chair", "BG": "Стол"},
            "BaseMeasurementCategory": category.id,
            "MeasurementUnit": unit.id,
            "ProductGroup": group.id,
            "ProductType": product_type.id,
        },
    )
    document_type = ds.create(
        "Systems.Documents.DocumentTypes",
        {"Code": "SO", "TypeName": {"EN": "Sales order"}, "EntityName": "Crm_Sales_SalesOrders"},
    )
    ds.commit()
    return World(
        context,
        user.id,
        company.id,
        customer.id,
        buyer.id,
        currency.id,
        unit.id,
        group.id,
        product.id,
        document_type.id,
    )


#: The world by a shorter way, for tests that are not about making it.
prepared_world = Prepared(make_world)


def new_order(ds: Dataset, world: World, **values: Any) -> Record:
    """An order that a caller creates."""
    given = {
        "DocumentType": world.document_type,
        "EnterpriseCompany": world.company,
        "Customer": world.customer,
        "DocumentCurrency": world.currency,
        "FromParty": world.party,
    }
    return ds.create(ORDERS, {**given, **values}, by_client=True)


def new_line(ds: Dataset, world: World, order: Record, **values: Any) -> Record:
    """A line of the order that a caller creates."""
    given = {"Product": world.product, "QuantityUnit": world.unit}
    return ds.create(LINES, {**given, **values}, parent=order, by_client=True)


def new_product(ds: Dataset, world: World, number: str = "P2", **values: Any) -> Record:
    """A product that a caller creates."""
    stored = ds.load(PRODUCTS, world.product)
    assert stored is not None
    given: dict[str, Any] = {
        "PartNumber": number,
        "Name": {"EN": f"Product {number}"},
        **{name: stored.values[name] for name in ("BaseMeasurementCategory", "MeasurementUnit", "ProductGroup")},
        "ProductType": stored.values["ProductType"],
    }
    return ds.create(PRODUCTS, {**given, **values}, by_client=True)


def make_property(world: World, code: str = "colour", property_type: str = "Text") -> str:
    """An active custom property of products; its guid."""
    ds = dataset(world.context)
    values = {"Code": code, "Name": {"EN": code}, "EntityName": PRODUCTS, "PropertyType": property_type}
    record = ds.create("Systems.Bpm.CustomProperties", values)
    ds.commit()
    cache_versions.expire()
    return record.id


def remove_property(world: World, property_id: str) -> None:
    """Delete it."""
    ds = dataset(world.context)
    record = ds.load("Systems.Bpm.CustomProperties", property_id)
    assert record is not None
    ds.delete(record)
    ds.commit()
    cache_versions.expire()


# --- rules --------------------------------------------------------------------------------------------------------

Action = tuple[Any, ...]
_counter = 0


def write_rule(
    world: World,
    repository: str,
    events: Sequence[Any],
    *,
    conditions: Sequence[tuple[Any, ...]] = (),
    actions: Sequence[Action] = (),
    code: str = "",
    check: bool = True,
    **values: Any,
) -> str:
    """Save a rule with its children in one commit, as one POST does; its guid.

    events       "COMMIT", ("STATECHANGING", "RELEASED") or a mapping of API names
    conditions   (attribute, comparison) or (attribute, comparison, value)
    actions      ("FAIL", ("Constant", "No")): a type and up to three (type, value)
    """
    global _counter
    _counter += 1
    ds = dataset(world.context)
    given = {
        "Code": code or f"R{_counter:04d}",
        "Name": {"EN": "A rule"},
        "RepositoryName": repository,
        "IsActive": True,
    }
    rule = ds.create(RULES, {**given, **values}, by_client=True)
    for event in events:
        if isinstance(event, str):
            event = (event,)
        if not isinstance(event, Mapping):
            event = dict(zip(("EventType", "EventParameter"), event, strict=False))
        _child(ds, rule, "Systems.Bpm.UserBusinessRuleEvents", event)
    for number, condition in enumerate(conditions, 1):
        fields = dict(zip(("AttributeName", "ComparisonType", "Value"), condition, strict=False))
        _child(ds, rule, "Systems.Bpm.UserBusinessRuleConditions", {"ConditionNo": number * 10, **fields})
    for number, (action_type, *parameters) in enumerate(actions, 1):
        fields = {"ActionNo": number * 10, "ActionType": action_type}
        for index, (kind, value) in enumerate(parameters, 1):
            fields |= {f"Parameter{index}Type": kind, f"Parameter{index}Value": value}
        _child(ds, rule, "Systems.Bpm.UserBusinessRuleActions", fields)
    ds.commit()
    # Tests run inside a transaction, whose commit would do this.
    cache_versions.expire()
    return rule.id


def _child(ds: Dataset, rule: Record, repository: str, fields: Mapping[str, Any]) -> None:
    known = repositories[repository]
    values = {name: parse_input(known.attributes[name], value) for name, value in fields.items()}
    ds.create(known, values, parent=rule, by_client=True)


def fail(message: str = "Refused by a rule.") -> Action:
    """A FAIL action."""
    return ("FAIL", ("Constant", message))


def set_value(attribute: str, value: str | None, kind: str = "Constant") -> Action:
    """A SETVALUE action."""
    return ("SETVALUE", ("Attribute", attribute), (kind, value))


def warn(template: str) -> Action:
    """A WARNING action."""
    return ("WARNING", ("Interpolate", template))
