"""Spec 05, 5.4: templates against records, by format, language and the place where the text goes."""

from __future__ import annotations

import contextlib
import datetime
import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.dataset.lookups.name_binding import EventName
from domain.dataset.records.record import Record
from domain.dataset.templates.record_template import Escape, InvalidTemplate, compile_template
from domain.model.registry import repositories
from foundation import cache_versions, errors
from foundation.kinds import Kind
from tests.rules.cast import ORDERS, PRODUCTS, World, dataset, new_line, new_order


@pytest.fixture
def order(world: World) -> Record:
    ds = dataset(world.context)
    record = new_order(
        ds, world, DocumentNo='A/1 "x"', DocumentDate=datetime.date(2026, 3, 9), DocumentNotes='two\nlines & "more"',
        PaymentDueDate=datetime.datetime(2026, 4, 1, 8, 30, tzinfo=datetime.UTC),
    )  # fmt: skip
    new_line(ds, world, record, Quantity=Decimal("2.5"), UnitPrice=Decimal("10.5"), LineNo=10)
    ds.commit()
    return record


def filled(record: Record, template: str, escape: Escape = "text", **events: Any) -> str:
    compiled = compile_template(
        record.repository,
        template,
        events=[EventName(f"${name}", Kind.STRING) for name in events],
        in_json=escape == "json",
    )
    return compiled.render(record, escape=escape, events={f"${name}": value for name, value in events.items()})


def in_language(record: Record, language: str) -> Record:
    record.dataset.context = record.dataset.context.with_(language=language)
    return record


# --- names --------------------------------------------------------------------------------------------------------


def test_names_and_paths(order: Record, world: World) -> None:
    assert filled(order, "{DocumentNo}") == 'A/1 "x"'
    assert filled(order, "{documentno}") == 'A/1 "x"'
    assert filled(order, "{Customer.Party.PartyName}") == "Buyers & Sons"
    assert filled(order, "{Customer.EnterpriseCompany.BaseCurrency.CurrencySign}") == "EUR"
    assert filled(order, "{Id}") == order.id
    assert filled(order, "{DocumentId}") == order.id
    assert filled(order, "{EntityName}") == "Crm_Sales_Orders"
    assert filled(order, "{{{DocumentNotes:}}}") == "{" + 'two\nlines & "more"' + "}"


def test_values_of_the_call(order: Record) -> None:
    today = order.dataset.today()
    assert filled(order, "{$date:yyyy-MM-dd}") == today.isoformat()
    assert filled(order, "{$user.Name} {$user.Login} {$user.Email}") == "Anna anna anna@example.com"
    assert filled(order, "{$dbname}")
    order.dataset.context = order.dataset.context.with_(user=None)
    assert filled(order, "[{$user.Name}]") == "[]"


def test_null_is_empty_and_a_path_over_null_too(order: Record) -> None:
    assert filled(order, "[{ToDate}][{SalesPerson.Person.PartyName}][{ShipToCustomer}]") == "[][][]"


def test_custom_properties(order: Record, world: World) -> None:
    ds = dataset(world.context)
    ds.create(
        "Systems.Bpm.CustomProperties",
        {"Code": "tier-1", "Name": {"EN": "Tier"}, "EntityName": ORDERS, "PropertyType": "Number"},
    )
    ds.commit()
    cache_versions.expire()
    order.dataset.assign_custom(order, "tier-1", {"Value": "2.50"})
    assert filled(order, "{@tier-1} {@tier-1:N2}") == "2.5 2.50"


def test_event_attributes(order: Record) -> None:
    assert filled(order, "{$NewValue}!", NewValue="x") == "x!"
    compiled = compile_template(order.repository, "{$NewValue}", events=[EventName("$NewValue", Kind.STRING)])
    with pytest.raises(errors.Refused) as caught:
        compiled.render(order)
    assert caught.value.code is errors.INTERPOLATION_FAILED


# --- formats ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "template, expected",
    [
        ("{Quantity}", "2.5"),
        ("{Quantity:N2}", "2.50"),
        ("{Quantity:N0}", "3"),
        ("{Quantity:Q}", "2.500 pcs"),
        ("{UnitPrice}", "10.5"),
        ("{UnitPrice:N2}", "10.50"),
        ("{UnitPrice:CV}", "EUR 10.50"),
        ("{LineNo}", "10"),
        ("{LineNo:N2}", "10.00"),
        ("{SalesOrder.DocumentDate:dd-MM-yyyy}", "09-03-2026"),
        ("{SalesOrder.DocumentDate:d.M.yy}", "9.3.26"),
        ("{SalesOrder.PaymentDueDate:yyyy-MM-dd HH:mm}", "2026-04-01 08:30"),
        ("{Product.Name}", "Chair"),
        ("{Product.Name:T}", "Chair"),
        ("{Product.Name:EN}", "Chair"),
        ("{Product.Name:bg}", "Стол"),
        ("{Product.Name:DE}", ""),
        ("{PersistLot}", "false"),
        ("{SalesOrder.State}", "New"),
    ],
)
def test_formats(order: Record, template: str, expected: str) -> None:
    assert filled(order.children("Lines")[0], template) == expected


@pytest.mark.parametrize(
    "language, date, name",
    [("en", "3/9/2026", "Buyers & Sons"), ("de", "09.03.2026", "Buyers & Sons"), ("bg", "9.03.2026 г.", "Купувачи")],
)
def test_texts_for_people_follow_their_language(order: Record, language: str, date: str, name: str) -> None:
    in_language(order, language)
    assert filled(order, "{Customer.Party.PartyName}") == name
    assert filled(order, "{DocumentDate}") == date


