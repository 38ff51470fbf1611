"""What an order fills in by itself, what follows what, and what is refused."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pytest
from django.db import connection

from domain.dataset.records.record import ModelName, Record, UnitOfWork
from foundation import errors
from foundation.fields import utc_now
from tests.domain.entities.conftest import Cast
from tests.support.database_steps import sqlite_steps

D1, D2 = datetime.date(2030, 1, 1), datetime.date(2030, 2, 2)
MODELS: tuple[ModelName, ...] = ("common", "frontend")


def _price(cast: Cast, amount: str, **values: object) -> None:
    dataset = cast.dataset()
    dataset.create("Crm.Pricing.ProductPrices", {"Product": cast.product, "Price": Decimal(amount), **values})
    dataset.commit()


def _rates(cast: Cast, *, days: int) -> list[Record]:
    """A directory for each day from the beginning of 2025 on: a euro is a dollar and a quarter."""
    dataset = cast.dataset()
    names = {"TypeName": {"EN": "Rates"}, "EntityName": "General.Currencies.CurrencyDirectories"}
    type_ = dataset.create("Systems.Documents.DocumentTypes", {"Code": f"CD{days}", **names})
    directories = []
    for day in range(days):
        date = datetime.date(2025, 1, 1) + datetime.timedelta(days=day)
        values = {"DocumentType": type_.id, "DocumentDate": date}
        directory = dataset.create("General.Currencies.CurrencyDirectories", values)
        line = {"FromCurrency": cast.dollar, "RateDivisor": Decimal("1.25")}
        dataset.create("General.Currencies.CurrencyDirectoryLines", line, parent=directory)
        directories.append(directory)
    dataset.commit()
    return directories


def _product(dataset: UnitOfWork, **values: object) -> str:
    return dataset.create("General.Products.Products", {"Name": {"EN": "Chair"}, **values}).id


def _reload(cast: Cast, record: Record, model: ModelName = "common") -> Record:
    found = cast.dataset(model).load(record.repository, record.id)
    assert found is not None
    return found


@pytest.mark.parametrize("model", MODELS)
def test_an_order_needs_only_a_customer_and_products(cast: Cast, model: ModelName) -> None:
    dataset = cast.dataset(model)
    order = cast.order(dataset)
    line = cast.line(order)
    dataset.commit()
    today = utc_now().date()
    assert order.document_type_id == cast.order_type
    assert order.document_no == "0000000001"
    assert order.document_date == today
    assert order.document_currency_id == cast.euro
    assert (order.from_party_id, order.to_party_id) == (cast.party, cast.person)
    assert (order.enterprise_company_id, order.enterprise_company_location_id) == (cast.company, cast.location)
    assert order.master_document_id == order.id
    assert order.payment_due_date.date() == today + datetime.timedelta(days=14)
    assert order.entity_name == "Crm_Sales_Orders"
    assert order.full_state == "New"
    assert (line.line_no, line.quantity, line.quantity_unit_id) == (10, 1, cast.piece)
    assert line.product_description == {"EN": "Chair"}
    assert (line.quantity_base, line.standard_quantity_base) == (1, 1)
    assert (line.unit_price, line.line_amount) == (50, 50)
    assert line.required_delivery_date == today
    assert (order.total_line_amount, order.amount_to_pay) == (50, 50)


def test_lines_are_numbered_after_the_highest(cast: Cast) -> None:
    dataset = cast.dataset()
    order = cast.order(dataset)
    lines = [cast.line(order), cast.line(order, LineNo=35), cast.line(order)]
    dataset.commit()
    assert [line.line_no for line in lines] == [45, 35, 55]


@pytest.mark.parametrize("model", MODELS)
def test_the_price_is_found_by_quantity_and_unit(cast: Cast, model: ModelName) -> None:
    _price(cast, "40")
    _price(cast, "30", MinQuantity=Decimal(10))
    dataset = cast.dataset(model)
    order = cast.order(dataset)
    few, many = cast.line(order, Quantity=Decimal(2)), cast.line(order, QuantityUnit=cast.dozen)
    dataset.commit()
    assert (few.unit_price, few.line_amount) == (40, 80)
    assert (many.quantity_base, many.unit_price, many.line_amount) == (12, 360, 360)
    assert few.product_price_id is not None


@pytest.mark.skipif(connection.vendor != "sqlite", reason="counts SQLite's steps")
def test_lines_cost_the_same_however_many_prices_other_products_have(cast: Cast) -> None:
    """Prices of the currency, of which almost all are, were looked through where the products' were meant."""
    given = {"ProductGroup": cast.group, "StandardPricePerLot": Decimal(5)}
    dataset = cast.dataset()
    *sold, other = [_product(dataset, **given) for _ in range(5)]
    dataset.commit()

    def order() -> None:
        dataset = cast.dataset()
        created = cast.order(dataset)
        for product in sold:
            cast.line(created, Product=product)
        dataset.commit()

    _price(cast, "9.99")
    order()
    few = sqlite_steps(order)
    for number in range(500):
        dataset.create("Crm.Pricing.ProductPrices", {"Product": other, "Price": Decimal(number + 1)})
    dataset.commit()
    assert sqlite_steps(order) < 1.2 * few


