"""Interpolation.

Names, entities by key, escapes and formats in texts of rules, over HTTP (spec 14, 14.5).
"""

from __future__ import annotations

import contextlib
import datetime
import json
import re
from decimal import Decimal

import pytest
from django.test import Client
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.dataset.records.record import Record
from domain.dataset.templates.record_template import Escape, InvalidTemplate, compile_template
from domain.model.registry import repositories
from foundation import errors
from identity.models import Role
from tests.domain.conftest import fresh_process
from tests.identity.conftest import forget_everything
from tests.rules.cast import (
    LINES,
    ORDERS,
    PRODUCTS,
    World,
    dataset,
    make_property,
    new_line,
    new_order,
    prepared_world,
    warn,
    write_rule,
)
from tests.support.api import Api, error_of, prepared_token

# The same on every database.
pytestmark = pytest.mark.once

__all__ = ["fresh_process"]
GONE = "0189d2a0-0000-7000-8000-00000000dead"


@pytest.fixture
def world(db: None, fresh_process: None) -> World:
    return prepared_world()


@pytest.fixture
def api(world: World, client: Client) -> Api:
    forget_everything()
    return Api(client, prepared_token())


@pytest.fixture
def order(world: World) -> Record:
    ds = dataset(world.context)
    record = new_order(ds, world, DocumentNo="A1", DocumentDate=datetime.date(2026, 3, 9))
    new_line(ds, world, record, Quantity=Decimal("1234.5"), UnitPrice=Decimal("10.5"), LineNo=10)
    ds.commit()
    return record


def text(record: Record, template: str, escape: Escape = "text", language: str = "en") -> str:
    record.dataset.context = record.dataset.context.with_(language=language)
    compiled = compile_template(record.repository, template, in_json=escape == "json")
    return compiled.render(record, escape=escape)


# --- values of the call -------------------------------------------------------------------------------------------


def test_values_of_the_call(order: Record) -> None:
    moment = order.dataset.now()
    assert text(order, "{$date:yyyy-MM-dd}") == order.dataset.today().isoformat()
    assert text(order, "{$date:yyyy-MM-dd HH:mm}").endswith(" 00:00")
    for name in ("$datetime", "$DateTimeUtc", "$time"):
        assert abs(datetime.datetime.fromisoformat(text(order, f"{{{name}:s}}+00:00")) - moment).seconds < 60
    assert re.fullmatch(r"\d{1,2}:\d\d:\d\d [AP]M", text(order, "{$time}"))
    assert re.fullmatch(r"\d\d:\d\d:\d\d", text(order, "{$time}", "plain"))
    assert re.fullmatch(r"\d{1,2}\.\d\d\.\d{4} г\. \d{1,2}:\d\d:\d\d", text(order, "{$datetimeutc}", language="bg"))
    first, second = text(order, "{$newguid} {$newguid}").split()
    assert first != second
    assert len(first) == 36
    assert text(order, "{$repository}|{$entity}|{EntityName}|{$idlist}|{$language}", language="bg") == (
        f"Crm.Sales.SalesOrders|Crm_Sales_Orders|Crm_Sales_Orders|{order.id}|bg"
    )
    assert text(order, "{$dbname}") != ""


def test_the_caller_and_what_they_work_in(order: Record, world: World) -> None:
    context = order.dataset.context
    assert text(order, "{$user}|{$user.Name}|{$user.Name:en}|{$user.name:de}|{$USER.Login}") == "Anna|Anna|Anna||anna"
    assert text(order, "{$user.DisplayText}") == "Anna <anna>"
    for name in ("$role", "$enterprisecompany", "$enterprisecompanylocation"):
        assert text(order, f"[{{{name}}}][{{{name}.Id}}]") == "[][]"
    role = Role.objects.create(name="Manager")
    order.dataset.context = context.with_(company_id=world.company, role_id=role.id)
    assert text(order, "{$role.Name} of {$enterprisecompany.Company.PartyName:en}") == "Manager of Chairs Ltd"
    assert text(order, "{$enterprisecompany}") == "Chairs Ltd"
    assert text(order, "{$enterprisecompany}", "url") == world.company
    assert text(order, "{$enterprisecompany.BaseCurrency.CurrencySign}") == "EUR"


