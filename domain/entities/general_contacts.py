"""General.Contacts: parties and how to reach them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models

from domain.entities.behaviour import dates_in_order, fill, line_numbered, no_loop, numbered, user_login
from domain.entities.defaults import current_day
from domain.model.attributes import Calculation, Child
from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.model.values import in_language
from foundation.enums import EnumType
from foundation.fields import EnumField, MultilanguageField, ReferenceField
from foundation.models import Entity, PolymorphicRoot

if TYPE_CHECKING:
    from domain.dataset.records.record import Record


COMPANY_LOCATION_BILL_TO = EnumType(
    "General.Contacts.CompanyLocationsRepository.BillTo",
    {"Company": 0, "CompanyLocation": 1},
    edm_name="General_Contacts_CompanyLocations_BillTo",
)

CONTACT_MECHANISM_TYPE = EnumType(
    "General.Contacts.ContactMechanismsRepository.ContactMechanismType",
    {
        "Address": 0,
        "Mail": 1,
        "Fax": 2,
        "MobilePhone": 3,
        "Other": 4,
        "Telephone": 5,
        "WebSite": 6,
        "PostalCode": 7,
        "WebProfile": 8,
    },
    edm_name="General_Contacts_ContactMechanisms_ContactMechanismType",
)

PARTY_TYPE = EnumType(
    "General.Contacts.PartiesRepository.PartyType",
    {"Company": 0, "CompanyLocation": 1, "Person": 2, "Store": 3, "CompanyDivision": 4},
    edm_name="General_Contacts_Parties_PartyType",
)

PERSON_GENDER = EnumType(
    "General.Contacts.PersonsRepository.Gender",
    {"Female": 0, "Male": 1, "Other": 2, "PreferNotToSay": 3},
    edm_name="General_Contacts_Persons_Gender",
)


#: Repository → its kind of party.
PARTY_TYPES = {
    "General.Contacts.Companies": "Company",
    "General.Contacts.CompanyLocations": "CompanyLocation",
    "General.Contacts.Persons": "Person",
    "Logistics.Inventory.Stores": "Store",
}


class ContactMechanism(PolymorphicRoot):
    """An address, telephone, mailbox or other way to reach someone."""

    name = models.CharField(max_length=254)
    contact_mechanism_type = EnumField(CONTACT_MECHANISM_TYPE, default="Address")


@repositories.register
class ContactMechanisms(Repository[ContactMechanism]):
    """Declares General.Contacts.ContactMechanisms."""

    name = "General.Contacts.ContactMechanisms"
    name_member = "name"
    display_format = "{Name}"
    search_members = ("name",)


class Party(PolymorphicRoot):
    """Anyone or any place that takes part in business: the base of persons, companies, locations and stores."""

    party_code = models.CharField(max_length=16)
    party_name = MultilanguageField(max_length=254)
    gln = models.CharField(max_length=13, null=True, blank=True, db_index=True)
    is_active = models.BooleanField(default=True)
    party_creation_time = models.DateTimeField(null=True, blank=True)
    party_creation_user = models.CharField(max_length=64, null=True, blank=True)
    party_notes = models.CharField(max_length=254, null=True, blank=True)
    party_type = EnumField(PARTY_TYPE, default="Person")
    party_unique_number = models.CharField(max_length=16, null=True, blank=True)
    party_update_time = models.DateTimeField(null=True, blank=True)
    party_update_user = models.CharField(max_length=64, null=True, blank=True)
    default_product_coding_system = ReferenceField("CodingSystem", null=True, blank=True)
    parent_party = ReferenceField("self", null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["party_code"], name="party_party_code_key"),
        ]


def party_type_of_repository(party: Record) -> None:
    """Late default: what kind of party it is follows from its repository."""
    known = PARTY_TYPES.get(party.repository.name)
    if party.is_new and known is not None:
        party.party_type = known


def party_stamped(party: Record) -> None:
    """Late default: who created the party, and who changed it last."""
    dataset = party.dataset
    if party.is_new:
        fill(party, "party_creation_time", dataset.now())
        fill(party, "party_creation_user", user_login(dataset))
    elif party.original_values and not party.original_values.keys() <= {"PartyUpdateTime", "PartyUpdateUser"}:
        party.party_update_time = dataset.now()
        party.party_update_user = user_login(dataset)


@repositories.register
class Parties(Repository[Party]):
    """Declares General.Contacts.Parties."""

    name = "General.Contacts.Parties"
    code_member = "party_code"
    name_member = "party_name"
    display_format = "{PartyName:T}"
    search_members = ("party_code", "party_name")
    children = (
        Child("BankAccounts", "General.Contacts.PartyBankAccounts"),
        Child("ContactMechanisms", "General.Contacts.PartyContactMechanisms"),
    )
    late_defaults = (
        party_type_of_repository,
        numbered("party_code", "parties"),
        party_stamped,
    )
    validations = (no_loop(lambda party: party.parent_party, "ParentParty"),)
    read_only = frozenset(
        {
            "party_code",
            "party_creation_time",
            "party_creation_user",
            "party_name",
            "party_unique_number",
            "party_update_time",
            "party_update_user",
        }
    )
    api_names = {"gln": "GLN"}
    abstract = True


class PartyBankAccount(Entity):
    """A bank account of a party."""

    party = ReferenceField("Party", owner=True)
    bank_account_code = models.CharField(max_length=50)
    bank_branch_name = MultilanguageField(max_length=100, null=True, blank=True)
    bank_address = MultilanguageField(max_length=254, null=True, blank=True)
    bank_code = models.CharField(max_length=30, null=True, blank=True)
    bank_name = MultilanguageField(max_length=100, null=True, blank=True)
    is_default = models.BooleanField(default=False)
    notes = models.CharField(max_length=254, null=True, blank=True)


@repositories.register
class PartyBankAccounts(Repository[PartyBankAccount]):
    """Declares General.Contacts.PartyBankAccounts."""

    name = "General.Contacts.PartyBankAccounts"
    code_member = "bank_account_code"
    name_member = "bank_branch_name"
    display_format = "{BankBranchName:T}"
    search_members = ("bank_account_code", "bank_branch_name")


class PartyContactMechanism(ContactMechanism):
    """A way to reach one party."""

    party = ReferenceField("Party", owner=True)
    from_date = models.DateTimeField(null=True, blank=True, default=current_day)
    is_active = models.BooleanField(default=True)
    is_default = models.BooleanField(default=False)
    line_ord = models.IntegerField()
    non_solicitation = models.BooleanField(default=False)
    notes = models.CharField(max_length=254, null=True, blank=True)
    thru_date = models.DateTimeField(null=True, blank=True)


@repositories.register
class PartyContactMechanisms(Repository[PartyContactMechanism]):
    """Declares General.Contacts.PartyContactMechanisms."""

    name = "General.Contacts.PartyContactMechanisms"
    name_member = "name"
    display_format = "{ContactMechanismType}: {Name}"
    search_members = ("name",)
    late_defaults = (line_numbered("line_ord", "ContactMechanisms"),)
    validations = (dates_in_order("from_date", "thru_date"),)


class Company(Party):
    """A legal entity."""

    # Named, because Django would put the way back under Party.company, which is what locations call their company.
    party_ptr = models.OneToOneField(
        Party, models.CASCADE, parent_link=True, primary_key=True, related_name="+", serialize=False
    )

    name = MultilanguageField(max_length=254, null=True, blank=True)
    branch_number = models.IntegerField(default=0)
    city = MultilanguageField(max_length=64, null=True, blank=True)
    creation_time = models.DateTimeField(null=True, blank=True)
    creation_user = models.CharField(max_length=64, null=True, blank=True)
    is_vat_cash_reporting_registered = models.BooleanField(default=False)
    is_vat_registered = models.BooleanField(default=False)
    registration_number = models.CharField(max_length=16, null=True, blank=True, db_index=True)
    registration_primary_address = MultilanguageField(max_length=254, null=True, blank=True)
    registration_type = MultilanguageField(max_length=16, null=True, blank=True)
    registration_vat_number = models.CharField(max_length=16, null=True, blank=True, db_index=True)
    responsible_person_name = MultilanguageField(max_length=64, null=True, blank=True)
    update_time = models.DateTimeField(null=True, blank=True)
    update_user = models.CharField(max_length=64, null=True, blank=True)
    registration_responsible_person = ReferenceField("Person", null=True, blank=True)


def name_of_company(company: Record) -> None:
    """Calculation: the party is called as the company is."""
    company.party_name = company.name


def number_of_company(company: Record) -> None:
    """Calculation: a company is told from others by its registration number."""
    company.party_unique_number = company.registration_number


@repositories.register
class Companies(Repository[Company]):
    """Declares General.Contacts.Companies."""

    name = "General.Contacts.Companies"
    code_member = "party_code"
    name_member = "name"
    display_format = "{PartyName:T}"
    search_members = ("party_code", "name")
    calculations = (
        Calculation(name_of_company, ("Name",), always=True),
        Calculation(number_of_company, ("RegistrationNumber",), always=True),
    )
    read_only = frozenset({"creation_time", "creation_user", "update_time", "update_user"})
    api_names = {
        "is_vat_cash_reporting_registered": "IsVATCashReportingRegistered",
        "is_vat_registered": "IsVATRegistered",
        "registration_vat_number": "RegistrationVATNumber",
    }


class CompanyLocation(Party):
    """A place where a company works."""

    bill_to = EnumField(COMPANY_LOCATION_BILL_TO, null=True, blank=True)
    location_name = MultilanguageField(max_length=254)
    working_time = models.CharField(max_length=254, null=True, blank=True)
    company = ReferenceField("Company")


def name_of_location(location: Record) -> None:
    """Calculation: the party is called as the location is."""
    location.party_name = location.location_name


@repositories.register
class CompanyLocations(Repository[CompanyLocation]):
    """Declares General.Contacts.CompanyLocations."""

    name = "General.Contacts.CompanyLocations"
    code_member = "party_code"
    name_member = "party_name"
    display_format = "{PartyName:T}"
    search_members = ("party_code", "party_name")
    calculations = (Calculation(name_of_location, ("LocationName",), always=True),)


class Person(Party):
    """A natural person."""

    national_number = models.CharField(max_length=16, null=True, blank=True)
    birth_date = models.DateTimeField(null=True, blank=True)
    city = MultilanguageField(max_length=64, null=True, blank=True)
    creation_time = models.DateTimeField(null=True, blank=True)
    creation_user = models.CharField(max_length=64, null=True, blank=True)
    first_name = MultilanguageField(max_length=64, null=True, blank=True)
    gender = EnumField(PERSON_GENDER, null=True, blank=True)
    last_name = MultilanguageField(max_length=64, null=True, blank=True)
    middle_name = MultilanguageField(max_length=64, null=True, blank=True)
    notes = models.CharField(max_length=254, null=True, blank=True)
    passport_issuing_date = models.DateTimeField(null=True, blank=True)
    passport_number = models.CharField(max_length=14, null=True, blank=True)
    title = MultilanguageField(max_length=32, null=True, blank=True)
    update_time = models.DateTimeField(null=True, blank=True)
    update_user = models.CharField(max_length=64, null=True, blank=True)


def name_of_person(person: Record) -> None:
    """Calculation: first, middle and last name, in every language that one of them has."""
    parts = [texts for texts in (person.first_name, person.middle_name, person.last_name) if texts]
    languages = dict.fromkeys(language for texts in parts for language in texts)
    names = {language: " ".join(in_language(texts, language) for texts in parts) for language in languages}
    person.party_name = names or None


def number_of_person(person: Record) -> None:
    """Calculation: a person is told from others by the national number."""
    person.party_unique_number = person.national_number


@repositories.register
class Persons(Repository[Person]):
    """Declares General.Contacts.Persons."""

    name = "General.Contacts.Persons"
    code_member = "national_number"
    name_member = "party_name"
    display_format = "{PartyName:T}"
    search_members = ("national_number", "party_name")
    calculations = (
        Calculation(name_of_person, ("FirstName", "MiddleName", "LastName"), always=True),
        Calculation(number_of_person, ("NationalNumber",), always=True),
    )
    read_only = frozenset({"creation_time", "creation_user", "update_time", "update_user"})
