"""A small catalogue of products in the database and, as plain Python, beside it."""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import orjson
import pytest
from django.test.utils import CaptureQueriesContext

from domain.entities.crm_pricing import ProductPrice
from domain.entities.general_currencies import Currency
from domain.entities.general_measurement import MeasurementCategory, MeasurementUnit
from domain.entities.general_product_groups import ProductGroup, ProductType
from domain.entities.general_product_parts import CodingSystem, ProductCode
from domain.entities.general_products import Product
from domain.model.registry import repositories
from domain.query import Representation, read_collection
from domain.query.api import cache
from domain.syntax import parse_query_options
from identity.context import CallContext
from tests.domain.query.reference import Row

TEXTS = (
    "",
    "a",
    "A",
    "b",
    "ab",
    "aB",
    "Стол",
    "стол",
    "x%y",
    "x_y",
    "it's",
    'quo"te',
    "back\\slash",
    " pad ",
    "🙂",
    "zz",
    "Straße",
    "İI",
    "ΑΣ",
)
PRODUCTS = 40


@pytest.fixture(autouse=True)
def _fresh_plans() -> Iterator[None]:
    """Plans of one test must not hide what another would do to make them."""
    cache.clear()
    yield
    cache.clear()


def _guid(kind: int, number: int) -> str:
    return f"00000000-0000-7000-8{kind:03d}-{number:012d}"


def english(text: str) -> Any:
    """A multilanguage value; the field's own type says text."""
    return {"EN": text}


def _moment(chance: random.Random) -> datetime.datetime:
    start = datetime.datetime(2024, 2, 28, 23, 59, 58, tzinfo=datetime.UTC)
    return start + datetime.timedelta(
        seconds=chance.choice((0, 1, 2, 3600, 86_400, 40_000_000)), microseconds=chance.choice((0, 0, 1, 500_000))
    )


def _maybe(chance: random.Random, value: Any) -> Any:
    return None if chance.random() < 0.3 else value


def _texts(chance: random.Random) -> dict[str, str]:
    languages = chance.sample(("EN", "BG", "DE"), chance.randint(1, 3))
    return {language: chance.choice(TEXTS) for language in languages}


@pytest.fixture
def products(db: None) -> list[Row]:
    """Products with their groups, prices and codes; the same ones in each run."""
    chance = random.Random(20240229)
    category = MeasurementCategory.objects.create(id=_guid(1, 1), name=english("Pieces"))
    unit = MeasurementUnit.objects.create(
        id=_guid(2, 1), measurement_category=category, code="pcs", name=english("piece"), divisor=1, multiplier=1
    )
    kind = ProductType.objects.create(id=_guid(3, 1), code="P", name=english("Product"))
    system = CodingSystem.objects.create(id=_guid(4, 1), name=english("System"))
    currencies = [_currency(number, sign) for number, sign in enumerate(("EUR", "BGN"))]
    groups = _groups(chance)
    return [_product(chance, number, groups, currencies, category, unit, kind, system) for number in range(PRODUCTS)]


def _currency(number: int, sign: str) -> Row:
    Currency.objects.create(id=_guid(5, number), currency_sign=sign, name=english(sign))
    return Row({"Id": _guid(5, number), "CurrencySign": sign, "Name": {"EN": sign}})


