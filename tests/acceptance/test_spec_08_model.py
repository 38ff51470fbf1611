"""spec 08 Repositories and the shipped model"""

from __future__ import annotations

import re
import secrets
from datetime import UTC, date, datetime, timedelta
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.acceptance.caller import Caller, answered, error_of, id_of
from tests.acceptance.objects import COMPANY, CUSTOMER, GROUPS, ORDERS, PRODUCT, PRODUCTS, Maker, order
from tests.acceptance.statements import statement

PROPERTIES = "Systems_Bpm_CustomProperties"
UNITS = "General_Products_MeasurementUnits"
# Namespace → its sets.
NAMESPACES = {
    "General_Products": "Products ProductGroups ProductTypes MeasurementUnits MeasurementCategories ProductCodes",
    "General_Contacts": "Parties Persons Companies CompanyLocations ContactMechanisms PartyContactMechanisms",
    "General": "EnterpriseCompanies",
    "General_Currencies": "Currencies",
    "Systems_Documents": "DocumentTypes DocumentTypeUserStatuses",
    "General_Documents": "Documents DocumentStateChanges DocumentAmounts",
    "Crm_Sales": "Customers CustomerTypes SalesOrders SalesOrderLines",
    "Crm_SalesForce": "SalesPersons",
    "Crm_Pricing": "ProductPrices",
    "Crm_Presales": "Offers OfferLines",
    "Crm_Invoicing": "Invoices InvoiceLines",
    "Finance_Payments": "PaymentTypes",
    "Logistics_Inventory": "Stores",
    "Applications_Service": "ServiceActivities",
    "Systems_Security": "Users Roles TrustedApplications",
    "Systems_Bpm": "CustomProperties CustomPropertyAllowedValues UserBusinessRules",
    "Systems_Config": "WebHooks",
    "Systems_Core": "Scripts Notifications",
    "Systems_Monitoring": "InformationMessages",
    "Systems_Exchange": "DataExchanges DataExchangeObjects",
}
SHIPPED = [f"{namespace}_{name}" for namespace, names in NAMESPACES.items() for name in names.split()]


def unit(caller: Caller, code: str) -> str:
    """The reference of a unit of the demo data."""
    return str(caller.rows(f"{UNITS}?$filter=Code eq '{code}'")[0]["@odata.id"])


class TestRepositories:
    @pytest.mark.parametrize("entity_set", SHIPPED)
    @statement("spec 8.3", "{entity_set} ships and can be read")
    def test_ships(self, service: Caller, entity_set: str) -> None:
        assert len(service.rows(f"{entity_set}?$top=1&$select=Id,DisplayText")) <= 1

    @pytest.mark.parametrize("name", ["Id", "ObjectVersion", "ExternalId", "ExternalSystem", "DisplayText"])
    @statement("spec 8.1", "Every root has {name}")
    def test_system(self, service: Caller, name: str) -> None:
        assert name in service.read(f"{PRODUCT}?$select={name}")

    @statement("spec 8.1", "Roots have AggregateLastUpdateTimeUtc, and a change moves it and ObjectVersion")
    def test_version(self, make: Maker) -> None:
        path = f"{make.group()}?$select=ObjectVersion,AggregateLastUpdateTimeUtc"
        before = make.caller.read(path)
        make.caller.change(path.partition("?")[0], {"Notes": "moved"})
        after = make.caller.read(path)
        assert after["ObjectVersion"] == before["ObjectVersion"] + 1
        assert after["AggregateLastUpdateTimeUtc"] > before["AggregateLastUpdateTimeUtc"]

    @statement("spec 8.1", "New Ids are ordered by time")
    def test_ids(self, make: Maker) -> None:
        made = [make.new(GROUPS, {"Code": f"{n}{make.mark}", "Name": {"EN": "x"}})["@odata.id"] for n in range(4)]
        assert made == sorted(made)

    @statement("spec 8.1", "A reference to an abstract type holds a person or a company; Parties lists both")
    def test_parties(self, make: Maker) -> None:
        company = make.new("General_Contacts_Companies", {"Name": {"EN": f"Company {make.mark}"}})
        name = {"FirstName": {"EN": make.mark}, "LastName": {"EN": "Person"}}
        person = make.new("General_Contacts_Persons", name)
        for made, kind in ((company, "Company"), (person, "Person")):
            party = f"General_Contacts_Parties({id_of(made)})"
            found = make.caller.read(party)
            assert found["@odata.type"] == f"#Erp.General_Contacts_{kind}"
            customer = make.new("Crm_Sales_Customers", {"Party@odata.bind": party})
            assert customer["Party"] == {"@odata.id": party}

    @pytest.mark.parametrize("entity_set, key", [(ORDERS, "DocumentId"), ("General_Contacts_Companies", "PartyId")])
    @statement("spec 8.3", "{entity_set} also show the base's key {key}, equal to Id, selectable and filterable")
    def test_base_key(self, service: Caller, entity_set: str, key: str) -> None:
        (found,) = service.rows(f"{entity_set}?$top=1&$select=Id,{key}")
        assert found[key] == found["Id"]
        (same,) = service.rows(f"{entity_set}?$filter={key} eq {found['Id']}&$select=Id")
        assert same["Id"] == found["Id"]

    @statement("spec 8.3", "A trusted application's reference-token policy is ReferenceTokens")
    def test_reference_tokens(self, service: Caller) -> None:
        (found,) = service.rows("Systems_Security_TrustedApplications?$top=1&$select=ReferenceTokens")
        assert "ReferenceTokens" in found