@pytest.mark.parametrize("language", ["en", "bg"])
@pytest.mark.parametrize("escape", ["url", "json", "plain"])
def test_dates_for_machines_are_iso_8601(order: Record, language: str, escape: Escape) -> None:
    in_language(order, language)
    assert filled(order, '"{DocumentDate}"', escape) == '"2026-03-09"'
    due = filled(order, '"{PaymentDueDate}"', escape)
    assert due in ('"2026-04-01T08:30:00Z"', '"2026-04-01T08%3A30%3A00Z"')


def test_a_reference_is_its_display_text_for_people_and_its_guid_for_machines(order: Record, world: World) -> None:
    assert filled(order, "{Customer}") == "Buyers & Sons"
    assert filled(order, "{Customer}", "url") == world.customer
    assert filled(order, '"{Customer}"', "json") == f'"{world.customer}"'
    assert filled(order, "{Customer.DisplayText}", "url") == "Buyers%20%26%20Sons"


# --- escape contexts ----------------------------------------------------------------------------------------------


def test_urls_are_percent_encoded(order: Record) -> None:
    url = filled(order, "https://example.com/{EntityName}/{DocumentNo}?n={DocumentNotes}", "url")
    assert url == "https://example.com/Crm_Sales_Orders/A%2F1%20%22x%22?n=two%0Alines%20%26%20%22more%22"


def test_json_bodies_stay_valid_whatever_the_values(order: Record) -> None:
    order.dataset.set(order, "DocumentNotes", 'a"b\\c\n\u2028 {x} Стол')
    body = filled(
        order,
        '{{"no": "{DocumentNo}", "both": "<{DocumentNotes}> \\"{DocumentNo}\\"", "text": {DocumentNotes},'
        ' "void": {Void}, "number": {AdjustmentNumber}, "none": {ToDate}, "empty": "{ToDate}", "date": {DocumentDate},'
        ' "customer": {Customer}}}',
        "json",
    )
    assert json.loads(body) == {
        "no": 'A/1 "x"',
        "both": '<a"b\\c\n\u2028 {x} Стол> "A/1 "x""',
        "text": 'a"b\\c\n\u2028 {x} Стол',
        "void": False,
        "number": 0,
        "none": None,
        "empty": "",
        "date": "2026-03-09",
        "customer": order.values["Customer"],
    }


def test_json_numbers_keep_their_digits(order: Record) -> None:
    line = order.children("Lines")[0]
    body = filled(line, '[{Quantity}, {Quantity:N2}, {Quantity:Q}, "{Quantity}"]', "json")
    assert body == '[2.5, 2.50, "2.500 pcs", "2.5"]'


def test_a_value_cannot_begin_a_header_of_its_own(order: Record) -> None:
    order.dataset.set(order, "DocumentNotes", "a\r\nX-Evil: 1\x00")
    assert filled(order, "X-Notes: {DocumentNotes}", "header") == "X-Notes: a X-Evil: 1 "


# --- unknown names ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "template, words",
    [
        ("{Nothing}", "has no attribute 'Nothing'"),
        ("{DocumentNu}", "Did you mean DocumentNo"),
        ("{Customer.Nothing}", "Crm.Sales.Customers has no attribute 'Nothing'"),
        ("{DocumentNo.Length}", "is not a reference"),
        ("{@nothing}", "no custom property 'nothing'"),
        ("{$nothing}", "Nothing here tells '$nothing'"),
        ("{$user.Password}", "Systems.Security.Users has no attribute 'Password'"),
        ("{Lines}", "has no attribute 'Lines'"),
        ("{}", "not a placeholder"),
        ("{DocumentNo", "never closed"),
        ("DocumentNo}", "closing brace"),
        ("{DocumentNo:N2}", "format 'N2' does not fit"),
        ("{DocumentDate:N2}", "format 'N2' does not fit"),
        ("{Customer.Party.PartyName:upper case}", "format 'upper case' does not fit"),
    ],
)
@pytest.mark.django_db
def test_what_means_nothing_is_an_error(template: str, words: str) -> None:
    with pytest.raises(InvalidTemplate) as caught:
        compile_template(repositories[ORDERS], template)
    assert words in str(caught.value)


@pytest.mark.django_db
def test_any_text_is_a_template_or_says_why_not() -> None:
    @given(st.text("{}:.@$ aIdDocumentNoCustomer", max_size=30))
    def check(template: str) -> None:
        with contextlib.suppress(InvalidTemplate):
            compile_template(repositories[ORDERS], template)

    check()


@pytest.mark.django_db
def test_every_unknown_name_is_told() -> None:
    with pytest.raises(InvalidTemplate) as caught:
        compile_template(repositories[ORDERS], "{A} {DocumentNo} {B}")
    assert len(caught.value.problems) == 2


# --- display texts ------------------------------------------------------------------------------------------------


def test_every_shipped_display_format_can_be_filled_in() -> None:
    for repository in repositories:
        compile_template(repository, repository.display_format)


def test_display_texts_show_pending_values_in_the_caller_s_language(order: Record, world: World) -> None:
    order.dataset.set(order, "DocumentNo", "99")
    assert order.describe() == "Sales order 99"
    product = dataset(world.context.with_(language="bg")).load(PRODUCTS, world.product)
    assert product is not None
    assert product.describe() == "Стол"
