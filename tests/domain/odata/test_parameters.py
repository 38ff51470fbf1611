"""Parameters of operations have the types that $metadata tells (spec 02, 2.4)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.domain.odata.test_writing import CURRENCIES, ORDERS, PRODUCTS, order_body
from tests.rules.cast import World
from tests.support.api import Api, error_of

NOTIFICATIONS = "Systems_Core_Notifications"


@pytest.fixture
def user(api: Api) -> str:
    """A reference to somebody."""
    return str(api.read("Systems_Security_Users?$top=1")["value"][0]["@odata.id"])


@pytest.mark.parametrize(
    "values, kind, target",
    [
        ({"subject": ["x"]}, "InvalidLiteral", "subject"),
        ({"subject": {"a": 1}}, "InvalidLiteral", "subject"),
        ({"subject": 5}, "InvalidLiteral", "subject"),
        ({"subject": "a\0b"}, "NulCharacter", "subject"),
        ({"notificationClass": True}, "InvalidLiteral", "notificationClass"),
        ({"priority": "Nope"}, "InvalidLiteral", "Priority"),
        ({"user": f"{CURRENCIES}(11111111-1111-1111-1111-111111111111)"}, "InvalidReference", "user"),
    ],
)
def test_a_notification_of_the_wrong_type_is_400_and_named(
    api: Api, world: World, user: str, values: dict[str, Any], kind: str, target: str
) -> None:
    body = {"user": user, "notificationClass": "Note", "subject": "Look", **values}
    refused = api.post(f"{CURRENCIES}({world.currency})/CreateNotification", body)
    error = error_of(refused)
    assert (refused.status_code, error["type"], error["target"]) == (400, kind, target), error
    assert api.get(f"{NOTIFICATIONS}/$count").content == b"0"


def test_a_notification_is_made(api: Api, world: World, user: str) -> None:
    body = {"user": user, "notificationClass": "Note", "subject": "Look", "priority": "High"}
    assert api.post(f"{CURRENCIES}({world.currency})/CreateNotification", body).status_code == 204
    (made,) = api.read(NOTIFICATIONS)["value"]
    assert (made["NotificationClass"], made["Subject"], made["Priority"]) == ("Note", "Look", "High")


@pytest.mark.parametrize("reason", ["a\0b", 5, ["x"], {}])
def test_a_reason_is_a_text(api: Api, world: World, reason: Any) -> None:
    order = api.create(ORDERS, order_body(world))["@odata.id"]
    assert api.post(f"{order}/MakeVoid", {"reason": reason}).status_code == 400
    assert api.read(f"{order}?$select=Void")["Void"] is False


@pytest.mark.parametrize(
    "asked, values",
    [
        ("customPropertyCode='size'", ["L", "M", "S"]),
        ("customPropertyCode='size',top=2", ["L", "M"]),
        ("customPropertyCode='size',top=0", []),
        ("customPropertyCode='size',skip=2", ["S"]),
        ("customPropertyCode='size',search='M',exactMatch=true", ["M"]),
    ],
)
def test_numbers_and_switches_of_a_function_are_heeded(api: Api, world: World, asked: str, values: list[str]) -> None:
    _size(api)
    product = f"{PRODUCTS}({world.product})"
    found = api.read(f"{product}/GetAllowedCustomPropertyValues({asked})")["value"]
    assert [each["Value"] for each in found] == values


def test_false_behind_the_question_mark_is_false(api: Api, world: World) -> None:
    _size(api)
    call = f"{PRODUCTS}({world.product})/GetAllowedCustomPropertyValues?customPropertyCode=size&search=%25&top=2"
    assert len(api.read(f"{call}&exactMatch=false")["value"]) == 2


@pytest.mark.parametrize("wrong", ["top='a'", "top=-1", "skip=-1", "top=99999999999", "exactMatch='x'", "top=1.5"])
def test_what_is_no_number_or_switch_is_400(api: Api, world: World, wrong: str) -> None:
    _size(api)
    product = f"{PRODUCTS}({world.product})"
    refused = api.get(f"{product}/GetAllowedCustomPropertyValues(customPropertyCode='size',{wrong})")
    error = error_of(refused)
    assert (refused.status_code, error["type"], error["target"]) == (400, "InvalidLiteral", wrong.partition("=")[0])


def _size(api: Api) -> None:
    api.create(
        "Systems_Bpm_CustomProperties",
        {
            "Code": "size",
            "Name": {"EN": "Size"},
            "EntityName": "General_Products_Products",
            "PropertyType": "Text",
            "LimitToAllowedValues": True,
            "AllowedValues": [{"PropertyAllowedValueField": value} for value in ("S", "M", "L")],
        },
    )


@pytest.mark.parametrize("name", ["user@odata.bind", "user@bind", "USER@odata.bind"])
def test_a_reference_is_bound_as_in_every_body(api: Api, world: World, user: str, name: str) -> None:
    """Spec 02, 2.3: references are written `Nav@odata.bind`; for a parameter, too."""
    currency = f"{CURRENCIES}({world.currency})"
    body = {"notificationClass": "Note", "subject": "Look", "subject@odata.type": "#String", "@note.x": 1}
    assert api.post(f"{currency}/CreateNotification", {**body, name: user}).status_code == 204
    (made,) = api.read(f"{NOTIFICATIONS}?$expand=User")["value"]
    assert made["User"]["@odata.id"] == user


@pytest.mark.parametrize("name", ["usr@odata.bind", "subject@odata.bind"])
def test_a_binding_of_no_reference_is_400(api: Api, world: World, user: str, name: str) -> None:
    body = {"user": user, "notificationClass": "Note", "subject": "Look", name: user}
    refused = api.post(f"{CURRENCIES}({world.currency})/CreateNotification", body)
    error = error_of(refused)
    assert (refused.status_code, error["type"], error["target"]) == (400, "UnknownParameter", name)
    assert api.get(f"{NOTIFICATIONS}/$count").content == b"0"