def test_the_root_url_is_that_of_the_request(api: Api, world: World) -> None:
    write_rule(world, PRODUCTS, ["COMMIT"], actions=[warn("{$rooturl} {$instance}")])
    answer = api.patch(f"General_Products_Products({world.product})", {"PartNumber": "P9"})
    assert "http://testserver testserver" in answer["X-Warnings"], answer.content


# --- entities by key ----------------------------------------------------------------------------------------------


def test_entities_by_key(order: Record, world: World) -> None:
    product, user = world.product, world.user
    assert text(order, f"{{General_Products_Products({product}).Name}}", language="bg") == "Стол"
    assert text(order, f"<{{General_Products_Products({product.upper()}).ProductGroup.Name:en}}>") == "<Chairs>"
    assert text(order, f"{{Gen_Products({product}).PartNumber}}") == "P1"
    assert text(order, f"Hi, {{Public_Users({user}).Name}}!") == "Hi, Anna!"
    assert text(order, f"{{General_Products_Products({product})}}") == "Chair"
    assert text(order, f"{{General_Products_Products({product})}}", "url") == product
    assert text(order, f"[{{General_Products_Products({product}).ExternalId}}]") == "[]"


@pytest.mark.parametrize(
    "template, words",
    [
        ("{Not_Existing_Entity(" + GONE + ")}", "There is no entity set 'Not_Existing_Entity'"),
        ("{General_Products_Product(" + GONE + ")}", "Did you mean General_Products_Products"),
        ("{General_Products_Products(" + GONE + ")}", f"There is no General_Products_Products({GONE})"),
        ("{General_Products_Products(P1).Name}", "'P1' is not a guid"),
        ("{General_Products_Products().Name}", "'' is not a guid"),
        ("{$yesterday}", "Nothing here tells '$yesterday'"),
        ("{$user.FullName}", "has no attribute 'FullName'"),
        ("{$role.FullName}", "has no attribute 'FullName'"),
        ("{Customer.Name}", "has no attribute 'Name'"),
        ("{$date:N2}", "The format 'N2' does not fit {$date}; possible are d D f F g G M O R s t T u U y"),
        ("{DocumentNo:T}", "The format 'T' does not fit {DocumentNo}, which has no formats"),
        ("{AdjustmentNumber:Q}", "possible are C D N P"),
        ("{Customer.Party.PartyName:VD}", "possible are C A T D, a language (EN)"),
        ("{$user.Name:N2}", "possible are C A T D"),
        ("{DocumentDate:YYYY}", "does not fit"),
    ],
)
def test_what_means_nothing_is_refused(world: World, template: str, words: str) -> None:
    with pytest.raises(InvalidTemplate) as caught:
        compile_template(repositories[ORDERS], template)
    assert words in str(caught.value)


def test_an_entity_that_is_gone_is_an_error(order: Record, world: World) -> None:
    ds = dataset(world.context)
    group = ds.create("General.Products.ProductGroups", {"Code": "G2", "Name": {"EN": "Tables"}})
    ds.commit()
    compiled = compile_template(order.repository, f"{{General_Products_ProductGroups({group.id}).Code}}")
    assert compiled.render(order) == "G2"
    ds.delete(group)
    ds.commit()
    order.dataset.records.pop(group.key, None)
    with pytest.raises(errors.Refused) as caught:
        compiled.render(order)
    assert caught.value.code is errors.INTERPOLATION_FAILED
    assert group.id in caught.value.message


def test_a_rule_reads_an_entity_by_key_with_its_author_s_rights(world: World) -> None:
    compiled = compile_template(
        repositories[ORDERS], f"{{General_Products_Products({world.product}).ProductGroup.Code}} {{$role.Name}}"
    )
    read = [tuple(hop.target for hop in path) for path in compiled.paths]
    assert read == [("General.Products.Products", "General.Products.ProductGroups"), ("Systems.Security.Roles",)]