@pytest.mark.skipif(connection.vendor != "sqlite", reason="counts SQLite's steps")
def test_an_order_costs_the_same_however_many_days_have_rates(cast: Cast) -> None:
    """Each order looked through the rates of its currency of all years: 10 ms after ten of them."""

    def order() -> None:
        dataset = cast.dataset()
        cast.line(cast.order(dataset, DocumentCurrency=cast.dollar))
        dataset.commit()

    _rates(cast, days=1)
    order()
    few = sqlite_steps(order)
    _rates(cast, days=200)
    assert sqlite_steps(order) < 1.2 * few


@pytest.mark.parametrize("model", MODELS)
def test_a_price_that_somebody_gave_stays(cast: Cast, model: ModelName) -> None:
    _price(cast, "30", MinQuantity=Decimal(10))
    dataset = cast.dataset(model)
    line = cast.line(cast.order(dataset), UnitPrice=Decimal("1.23"), Quantity=Decimal(10))
    dataset.commit()
    assert (line.unit_price, line.line_amount) == (Decimal("1.23"), Decimal("12.30"))


@pytest.mark.parametrize("model", MODELS)
def test_both_models_end_with_the_same_totals(cast: Cast, model: ModelName) -> None:
    _price(cast, "9.99")
    dataset = cast.dataset(model)
    order = cast.order(dataset)
    cast.line(order, Quantity=Decimal(3), LineCustomDiscountPercent=Decimal("0.05"))
    cast.line(order, Quantity=Decimal(7))
    dataset.commit()
    stored = _reload(cast, order)
    assert stored.total_line_amount == Decimal("28.47") + Decimal("69.93")
    assert [line.line_amount for line in stored.children("Lines")] == [Decimal("28.47"), Decimal("69.93")]


def test_the_standard_price_is_exchanged_into_the_orders_currency(cast: Cast) -> None:
    (directory,) = _rates(cast, days=1)
    assert (directory.name, directory.to_currency_id) == ("2025-01-01", cast.euro)
    dataset = cast.dataset()
    line = cast.line(cast.order(dataset, DocumentCurrency=cast.dollar))
    dataset.commit()
    assert line.unit_price == Decimal("62.5")


def test_without_a_rate_there_is_no_price(cast: Cast) -> None:
    dataset = cast.dataset()
    line = cast.line(cast.order(dataset, DocumentCurrency=cast.dollar))
    dataset.commit()
    assert line.unit_price == 0


@pytest.mark.parametrize("model", MODELS)
def test_a_changed_quantity_changes_amount_and_total(cast: Cast, model: ModelName) -> None:
    dataset = cast.dataset()
    line = cast.line(cast.order(dataset))
    dataset.commit()
    later = _reload(cast, line, model)
    later.dataset.set(later, "Quantity", Decimal(4))
    later.dataset.commit()
    stored = _reload(cast, line)
    assert (stored.line_amount, stored.quantity_base) == (200, 4)
    assert stored.parent is not None
    assert stored.parent.total_line_amount == 200


@pytest.mark.parametrize("model,price", [("common", "50"), ("frontend", "30")])
def test_a_stored_price_is_proposed_anew_only_where_people_see_it(cast: Cast, model: ModelName, price: str) -> None:
    dataset = cast.dataset()
    line = cast.line(cast.order(dataset))
    dataset.commit()
    _price(cast, "30", MinQuantity=Decimal(10))
    later = _reload(cast, line, model)
    later.dataset.set(later, "Quantity", Decimal(10))
    later.dataset.commit()
    stored = _reload(cast, line)
    assert (stored.unit_price, stored.line_amount) == (Decimal(price), Decimal(price) * 10)


def test_in_the_common_model_a_stored_order_keeps_its_terms(cast: Cast) -> None:
    dataset = cast.dataset()
    other = dataset.create("Crm.Sales.Customers", {"Party": cast.party, "DefaultCurrency": cast.dollar})
    order = cast.order(dataset)
    dataset.commit()
    later = _reload(cast, order)
    later.dataset.set(later, "Customer", other.id)
    later.dataset.commit()
    stored = _reload(cast, order)
    assert (stored.document_currency_id, stored.to_party_id) == (cast.euro, cast.person)


