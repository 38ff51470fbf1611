"""Offers, invoices, activities, rules and the rest fill in what they can."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pytest

from domain.dataset.dataset import Dataset
from domain.dataset.records.record import ModelName, Record
from domain.model.registry import repositories
from foundation import errors
from foundation.fields import utc_now
from identity.context import Caller
from identity.models import User
from tests.domain.entities.conftest import Cast

MODELS: tuple[ModelName, ...] = ("common", "frontend")


def _type(dataset: Dataset, code: str, repository: str) -> Record:
    return dataset.create(
        "Systems.Documents.DocumentTypes", {"Code": code, "TypeName": {"EN": code}, "EntityName": repository}
    )


@pytest.mark.parametrize("model", MODELS)
def test_an_offer_prices_its_lines(cast: Cast, model: ModelName) -> None:
    dataset = cast.dataset(model)
    _type(dataset, "OF", "Crm.Presales.Offers")
    dataset.commit()
    offer = dataset.create("Crm.Presales.Offers", {"Customer": cast.customer})
    line = dataset.create("Crm.Presales.OfferLines", {"Product": cast.product, "Quantity": Decimal(3)}, parent=offer)
    dataset.commit()
    assert offer.document_currency_id == cast.euro
    assert (line.line_no, line.unit_price, line.line_amount) == (10, 50, 150)


@pytest.mark.parametrize("model", MODELS)
def test_an_invoice_adds_up_and_says_how_to_pay(cast: Cast, model: ModelName) -> None:
    dataset = cast.dataset(model)
    _type(dataset, "IN", "Crm.Invoicing.Invoices")
    cash = dataset.create("Finance.Payments.PaymentTypes", {"Name": {"EN": "Cash"}})
    dataset.commit()
    assert cash.code == "01"
    invoice = dataset.create("Crm.Invoicing.Invoices", {"Customer": cast.customer, "PaymentType": cash.id})
    dataset.create("Crm.Invoicing.InvoiceLines", {"Product": cast.product}, parent=invoice)
    text = {"ProductDescription": {"EN": "Freight"}, "QuantityUnit": cast.piece, "UnitPrice": Decimal("4.5")}
    dataset.create("Crm.Invoicing.InvoiceLines", text, parent=invoice)
    dataset.commit()
    assert invoice.apply_date == invoice.document_date == utc_now().date()
    assert invoice.payment_type_description == {"EN": "Cash"}
    assert invoice.total_line_amount == Decimal("54.5")


def test_a_service_activity_belongs_to_its_customer(cast: Cast) -> None:
    dataset = cast.dataset()
    _type(dataset, "SA", "Applications.Service.ServiceActivities")
    dataset.commit()
    activity = dataset.create("Applications.Service.ServiceActivities", {"Customer": cast.customer})
    material = dataset.create(
        "Applications.Service.ServiceActivityMaterials",
        {"Product": cast.product, "QuantityUnit": cast.dozen},
        parent=activity,
    )
    service = dataset.create(
        "Applications.Service.ServiceActivityServices", {"ServiceName": "Assembly"}, parent=activity
    )
    dataset.commit()
    assert activity.to_party_id == cast.person
    assert (activity.subject, activity.system_type) == ("SA", "Task")
    assert activity.owner_party_id == activity.responsible_party_id == cast.party
    assert (material.quantity, material.quantity_base, material.line_no) == (1, 12, 10)
    assert service.line_no == 10


def test_an_activity_does_not_end_before_it_starts(cast: Cast) -> None:
    dataset = cast.dataset()
    _type(dataset, "AC", "General.Activities.Activities")
    dataset.commit()
    start = utc_now()
    dataset.create(
        "General.Activities.Activities", {"StartTime": start, "EndTime": start - datetime.timedelta(hours=1)}
    )
    with pytest.raises(errors.Refused) as caught:
        dataset.commit()
    assert caught.value.code is errors.DATE_ORDER


def test_without_one_type_a_document_must_be_given_one(cast: Cast) -> None:
    dataset = cast.dataset()
    dataset.create("Crm.Presales.Offers", {"Customer": cast.customer})
    with pytest.raises(errors.Refused) as caught:
        dataset.commit()
    assert caught.value.code is errors.REQUIRED_MISSING
    assert "DocumentType" in str(caught.value)


ACTIVITIES, SERVICES = "General.Activities.Activities", "Applications.Service.ServiceActivities"


@pytest.mark.parametrize("model", MODELS)
def test_a_document_takes_only_types_of_its_own_entity(cast: Cast, model: ModelName) -> None:
    dataset = cast.dataset(model)
    types = {name: _type(dataset, f"T{number}", name).id for number, name in enumerate((ACTIVITIES, SERVICES))}
    dataset.commit()
    types["Crm.Sales.SalesOrders"] = cast.order_type
    customer = {"Customer": cast.customer}
    makers = {ACTIVITIES: {}, SERVICES: customer, "Crm.Sales.SalesOrders": customer}
    for repository, values in makers.items():
        for of, document_type in types.items():
            tried = cast.dataset(model)
            tried.create(repository, {**values, "DocumentType": document_type})
            if of == repository:
                tried.commit()
                continue
            with pytest.raises(errors.Refused) as caught:
                tried.commit()
            assert (caught.value.code, caught.value.target) == (errors.DOCUMENT_TYPE_MISMATCH, "DocumentType")
            assert repositories[of].entity_name in str(caught.value)
            assert repositories[repository].entity_name in str(caught.value)


def test_a_documents_type_is_not_changed_to_one_of_other_entities(cast: Cast) -> None:
    dataset = cast.dataset()
    invoices = _type(dataset, "IN", "Crm.Invoicing.Invoices")
    order = cast.order(dataset)
    dataset.commit()
    dataset.set(order, "DocumentType", invoices.id)
    with pytest.raises(errors.Refused) as caught:
        dataset.commit()
    assert caught.value.code is errors.DOCUMENT_TYPE_MISMATCH


def test_a_type_that_documents_have_stays_one_of_their_entity(cast: Cast) -> None:
    dataset = cast.dataset()
    cast.order(dataset)
    spare = _type(dataset, "X", "crm_sales_salesorders")
    dataset.commit()
    assert spare.entity_name == "Crm_Sales_Orders"
    spare.entity_name = "Crm.Invoicing.Invoices"
    dataset.commit()
    used = dataset.load("Systems.Documents.DocumentTypes", cast.order_type)
    assert used is not None
    used.entity_name = "Crm.Invoicing.Invoices"
    with pytest.raises(errors.Refused) as caught:
        dataset.commit()
    assert (caught.value.code, caught.value.target) == (errors.DOCUMENT_TYPE_MISMATCH, "EntityName")


@pytest.mark.parametrize("name", ["Crm.Sales.SalesOrder", "Crm.Sales.Customers", "General.Documents.Documents"])
def test_a_document_type_is_of_documents(cast: Cast, name: str) -> None:
    dataset = cast.dataset()
    _type(dataset, "X", name)
    with pytest.raises(errors.BadRequest) as caught:
        dataset.commit()
    assert (caught.value.code, caught.value.target) == (errors.UNKNOWN_REPOSITORY, "EntityName")


def test_a_comment_is_of_the_user_who_makes_it(cast: Cast) -> None:
    user = User.objects.create_user("ann")
    dataset = cast.dataset(user=Caller(id=user.id, login="ann"))
    order = cast.order(dataset)
    comment = dataset.create("General.Documents.DocumentComments", {"Comment": "call back"}, parent=order)
    dataset.commit()
    assert comment.user_id == user.id
    assert order.creation_user == "ann"


def test_what_released_documents_keep_for_themselves_may_still_be_added(cast: Cast) -> None:
    dataset = cast.dataset()
    order = cast.order(dataset)
    dataset.assign(order, "State", "Released")
    dataset.commit()
    comment = dataset.create("General.Documents.DocumentComments", {"Comment": "shipped"}, parent=order)
    comment.by_client = True
    dataset.commit()
    assert comment.version == 1


def test_parts_of_rules_and_types_are_numbered(cast: Cast) -> None:
    dataset = cast.dataset()
    calculated = dataset.create(
        "Systems.Bpm.CalculatedAttributes",
        {"Name": "Total", "Caption": {"EN": "Total"}, "RepositoryName": "Crm.Sales.SalesOrders"},
    )
    expressions = [
        dataset.create("Systems.Bpm.CalculatedAttributeExpressions", {"Operator": "TODAY"}, parent=calculated)
        for _ in range(2)
    ]
    order_type = dataset.load("Systems.Documents.DocumentTypes", cast.order_type)
    assert order_type is not None
    status = dataset.create(
        "Systems.Documents.DocumentTypeUserStatuses",
        {"State": "Planned", "UserStatusName": {"EN": "Checked"}},
        parent=order_type,
    )
    dataset.commit()
    assert [expression.expression_no for expression in expressions] == [10, 20]
    assert status.display_order == 10


def test_an_import_is_logged_for_its_user_and_kept_for_a_month(cast: Cast) -> None:
    user = User.objects.create_user("ann")
    dataset = cast.dataset(user=Caller(id=user.id, login="ann"))
    exchange = dataset.create("Systems.Exchange.DataExchanges", {"Mode": "Import", "Name": "prices"})
    dataset.commit()
    assert exchange.created_by_user_id == user.id
    assert exchange.keep_until - exchange.created_on.date() == datetime.timedelta(days=30)