class TestCustomProperties:
    @statement("spec 8.2", "A property is usable at once; it takes an object or a plain string, gives an object")
    def test_value(self, make: Maker) -> None:
        name = f"CustomProperty_{make.text_property(PRODUCTS)}"
        product = make.product(**{name: "plain"})
        assert make.caller.read(f"{product}?$select={name}")[name]["Value"] == "plain"
        make.caller.change(product, {name: {"Value": "object", "Description": {"EN": "described"}}})
        found = make.caller.read(f"{product}?$select={name}")[name]
        assert set(found) == {"Value", "Description", "ValueId"}
        assert found["Value"] == "object"
        make.caller.change(product, {name: None})
        assert make.caller.read(f"{product}?$select={name}")[name] is None

    @pytest.mark.parametrize("character, escaped", [(" ", "_u0020"), ("/", "_u002F"), ("-", "_u002D"), ("_", "_")])
    @statement("spec 8.2", "'{character}' of a code is {escaped} in the property's name")
    def test_escaped(self, make: Maker, character: str, escaped: str) -> None:
        body = {"EntityName": GROUPS, "Code": f"a{character}{make.mark}", "Name": {"EN": "x"}, "PropertyType": "Text"}
        make.new(PROPERTIES, body)
        name = f"CustomProperty_a{escaped}{make.mark}"
        group = make.group(**{name: "v"})
        assert make.caller.read(f"{group}?$select={name}")[name]["Value"] == "v"

    @pytest.mark.parametrize("kind, good, bad", [("Number", "12.5", "x"), ("Date", "2026-01-02", "2026-13-02")])
    @statement("spec 8.2", "A property of the type {kind} takes {good} and refuses {bad}")
    def test_types(self, make: Maker, kind: str, good: str, bad: str) -> None:
        code = f"t{make.mark}"
        make.new(PROPERTIES, {"EntityName": GROUPS, "Code": code, "Name": {"EN": "x"}, "PropertyType": kind})
        group = make.group(**{f"CustomProperty_{code}": good})
        error_of(make.caller.patch(group, {f"CustomProperty_{code}": bad}), 400, 500)

    @statement("spec 8.2", "LimitToAllowedValues: other values are refused; an allowed one has its id and description")
    def test_allowed(self, make: Maker) -> None:
        code = f"l{make.mark}"
        made = make.new(
            PROPERTIES,
            {
                "EntityName": GROUPS,
                "Code": code,
                "Name": {"EN": "x"},
                "PropertyType": "Text",
                "LimitToAllowedValues": True,
                "AllowedValues": [{"PropertyAllowedValueField": "red", "Description": {"EN": "Red"}}],
            },
        )
        group = make.group(**{f"CustomProperty_{code}": "red"})
        found = make.caller.read(f"{group}?$select=CustomProperty_{code}")[f"CustomProperty_{code}"]
        (allowed,) = make.caller.rows(f"{made['@odata.id']}/AllowedValues")
        assert found["ValueId"] == id_of(allowed)
        assert found["Description"] == {"EN": "Red"}
        error_of(make.caller.patch(group, {f"CustomProperty_{code}": "blue"}), 500)
        values = make.caller.rows(f"{group}/GetAllowedCustomPropertyValues(customPropertyCode='{code}')")
        assert [value["Value"] for value in values] == ["red"]

    @statement("spec 8.2", "Scripts read and set CustomProperties['code']")
    def test_scripts(self, make: Maker) -> None:
        code = make.text_property(GROUPS)
        group = make.group(**{f"CustomProperty_{code}": "v"})
        source = f"""
            const [g] = Domain.General.Products.ProductGroupsRepository.query({{code: 'G-{make.mark}'}});
            console.log(String(g.CustomProperties['{code}'].Value));
        """
        assert make.caller.run(source)["console"] == "v"
        change = source.replace("console.log(String(", "((").replace(".Value));", " = 'w')); Transaction.commit();")
        make.caller.run(change)
        assert make.caller.read(f"{group}?$select=CustomProperty_{code}")[f"CustomProperty_{code}"]["Value"] == "w"


