"""The small demo company: currencies, units, company, products with prices, customers."""

from __future__ import annotations

import datetime
import random
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

from domain.demo.items import Item, Kind, demo_guid
from domain.demo.words import (
    AREAS,
    CITIES,
    COMPANY_FORMS,
    COMPANY_NAMES,
    FIRST_NAMES,
    LAST_NAMES,
    SERIES,
    STREETS,
    Group,
    Texts,
    texts,
    texts_of,
)

PRODUCTS = 200
CUSTOMERS = 50
SALES_PERSONS = 4
PRICES_FROM = datetime.date(2024, 1, 1)
#: Units of one currency for one euro, and the currency's position in lists.
CURRENCIES = {
    "EUR": ("Euro", Decimal(1)),
    "USD": ("US dollar", Decimal("1.0850")),
    "GBP": ("Pound sterling", Decimal("0.8450")),
    "BGN": ("Bulgarian lev", Decimal("1.95583")),
}
_CURRENCY_NUMBERS = {sign: number for number, sign in enumerate(CURRENCIES)}

COMPANY = demo_guid(Kind.COMPANY, 0)
ENTERPRISE_COMPANY = demo_guid(Kind.ENTERPRISE_COMPANY, 0)
LOCATION = demo_guid(Kind.LOCATION, 0)
STORE = demo_guid(Kind.STORE, 0)
SALES_ORDER_TYPE = demo_guid(Kind.DOCUMENT_TYPE, 0)
OFFER_TYPE = demo_guid(Kind.DOCUMENT_TYPE, 1)
DIRECTORY_TYPE = demo_guid(Kind.DOCUMENT_TYPE, 3)
CONFIRMED, PICKING, SHIPPED, SETTLED = (demo_guid(Kind.USER_STATUS, number) for number in range(1, 5))
PIECE = demo_guid(Kind.UNIT, 0)
GOODS = demo_guid(Kind.PRODUCT_TYPE, 0)
_HOUR = demo_guid(Kind.UNIT, 9)


def currency(sign: str) -> str:
    """The guid of a demo currency."""
    return demo_guid(Kind.CURRENCY, _CURRENCY_NUMBERS[sign])


def foundations() -> Iterator[Item]:
    """Currencies, units, the company, its locations and stores, types of documents and products."""
    yield from _currencies()
    yield from _units()
    yield from _company()
    yield from _document_types()
    yield from _lists()


def _items(repository: str, kind: Kind, columns: str, *rows: Sequence[Any]) -> Iterator[Item]:
    """An entity for each row of values, numbered from 0. columns: API names separated by spaces."""
    for number, row in enumerate(rows):
        yield Item(repository, demo_guid(kind, number), dict(zip(columns.split(), row, strict=True)))


def _currencies() -> Iterator[Item]:
    rows = ((sign, name, order) for order, (sign, (name, _)) in enumerate(CURRENCIES.items()))
    yield from _items("General.Currencies.Currencies", Kind.CURRENCY, "CurrencySign Name ShowOrder", *rows)


def _units() -> Iterator[Item]:
    # Category, then its units: code, name, multiplier, divisor.
    categories: tuple[tuple[str, tuple[tuple[str, str, int, int], ...]], ...] = (
        (
            "Count | Брой | Anzahl",
            (
                ("pcs", "piece | брой | Stück", 1, 1),
                ("pair", "pair | чифт | Paar", 2, 1),
                ("dz", "dozen | дузина | Dutzend", 12, 1),
            ),
        ),
        (
            "Mass | Маса | Masse",
            (
                ("kg", "kilogram | килограм | Kilogramm", 1, 1),
                ("g", "gram | грам | Gramm", 1, 1000),
                ("t", "tonne | тон | Tonne", 1000, 1),
            ),
        ),
        (
            "Length | Дължина | Länge",
            (("m", "metre | метър | Meter", 1, 1), ("cm", "centimetre | сантиметър | Zentimeter", 1, 100)),
        ),
        ("Time | Време | Zeit", (("min", "minute | минута | Minute", 1, 60), ("h", "hour | час | Stunde", 1, 1))),
    )
    number = 0
    for index, (name, units) in enumerate(categories):
        category = demo_guid(Kind.UNIT_CATEGORY, index)
        values: dict[str, Any] = {"Name": texts(name), "IsDefault": index == 0}
        yield Item("General.Products.MeasurementCategories", category, values)
        for code, unit_name, multiplier, divisor in units:
            yield Item(
                "General.Products.MeasurementUnits",
                demo_guid(Kind.UNIT, number),
                {
                    "MeasurementCategory": category,
                    "Code": code,
                    "Name": texts(unit_name),
                    "Multiplier": Decimal(multiplier),
                    "Divisor": Decimal(divisor),
                    "IsDefaultUnit": multiplier == divisor,
                },
            )
            number += 1


