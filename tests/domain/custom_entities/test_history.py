"""The past of custom entities is read by what their definition was then (spec 10, 10.3; spec 12, 12.3)."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
from django.test import Client

from foundation.fields import utc_now
from identity.models import User
from tests.domain.custom_entities.cars import CARS
from tests.domain.custom_entities.test_changes import Cars
from tests.domain.custom_entities.test_enumerations import FuelledCars
from tests.support.api import Api

NAME = "Custom.Fleet.Cars"
TRACKING = "Systems_Core_RepositoryTracking"


@pytest.fixture
def cars(admin: Api) -> Cars:
    made = FuelledCars(admin)
    admin.create(TRACKING, {"RepositoryName": NAME, "TrackingLevel": "TrackObjectAndAttributeChanges"})
    return made


def changed(cars: Cars, code: str, **values: Any) -> str:
    """Change a car; returns the time before that, as the option of a query."""
    before = f"$at={quote(utc_now().isoformat())}"
    assert cars.admin.patch(cars.rows[code], values).status_code < 300
    return before


def then(cars: Cars, at: str, *names: str, others: str = "") -> list[Any]:
    """The values of the cars by code at that time."""
    rows = cars.admin.read(f"{CARS}?{at}&$select={','.join(names)}&$orderby=Code{others}")["value"]
    return [tuple(row[name] for name in names) if len(names) > 1 else row[names[0]] for row in rows]


def test_numbers_keep_their_value_when_the_scale_changes(cars: Cars) -> None:
    first = changed(cars, "C1", Price=7)
    assert cars.change("Price", {"DecimalPlaces": 5}).status_code < 300
    second = changed(cars, "C1", Price=8.00001)
    assert then(cars, first, "Price") == [0.125, 1.125, 2.125]
    assert then(cars, second, "Price") == [0.125, 7, 2.125]
    assert then(cars, first, "Code", others="&$filter=Price gt 1.1 and Price lt 1.2") == ["C1"]
    cars.confirm(cars.change("Price", {"DecimalPlaces": 2}))
    assert cars.change("Price", {"DecimalPlaces": 2}).status_code < 300
    assert then(cars, first, "Price") == [0.13, 1.13, 2.13]


def test_an_integer_that_became_a_decimal(cars: Cars) -> None:
    at = changed(cars, "C1", Doors=5)
    assert cars.change("Doors", {"AttributeType": "Decimal", "DecimalPlaces": 2}).status_code < 300
    assert then(cars, at, "Doors") == [0, 1, 2]


def test_renamed_attributes_and_what_took_their_names(cars: Cars) -> None:
    first = changed(cars, "C0", Brand="Watt", Doors=9)
    assert cars.change("Brand", {"Name": "Make"}).status_code < 300
    assert cars.add(Name="Brand", AttributeType="Text").status_code == 201
    second = changed(cars, "C0", Make="Ohm", Brand="of another kind")
    third = changed(cars, "C0", Brand="of a third kind")
    assert then(cars, first, "Make", "Brand") == [("Volta", None), ("Ampere", None), (None, None)]
    assert then(cars, second, "Make", "Brand")[0] == ("Watt", None)
    assert then(cars, third, "Make", "Brand")[0] == ("Ohm", "of another kind")
    versions = cars.admin.read(f"{cars.rows['C0']}?{first.replace('$at', '$from')}&$select=Make,Brand")["value"]
    assert [(each["Make"], each["Brand"]) for each in versions] == [
        ("Volta", None),
        ("Watt", None),
        ("Ohm", "of another kind"),
        ("Ohm", "of a third kind"),
    ]


def test_members_are_known_by_their_numbers(cars: Cars) -> None:
    at = changed(cars, "C1", Fuel="LiquidGas")
    assert cars.change("Fuel", {"EnumMembers": "Petrol = 0; Gasoil = 1; LiquidGas = 10"}).status_code < 300
    later = changed(cars, "C0", Fuel="Gasoil")
    # A new member with a name that another had.
    assert cars.change("Fuel", {"EnumMembers": "Super = 0; Diesel = 2; Gasoil = 1; LiquidGas = 10"}).status_code < 300
    last = changed(cars, "C0", Fuel="Diesel")
    assert then(cars, at, "Fuel") == ["Super", "Gasoil", None]
    assert then(cars, later, "Fuel") == ["Super", "LiquidGas", None]
    assert then(cars, last, "Fuel") == ["Gasoil", "LiquidGas", None]
    assert then(cars, at, "Code", others="&$filter=Fuel eq 'Gasoil'") == ["C1"]
    assert cars.change("Fuel", {"EnumMembers": "Super = 0; Diesel = 2; LiquidGas = 10"}).status_code < 300
    assert then(cars, at, "Fuel") == ["Super", None, None]


def test_pages_of_versions_show_and_restore_former_values(cars: Cars, client: Client) -> None:
    client.force_login(User.objects.filter(is_admin=True, active=True, user_type="InternalUser")[0])
    changed(cars, "C0", Brand="Watt", Fuel="Petrol", Price=1.125)
    changed(cars, "C0", Brand="Ohm", Fuel="Diesel", Price=3)
    assert cars.change("Brand", {"Name": "Make"}).status_code < 300
    assert cars.change("Price", {"DecimalPlaces": 5}).status_code < 300
    assert cars.change("Fuel", {"EnumMembers": "Super = 0; Gasoil = 1"}).status_code < 300
    key = cars.rows["C0"].partition("(")[2].rstrip(")")
    page = f"/admin/custom/car/{key}/versions/"
    shown: Any = client.get(page)
    assert shown.status_code == 200
    number = shown.context["newest"] - 1
    assert "Make: Watt" in shown.context["texts"][0], shown.context["texts"]
    assert "Make" in shown.context["listed"][0][1]
    done: Any = client.post(
        page, {"version": number, "newest": shown.context["newest"], "confirmed": "on"}, follow=True
    )
    assert "is restored" in done.content.decode(), list(map(str, done.context["messages"]))
    row = cars.admin.read(cars.rows["C0"])
    assert (row["Make"], row["Fuel"], row["Price"]) == ("Watt", "Super", 1.125)
