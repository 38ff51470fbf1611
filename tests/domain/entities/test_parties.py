"""Parties get their code, name and kind from what they are."""

from __future__ import annotations

import pytest

from foundation import errors
from tests.domain.entities.conftest import Cast


def test_a_person_is_called_by_their_names_in_every_language(cast: Cast) -> None:
    dataset = cast.dataset()
    person = dataset.create(
        "General.Contacts.Persons",
        {"FirstName": {"EN": "Maria", "BG": "Мария"}, "LastName": {"EN": "Hart"}, "NationalNumber": "7001"},
    )
    dataset.commit()
    assert person.party_name == {"EN": "Maria Hart", "BG": "Мария Hart"}
    assert person.party_type == "Person"
    assert person.party_unique_number == "7001"
    assert person.party_code == "000004"


def test_a_name_that_changes_changes_the_partys(cast: Cast) -> None:
    dataset = cast.dataset()
    person = dataset.load("General.Contacts.Parties", cast.person)
    assert person is not None
    person.last_name = {"EN": "Moss"}
    dataset.commit()
    stored = cast.dataset().load("General.Contacts.Parties", cast.person)
    assert stored is not None
    assert stored.party_name == {"EN": "Ann Moss"}
    assert stored.party_update_user == "system"


def test_a_person_without_a_name_is_refused(cast: Cast) -> None:
    dataset = cast.dataset()
    dataset.create("General.Contacts.Persons", {})
    with pytest.raises(errors.Refused) as caught:
        dataset.commit()
    assert caught.value.code is errors.REQUIRED_MISSING
    assert caught.value.target == "PartyName"


def test_companies_locations_and_stores_are_called_as_they_are(cast: Cast) -> None:
    dataset = cast.dataset()
    store = dataset.create("Logistics.Inventory.Stores", {"Name": {"EN": "Main store"}})
    dataset.commit()
    assert (store.party_name, store.party_type, store.code) == ({"EN": "Main store"}, "Store", "001")
    assert store.enterprise_company_id == cast.company
    location = dataset.load("General.Contacts.Parties", cast.location)
    assert location is not None
    assert (location.party_name, location.party_type) == ({"EN": "HQ"}, "CompanyLocation")


def test_a_customer_is_numbered_and_pays_in_the_companys_currency(cast: Cast) -> None:
    dataset = cast.dataset()
    customer = dataset.create("Crm.Sales.Customers", {"Party": cast.party})
    dataset.commit()
    assert customer.number == "000002"
    assert customer.enterprise_company_id == cast.company
    assert customer.default_currency_id == cast.euro


def test_ways_to_reach_a_party_are_ordered(cast: Cast) -> None:
    dataset = cast.dataset()
    person = dataset.load("General.Contacts.Parties", cast.person)
    assert person is not None
    mechanisms = [
        dataset.create("General.Contacts.PartyContactMechanisms", {"Name": name}, parent=person) for name in ("a", "b")
    ]
    dataset.commit()
    assert [mechanism.line_ord for mechanism in mechanisms] == [10, 20]