def _company() -> Iterator[Item]:
    yield Item(
        "General.Contacts.Companies",
        COMPANY,
        {
            "Name": texts("Danubia Office Ltd. | Данубия Офис ООД | Danubia Office GmbH"),
            "RegistrationNumber": "200000001",
            "RegistrationVATNumber": "BG200000001",
            "IsVATRegistered": True,
            "City": CITIES[0],
        },
    )
    yield Item("General.EnterpriseCompanies", ENTERPRISE_COMPANY, {"Company": COMPANY, "BaseCurrency": currency("EUR")})
    places = texts_of("Head office | Централен офис | Zentrale", "Vienna branch | Клон Виена | Filiale Wien")
    yield from _items(
        "General.Contacts.CompanyLocations",
        Kind.LOCATION,
        "Company LocationName",
        *((COMPANY, place) for place in places),
    )
    for index, name in enumerate(
        texts_of("Main store | Основен склад | Hauptlager", "Vienna store | Склад Виена | Lager Wien")
    ):
        store = demo_guid(Kind.STORE, index)
        values: dict[str, Any] = {
            "Name": name,
            "Currency": currency("EUR"),
            "EnterpriseCompany": ENTERPRISE_COMPANY,
            "EnterpriseCompanyLocation": demo_guid(Kind.LOCATION, index),
        }
        yield Item("Logistics.Inventory.Stores", store, values)
        for shelf in range(3):
            yield Item(
                "Logistics.Inventory.StoreBins",
                demo_guid(Kind.STORE_BIN, index * 10 + shelf),
                {"Store": store, "Name": f"{'ABC'[shelf]}-{index + 1}", "IsDefault": shelf == 0},
            )


def _document_types() -> Iterator[Item]:
    types = (
        ("SO", "Crm.Sales.SalesOrders", texts("Sales order | Поръчка | Auftrag")),
        ("OF", "Crm.Presales.Offers", texts("Offer | Оферта | Angebot")),
        ("IN", "Crm.Invoicing.Invoices", texts("Invoice | Фактура | Rechnung")),
        ("CD", "General.Currencies.CurrencyDirectories", texts("Exchange rates | Курсове | Kurse")),
        ("SA", "Applications.Service.ServiceActivities", texts("Service | Сервиз | Service")),
        ("AC", "General.Activities.Activities", texts("Activity | Дейност | Aktivität")),
    )
    for number, (code, repository, name) in enumerate(types):
        sequence = demo_guid(Kind.SEQUENCE, number * 2)
        yield Item("Systems.Documents.Sequences", sequence, {"Name": f"{name['EN']} numbers"})
        yield Item(
            "Systems.Documents.SequenceGenerators",
            demo_guid(Kind.SEQUENCE, number * 2 + 1),
            {"Sequence": sequence, "EnterpriseCompany": ENTERPRISE_COMPANY, "NextValue": "0000000001"},
        )
        yield Item(
            "Systems.Documents.DocumentTypes",
            demo_guid(Kind.DOCUMENT_TYPE, number),
            {"Code": code, "TypeName": name, "EntityName": repository, "Sequence": sequence},
        )
    # No state New, so that an order may be released at once.
    yield from _items(
        "Systems.Documents.DocumentTypeUserStatuses",
        Kind.USER_STATUS,
        "DocumentType State UserStatusName IsExitStatus",
        (SALES_ORDER_TYPE, "FirmPlanned", texts("To be confirmed | За потвърждение | Zu bestätigen"), False),
        (SALES_ORDER_TYPE, "FirmPlanned", texts("Confirmed | Потвърдена | Bestätigt"), True),
        (SALES_ORDER_TYPE, "Released", texts("Picking | Комплектува се | In Kommissionierung"), False),
        (SALES_ORDER_TYPE, "Released", texts("Shipped | Изпратена | Versandt"), True),
        (SALES_ORDER_TYPE, "Completed", texts("Settled | Платена | Bezahlt"), True),
    )