class TestProducts:
    def of_group(self, make: Maker) -> str:
        """A group with defaults and a sequence of part numbers."""
        kind = make.caller.rows("General_Products_ProductTypes?$top=1")[0]["@odata.id"]
        defaults = {"DefaultMeasurementUnit@odata.bind": unit(make.caller, "kg"), "DefaultProductType@odata.bind": kind}
        return make.group(NextPartNumber=f"{make.mark}-01", **defaults)

    @statement("spec 8.4", "A product of Name and ProductGroup: unit, base category, type, part number from the group")
    def test_defaults(self, make: Maker) -> None:
        group = self.of_group(make)
        one, two = (make.new(PRODUCTS, {"Name": {"EN": "x"}, "ProductGroup@odata.bind": group}) for _ in range(2))
        given = make.caller.read(group)
        kg = make.caller.read(f"{unit(make.caller, 'kg')}?$expand=MeasurementCategory/$ref")
        assert one["MeasurementUnit"] == given["DefaultMeasurementUnit"]
        assert one["ProductType"] == given["DefaultProductType"]
        assert one["BaseMeasurementCategory"]["@odata.id"] == kg["MeasurementCategory"]["@odata.id"]
        numbers = [int(found["PartNumber"].rpartition("-")[2]) for found in (one, two)]
        assert numbers[1] == numbers[0] + 1
        assert one["PartNumber"].startswith(make.mark)

    @statement("spec 8.4", "PartNumber, Name and MeasurementUnit are enough for a product; it gets the default group")
    def test_default_group(self, make: Maker) -> None:
        found = make.caller.read(make.product())
        assert found["ProductGroup"] is not None
        assert found["BaseMeasurementCategory"] is not None

    @statement("spec 8.4", "A group's code is the next under its parent, its FullPath that of its parents")
    def test_groups(self, make: Maker) -> None:
        parent = make.group()
        body = {"Name": {"EN": "x"}, "ParentGroup@odata.bind": parent}
        one, two = make.new(GROUPS, body), make.new(GROUPS, body)
        assert one["FullPath"] == f"/G-{make.mark}/{one['Code']}/"
        assert one["Code"] < two["Code"]
        assert int(re.findall(r"\d+$", two["Code"])[0]) == int(re.findall(r"\d+$", one["Code"])[0]) + 1

    @statement("spec 8.4", "A unit that is not of the product's category is refused")
    def test_unit(self, make: Maker) -> None:
        line = {"Product@odata.bind": make.product(), "QuantityUnit@odata.bind": unit(make.caller, "kg")}
        error = error_of(make.caller.post(ORDERS, order(Lines=[line])), 500)
        assert "kilogram" in error["message"]
        assert make.mark in error["message"]

    @statement("spec 8.4", "Missing required attributes are named all at once")
    def test_missing(self, service: Caller) -> None:
        error = error_of(service.post(UNITS, {"Code": "x"}), 500)
        assert {"Name", "MeasurementCategory"} <= set(re.findall(r"\w+", error["message"]))
        assert {detail["target"] for detail in error["details"]} >= {"Name", "MeasurementCategory"}

    @statement("spec 8.4", "From-date after thru-date, a duplicate code, a negative quantity: codes of their own")
    def test_codes(self, make: Maker) -> None:
        price = {
            "Product@odata.bind": PRODUCT,
            "Price": {"Value": 1, "Currency": "EUR"},
            "FromDate": "2030-02-01",
            "ThruDate": "2030-01-01",
        }
        dates = error_of(make.caller.post("Crm_Pricing_ProductPrices", price), 500)
        make.group()
        twice = error_of(make.caller.post(GROUPS, {"Code": f"G-{make.mark}", "Name": {"EN": "x"}}), 500)
        lot = {"StandardLotSizeBase": {"Value": -1, "Unit": "pcs"}}
        below = error_of(make.caller.patch(make.product(), lot), 500)
        assert twice["code"] == 2129
        assert len({dates["code"], twice["code"], below["code"]}) == 3