def test_in_the_frontend_model_dependents_follow_at_once(cast: Cast) -> None:
    dataset = cast.dataset("frontend")
    order = cast.order(dataset)
    line = cast.line(order, Quantity=Decimal(2))
    assert (line.line_amount, order.total_line_amount) == (100, 100)
    dataset.set(line, "LineCustomDiscountPercent", Decimal("0.1"))
    assert (line.line_amount, order.amount_to_pay) == (90, 90)


def test_in_the_frontend_model_another_product_brings_its_own_description(cast: Cast) -> None:
    dataset = cast.dataset("frontend")
    stool = dataset.create("General.Products.Products", {"Name": {"EN": "Stool"}, "ProductGroup": cast.group})
    line = cast.line(cast.order(dataset))
    dataset.set(line, "Product", stool.id)
    assert line.product_description == {"EN": "Stool"}


@pytest.mark.parametrize("model", MODELS)
def test_a_deleted_line_leaves_the_total(cast: Cast, model: ModelName) -> None:
    dataset = cast.dataset()
    order = cast.order(dataset)
    line = cast.line(order)
    cast.line(order, Quantity=Decimal(3))
    dataset.commit()
    later = _reload(cast, line, model)
    later.dataset.delete(later, by_client=True)
    later.dataset.commit()
    assert _reload(cast, order).total_line_amount == 150


def test_additional_amounts_are_paid_too(cast: Cast) -> None:
    dataset = cast.dataset()
    tax = dataset.create("Systems.Documents.DocumentAmountTypes", {"AmountTypeName": {"EN": "VAT"}})
    order = cast.order(dataset)
    cast.line(order)
    dataset.create(
        "General.Documents.DocumentAmounts",
        {"DocumentAmountType": tax.id, "InputPercent": Decimal("0.2")},
        parent=order,
    )
    dataset.commit()
    assert tax.amount_type_code == "01"
    assert (order.total_line_amount, order.amount_to_pay) == (50, 60)


# --- master and detail --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
def test_a_header_shows_what_its_lines_agree_on(cast: Cast, model: ModelName) -> None:
    dataset = cast.dataset(model)
    order = cast.order(dataset)
    cast.line(order, RequiredDeliveryDate=D1)
    cast.line(order, RequiredDeliveryDate=D1)
    dataset.commit()
    assert _reload(cast, order).required_delivery_date == D1


@pytest.mark.parametrize("model", MODELS)
def test_a_header_shows_nothing_where_its_lines_differ(cast: Cast, model: ModelName) -> None:
    dataset = cast.dataset(model)
    order = cast.order(dataset)
    first = cast.line(order, RequiredDeliveryDate=D1)
    second = cast.line(order, RequiredDeliveryDate=D2)
    dataset.commit()
    stored = _reload(cast, order)
    assert stored.required_delivery_date is None
    assert [line.required_delivery_date for line in stored.children("Lines")] == [D1, D2]
    later = _reload(cast, second, model)
    later.dataset.delete(later)
    later.dataset.commit()
    assert _reload(cast, order).required_delivery_date == D1
    assert _reload(cast, first).required_delivery_date == D1


def test_in_the_frontend_model_a_header_sets_all_its_lines(cast: Cast) -> None:
    dataset = cast.dataset()
    order = cast.order(dataset)
    cast.line(order, DeliveryTermsCode="ExWorks")
    cast.line(order, DeliveryTermsCode="FreeOnBoard")
    dataset.commit()
    assert order.delivery_terms_code is None
    later = _reload(cast, order, "frontend")
    later.dataset.set(later, "DeliveryTermsCode", "CarriagePaidTo")
    later.dataset.commit()
    stored = _reload(cast, order)
    assert [line.delivery_terms_code for line in stored.children("Lines")] == ["CarriagePaidTo"] * 2


def test_lines_take_from_the_header_what_they_are_not_given(cast: Cast) -> None:
    dataset = cast.dataset()
    order = cast.order(dataset, DeliveryTermsCode="ExWorks", FromDate=D1, ToDate=D2)
    line = cast.line(order)
    dataset.commit()
    assert (line.delivery_terms_code, line.line_from_date, line.line_to_date) == ("ExWorks", D1, D2)


# --- customers ----------------------------------------------------------------------------------------------------


def test_in_the_frontend_model_the_customers_terms_follow_the_customer(cast: Cast) -> None:
    dataset = cast.dataset()
    other = dataset.create(
        "Crm.Sales.Customers",
        {"Party": cast.party, "DefaultCurrency": cast.dollar, "DefaultPaymentTermDays": 30},
    )
    dataset.commit()
    frontend = cast.dataset("frontend")
    order = cast.order(frontend)
    frontend.set(order, "Customer", other.id)
    assert (order.document_currency_id, order.to_party_id) == (cast.dollar, cast.party)
    assert order.payment_due_date.date() == order.document_date + datetime.timedelta(days=30)