def _lists() -> Iterator[Item]:
    types: tuple[tuple[str, Texts, dict[str, bool]], ...] = (
        ("GOODS", texts("Goods | Стоки | Waren"), {"IsDefault": True, "IsShipped": True}),
        ("SERVICE", texts("Service | Услуга | Dienstleistung"), {"IsStocked": False}),
    )
    for number, (code, name, flags) in enumerate(types):
        values = {"Code": code, "Name": name, **flags}
        yield Item("General.Products.ProductTypes", demo_guid(Kind.PRODUCT_TYPE, number), values)
    yield from _items(
        "General.Products.CodingSystems",
        Kind.CODING_SYSTEM,
        "Name DefaultMeasurementUnit",
        (texts("EAN-13"), PIECE),
    )
    yield from _items(
        "Finance.Payments.PaymentTypes",
        Kind.PAYMENT_TYPE,
        "Code Name SystemType",
        ("CASH", texts("Cash | В брой | Bar"), "Cash"),
        ("BANK", texts("Bank transfer | Банков път | Überweisung"), "BankTransfer"),
        ("CARD", texts("Card | Карта | Karte"), "ByCard"),
    )
    yield from _items(
        "Regulatory.Vat.DealTypes",
        Kind.DEAL_TYPE,
        "Code Name EntryType TaxCode",
        ("SALE-20", "Domestic sale", "Sales", "StandardRate"),
    )
    yield from _items("Crm.Pricing.PriceLists", Kind.PRICE_LIST, "Name", ("Wholesale",))
    kinds = texts_of(
        "Wholesale | Търговци на едро | Großhandel",
        "Retail | Търговци на дребно | Einzelhandel",
        "Private | Частни клиенти | Privat",
    )
    yield from _items("Crm.Sales.CustomerTypes", Kind.CUSTOMER_TYPE, "Name", *((name,) for name in kinds))


# --- exchange rates -----------------------------------------------------------------------------------------------


def exchange_rates() -> Iterator[Item]:
    """One directory from every other currency to the euro."""
    directory = demo_guid(Kind.DIRECTORY, 0)
    yield Item(
        "General.Currencies.CurrencyDirectories",
        directory,
        {
            "DocumentType": DIRECTORY_TYPE,
            "EnterpriseCompany": ENTERPRISE_COMPANY,
            "DocumentDate": PRICES_FROM,
            "Name": "Demo rates",
            "ToCurrency": currency("EUR"),
        },
    )
    for number, (sign, (_, rate)) in enumerate(CURRENCIES.items()):
        if sign != "EUR":
            yield Item(
                "General.Currencies.CurrencyDirectoryLines",
                demo_guid(Kind.DIRECTORY_LINE, number),
                {"CurrencyDirectory": directory, "FromCurrency": currency(sign), "RateDivisor": rate},
            )


# --- products -----------------------------------------------------------------------------------------------------