class TestCustomers:
    @statement("spec 8.4", "A customer's Number is the next of six digits, company and currency are given")
    def test_defaults(self, make: Maker) -> None:
        company = make.new("General_Contacts_Companies", {"Name": {"EN": f"Company {make.mark}"}})
        party = f"General_Contacts_Parties({id_of(company)})"
        found = make.new("Crm_Sales_Customers", {"Party@odata.bind": party})
        assert re.fullmatch(r"\d{6}", found["Number"])
        assert found["EnterpriseCompany"] == {"@odata.id": COMPANY}
        base = make.caller.read(COMPANY)["BaseCurrency"]
        assert found["DefaultCurrency"] == base

    @pytest.mark.parametrize("company", ["00000000-0000-0000-0000-0000000000ff", "nonsense", ""])
    @statement("spec 8.4", "CurrentEnterpriseCompanyId that is not valid is ignored: '{company}'")
    def test_context(self, make: Maker, company: str) -> None:
        made = make.new("General_Contacts_Companies", {"Name": {"EN": f"Company {make.mark}"}})
        body: dict[str, Any] = {"Party@odata.bind": f"General_Contacts_Parties({id_of(made)})"}
        context = {"Prefer": f"CurrentEnterpriseCompanyId={company}"}
        assert make.new("Crm_Sales_Customers", body, **context)["EnterpriseCompany"] == {"@odata.id": COMPANY}
        product: dict[str, Any] = {"Name": {"EN": "x"}, "MeasurementUnit@odata.bind": unit(make.caller, "pcs")}
        body = {**product, "PartNumber": f"P-{make.mark}"}
        without = make.new(PRODUCTS, {**product, "PartNumber": f"Q-{make.mark}"})
        assert make.new(PRODUCTS, body, **context)["ProductGroup"] == without["ProductGroup"]


