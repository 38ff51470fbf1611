"""Definitions change while others read and write the entity: each answer is right or says to repeat (spec 10, 10.3)."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from django.db import connections
from django.test import Client

from tests.domain.custom_entities.cars import CARS, ENTITIES, attribute, entity
from tests.support.api import Api, error_of

ROWS = 20
ROUNDS = 1
#: The value of Price in every row, which changes of its decimal places keep.
PRICE = 12.5
#: What every row has where it has the attribute.
EXPECTED = {"Price": PRICE, "Brand": "brand", "Make": "brand", "Fuel": "Petrol"}


@dataclass
class Load:
    """Clients that send one kind of request until told to stop, and what they were answered."""

    admin: Api
    answers: Counter[tuple[str, int, str]] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)
    #: Each request of a kind once, so that changes begin under load.
    began: threading.Barrier = field(default_factory=lambda: threading.Barrier(6, timeout=60))

    def client(self, name: str, send: Callable[[Api], Any]) -> threading.Thread:
        """A thread that sends the request again and again."""
        return threading.Thread(target=self._run, args=(name, send))

    def _run(self, name: str, send: Callable[[Api], Any]) -> None:
        api = Api(Client(raise_request_exception=False), self.admin.token)
        try:
            self._send(name, send, api)
            self.began.wait()
            while not self.over.is_set():
                self._send(name, send, api)
        finally:
            connections.close_all()

    def _send(self, name: str, send: Callable[[Api], Any], api: Api) -> None:
        response = send(api)
        why = error_of(response)["type"] if response.status_code >= 400 else ""
        if response.status_code == 200:
            self._check(json.loads(response.content))
        elif response.status_code >= 500 and response.status_code != 503:
            self.wrong.append(f"{name}: {response.content.decode()}")
        self.answers[name, response.status_code, why] += 1

    def _check(self, body: dict[str, Any]) -> None:
        for row in body.get("value", [body]):
            if any(row.get(name, value) != value for name, value in EXPECTED.items()):
                self.wrong.append(str(row))


def test_readers_and_writers_while_definitions_change(admin: Api) -> None:
    path, attributes = _define(admin)
    key = admin.read(f"{CARS}?$top=1&$select=Id")["value"][0]["Id"]
    load = Load(admin)
    requests: dict[str, Callable[[Api], Any]] = {
        "page": lambda api: api.get(f"{CARS}?$top={ROWS}"),
        "members": lambda api: api.get(f"{CARS}?$filter=Fuel eq Erp.Custom_Fleet_Cars_Fuel'Petrol'&$select=Fuel"),
        "entity": lambda api: api.get(f"{CARS}({key})"),
        "filter": lambda api: api.get(f"{CARS}?$filter=Make eq 'brand' and Price eq {PRICE}&$select=Make,Price"),
        "write": lambda api: api.patch(f"{CARS}({key})", {"Doors": 4, "Price": PRICE, "Fuel": "Petrol"}),
    }
    threads = [load.client(name, send) for name, send in requests.items()]
    for thread in threads:
        thread.start()
    try:
        load.began.wait()
        for _ in range(ROUNDS):
            _change(admin, path, attributes)
    finally:
        load.over.set()
        for thread in threads:
            thread.join()

    assert not load.wrong, load.wrong[:3]
    refused = {why for _, status, why in load.answers if status >= 400}
    assert refused <= {"UnknownProperty", "ModelChanged", "DatabaseBusy"}, load.answers
    for name in requests:
        assert any(each == name and status < 300 for each, status, _ in load.answers), load.answers


def _define(admin: Api) -> tuple[str, dict[str, str]]:
    """The path of the definition, and those of its attributes; there are rows."""
    definition = entity(
        "Custom.Fleet.Cars",
        attribute("Code"),
        attribute("Brand", MaxLength=30, IsIndexed=True),
        attribute("Doors", "Integer"),
        attribute("Price", "Decimal", DecimalPlaces=2),
        attribute("Fuel", "Enumeration", EnumMembers="Petrol; Diesel"),
    )
    path = admin.create(ENTITIES, definition)["@odata.id"]
    for number in range(ROWS):
        admin.create(CARS, {"Code": f"C{number}", "Brand": "brand", "Price": PRICE, "Fuel": "Petrol"})
    rows = admin.read(f"{path}/Attributes")["value"]
    return path, {row["Name"]: row["@odata.id"] for row in rows}


def _change(admin: Api, path: str, attributes: dict[str, str]) -> None:
    """Rename an attribute, a member and back, rescale a number and back, add and drop an attribute."""
    steps: list[tuple[str, dict[str, Any]]] = [
        (attributes["Brand"], {"Name": "Make"}),
        (attributes["Fuel"], {"EnumMembers": "Petrol = 0; Gasoil = 1; Gas = 2"}),
        (attributes["Price"], {"DecimalPlaces": 4}),
        (attributes["Price"], {"DecimalPlaces": 2}),
        (attributes["Fuel"], {"EnumMembers": "Diesel = 1; Petrol = 0"}),
        (attributes["Brand"], {"Name": "Brand"}),
    ]
    for target, body in steps:
        _until_done(partial(admin.patch, target, body))
    more = {"CustomEntity@odata.bind": path, **attribute("Seats", "Integer", DefaultValue="5")}
    added = _until_done(lambda: admin.post("Systems_Bpm_CustomEntityAttributes", more))
    seats = json.loads(added.content)["@odata.id"]
    refused = admin.delete(seats)
    token = error_of(refused)["message"].partition("PlanToken to ")[2].split()[0]
    _until_done(lambda: admin.patch(path, {"PlanToken": token}))
    _until_done(lambda: admin.delete(seats))


def _until_done(send: Callable[[], Any]) -> Any:
    """The response, repeated while the server says to repeat it."""
    for _ in range(100):
        response = send()
        if response.status_code != 503:
            break
    assert response.status_code < 300, response.content
    return response
