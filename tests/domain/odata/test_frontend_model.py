"""The frontend model through HTTP (spec 03, 3.2; 08, 8.4): each attribute brings what depends on it, GetChanges tells.

Every step is a request of its own, as a form sends them: nothing may depend on what a process remembers in between.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from tests.domain.odata.test_writing import ORDERS, PRODUCTS, order_body
from tests.rules.cast import World
from tests.support.api import Api

CUSTOMERS = "Crm_Sales_Customers"


@dataclass(frozen=True)
class Form:
    """An order and a line in an open transaction, and what there is to choose."""

    inside: Api
    order: str
    line: str
    customer: str
    party: str
    product: str

    def edit(self, what: str, values: dict[str, Any]) -> dict[str, dict[str, Any]]:
        """Set them on the order or the line; "order" or "line" → what has changed of it."""
        assert self.inside.patch(self.order if what == "order" else self.line, values).status_code == 204
        return self.changes().get("update", {})

    def changes(self) -> dict[str, dict[str, Any]]:
        """What GetChanges tells: operation → "order" or "line" → attributes."""
        names = {self.order: "order", self.line: "line"}
        told = self.inside.read("GetChanges()")
        return {
            operation: {names[f"{set_name}({id})"]: row for set_name, rows in sets.items() for id, row in rows.items()}
            for operation, sets in told.items()
        }


def euros(value: float) -> dict[str, Any]:
    """An amount as the API shows it."""
    return {"Value": value, "Currency": "EUR"}


def pieces(value: float) -> dict[str, Any]:
    """A quantity as the API shows it."""
    return {"Value": value, "Unit": "pcs"}


def at_midnight(day: str) -> str:
    """A date as a moment."""
    return f"{day}T00:00:00Z"


@pytest.fixture
def form(api: Api, world: World) -> Form:
    """A customer with terms; a product of 10 euros, of 8 from ten pieces on; an order of it."""
    product, unit = f"{PRODUCTS}({world.product})", f"General_Products_MeasurementUnits({world.unit})"
    price = {"Price": 8, "PriceQuantity": 1, "MinQuantity": 10, "PriceQuantityMeasurementUnit@odata.bind": unit}
    api.create(f"{product}/Prices", price)
    assert api.patch(product, {"StandardPricePerLot": 10}).status_code == 204
    terms = {"DefaultPaymentTermDays": 10, "DefaultDeliveryTermDays": 3}
    assert api.patch(f"{CUSTOMERS}({world.customer})", terms).status_code == 204
    stored = api.read(f"{product}?$select=BaseMeasurementCategory,MeasurementUnit,ProductGroup,ProductType")
    kept = {name: value for name, value in stored.items() if "@" not in name}
    table = api.create(PRODUCTS, {**kept, "Name": {"EN": "Table"}, "PartNumber": "T", "StandardPricePerLot": 100})
    company = {"@erpnet.action": "create", "@odata.type": "Erp.General_Contacts_Company", "Name": {"EN": "Other"}}
    other = api.create(CUSTOMERS, {"Number": "C2", "Party": company, "DefaultPaymentTermDays": 30})
    inside = api.begin(model="frontend", trackChanges=True)
    order = inside.create(ORDERS, order_body(world))["@odata.id"]
    line = inside.create(f"{order}/Lines", {"Product@odata.bind": product})["@odata.id"]
    return Form(inside, order, line, other["@odata.id"], other["Party"]["@odata.id"], table["@odata.id"])


def test_a_new_line_is_told_whole_in_the_shape_of_the_api(form: Form) -> None:
    line = form.changes()["insert"]["line"]
    told = {
        "LineNo",
        "Product",
        "ProductDescription",
        "Quantity",
        "QuantityUnit",
        "QuantityBase",
        "UnitPrice",
        "LineAmount",
    }
    shown = form.inside.read(f"{form.line}?$select={','.join(sorted(told))}")
    assert {name: line[name] for name in told} == {name: shown[name] for name in told}
    assert (line["UnitPrice"], line["Quantity"]) == (euros(10), pieces(1))
    assert set(line["Product"]) == {"@odata.id"}


def test_each_attribute_brings_what_depends_on_it_and_nothing_else(form: Form) -> None:
    form.changes()

    def total(value: float) -> dict[str, Any]:
        return {"TotalLineAmount": euros(value), "AmountToPay": euros(value)}

    def quantity(value: float) -> dict[str, Any]:
        return {name: pieces(value) for name in ("Quantity", "QuantityBase", "StandardQuantityBase")}

    assert form.edit("line", {"Quantity": 3}) == {"line": {**quantity(3), "LineAmount": euros(30)}, "order": total(30)}
    assert form.edit("line", {"LineCustomDiscountPercent": 0.1}) == {
        "line": {"LineCustomDiscountPercent": 0.1, "LineAmount": euros(27)}, "order": total(27),
    }  # fmt: skip
    cheaper = form.edit("line", {"Quantity": 10})
    assert cheaper["line"].pop("ProductPrice")
    assert cheaper == {"line": {**quantity(10), "UnitPrice": euros(8), "LineAmount": euros(72)}, "order": total(72)}
    assert form.edit("line", {"UnitPrice": euros(5)}) == {
        "line": {"UnitPrice": euros(5), "LineAmount": euros(45)}, "order": total(45),
    }  # fmt: skip
    # Somebody has decided on the price, so another quantity does not.
    few = form.edit("line", {"Quantity": 2})
    assert few["line"].pop("ProductPrice") is None
    assert few == {"line": {**quantity(2), "LineAmount": euros(9)}, "order": total(9)}
    delivery = {"RequiredDeliveryDate": "2030-05-11"}
    due = {"PaymentDueStartDate": at_midnight("2030-05-08"), "PaymentDueDate": at_midnight("2030-05-18")}
    assert form.edit("order", {"DocumentDate": "2030-05-08"}) == {
        "order": {"DocumentDate": "2030-05-08", **due, **delivery}, "line": delivery,
    }  # fmt: skip
    other = {
        "Customer": {"@odata.id": form.customer},
        "ToParty": {"@odata.id": form.party.replace("Companies", "Parties")},
    }
    delivery = {"RequiredDeliveryDate": "2030-05-08"}
    assert form.edit("order", {"Customer@odata.bind": form.customer}) == {
        "order": {**other, "PaymentDueDate": at_midnight("2030-06-07"), **delivery}, "line": delivery,
    }  # fmt: skip
    assert form.inside.delete(form.line).status_code == 204
    assert form.changes() == {"insert": {}, "update": {"order": total(0)}, "delete": {"line": {}}}


@pytest.mark.parametrize("values,price", [(("Product", "UnitPrice"), 6), (("UnitPrice", "Product"), 100)])
def test_the_order_of_the_body_decides(form: Form, values: tuple[str, str], price: float) -> None:
    given: dict[str, Any] = {"Product": {"@odata.id": form.product}, "UnitPrice": 6}
    form.changes()
    changed = form.edit("line", {name: given[name] for name in values})
    assert changed["line"]["UnitPrice"] == changed["order"]["TotalLineAmount"] == euros(price)


def test_what_somebody_has_typed_is_not_proposed_anew(form: Form) -> None:
    form.edit("order", {"RequiredDeliveryDate": "2031-01-01"})
    changed = form.edit("order", {"DocumentDate": "2030-05-08"})
    assert "RequiredDeliveryDate" not in changed["order"]
    assert changed["order"]["PaymentDueDate"] == at_midnight("2030-05-18")
    assert "line" not in changed


def test_the_same_order_in_the_common_model_has_the_same_totals(form: Form, api: Api, world: World) -> None:
    form.edit("line", {"Quantity": 12, "LineCustomDiscountPercent": 0.15})
    form.edit("order", {"DocumentDate": "2030-05-08"})
    assert form.inside.end().status_code == 204
    posted = order_body(world, {"Quantity": 12, "LineCustomDiscountPercent": 0.15}, DocumentDate="2030-05-08")
    common = api.create(ORDERS, posted)["@odata.id"]
    shown = (
        "$select=TotalLineAmount,AmountToPay,PaymentDueDate,RequiredDeliveryDate&"
        "$expand=Lines($select=LineAmount,UnitPrice,QuantityBase,RequiredDeliveryDate,LineNo)"
    )

    def plain(path: str) -> dict[str, Any]:
        found = api.read(f"{path}?{shown}")
        lines = [{name: value for name, value in line.items() if "@" not in name} for line in found.pop("Lines")]
        return {**{name: value for name, value in found.items() if "@" not in name}, "Lines": lines}

    assert plain(form.order) == plain(common)
    assert plain(common)["TotalLineAmount"] == euros(81.6)


def test_an_amount_in_another_currency_is_told(api: Api, form: Form) -> None:
    """Spec 03, 3.2: the number is the same, the value that the API shows is not."""
    api.create("General_Currencies_Currencies", {"CurrencySign": "USD", "Name": "Dollar"})
    form.changes()
    told = form.edit("order", {"DocumentCurrency": {"CurrencySign": "USD"}})
    assert told["order"].pop("DocumentCurrency")
    shown = form.inside.read(f"{form.order}?$select={','.join(told['order'])}")
    assert "TotalLineAmount" in told["order"]
    assert told["order"] == {name: shown[name] for name in told["order"]}
    shown = form.inside.read(f"{form.line}?$select={','.join(told['line'])}")
    assert {"UnitPrice", "LineAmount"} <= told["line"].keys()
    assert told["line"] == {name: shown[name] for name in told["line"]}
    assert {value["Currency"] for value in (*told["order"].values(), *told["line"].values())} == {"USD"}
    assert form.changes() == {}