def product_groups() -> list[tuple[str, str, Group, bool]]:
    """(guid, guid of the area, group, whether its products are services) of every group with products."""
    result = []
    number = len(AREAS)
    for area_number, (_, groups) in enumerate(AREAS):
        for group in groups:
            result.append(
                (
                    demo_guid(Kind.PRODUCT_GROUP, number),
                    demo_guid(Kind.PRODUCT_GROUP, area_number),
                    group,
                    group.prefix == "SV",
                )
            )
            number += 1
    return result


def products() -> Iterator[Item]:
    """Groups, products, their codes, dimensions and prices."""
    for number, (name, _) in enumerate(AREAS):
        # With a default unit, so that a new product in any group needs only a name.
        values = {"Name": name, "EnterpriseCompany": ENTERPRISE_COMPANY, "DefaultMeasurementUnit": PIECE}
        yield Item("General.Products.ProductGroups", demo_guid(Kind.PRODUCT_GROUP, number), values)
    groups = product_groups()
    for id, area, group, is_service in groups:
        yield Item(
            "General.Products.ProductGroups",
            id,
            {
                "Name": group.name,
                "ParentGroup": area,
                "EnterpriseCompany": ENTERPRISE_COMPANY,
                "DefaultMeasurementUnit": _HOUR if is_service else PIECE,
                "DefaultProductType": demo_guid(Kind.PRODUCT_TYPE, 1) if is_service else GOODS,
                "NextPartNumber": f"{group.prefix}-0001",
            },
        )
    chance = random.Random(20240101)
    for number in range(PRODUCTS):
        group_id, _, group, is_service = groups[number % len(groups)]
        yield from _product(number, group_id, group, is_service, chance)


