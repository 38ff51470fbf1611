"""Late defaults, numbers and validations of products and their groups."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pytest

from domain.dataset.dataset import Dataset
from domain.dataset.records.record import ModelName
from foundation import errors
from tests.domain.entities.conftest import Cast


def test_a_product_needs_only_a_name_and_a_group(cast: Cast) -> None:
    dataset = cast.dataset()
    product = dataset.create("General.Products.Products", {"Name": {"EN": "Stool"}, "ProductGroup": cast.group})
    dataset.commit()
    assert product.measurement_unit_id == cast.piece
    assert product.base_measurement_category_id == cast.count
    assert product.product_type_id == cast.goods
    assert product.enterprise_company_id == cast.company
    assert product.costing_currency_id == cast.euro
    assert product.part_number == "01-000002"
    assert product.creation_user == "system"


def test_the_group_says_where_its_numbers_begin(cast: Cast) -> None:
    dataset = cast.dataset()
    group = dataset.create(
        "General.Products.ProductGroups",
        {"Name": {"EN": "Desks"}, "NextPartNumber": "DK-0100", "DefaultMeasurementUnit": cast.piece},
    )
    products = [
        dataset.create("General.Products.Products", {"Name": {"EN": name}, "ProductGroup": group.id})
        for name in ("One", "Two")
    ]
    dataset.commit()
    assert [product.part_number for product in products] == ["DK-0100", "DK-0101"]


def test_numbers_that_somebody_took_are_left_out(cast: Cast) -> None:
    dataset = cast.dataset()
    dataset.create(
        "General.Products.Products",
        {"Name": {"EN": "Given"}, "ProductGroup": cast.group, "PartNumber": "01-000002"},
    )
    dataset.commit()
    product = dataset.create("General.Products.Products", {"Name": {"EN": "Next"}, "ProductGroup": cast.group})
    dataset.commit()
    assert product.part_number == "01-000003"


def test_a_part_number_that_is_taken_is_refused(cast: Cast) -> None:
    dataset = cast.dataset()
    dataset.create(
        "General.Products.Products",
        {"Name": {"EN": "Twin"}, "ProductGroup": cast.group, "PartNumber": "01-000001"},
    )
    with pytest.raises(errors.Refused) as caught:
        dataset.commit()
    assert caught.value.code is errors.DUPLICATE_VALUE


def test_groups_are_numbered_under_their_parents(cast: Cast) -> None:
    dataset = cast.dataset()
    child = dataset.create("General.Products.ProductGroups", {"Name": {"EN": "Armchairs"}, "ParentGroup": cast.group})
    grandchild = dataset.create("General.Products.ProductGroups", {"Name": {"EN": "Red"}, "ParentGroup": child.id})
    dataset.commit()
    assert (child.code, child.full_path) == ("0101", "/01/0101/")
    assert (grandchild.code, grandchild.full_path) == ("010101", "/01/0101/010101/")


def test_paths_follow_a_group_that_moves(cast: Cast) -> None:
    dataset = cast.dataset()
    child = dataset.create("General.Products.ProductGroups", {"Name": {"EN": "Armchairs"}, "ParentGroup": cast.group})
    other = dataset.create("General.Products.ProductGroups", {"Name": {"EN": "Other"}})
    dataset.commit()
    later = cast.dataset()
    group = later.load("General.Products.ProductGroups", cast.group)
    assert group is not None
    group.parent_group = other.id
    later.commit()
    moved = cast.dataset().load("General.Products.ProductGroups", child.id)
    assert moved is not None
    assert moved.full_path == "/02/01/0101/"


def test_a_group_cannot_be_its_own_ancestor(cast: Cast) -> None:
    dataset = cast.dataset()
    child = dataset.create("General.Products.ProductGroups", {"Name": {"EN": "Armchairs"}, "ParentGroup": cast.group})
    dataset.commit()
    later = cast.dataset()
    group = later.load("General.Products.ProductGroups", cast.group)
    assert group is not None
    group.parent_group = child.id
    with pytest.raises(errors.Refused) as caught:
        later.commit()
    assert caught.value.code is errors.HIERARCHY_LOOP


def test_product_and_group_belong_to_one_company(cast: Cast) -> None:
    dataset = cast.dataset()
    party = dataset.create("General.Contacts.Companies", {"Name": {"EN": "Other"}})
    other = dataset.create("General.EnterpriseCompanies", {"Company": party.id, "BaseCurrency": cast.euro})
    dataset.create(
        "General.Products.Products",
        {"Name": {"EN": "Stray"}, "ProductGroup": cast.group, "EnterpriseCompany": other.id},
    )
    with pytest.raises(errors.Refused) as caught:
        dataset.commit()
    assert caught.value.code is errors.COMPANY_MISMATCH


def test_a_unit_of_another_category_needs_a_dimension(cast: Cast) -> None:
    dataset = cast.dataset()
    product = dataset.create(
        "General.Products.Products",
        {
            "Name": {"EN": "Gravel"},
            "ProductGroup": cast.group,
            "MeasurementUnit": cast.kilogram,
            "BaseMeasurementCategory": cast.count,
        },
    )
    with pytest.raises(errors.Refused) as caught:
        dataset.commit()
    assert caught.value.code is errors.UNIT_CATEGORY
    dimension = dataset.create(
        "General.Products.ProductDimensions",
        {"SourceQuantityUnit": cast.piece, "DestQuantity": Decimal("2.5"), "DestQuantityUnit": cast.kilogram},
        parent=product,
    )
    dataset.commit()
    assert dimension.measurement_category_id == cast.count
    assert dimension.convert_to_base_multiplier / dimension.convert_to_base_divisor == Decimal("2.5")


def test_the_first_unit_of_ratio_one_is_the_base_unit(cast: Cast) -> None:
    category = cast.dataset().load("General.Products.MeasurementCategories", cast.count)
    assert category is not None
    assert category.base_unit_id == cast.piece


@pytest.mark.parametrize("name", ["Multiplier", "Divisor"])
def test_a_unit_without_a_ratio_is_refused(cast: Cast, name: str) -> None:
    dataset = cast.dataset()
    category = dataset.load("General.Products.MeasurementCategories", cast.count)
    assert category is not None
    dataset.create("General.Products.MeasurementUnits", {"Name": {"EN": "nothing"}, name: Decimal(0)}, parent=category)
    with pytest.raises(errors.Refused) as caught:
        dataset.commit()
    assert caught.value.code is errors.VALUE_OUT_OF_RANGE


def test_a_code_of_a_unique_system_names_one_product(cast: Cast) -> None:
    dataset = cast.dataset()
    system = dataset.create("General.Products.CodingSystems", {"Name": {"EN": "EAN"}})
    product = dataset.load("General.Products.Products", cast.product)
    assert product is not None
    values = {"CodingSystem": system.id, "ProductCodeField": "380000000001"}
    dataset.create("General.Products.ProductCodes", values, parent=product)
    dataset.commit()
    dataset.create("General.Products.ProductCodes", values, parent=product)
    with pytest.raises(errors.Refused) as caught:
        dataset.commit()
    assert caught.value.code is errors.DUPLICATE_VALUE


def test_a_price_is_per_unit_of_the_product_in_the_companys_currency(cast: Cast) -> None:
    dataset = cast.dataset()
    price = dataset.create("Crm.Pricing.ProductPrices", {"Product": cast.product, "Price": Decimal(9)})
    dataset.commit()
    assert (price.currency_id, price.price_quantity_measurement_unit_id) == (cast.euro, cast.piece)


def test_dates_are_in_order(cast: Cast) -> None:
    dataset = cast.dataset()
    dataset.create(
        "Crm.Pricing.ProductPrices",
        {
            "Product": cast.product,
            "FromDate": datetime.date(2025, 2, 1),
            "ThruDate": datetime.date(2025, 1, 1),
        },
    )
    with pytest.raises(errors.Refused) as caught:
        dataset.commit()
    assert (caught.value.code, caught.value.target) == (errors.DATE_ORDER, "FromDate")


def test_quantities_that_bound_a_price_are_not_negative(cast: Cast) -> None:
    dataset = cast.dataset()
    dataset.create("Crm.Pricing.ProductPrices", {"Product": cast.product, "MinQuantity": Decimal(-1)})
    with pytest.raises(errors.Refused) as caught:
        dataset.commit()
    assert (caught.value.code, caught.value.target) == (errors.NEGATIVE_QUANTITY, "MinQuantity")


def test_pictures_are_numbered(cast: Cast) -> None:
    dataset = cast.dataset()
    product = dataset.load("General.Products.Products", cast.product)
    assert product is not None
    first = dataset.create("General.Products.ProductPictures", {"Picture": b"1"}, parent=product)
    second = dataset.create("General.Products.ProductPictures", {}, parent=product)
    dataset.commit()
    assert (first.picture_no, second.picture_no) == (1, 2)
    assert first.last_update_time is not None
    assert second.last_update_time is None


def _group(dataset: Dataset, code: str, **values: Any) -> str:
    made = dataset.create("General.Products.ProductGroups", {"Name": {"EN": code}, "Code": code, **values})
    dataset.commit()
    return str(made.id)


@pytest.mark.parametrize("model", ["common", "frontend"])
def test_a_product_without_a_group_is_of_the_default_one(cast: Cast, model: ModelName) -> None:
    dataset = cast.dataset()
    _group(dataset, "00", Active=False)
    marked = _group(dataset, "77", IsDefault=True)

    def group_of_new(number: str) -> str:
        later = cast.dataset(model)
        values = {"PartNumber": number, "Name": {"EN": "Sack"}, "MeasurementUnit": cast.kilogram}
        product = later.create("General.Products.Products", {}, by_client=True)
        for name, value in values.items():
            later.set(product, name, value)
        later.commit()
        unit = later.load("General.Products.MeasurementUnits", cast.kilogram)
        assert unit is not None
        assert product.measurement_unit_id == cast.kilogram
        assert product.base_measurement_category_id == unit.measurement_category_id
        assert product.product_type_id == cast.goods
        return str(product.product_group_id)

    assert group_of_new("S-1") == marked
    group = dataset.load("General.Products.ProductGroups", marked)
    assert group is not None
    group.is_default = False
    dataset.commit()
    assert group_of_new("S-2") == cast.group  # 01, the first by code that is active


def test_the_default_group_is_of_the_products_company(cast: Cast) -> None:
    dataset = cast.dataset()
    party = dataset.create("General.Contacts.Companies", {"Name": {"EN": "Other"}})
    other = dataset.create("General.EnterpriseCompanies", {"Company": party.id, "BaseCurrency": cast.euro})
    foreign = _group(dataset, "00", EnterpriseCompany=other.id, IsDefault=True)
    for company, group in ((None, cast.group), (other.id, foreign)):
        values = {"Name": {"EN": "Sack"}, "MeasurementUnit": cast.kilogram, "PartNumber": f"S-{company}"[:20]}
        product = dataset.create("General.Products.Products", {**values, "EnterpriseCompany": company})
        dataset.commit()
        assert product.product_group_id == group


@pytest.mark.parametrize("model", ["common", "frontend"])
def test_what_the_default_group_gave_goes_with_it(cast: Cast, model: ModelName) -> None:
    dataset = cast.dataset()
    mine = _group(dataset, "50", DefaultMeasurementUnit=cast.kilogram)
    bare = _group(dataset, "60")
    later = cast.dataset(model)
    product = later.create("General.Products.Products", {"Name": {"EN": "Sack"}}, by_client=True)
    later.set(product, "ProductGroup", bare)
    later.set(product, "ProductGroup", mine)
    later.commit()
    assert product.measurement_unit_id == cast.kilogram
    assert product.enterprise_company_id is None


def test_without_any_group_the_error_says_what_to_do(cast: Cast) -> None:
    dataset = cast.dataset()
    group = dataset.load("General.Products.ProductGroups", cast.group)
    assert group is not None
    group.active = False
    dataset.commit()
    dataset.create("General.Products.Products", {"Name": {"EN": "Sack"}, "MeasurementUnit": cast.kilogram})
    with pytest.raises(errors.Refused) as caught:
        dataset.commit()
    assert (caught.value.code, caught.value.target) == (errors.NO_PRODUCT_GROUP, "ProductGroup")
