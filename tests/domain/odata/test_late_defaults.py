"""What the platform fills in where a caller gave nothing, as every way of writing shows it (spec 08, 8.4)."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from domain.dataset.dataset import Dataset
from domain.entities.general_product_groups import ProductGroup
from domain.entities.general_products import Product
from foundation.fields import utc_now
from identity.context import system_context
from identity.models import User
from tests.domain.odata.test_writing import CURRENCIES, GROUPS, LINES, ORDERS, PRODUCTS
from tests.rules.cast import World
from tests.support.api import Api, error_of, id_of

UNITS, CUSTOMERS = "General_Products_MeasurementUnits", "Crm_Sales_Customers"
SHOWN = "ProductGroup,MeasurementUnit,BaseMeasurementCategory"


def body_of(world: World) -> dict[str, Any]:
    """The three members that the documented example of creating a record has."""
    return {
        "PartNumber": "NEW-1",
        "Name": {"EN": "New"},
        "MeasurementUnit@odata.bind": f"{UNITS}({world.unit})",
    }


def by_request(api: Api, world: World) -> None:
    api.create(PRODUCTS, body_of(world))


def in_transaction(api: Api, world: World, model: str = "common") -> None:
    inside = api.begin(model=model)
    made = inside.create(PRODUCTS, body_of(world))
    assert inside.end().status_code == 204
    assert api.get(made["@odata.id"]).status_code == 200


def in_frontend_model(api: Api, world: World) -> None:
    in_transaction(api, world, "frontend")


def by_script(api: Api, world: World) -> None:
    source = f"""
        const unit = Domain.General.Products.MeasurementUnitsRepository.getById("{world.unit}");
        Domain.General.Products.ProductsRepository.createNew(
          {{PartNumber: "NEW-1", Name: {{EN: "New"}}, MeasurementUnit: unit}});
        Transaction.commit();
    """
    response = api.post("ExecuteScript", source, Content_Type="text/plain")
    assert response.status_code == 200, response.content


def by_import(api: Api, world: World) -> None:
    product = {"@odata.type": "Erp.General_Products_Product", "@erpnet.action": "create", **body_of(world)}
    answer = api.post("Import", {"objects": [product]}).json()
    assert answer["@erpnet.result"] == "success", answer


def by_admin(api: Api, world: World) -> None:
    boss = Client()
    boss.force_login(User.objects.create_superuser("boss", "vast-Harbour-42"))
    address = reverse("admin:domain_product_add")
    page = boss.get(address)
    form = page.context["adminform"].form
    assert not [name for name, field in form.fields.items() if field.required]
    filled = {name: "" if form[name].value() is None else form[name].value() for name in form.fields}
    filled = {name: value for name, value in filled.items() if value not in (False, {}, "")}
    for formset in page.context["inline_admin_formsets"]:
        management = formset.formset.management_form
        filled |= {management.add_prefix(name): management[name].value() for name in management.fields}
    given = {"part_number": "NEW-1", "name_en": "New", "measurement_unit": world.unit}
    answer = boss.post(address, {**filled, **given})
    assert answer.status_code == 302, answer.context["errors"]


WAYS: list[Callable[[Api, World], None]] = [
    by_request,
    in_transaction,
    in_frontend_model,
    by_script,
    by_import,
    by_admin,
]


@pytest.mark.parametrize("create", WAYS)
def test_a_product_of_a_number_a_name_and_a_unit_is_created(
    api: Api, world: World, create: Callable[[Api, World], None]
) -> None:
    create(api, world)
    (made,) = api.read(f"{PRODUCTS}?$filter=PartNumber eq 'NEW-1'&$select={SHOWN}&$expand=MeasurementUnit")["value"]
    assert id_of(made["ProductGroup"]) == world.group
    category = api.read(f"{UNITS}({world.unit})?$select=MeasurementCategory")["MeasurementCategory"]
    assert made["BaseMeasurementCategory"] == category
    assert id_of(made["MeasurementUnit"]) == world.unit


def test_a_product_without_a_unit_is_refused_for_the_unit_alone(api: Api, world: World) -> None:
    """The category follows from the unit, so nobody is asked for it."""
    assert api.post(GROUPS, {"Code": "BARE", "Name": {"EN": "bare"}}).status_code == 201
    (group,) = api.read(f"{GROUPS}?$filter=Code eq 'BARE'&$select=Id")["value"]
    body = {"Name": {"EN": "x"}, "ProductGroup": {"@odata.id": f"{GROUPS}({group['Id']})"}}
    error = error_of(api.post(PRODUCTS, body))
    assert (error["type"], error["target"]) == ("RequiredAttributeMissing", "MeasurementUnit")
    assert "Category" not in str(error)
    assert [detail["target"] for detail in error_of(api.post(PRODUCTS, {**body, "Name": None}))["details"]] == [
        "Name",
        "MeasurementUnit",
    ]


@pytest.mark.parametrize("model", ["common", "frontend"])
def test_a_product_of_a_name_and_a_group_is_created(api: Api, world: World, model: str) -> None:
    group = f"{GROUPS}({world.group})"
    assert api.patch(group, {"DefaultMeasurementUnit@odata.bind": f"{UNITS}({world.unit})"}).status_code == 204
    inside = api.begin(model=model)
    numbers = []
    for _ in range(2):
        made = inside.create(PRODUCTS, {"Name": {"EN": "New"}, "ProductGroup@odata.bind": group})["@odata.id"]
        numbers.append(made)
    assert inside.end().status_code == 204
    shown = [api.read(f"{made}?$select=PartNumber,{SHOWN}") for made in numbers]
    assert [each["PartNumber"] for each in shown] == ["G1-000001", "G1-000002"]
    assert id_of(shown[0]["MeasurementUnit"]) == world.unit


def test_the_group_marked_as_default_goes_before_the_first_by_code(api: Api, world: World) -> None:
    marked = api.create(GROUPS, {"Code": "Z", "Name": {"EN": "Default"}, "IsDefault": True})
    made = api.create(PRODUCTS, body_of(world))
    assert made["ProductGroup"]["@odata.id"] == marked["@odata.id"]


def test_a_unit_that_does_not_exist_is_told_before_what_follows_from_it(api: Api, world: World) -> None:
    nobody = "00000000-0000-0000-0000-00000000dead"
    response = api.post(PRODUCTS, {**body_of(world), "MeasurementUnit@odata.bind": f"{UNITS}({nobody})"})
    error = error_of(response)
    assert (error["code"], error["target"]) == (2040, "MeasurementUnit")
    error = error_of(api.post(PRODUCTS, {"PartNumber": "NEW-1", "Name": {"EN": "New"}}))
    assert error["code"] == 2030
    assert "MeasurementUnit" in error["message"]


@pytest.mark.parametrize("model", ["", "common", "frontend"])
def test_without_a_group_the_error_names_the_member_and_the_cure(api: Api, world: World, model: str) -> None:
    ProductGroup.objects.update(active=False)
    if model:
        inside = api.begin(model=model)
        inside.create(PRODUCTS, body_of(world))
        response = inside.end()
    else:
        response = api.post(PRODUCTS, body_of(world))
    error = error_of(response)
    assert (response.status_code, error["code"], error["type"]) == (500, 2057, "NoProductGroup")
    assert "ProductGroup" in error["message"]
    assert error["target"] == "ProductGroup"
    assert not Product.objects.filter(part_number="NEW-1").exists()


def test_groups_are_numbered_and_know_their_path(api: Api, world: World) -> None:
    above = f"{GROUPS}({world.group})"
    below = [api.create(GROUPS, {"Name": {"EN": "A"}, "ParentGroup@odata.bind": above}) for _ in range(2)]
    assert [(each["Code"], each["FullPath"]) for each in below] == [("G101", "/G1/G101/"), ("G102", "/G1/G102/")]


def test_customers_are_numbered_and_pay_in_the_companys_currency(api: Api, world: World) -> None:
    company = f"General_EnterpriseCompanies({world.company})"
    for number in ("000001", "000002"):
        person = {
            "@erpnet.action": "create",
            "@odata.type": "Erp.General_Contacts_Person",
            "FirstName": {"EN": number},
            "LastName": {"EN": "Lee"},
        }
        made = api.create(CUSTOMERS, {"Party": person})
        assert made["Number"] == number
        assert made["EnterpriseCompany"]["@odata.id"] == company
        assert id_of(made["DefaultCurrency"]) == world.currency


@pytest.mark.parametrize("model", ["common", "frontend"])
def test_an_order_is_filled_from_type_company_and_customer(api: Api, world: World, model: str) -> None:
    system = Dataset(system_context())
    person = system.create("General.Contacts.Persons", {"FirstName": {"EN": "Sal"}, "LastName": {"EN": "Es"}})
    seller = system.create("Crm.SalesForce.SalesPersons", {"Person": person.id})
    system.commit()
    terms = {
        "DefaultPaymentStartDays": 1,
        "DefaultPaymentTermDays": 10,
        "DefaultDeliveryTermDays": 3,
        "SalesPerson@odata.bind": f"Crm_SalesForce_SalesPersons({seller.id})",
    }
    assert api.patch(f"{CUSTOMERS}({world.customer})", terms).status_code == 204
    inside = api.begin(model=model)
    made = inside.create(ORDERS, {"Customer@odata.bind": f"{CUSTOMERS}({world.customer})"})["@odata.id"]
    assert inside.end().status_code == 204
    order = api.read(made)
    today = utc_now().date()
    assert order["DocumentDate"] == today.isoformat()
    assert order["DocumentNo"] == "0000000001"
    assert id_of(order["DocumentCurrency"]) == world.currency
    assert id_of(order["ToParty"]) == world.party
    owner = api.read(f"General_EnterpriseCompanies({world.company})")["Company"]
    assert id_of(order["FromParty"]) == id_of(owner)
    assert order["PaymentDueDate"][:10] == (today + datetime.timedelta(days=11)).isoformat()
    assert order["RequiredDeliveryDate"] == (today + datetime.timedelta(days=3)).isoformat()
    assert id_of(order["SalesPerson"]) == seller.id
    assert id_of(order["MasterDocument"]) == id_of(order)
    assert order["CreationUser"]
    assert order["CreationTime"][:10] == today.isoformat()


@pytest.mark.parametrize("model", ["common", "frontend"])
def test_lines_are_filled_from_product_price_and_header(api: Api, world: World, model: str) -> None:
    product, category = f"{PRODUCTS}({world.product})", api.read(f"{UNITS}({world.unit})")["MeasurementCategory"]
    dozen = api.create(
        f"{category['@odata.id']}/MeasurementUnits", {"Code": "dz", "Name": {"EN": "dozen"}, "Multiplier": 12}
    )
    price = {"Price": 8, "MinQuantity": 10, "PriceQuantityMeasurementUnit@odata.bind": f"{UNITS}({world.unit})"}
    api.create(f"{product}/Prices", price)
    assert api.patch(product, {"StandardPricePerLot": 10}).status_code == 204
    body = {
        "Customer@odata.bind": f"{CUSTOMERS}({world.customer})",
        "RequiredDeliveryDate": "2030-01-02",
        "DeliveryTermsCode": "ExWorks",
        "Lines": [
            {"LineNo": 40, "Product@odata.bind": product},
            {
                "Product@odata.bind": product,
                "Quantity": {"Value": 2, "Unit": "dz"},
                "LineCustomDiscountPercent": 0.25,
            },
        ],
    }
    inside = api.begin(model=model)
    made = inside.create(ORDERS, body)["@odata.id"]
    assert inside.end().status_code == 204
    first, second = api.read(f"{made}/Lines?$orderby=LineNo")["value"]
    assert (first["LineNo"], second["LineNo"]) == (40, 50)
    assert first["Quantity"] == {"Value": 1, "Unit": "pcs"}
    assert first["ProductDescription"] == {"EN": "Chair", "BG": "Стол"}
    assert (first["UnitPrice"]["Value"], second["UnitPrice"]["Value"]) == (10, 96)
    assert second["QuantityBase"]["Value"] == second["StandardQuantityBase"]["Value"] == 24
    assert second["LineAmount"] == {"Value": 144, "Currency": "EUR"}
    for line in (first, second):
        assert (line["RequiredDeliveryDate"], line["DeliveryTermsCode"]) == ("2030-01-02", "ExWorks")
    order = api.read(f"{made}?$select=TotalLineAmount,AmountToPay,RequiredDeliveryDate")
    assert Decimal(str(order["TotalLineAmount"]["Value"])) == order["AmountToPay"]["Value"] == 154
    # A header's attribute holds a value only while all lines agree on it.
    assert api.patch(f"{LINES}({id_of(first)})", {"RequiredDeliveryDate": "2030-01-03"}).status_code == 204
    assert api.read(f"{made}?$select=RequiredDeliveryDate")["RequiredDeliveryDate"] is None
    assert dozen["Code"] == "dz"


def test_the_company_of_the_request_is_taken_where_it_is_valid(api: Api, world: World) -> None:
    lev = api.create(CURRENCIES, {"CurrencySign": "BGN", "Name": "Lev"})
    owner = {"@erpnet.action": "create", "@odata.type": "Erp.General_Contacts_Company", "Name": {"EN": "Second"}}
    base = {"BaseCurrency@odata.bind": lev["@odata.id"]}
    second = id_of(api.create("General_EnterpriseCompanies", {"Company": owner, **base}))
    for company, expected in ((second, second), ("no company", world.company)):
        body = {"Customer@odata.bind": f"{CUSTOMERS}({world.customer})"}
        made = api.create(ORDERS, body, Prefer=f"CurrentEnterpriseCompanyId={company}")
        assert id_of(made["EnterpriseCompany"]) == expected
        inside = api.begin(model="frontend")
        pending = inside.create(ORDERS, body, Prefer=f"CurrentEnterpriseCompanyId={company}")
        assert id_of(pending["EnterpriseCompany"]) == expected
        assert inside.end(commit=False).status_code == 204


@pytest.mark.parametrize("model", ["common", "frontend"])
def test_a_group_has_no_other_path_than_that_of_its_parents(api: Api, world: World, model: str) -> None:
    body = {"Code": "FP", "Name": {"EN": "Group"}, "ParentGroup": {"@odata.id": f"{GROUPS}({world.group})"}}
    path = api.create(GROUPS, body)["@odata.id"]
    for method, sent in (("PUT", body), ("PATCH", {"FullPath": "/elsewhere/"}), ("PATCH", {"FullPath": ""})):
        inside = api.begin(model=model)
        assert inside.request(method, path, sent).status_code == 204
        assert inside.end().status_code == 204
        assert api.read(f"{path}?$select=FullPath")["FullPath"] == "/G1/FP/", method


@pytest.mark.parametrize("model", ["common", "frontend"])
def test_a_stored_number_that_is_removed_is_missing_and_not_replaced(api: Api, world: World, model: str) -> None:
    order = api.create(
        f"{ORDERS}?$expand=Lines($select=LineNo)",
        {
            "Customer@odata.bind": f"{CUSTOMERS}({world.customer})",
            "Lines": [{"Product@odata.bind": f"{PRODUCTS}({world.product})"}],
        },
    )
    numbers = {
        f"{PRODUCTS}({world.product})": "PartNumber",
        f"{GROUPS}({world.group})": "Code",
        str(order["@odata.id"]): "DocumentNo",
        str(order["Lines"][0]["@odata.id"]): "LineNo",
    }
    for path, name in numbers.items():
        before = api.read(f"{path}?$select={name}")
        for nothing in (None, "") if name != "LineNo" else (None,):
            refused = api.patch(path, {name: nothing})
            assert (error_of(refused)["type"], error_of(refused)["target"]) == ("RequiredAttributeMissing", name)
        inside = api.begin(model=model)
        assert inside.patch(path, {name: None}).status_code == 204
        assert error_of(inside.end())["type"] == "RequiredAttributeMissing"
        assert inside.end(commit=False).status_code == 204
        assert api.read(f"{path}?$select={name}") == before