def test_terms_that_the_caller_gave_stay(cast: Cast) -> None:
    dataset = cast.dataset()
    order = cast.order(dataset, DocumentCurrency=cast.dollar, ToParty=cast.party)
    dataset.commit()
    assert (order.document_currency_id, order.to_party_id) == (cast.dollar, cast.party)


# --- refusals -----------------------------------------------------------------------------------------------------


def _refused(dataset: UnitOfWork) -> errors.Refused:
    with pytest.raises(errors.Refused) as caught:
        dataset.commit()
    return caught.value


def test_a_unit_that_does_not_fit_the_product_is_refused(cast: Cast) -> None:
    dataset = cast.dataset()
    line = cast.line(cast.order(dataset))
    dataset.commit()
    later = _reload(cast, line)
    later.dataset.set(later, "QuantityUnit", cast.kilogram)
    assert _refused(later.dataset).code is errors.UNIT_CATEGORY


def test_a_new_line_with_a_unit_that_does_not_fit_is_refused_for_that(cast: Cast) -> None:
    dataset = cast.dataset()
    cast.line(cast.order(dataset), QuantityUnit=cast.kilogram)
    assert _refused(dataset).code is errors.UNIT_CATEGORY


@pytest.mark.parametrize("state", ["Released", "Completed", "Closed"])
def test_what_is_released_cannot_be_edited_by_callers(cast: Cast, state: str) -> None:
    dataset = cast.dataset()
    order = cast.order(dataset)
    line = cast.line(order)
    dataset.assign(order, "State", state)
    dataset.commit()
    for change in ("DocumentNotes", "line", "delete"):
        later = _reload(cast, order)
        if change == "line":
            later.dataset.set(later.children("Lines")[0], "Quantity", Decimal(9))
        elif change == "delete":
            later.dataset.delete(later, by_client=True)
        else:
            later.dataset.set(later, change, "x")
        for record in later.dataset.records.values():
            record.by_client = record.state != "Unchanged"
        refusal = _refused(later.dataset)
        assert refusal.code is errors.DOCUMENT_LOCKED
        assert state in str(refusal)
    assert _reload(cast, line).quantity == 1


def test_its_state_may_move_on(cast: Cast) -> None:
    dataset = cast.dataset()
    order = cast.order(dataset)
    dataset.assign(order, "State", "Released")
    dataset.commit()
    later = _reload(cast, order)
    later.by_client = True
    later.dataset.assign(later, "State", "Completed")
    later.dataset.commit()
    assert _reload(cast, order).full_state == "Completed"


def test_what_is_void_cannot_be_edited(cast: Cast) -> None:
    dataset = cast.dataset()
    order = cast.order(dataset)
    dataset.assign(order, "Void", True)
    dataset.commit()
    assert (order.full_state, order.state_tags_attribute) == ("Void, New", " [Void]")
    later = _reload(cast, order)
    later.dataset.set(later, "DocumentNotes", "x")
    later.by_client = True
    assert _refused(later.dataset).code is errors.DOCUMENT_VOID


def test_editing_a_planned_order_makes_it_a_firm_plan(cast: Cast) -> None:
    dataset = cast.dataset()
    order = cast.order(dataset)
    dataset.assign(order, "State", "Planned")
    dataset.commit()
    later = _reload(cast, order)
    later.dataset.set(later, "DocumentNotes", "x")
    later.by_client = True
    later.dataset.commit()
    assert _reload(cast, order).full_state == "FirmPlanned"


def test_numbers_come_from_the_types_sequence(cast: Cast) -> None:
    dataset = cast.dataset()
    sequence = dataset.create("Systems.Documents.Sequences", {"Name": "Orders"})
    dataset.create(
        "Systems.Documents.SequenceGenerators",
        {"EnterpriseCompany": cast.company, "NextValue": "00500"},
        parent=sequence,
    )
    order_type = dataset.load("Systems.Documents.DocumentTypes", cast.order_type)
    assert order_type is not None
    order_type.sequence = sequence.id
    dataset.commit()
    orders = [cast.order(dataset), cast.order(dataset, DocumentNo="00501"), cast.order(dataset)]
    dataset.commit()
    later = cast.order(dataset)
    dataset.commit()
    assert [order.document_no for order in (*orders, later)] == ["00500", "00501", "00502", "00503"]
    assert orders[0].sequence_id == sequence.id


def test_a_number_is_given_once_in_a_company_and_type(cast: Cast) -> None:
    dataset = cast.dataset()
    values = {"DocumentNo": "7", "DocumentType": cast.order_type, "EnterpriseCompany": cast.company}
    cast.order(dataset, **values)
    dataset.commit()
    cast.order(dataset, **values)
    assert _refused(dataset).code is errors.DUPLICATE_VALUE