# --- escapes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "template, expected",
    [
        ("This is a simple string.", "This is a simple string."),
        ("{{escaped}}", "{escaped}"),
        (r"\{escaped\}", "{escaped}"),
        (r"\{{DocumentNo}\}", "{A1}"),
        (r"line1\nline2", "line1\nline2"),
        (r"line1\rline2", "line1\nline2"),
        (r"line1\r\nline2", "line1\nline2"),
        (r"line1\n\nline3", "line1\n\nline3"),
        (r"line1\n\rline3", "line1\n\nline3"),
        (r"\'\"\\", "'\"\\"),
        (r"\z\A\R", "zAR"),
        (r"C:\\MyFolder\\file.txt", r"C:\MyFolder\file.txt"),
        (r"\\{DocumentNo}", r"\A1"),
        (r"\\\{DocumentNo\}", r"\{DocumentNo}"),
        ("\\", "\\"),
        (r"{DocumentDate:dd\/MM\/yyyy}", "09/03/2026"),
        (r"{DocumentDate:dd\}MM}", "09}03"),
        ("{DocumentDate:d }", "9 "),
        ("{ DocumentNo }", "A1"),
    ],
)
def test_escapes(order: Record, template: str, expected: str) -> None:
    assert text(order, template) == expected


def test_backslashes_of_a_json_body_are_its_own(order: Record) -> None:
    body = text(order, r'{{"a": "x\ny\"{DocumentNo}\" \\ \u0041", "b": "\{\}"}}', "json")
    assert json.loads(body) == {"a": 'x\ny"A1" \\ A', "b": "{}"}


# --- formats of members -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "template, en, bg, de",
    [
        ("{SalesOrder.DocumentDate}", "3/9/2026", "9.03.2026 г.", "09.03.2026"),
        ("{SalesOrder.DocumentDate:dd-MM-yyyy}", *["09-03-2026"] * 3),
        ("{SalesOrder.DocumentDate:dd/MM/yyyy}", "09/03/2026", "09.03.2026", "09.03.2026"),
        ("{Quantity:Q}", "1,234.500 pcs", "1\u00a0234,500 pcs", "1.234,500 pcs"),
        ("{Quantity:UV}", "pcs 1,234.500", "pcs 1\u00a0234,500", "pcs 1.234,500"),
        ("{QuantityValue:N1}", "1,234.5", "1\u00a0234,5", "1.234,5"),
        ("{QuantityValue}", *["1234.5"] * 3),
        ("{UnitPrice:A}", "EUR 10.50", "EUR 10,50", "EUR 10,50"),
        ("{UnitPrice:VC}", "10.50 EUR", "10,50 EUR", "10,50 EUR"),
        ("{UnitPriceValue:C}", "$10.50", "10,50 €", "10,50 €"),
        ("{LineNo:D4}", *["0010"] * 3),
        ("{Product.Name:D}", *["EN=Chair BG=Стол"] * 3),
        ("{Product.Name:C}", "Chair", "Стол", ""),
    ],
)
def test_formats_of_members(order: Record, template: str, en: str, bg: str, de: str) -> None:
    line = order.children("Lines")[0]
    assert [text(line, template, language=language) for language in ("en", "bg", "de")] == [en, bg, de]


def test_machines_have_a_culture_of_their_own(order: Record) -> None:
    line = order.children("Lines")[0]
    assert text(line, "[{Quantity:N2}, {Quantity:Q}, {LineNo:D4}, {Quantity:0.0}]", "json", "de") == (
        '[1234.50, "1234.500 pcs", "0010", 1234.5]'
    )
    assert text(line, "{SalesOrder.DocumentDate:dd/MM/yyyy}|{SalesOrder.DocumentDate:MMM}", "plain", "de") == (
        "09/03/2026|Mar"
    )


@pytest.mark.parametrize(
    "format, en, bg, de",
    [
        ("V", *["red"] * 3),
        ("D", "Warm", "Топло", "Warm"),
        ("VD", "red: Warm", "red: Топло", "red: Warm"),
        ("VD_EN", *["red: Warm"] * 3),
        ("d_bg", *["Топло"] * 3),
        ("D_FR", *[""] * 3),
        ("VD_FR", *["red"] * 3),
        ("VDI", f"red: Warm ({GONE})", f"red: Топло ({GONE})", f"red: Warm ({GONE})"),
        ("VDI_BG", *[f"red: Топло ({GONE})"] * 3),
    ],
)
def test_formats_of_custom_properties(world: World, format: str, en: str, bg: str, de: str) -> None:
    make_property(world)
    product = dataset(world.context).load(PRODUCTS, world.product)
    assert product is not None
    value = {"Value": "red", "Description": {"EN": "Warm", "BG": "Топло"}, "ValueId": GONE}
    product.dataset.assign_custom(product, "colour", value)
    template = f"{{@colour:{format}}}"
    assert [text(product, template, language=language) for language in ("en", "bg", "de")] == [en, bg, de]