def _product(number: int, group_id: str, group: Group, is_service: bool, chance: random.Random) -> Iterator[Item]:
    product = demo_guid(Kind.PRODUCT, number)
    series = SERIES[number // 8 % len(SERIES)]
    noun = group.nouns[number // 3 % len(group.nouns)]
    price = Decimal(chance.randint(group.price_from * 100, group.price_to * 100)) / 100
    yield Item(
        "General.Products.Products",
        product,
        {
            "ProductGroup": group_id,
            "Name": {language: f"{series} {text}" for language, text in noun.items()},
            "ABCClass": "ABC"[number % 3],
            "StandardPricePerLot": price,
            "StandardCostPerLot": (price * Decimal("0.6")).quantize(Decimal("0.01")),
            "ShowInCatalog": number % 4 != 0,
            "GuaranteePeriodDays": 730 if not is_service else None,
        },
    )
    if not is_service:
        yield Item(
            "General.Products.ProductCodes",
            demo_guid(Kind.PRODUCT_CODE, number),
            {"Product": product, "CodingSystem": demo_guid(Kind.CODING_SYSTEM, 0), "ProductCodeField": _ean(number)},
        )
        yield Item(
            "General.Products.ProductDimensions",
            demo_guid(Kind.PRODUCT_DIMENSION, number),
            {
                "Product": product,
                "SourceQuantity": Decimal(1),
                "SourceQuantityUnit": PIECE,
                "DestQuantity": Decimal(chance.randint(1, 400)) / 10,
                "DestQuantityUnit": demo_guid(Kind.UNIT, 3),
            },
        )
    yield from _prices(number, product, price, None if is_service else "0.90")


def _prices(number: int, product: str, price: Decimal, discount: str | None) -> Iterator[Item]:
    def item(kind_number: int, amount: Decimal, sign: str, **bounds: Any) -> Item:
        return Item(
            "Crm.Pricing.ProductPrices",
            demo_guid(Kind.PRODUCT_PRICE, number * 10 + kind_number),
            {
                "Product": product,
                "Currency": currency(sign),
                "Price": amount.quantize(Decimal("0.01")),
                "FromDate": PRICES_FROM,
                **bounds,
            },
        )

    yield item(0, price, "EUR")
    yield item(1, price * CURRENCIES["BGN"][1], "BGN")
    if number % 2 == 0:
        yield item(2, price * CURRENCIES["USD"][1], "USD")
    if number % 3 == 0 and discount is not None:
        yield item(3, price * Decimal(discount), "EUR", MinQuantity=Decimal(10))
    if number % 5 == 0 and discount is not None:
        yield item(4, price * Decimal("0.85"), "EUR", PriceList=demo_guid(Kind.PRICE_LIST, 0))


def _ean(number: int) -> str:
    digits = f"380{number:09d}"
    check = -sum(int(digit) * (3 if index % 2 else 1) for index, digit in enumerate(digits)) % 10
    return f"{digits}{check}"


# --- customers ----------------------------------------------------------------------------------------------------


def people_and_customers() -> Iterator[Item]:
    """Sales persons and customers: every second one a company."""
    chance = random.Random(20240102)
    for number in range(SALES_PERSONS):
        yield from _person(number, number * 3 + 1)
        yield Item(
            "Crm.SalesForce.SalesPersons",
            demo_guid(Kind.SALES_PERSON, number),
            {"Person": demo_guid(Kind.PERSON, number), "EnterpriseCompany": ENTERPRISE_COMPANY},
        )
    for number in range(CUSTOMERS):
        yield from _customer(number, chance)


def _person(number: int, name: int) -> Iterator[Item]:
    person = demo_guid(Kind.PERSON, number)
    first = FIRST_NAMES[name % len(FIRST_NAMES)]
    last = LAST_NAMES[name % len(LAST_NAMES)]
    yield Item("General.Contacts.Persons", person, {"FirstName": first, "LastName": last})
    mail = f"{first['EN']}.{last['EN']}@example.com".lower()
    yield _mechanism(number * 10, person, "Mail", mail)


def _customer(number: int, chance: random.Random) -> Iterator[Item]:
    is_company = number % 2 == 0
    city = CITIES[number % len(CITIES)]
    if is_company:
        party = demo_guid(Kind.COMPANY, number + 1)
        name = f"{COMPANY_NAMES[number // 2 % len(COMPANY_NAMES)]} {COMPANY_FORMS[number % len(COMPANY_FORMS)]}"
        yield Item(
            "General.Contacts.Companies",
            party,
            {"Name": {"EN": name}, "RegistrationNumber": f"3{number:08d}", "City": city},
        )
    else:
        party = demo_guid(Kind.PERSON, SALES_PERSONS + number)
        yield from _person(SALES_PERSONS + number, number + 20)
    street = f"{STREETS[number % len(STREETS)]} {chance.randint(1, 120)}, {city['EN']}"
    yield _mechanism(100_000 + number * 10, party, "Address", street)
    yield _mechanism(100_001 + number * 10, party, "Telephone", f"+359 2 555 {number:04d}")
    sign = ("EUR", "EUR", "EUR", "BGN", "USD")[number % 5]
    yield Item(
        "Crm.Sales.Customers",
        demo_guid(Kind.CUSTOMER, number),
        {
            "Party": party,
            "CustomerType": demo_guid(Kind.CUSTOMER_TYPE, number // 2 % 2 if is_company else 2),
            "EnterpriseCompany": ENTERPRISE_COMPANY,
            "DefaultCurrency": currency(sign),
            "DefaultPaymentType": demo_guid(Kind.PAYMENT_TYPE, number % 3),
            "DefaultPriceList": demo_guid(Kind.PRICE_LIST, 0) if number % 10 == 0 else None,
            "DefaultPaymentTermDays": (0, 14, 30)[number % 3],
            "DefaultDeliveryTermDays": (1, 3, 7)[number % 3],
            "SalesPerson": demo_guid(Kind.SALES_PERSON, number % SALES_PERSONS),
            "CreditLimit": Decimal(chance.randint(1, 40) * 500),
        },
    )


def _mechanism(number: int, party: str, kind: str, text: str) -> Item:
    return Item(
        "General.Contacts.PartyContactMechanisms",
        demo_guid(Kind.CONTACT_MECHANISM, number),
        {"Party": party, "ContactMechanismType": kind, "Name": text, "IsDefault": True},
    )