def _groups(chance: random.Random) -> list[Row]:
    made: list[Row] = []
    for number in range(6):
        parent = made[number // 2] if number >= 2 else None
        values: dict[str, Any] = {
            "Id": _guid(6, number),
            "Code": f"G{number}",
            "Name": _texts(chance),
            "Active": chance.random() < 0.5,
            "Notes": _maybe(chance, chance.choice(TEXTS)),
        }
        ProductGroup.objects.create(
            id=values["Id"],
            code=f"{values['Code']}",
            name=values["Name"],
            active=values["Active"],
            notes=values["Notes"],
            full_path=f"/{number}/",
            parent_group_id=parent["Id"] if parent is not None else None,
        )
        made.append(Row({**values, "ParentGroup": parent}))
    return made


def _product(
    chance: random.Random,
    number: int,
    groups: list[Row],
    currencies: list[Row],
    category: MeasurementCategory,
    unit: MeasurementUnit,
    kind: ProductType,
    system: CodingSystem,
) -> Row:
    values: dict[str, Any] = {
        "Id": _guid(7, number),
        "ObjectVersion": chance.randint(1, 3),
        "PartNumber": f"{chance.choice(TEXTS)[:8]}{number}",
        "Name": _texts(chance),
        "Description": _maybe(chance, _texts(chance)),
        "CatalogDescriptionHtml": _maybe(chance, chance.choice(TEXTS)),
        "ABCClass": chance.choice("ABC"),
        "CostingMethod": None,
        "Active": chance.random() < 0.5,
        "IsFeatured": chance.random() < 0.5,
        "GuaranteePeriodDays": _maybe(chance, chance.choice((-7, 0, 1, 7, 30))),
        "ExpiryPeriodDays": _maybe(chance, chance.choice((-7, 0, 1, 7, 30))),
        "ScrapRate": Decimal(chance.choice(("0", "0.1", "0.000001", "0.333333"))),
        "MinimalSalesQuantityBase": _maybe(
            chance, Decimal(chance.choice(("-1.5", "0", "0.001", "1.5", "99999999.125")))
        ),
        "CreationTime": _maybe(chance, _moment(chance)),
        "UpdateTime": _maybe(chance, _moment(chance)),
        "ProductGroup": chance.choice(groups),
        "CostingCurrency": _maybe(chance, chance.choice(currencies)),
    }
    Product.objects.create(
        id=values["Id"],
        object_version=values["ObjectVersion"],
        part_number=values["PartNumber"],
        name=values["Name"],
        description=values["Description"],
        catalog_description_html=values["CatalogDescriptionHtml"],
        abc_class=values["ABCClass"],
        active=values["Active"],
        is_featured=values["IsFeatured"],
        guarantee_period_days=values["GuaranteePeriodDays"],
        expiry_period_days=values["ExpiryPeriodDays"],
        scrap_rate=values["ScrapRate"],
        minimal_sales_quantity_base=values["MinimalSalesQuantityBase"],
        creation_time=values["CreationTime"],
        update_time=values["UpdateTime"],
        standard_cost_per_lot=0,
        standard_price_per_lot=0,
        standard_lot_size_base=1,
        product_group_id=values["ProductGroup"]["Id"],
        costing_currency_id=values["CostingCurrency"]["Id"] if values["CostingCurrency"] is not None else None,
        measurement_unit=unit,
        base_measurement_category=category,
        product_type=kind,
    )
    row = Row(values)
    row["Prices"] = [_price(chance, row, number, index, currencies, unit) for index in range(chance.randint(0, 3))]
    row["Codes"] = [_code(chance, row, number, index, system) for index in range(chance.randint(0, 2))]
    return row


def _price(
    chance: random.Random, product: Row, number: int, index: int, currencies: list[Row], unit: MeasurementUnit
) -> Row:
    values: dict[str, Any] = {
        "Id": _guid(8, number * 10 + index),
        "Notes": _maybe(chance, chance.choice(TEXTS)),
        "IsActive": chance.random() < 0.5,
        "Price": Decimal(chance.choice(("0", "1", "1.5", "12.34567", "1000000.00001"))),
        "MinQuantity": _maybe(chance, Decimal(chance.choice(("1", "2.5", "10")))),
        "FromDate": _maybe(chance, _moment(chance).date()),
        "ThruDate": _maybe(chance, _moment(chance).date()),
        "Currency": chance.choice(currencies),
    }
    ProductPrice.objects.create(
        id=values["Id"],
        notes=values["Notes"],
        is_active=values["IsActive"],
        price=values["Price"],
        min_quantity=values["MinQuantity"],
        from_date=values["FromDate"],
        thru_date=values["ThruDate"],
        currency_id=values["Currency"]["Id"],
        price_quantity=1,
        price_quantity_measurement_unit=unit,
        product_id=product["Id"],
    )
    return Row({**values, "Product": product})


def _code(chance: random.Random, product: Row, number: int, index: int, system: CodingSystem) -> Row:
    values: dict[str, Any] = {
        "Id": _guid(9, number * 10 + index),
        "ProductCodeField": f"{chance.choice(TEXTS)}{number}-{index}",
        "Active": chance.random() < 0.5,
    }
    ProductCode.objects.create(
        id=values["Id"],
        product_code_field=values["ProductCodeField"],
        active=values["Active"],
        coding_system=system,
        product_id=product["Id"],
    )
    return Row({**values, "Product": product})


Ask = Callable[..., dict[str, Any]]


@pytest.fixture
def context() -> CallContext:
    """A caller with all rights who reads English."""
    return CallContext(user=None)


@pytest.fixture
def ask(context: CallContext) -> Ask:
    """ask("General_Products_Products", "$top=1", …) → the decoded body. Options are written unencoded."""

    def read(set_name: str, options: str = "", **changes: Any) -> dict[str, Any]:
        found = repositories.for_set(set_name)
        assert found is not None
        encoded = options.replace("%", "%25").replace("+", "%2B").replace("#", "%23")
        result = read_collection(
            found[0],
            parse_query_options(encoded),
            changes.pop("ctx", context),
            changes.pop("representation", Representation()),
            **changes,
        )
        body: dict[str, Any] = orjson.loads(result.body)
        return body

    return read


def reads(captured: CaptureQueriesContext) -> list[str]:
    """The captured queries of the engine: not the look at the cache versions, which comes twice a second."""
    return [query["sql"] for query in captured.captured_queries if "cacheversion" not in query["sql"]]
