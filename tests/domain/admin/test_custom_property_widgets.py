"""The editors of custom properties in Chromium: by type, with dependent values (spec 10, 10.2)."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, FilePayload, Page, expect

from tests.domain.odata.test_live_transactions import Caller
from tests.support.chromium import administrators_page
from tests.support.platform import LivePlatform

pytestmark = [pytest.mark.browser, pytest.mark.process]

DEFINITIONS = "Systems_Bpm_CustomProperties"
PIXEL = base64.b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")


@pytest.fixture(scope="module")
def defined(live_platform: LivePlatform) -> Caller:
    """A property of product types of each type, and one whose values depend on another."""
    caller = Caller(live_platform)

    def define(code: str, kind: str, **values: Any) -> dict[str, Any]:
        body = {"Code": code, "Name": {"EN": code.title()}, "EntityName": "General.Products.ProductTypes"}
        answer = caller.send("POST", DEFINITIONS, {**body, "PropertyType": kind, **values})
        assert answer.status_code == 201, answer.text
        return dict(answer.json())

    for kind in ("Text", "Number", "Date", "DateTime", "Boolean", "Picture"):
        define(f"w_{kind.lower()}", kind)
    define("w_reference", "Reference", AllowedValuesEntityName="General.Products.MeasurementUnits")
    listed = [{"PropertyAllowedValueField": value} for value in ("BG", "DE")]
    country = define("w_country", "Text", LimitToAllowedValues=True, AllowedValues=listed)["@odata.id"]
    rows = caller.send("GET", f"{country}/AllowedValues").json()["value"]
    ids = {row["PropertyAllowedValueField"]: row["@odata.id"].partition("(")[2][:-1] for row in rows}
    define(
        "w_city",
        "Text",
        LimitToAllowedValues=True,
        AllowedValues=[
            {"PropertyAllowedValueField": city, "ParentAllowedValueId": ids[code]}
            for city, code in (("Sofia", "BG"), ("Varna", "BG"), ("Bonn", "DE"))
        ],
        **{"AllowedValuesParentProperty@odata.bind": country},
    )
    return caller


@pytest.fixture
def page(defined: Caller, live_platform: LivePlatform, chromium: Browser) -> Iterator[Page]:
    """An administrator's page with the form of a new product type."""
    with administrators_page(chromium, live_platform.base_url) as opened:
        opened.goto("/admin/domain/producttype/add/")
        yield opened


def save(page: Page) -> None:
    page.locator("[name=_continue]").first.press("Enter")
    page.wait_for_url("**/change/")


def test_each_type_has_its_editor(page: Page) -> None:
    page.fill("[name=code]", "WIDGETS")
    page.fill("[name=name_en]", "Widgets")
    prefix = "[name=CustomProperty_w_"
    page.fill(f"{prefix}text]", "a text")
    page.fill(f"{prefix}number]", "2.5")
    page.fill(f"{prefix}date]", "2024-02-29")
    page.fill(f"{prefix}datetime_0]", "2024-02-29")
    page.fill(f"{prefix}datetime_1]", "10:30:00")
    page.select_option(f"{prefix}boolean]", label="Yes")
    page.set_input_files(f"{prefix}picture]", files=FilePayload(name="dot.gif", mimeType="image/gif", buffer=PIXEL))
    chosen = page.locator(f"{prefix}reference] option").nth(1).get_attribute("value")
    assert chosen
    page.select_option(f"{prefix}reference]", chosen)
    save(page)
    assert page.input_value(f"{prefix}text]") == "a text"
    assert page.input_value(f"{prefix}number]") == "2.5"
    assert page.input_value(f"{prefix}date]") == "2024-02-29"
    assert page.input_value(f"{prefix}datetime_1]").startswith("10:30")
    assert page.input_value(f"{prefix}boolean]") == "true"
    assert page.input_value(f"{prefix}reference]") == chosen
    picture = page.locator("img.custom-picture")
    assert picture.evaluate("image => image.complete && image.naturalWidth") == 1
    page.check("[name=CustomProperty_w_picture-clear]")
    page.select_option(f"{prefix}boolean]", "")
    save(page)
    expect(page.locator("img.custom-picture")).to_have_count(0)
    assert page.input_value(f"{prefix}boolean]") == ""


def test_values_follow_their_parent(page: Page) -> None:
    city, country = "[name=CustomProperty_w_city]", "[name=CustomProperty_w_country]"

    def offered() -> list[str]:
        shown = page.locator(f"{city} option:not([disabled])").evaluate_all("all => all.map(o => o.value)")
        return [str(value) for value in shown if value]

    assert offered() == []
    page.select_option(country, "BG")
    assert offered() == ["Sofia", "Varna"]
    page.select_option(city, "Sofia")
    page.select_option(country, "DE")
    assert (page.input_value(city), offered()) == ("", ["Bonn"])
    page.fill("[name=code]", "CITIES")
    page.fill("[name=name_en]", "Cities")
    page.select_option(city, "Bonn")
    save(page)
    assert (page.input_value(city), offered()) == ("Bonn", ["Bonn"])


def test_a_file_that_is_no_picture_is_refused_at_its_field(page: Page) -> None:
    page.fill("[name=code]", "PDF")
    page.fill("[name=name_en]", "Pdf")
    page.set_input_files(
        "[name=CustomProperty_w_picture]",
        files=FilePayload(name="x.png", mimeType="image/png", buffer=b"<script>"),
    )
    page.locator("[name=_continue]").first.press("Enter")
    message = "A PNG, JPEG, GIF or WebP picture of at most 1 MB is needed here."
    expect(page.get_by_text(message, exact=True)).to_be_visible()
    expect(page.locator(".errornote li")).to_have_text([f"W_Picture: {message}"])