class TestOrders:
    @statement("spec 8.4", "An order's defaults: date, number, currency, parties, dates, salesperson, master, creation")
    def test_header(self, make: Maker) -> None:
        found = make.new(ORDERS, order())
        customer = make.caller.read(CUSTOMER)
        today = datetime.now(UTC).date()
        assert date.fromisoformat(found["DocumentDate"]) in (today, today - timedelta(days=1))
        assert re.fullmatch(r"\d+", found["DocumentNo"])
        assert found["DocumentCurrency"] == customer["DefaultCurrency"]
        assert found["ToParty"] == customer["Party"]
        assert id_of(found["FromParty"]) == id_of(make.caller.read(COMPANY)["Company"])
        assert found["SalesPerson"] == customer["SalesPerson"]
        assert id_of(found["MasterDocument"]) == id_of(found)
        assert found["CreationUser"] == "service"
        assert found["CreationTime"].endswith("Z")

    @statement("spec 8.4", "Payment and delivery dates follow from the customer's term days")
    def test_dates(self, make: Maker) -> None:
        found = make.new(ORDERS, order(DocumentDate="2026-03-01"))
        customer = make.caller.read(CUSTOMER)
        start = date(2026, 3, 1)
        delivery = start + timedelta(days=customer["DefaultDeliveryTermDays"])
        assert found["RequiredDeliveryDate"] == delivery.isoformat()
        first = start + timedelta(days=customer["DefaultPaymentStartDays"])
        assert found["PaymentDueStartDate"].startswith(first.isoformat())
        due = first + timedelta(days=customer["DefaultPaymentTermDays"])
        assert found["PaymentDueDate"].startswith(due.isoformat())

    @statement("spec 8.4", "A line's defaults: LineNo + 10, quantity 1 of the product's unit, description, date")
    def test_lines(self, make: Maker) -> None:
        root = make.order(Lines=[{"Product@odata.bind": PRODUCT}, {"Product@odata.bind": PRODUCT}])
        rows = make.caller.rows(f"{root}/Lines?$orderby=LineNo")
        assert [row["LineNo"] for row in rows] == [10, 20]
        product = make.caller.read(PRODUCT)
        for row in rows:
            assert row["Quantity"] == {"Value": 1, "Unit": "pcs"}
            assert row["QuantityUnit"] == product["MeasurementUnit"]
            assert row["ProductDescription"] == product["Name"]
            assert row["RequiredDeliveryDate"] == make.caller.read(root)["RequiredDeliveryDate"]

    @statement("spec 8.4", "QuantityBase and StandardQuantityBase are in the product's base unit")
    def test_base(self, make: Maker) -> None:
        root = make.order(Lines=[{"Product@odata.bind": PRODUCT, "Quantity": {"Value": 2, "Unit": "dz"}}])
        found = make.caller.read(make.line_of(root))
        for name in ("QuantityBase", "StandardQuantityBase"):
            assert found[name] == {"Value": 24, "Unit": "pcs"}

    @statement("spec 8.4", "UnitPrice is the valid product price by date and quantity, else the standard price")
    def test_price(self, make: Maker) -> None:
        product = make.product(StandardPricePerLot={"Value": 50, "Currency": "EUR"})
        line = {"Product@odata.bind": product}

        def price(day: str, **values: Any) -> Any:
            root = make.order(DocumentDate=day, Lines=[{**line, **values}])
            return make.caller.read(make.line_of(root))["UnitPrice"]

        assert price("2026-03-01") == {"Value": 50, "Currency": "EUR"}
        for value, bounds in (
            (40, {"FromDate": "2026-03-01", "ThruDate": "2026-03-31"}),
            (30, {"FromDate": "2026-03-01", "ThruDate": "2026-03-31", "MinQuantity": {"Value": 10, "Unit": "pcs"}}),
        ):
            body = {"Product@odata.bind": product, "Price": {"Value": value, "Currency": "EUR"}, **bounds}
            make.new("Crm_Pricing_ProductPrices", body)
        assert price("2026-03-15") == {"Value": 40, "Currency": "EUR"}
        assert price("2026-03-15", Quantity={"Value": 10, "Unit": "pcs"}) == {"Value": 30, "Currency": "EUR"}
        assert price("2026-04-15") == {"Value": 50, "Currency": "EUR"}

    @statement("spec 8.4", "LineAmount = quantity × price × (1 − standard) × (1 − custom discount), rounded; totals")
    def test_amounts(self, make: Maker) -> None:
        line = {
            "Product@odata.bind": PRODUCT,
            "Quantity": {"Value": 3, "Unit": "pcs"},
            "UnitPrice": {"Value": 9.99, "Currency": "EUR"},
            "LineCustomDiscountPercent": 0.145,
        }
        root = make.order(Lines=[line, line])
        assert make.caller.read(make.line_of(root))["LineAmount"] == {"Value": 25.62, "Currency": "EUR"}
        found = make.caller.read(f"{root}?$select=TotalLineAmount,AmountToPay")
        assert found["TotalLineAmount"] == {"Value": 51.24, "Currency": "EUR"}
        assert found["AmountToPay"]["Currency"] == "EUR"

    @statement("spec 8.4", "A header's RequiredDeliveryDate holds a value while all lines agree, else null")
    def test_master_detail(self, make: Maker) -> None:
        root = make.order(Lines=order(lines=2)["Lines"])
        for row in make.caller.rows(f"{root}/Lines"):
            make.caller.change(row["@odata.id"], {"RequiredDeliveryDate": "2031-05-06"})
        assert make.caller.read(root)["RequiredDeliveryDate"] == "2031-05-06"
        make.caller.change(make.line_of(root), {"RequiredDeliveryDate": "2031-07-08"})
        assert make.caller.read(root)["RequiredDeliveryDate"] is None

    @statement("spec 8.4", "Frontend model: setting it on the header sets all lines")
    def test_master_to_detail(self, make: Maker) -> None:
        inside = make.caller.begin(model="frontend")
        body = order(lines=2, DocumentNo=f"F{secrets.token_hex(5)}")
        root = inside.create(ORDERS, body)["@odata.id"]
        inside.change(root, {"RequiredDeliveryDate": "2031-05-06"})
        dates = [row["RequiredDeliveryDate"] for row in inside.rows(f"{root}/Lines")]
        inside.end(commit=False)
        assert dates == ["2031-05-06", "2031-05-06"]


@statement("spec 8.1", "Python's part_number is PartNumber over OData: every name of the model is PascalCase")
def test_names(service: Caller) -> None:
    root = ElementTree.fromstring(answered(service.get("$metadata"), 200).content)
    for kind in ("Property", "NavigationProperty"):
        for found in root.iterfind(f".//{{http://docs.oasis-open.org/odata/ns/edm}}EntityType/*[@Name='{kind}']"):
            assert re.match("[A-Z]", found.attrib["Name"])
