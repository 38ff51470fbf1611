"""Rows of the platform that describe entities are hidden with them (Declaration.describes; spec 01, 1.7).

Who: a person with the right to read data objects or deliveries of webhooks. What: to read the names and values of
entities that a policy or a missing permission hides. What prevents it: the read engine shows such a row only to callers
who may see the entity, and all rows of the other repositories that the row has data of.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from domain.dataset.dataset import Dataset
from identity.models import User
from tests.attacks.access import save_rule
from tests.domain.security.conftest import BOOKS, COMPANIES, MARK, READ_POLICIES, Library, caller, give_role, person
from tests.domain.security.test_rule_reading import saved_hook
from tests.support.api import Api, id_of
from tests.support.receiver import Answer, LoopbackReceiver
from tests.webhooks.cast import deliver_due
from webhooks.models import WebHookDelivery

OBJECTS = "Systems_Core_ExtensibleDataObjects"
DELIVERIES = "Systems_Config_WebHookDeliveries"
ATTEMPTS = "Systems_Config_WebHookAttempts"


def page_of(login: str, address: str) -> str:
    """What the user sees at an address of the admin."""
    browser = Client()
    browser.force_login(User.objects.get(login=login))
    return browser.get(f"/admin/{address}", follow=True).content.decode()


# --- data objects ---------------------------------------------------------------------------------------------------


@pytest.fixture
def data_objects(library: Library, administrator: Api) -> dict[str, str]:
    """Code of each book → its data object."""
    return {
        code: id_of(administrator.read(f"Library_Books({id})/GetOrCreateExtensibleDataObject()"))
        for code, id in library.books.items()
    }


def test_a_data_object_is_hidden_with_its_entity(
    library: Library, data_objects: dict[str, str], administrator: Api, restricted: Api
) -> None:
    assert {id_of(each) for each in administrator.read(OBJECTS)["value"]} == set(data_objects.values())
    seen = restricted.read(OBJECTS)["value"]
    assert {id_of(each) for each in seen} == {data_objects[code] for code in ("A1", "A2", "A4", "A6")}
    assert MARK not in json.dumps(seen)
    hidden = library.books["A3"]
    assert restricted.read(f"{OBJECTS}/$count?$filter=EntityItemId eq {hidden}") == 0
    assert restricted.get(f"{OBJECTS}({data_objects['A3']})").status_code == 404
    assert MARK not in page_of("bob", "domain/extensibledataobject/?q=plan")


def test_a_data_object_is_hidden_from_whoever_may_not_read_the_repository(data_objects: dict[str, str]) -> None:
    carol = person("carol")
    give_role(carol, {"Systems.Core.*": "r"})
    assert caller(carol).read(OBJECTS)["value"] == []


def test_who_sees_an_entity_gets_its_data_object(library: Library, data_objects: dict[str, str]) -> None:
    bob = person("bob")
    give_role(bob, {"Library.*": "r", "Systems.Core.*": "cr"}, {BOOKS: READ_POLICIES[BOOKS]})
    api = caller(bob)
    found = api.read(f"Library_Books({library.books['A1']})/GetOrCreateExtensibleDataObject()")
    assert id_of(found) == data_objects["A1"]
    assert api.get(f"Library_Books({library.books['A3']})/GetOrCreateExtensibleDataObject()").status_code == 404


# --- deliveries of webhooks -----------------------------------------------------------------------------------------


@pytest.fixture
def hooks(administrator: Api, loopback_receiver: LoopbackReceiver, settings: Any) -> None:
    """Rules that send each book that changes twice: its own values, and its publisher's name."""
    settings.EGRESS_ALLOW = ["127.0.0.0/8"]
    loopback_receiver.answer(Answer(200, b"echo"))
    url = f"{loopback_receiver.url}/"
    for code, body in (("OWN", "{Code} {Title}"), ("BEHIND", "{Code} {Publisher.PartyName}")):
        saved_hook(administrator, Code=code, URL=url, Body=body)
        save_rule(administrator, code, BOOKS, "COMMIT", ("WEBHOOK", code))


@pytest.fixture
def sent(library: Library, hooks: None) -> None:
    """Each book was sent."""
    dataset = Dataset(library.world.context)
    for id in library.books.values():
        book = dataset.load(BOOKS, id)
        assert book is not None
        book.pages = 7
    dataset.commit()
    deliver_due()
    assert WebHookDelivery.objects.count() == 2 * len(library.books)


def bodies(api: Api, query: str = "") -> set[str]:
    return {each["RequestBody"] for each in api.read(f"{DELIVERIES}?$top=1000{query}")["value"]}


def reader(letters: dict[str, str], policies: dict[str, str] | None = None) -> Api:
    bob = person("bob")
    give_role(bob, {"Systems.Config.*": "r", **letters}, policies)
    return caller(bob)


OWN = {"A1 Alpha", "A2 Beta", "A4 Delta", "A6 Alpha again"}


@pytest.mark.parametrize("sent_by", ["policy on the referenced", "no right to the referenced"])
def test_a_delivery_is_hidden_with_what_it_sent(sent: None, administrator: Api, sent_by: str) -> None:
    """Nothing can be cut out of a text: who may not see every publisher sees no request with one."""
    own_policy = {BOOKS: READ_POLICIES[BOOKS]}
    if sent_by == "policy on the referenced":
        api = reader({"Library.*": "r", "General.*": "r"}, {**own_policy, COMPANIES: READ_POLICIES[COMPANIES]})
    else:
        api = reader({"Library.*": "r"}, own_policy)
    assert bodies(api) == OWN
    assert bodies(api, f"&$filter=contains(RequestBody,'{MARK}')") == set()
    assert len(bodies(administrator)) == 12
    seen = api.read(f"{ATTEMPTS}?$expand=Delivery&$top=1000")["value"]
    assert {each["Delivery"]["RequestBody"] for each in seen} == OWN
    page = page_of("bob", "webhooks/webhookdelivery/")
    shown = {str(row.pk) for row in WebHookDelivery.objects.all() if str(row.pk) in page}
    assert {WebHookDelivery.objects.get(pk=id).request_body for id in shown} == OWN


def test_who_sees_everything_that_was_sent_sees_the_deliveries(sent: None) -> None:
    api = reader({"Library.*": "r", "General.*": "r"})
    assert len(bodies(api)) == 12
    assert len(api.read(f"{ATTEMPTS}?$top=1000")["value"]) == 12


def test_a_reader_of_deliveries_alone_sees_none(sent: None) -> None:
    api = reader({})
    assert bodies(api) == set()
    assert api.read(f"{ATTEMPTS}/$count") == 0


def test_a_dry_run_tells_of_the_requests_that_its_caller_may_see(library: Library, hooks: None) -> None:
    bob = person("bob")
    give_role(bob, {"Systems.Config.*": "r", "Library.*": "crud"}, {BOOKS: READ_POLICIES[BOOKS]})
    path = f"Library_Books({library.books['A2']})"
    answer = caller(bob).patch(path, {"Pages": 8}, Prefer="return=representation, erpnet.dry-run")
    told: list[dict[str, Any]] = answer.json()["@erpnet.dryRun"]["webhooks"]
    assert [each["body"] for each in told] == ["A2 Beta"]