def test_custom_properties_of_numbers_and_dates_have_those_formats_too(world: World) -> None:
    make_property(world, "weight", "Number")
    make_property(world, "born", "Date")
    product = dataset(world.context).load(PRODUCTS, world.product)
    assert product is not None
    assert text(product, "[{@weight:N2}{@born:V}]") == "[]"
    product.dataset.assign_custom(product, "weight", {"Value": "1234.5", "Description": {"EN": "kg"}})
    product.dataset.assign_custom(product, "born", {"Value": "2026-03-09", "Description": None})
    assert text(product, "{@weight:N2} {@weight:VD} {@born:d} {@born:dd.MM} {@born:V}", language="de") == (
        "1.234,50 1234.5: kg 09.03.2026 09.03 2026-03-09"
    )


# --- over HTTP ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "language, expected",
    [("en-US", "$10.50"), ("en", "$10.50"), ("en-GB, de", "£10.50"), ("bg-BG", "10,50 €"), ("de-DE", "10,50 €")],
)
def test_the_reader_s_culture_is_that_of_the_request(
    api: Api, order: Record, world: World, language: str, expected: str
) -> None:
    write_rule(world, LINES, ["COMMIT"], actions=[("FAIL", ("FormattedString", "{UnitPrice:C}"))])
    line = order.children("Lines")[0].id
    answer = api.patch(f"Crm_Sales_SalesOrderLines({line})", {"LineNo": 20}, Accept_Language=language)
    assert error_of(answer)["message"] == expected


def test_an_unknown_specifier_is_refused_when_saved(api: Api) -> None:
    rule = {
        "Code": "BAD", "Name": {"EN": "Bad"}, "RepositoryName": PRODUCTS, "IsActive": True,
        "Events": [{"EventType": "COMMIT"}],
        "Actions": [{"ActionNo": 10, "ActionType": "WARNING", "Parameter1Type": "Interpolate",
                     "Parameter1Value": "{Name:XYZ}"}],
    }  # fmt: skip
    error = error_of(api.post("Systems_Bpm_UserBusinessRules", rule))
    assert "The format 'XYZ' does not fit {Name}; possible are C A T D, a language (EN)" in error["message"]
    hook = {"Code": "BAD", "Name": {"EN": "Bad"}, "RepositoryName": PRODUCTS, "URL": "https://example.com/{Name:XYZ}"}
    assert "The format 'XYZ' does not fit" in json.dumps(error_of(api.post("Systems_Config_WebHooks", hook)))


def test_any_text_is_a_template_or_says_why_not(order: Record) -> None:
    line = order.children("Lines")[0]
    names = ["Quantity", "SalesOrder.DocumentDate", "Product.Name", "$date", "LineNo", f"Products({GONE}).Name"]
    name = st.sampled_from([*names, "UnitPriceValue", "ObjectState", "$user.Name", "$role"])
    format = st.text("CDNPdMyHhmsfgGtTzOQVUA#0.,%;:/'\"\\\\{}ENB 12", max_size=12)
    placeholder = st.builds("{{{}:{}}}".format, name, format)
    anything = st.one_of(placeholder, st.text("{}()\\\\rn'\":.@$# aQuantity", max_size=20), st.text(max_size=10))

    @settings(max_examples=300, deadline=2000)
    @given(st.lists(anything, max_size=4), st.sampled_from(["text", "json", "url", "header", "xml"]))
    def check(parts: list[str], escape: Escape) -> None:
        with contextlib.suppress(InvalidTemplate):
            assert isinstance(text(line, "".join(parts), escape, "bg"), str)

    check()
