"""General.Contacts: parties and their contact mechanisms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models
from django.utils.translation import gettext_lazy as _

from domain.entities.behaviour import dates_in_order, fill, line_numbered, no_loop, numbered, user_login
from domain.entities.creation_and_update import TRACKED_ATTRIBUTES, Tracked
from domain.entities.defaults import current_day
from domain.model import reference_data
from domain.model.admin_options import AdminOptions, CollectionColumn
from domain.model.attributes import Calculation, Child
from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.model.values import in_language
from foundation.enums import EnumType
from foundation.fields import EnumField, MultilanguageField, ReferenceField
from foundation.models import Entity, PolymorphicRoot, unique

if TYPE_CHECKING:
    from domain.dataset.records.record import Record


COMPANY_LOCATION_BILL_TO = EnumType(
    "General.Contacts.CompanyLocationsRepository.BillTo", {"Company": 0, "CompanyLocation": 1}
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
)

PARTY_TYPE = EnumType(
    "General.Contacts.PartiesRepository.PartyType",
    {"Company": 0, "CompanyLocation": 1, "Person": 2, "Store": 3, "CompanyDivision": 4},
)

PERSON_GENDER = EnumType(
    "General.Contacts.PersonsRepository.Gender", {"Female": 0, "Male": 1, "Other": 2, "PreferNotToSay": 3}
)


#: Repository → its kind of party.
PARTY_TYPES = {
    "General.Contacts.Companies": "Company",
    "General.Contacts.CompanyLocations": "CompanyLocation",
    "General.Contacts.Persons": "Person",
    "Logistics.Inventory.Stores": "Store",
}


class ContactMechanism(PolymorphicRoot):
    """A contact mechanism: an address, telephone number, mailbox or other."""

    name = models.CharField(max_length=254)
    contact_mechanism_type = EnumField(CONTACT_MECHANISM_TYPE, default="Address")


@repositories.register
class ContactMechanisms(Repository[ContactMechanism]):
    name = "General.Contacts.ContactMechanisms"
    base_table = "Cm_Contact_Mechanisms"
    name_member = "name"


class Party(PolymorphicRoot):
    """The base of persons, companies, company locations and stores."""

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
        constraints = [unique("party", "party_code")]


def party_type_of_repository(party: Record) -> None:
    """Late default: the kind of party of the repository."""
    known = PARTY_TYPES.get(party.repository.name)
    if party.is_new and known is not None:
        party.party_type = known


def track_party_creation_and_update(party: Record) -> None:
    """Late default: user and time of creation and last change."""
    dataset = party.dataset
    if party.is_new:
        fill(party, "party_creation_time", dataset.now())
        fill(party, "party_creation_user", user_login(dataset))
    elif party.original_values and not party.original_values.keys() <= {"PartyUpdateTime", "PartyUpdateUser"}:
        party.party_update_time = dataset.now()
        party.party_update_user = user_login(dataset)


@repositories.register
class Parties(Repository[Party]):
    name = "General.Contacts.Parties"
    base_table = "Gen_Parties"
    code_member = "party_code"
    name_member = "party_name"
    admin = AdminOptions(is_subject=True)
    children = (
        Child("BankAccounts", "General.Contacts.PartyBankAccounts"),
        Child("ContactMechanisms", "General.Contacts.PartyContactMechanisms"),
    )
    late_defaults = (
        party_type_of_repository,
        numbered("party_code", "parties"),
        track_party_creation_and_update,
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
    name = "General.Contacts.PartyBankAccounts"
    base_table = "Gen_Party_Bank_Accounts"
    code_member = "bank_account_code"
    name_member = "bank_branch_name"


class PartyContactMechanism(ContactMechanism):
    """A contact mechanism of a party."""

    party = ReferenceField("Party", owner=True)
    from_date = models.DateTimeField(null=True, blank=True, default=current_day)
    is_active = models.BooleanField(default=True)
    is_default = models.BooleanField(default=False)
    line_ord = models.IntegerField()
    non_solicitation = models.BooleanField(default=False)
    notes = models.CharField(max_length=254, null=True, blank=True)
    thru_date = models.DateTimeField(null=True, blank=True)


#: For lists of entities with a reference `party`.
PARTY_PHONE = CollectionColumn(
    name="phone",
    title=_("Phone"),
    owner="party",
    collection="ContactMechanisms",
    value="name",
    where={"contact_mechanism_type__in": ("Telephone", "MobilePhone"), "is_active": True},
    order=("-is_default", "line_ord", "pk"),
)


@repositories.register
class PartyContactMechanisms(Repository[PartyContactMechanism]):
    name = "General.Contacts.PartyContactMechanisms"
    base_table = "Cm_Party_Contact_Mechanisms"
    name_member = "name"
    display_format = "{ContactMechanismType}: {Name}"
    filled_late = frozenset({"line_ord"})
    late_defaults = (line_numbered("line_ord", "ContactMechanisms"),)
    validations = (dates_in_order("from_date", "thru_date"),)


class Company(Tracked, Party):
    """A legal entity."""

    # related_name, because Django's default would be Party.company, which is the company of locations.
    party_ptr = models.OneToOneField(
        Party, models.CASCADE, parent_link=True, primary_key=True, related_name="+", serialize=False
    )

    name = MultilanguageField(max_length=254, null=True, blank=True)
    branch_number = models.IntegerField(default=0)
    city = MultilanguageField(max_length=64, null=True, blank=True)
    is_vat_cash_reporting_registered = models.BooleanField(default=False)
    is_vat_registered = models.BooleanField(default=False)
    registration_number = models.CharField(max_length=16, null=True, blank=True, db_index=True)
    registration_primary_address = MultilanguageField(max_length=254, null=True, blank=True)
    registration_type = MultilanguageField(max_length=16, null=True, blank=True)
    registration_vat_number = models.CharField(max_length=16, null=True, blank=True, db_index=True)
    responsible_person_name = MultilanguageField(max_length=64, null=True, blank=True)
    registration_responsible_person = ReferenceField("Person", null=True, blank=True)


def name_of_company(company: Record) -> None:
    """Calculation: the party's name is the company's."""
    company.party_name = company.name


def number_of_company(company: Record) -> None:
    """Calculation: the unique number of a company is its registration number."""
    company.party_unique_number = company.registration_number


@repositories.register
class Companies(Repository[Company]):
    name = "General.Contacts.Companies"
    base_table = "Cm_Companies"
    code_member = "party_code"
    name_member = "name"
    display_format = "{PartyName:T}"
    calculations = (
        Calculation(name_of_company, ("Name",), always=True),
        Calculation(number_of_company, ("RegistrationNumber",), always=True),
    )
    read_only = TRACKED_ATTRIBUTES
    api_names = {
        "is_vat_cash_reporting_registered": "IsVATCashReportingRegistered",
        "is_vat_registered": "IsVATRegistered",
        "registration_vat_number": "RegistrationVATNumber",
    }


class CompanyLocation(Party):
    """A location of a company."""

    bill_to = EnumField(COMPANY_LOCATION_BILL_TO, null=True, blank=True)
    location_name = MultilanguageField(max_length=254)
    working_time = models.CharField(max_length=254, null=True, blank=True)
    company = ReferenceField("Company")


def name_of_location(location: Record) -> None:
    """Calculation: the party's name is the location's."""
    location.party_name = location.location_name


@repositories.register
class CompanyLocations(Repository[CompanyLocation]):
    name = "General.Contacts.CompanyLocations"
    base_table = "Cm_Company_Locations"
    cache_version = reference_data.CACHE_VERSION
    code_member = "party_code"
    name_member = "party_name"
    calculations = (Calculation(name_of_location, ("LocationName",), always=True),)


class Person(Tracked, Party):
    """A natural person."""

    national_number = models.CharField(max_length=16, null=True, blank=True)
    birth_date = models.DateTimeField(null=True, blank=True)
    city = MultilanguageField(max_length=64, null=True, blank=True)
    first_name = MultilanguageField(max_length=64, null=True, blank=True)
    gender = EnumField(PERSON_GENDER, null=True, blank=True)
    last_name = MultilanguageField(max_length=64, null=True, blank=True)
    middle_name = MultilanguageField(max_length=64, null=True, blank=True)
    notes = models.CharField(max_length=254, null=True, blank=True)
    passport_issuing_date = models.DateTimeField(null=True, blank=True)
    passport_number = models.CharField(max_length=14, null=True, blank=True)
    title = MultilanguageField(max_length=32, null=True, blank=True)


def name_of_person(person: Record) -> None:
    """Calculation: first, middle and last name, in every language in which one of them is given."""
    parts = [texts for texts in (person.first_name, person.middle_name, person.last_name) if texts]
    languages = dict.fromkeys(language for texts in parts for language in texts)
    names = {language: " ".join(in_language(texts, language) for texts in parts) for language in languages}
    person.party_name = names or None


def number_of_person(person: Record) -> None:
    """Calculation: the unique number of a person is the national number."""
    person.party_unique_number = person.national_number


@repositories.register
class Persons(Repository[Person]):
    name = "General.Contacts.Persons"
    base_table = "Cm_Persons"
    code_member = "national_number"
    name_member = "party_name"
    calculations = (
        Calculation(name_of_person, ("FirstName", "MiddleName", "LastName"), always=True),
        Calculation(number_of_person, ("NationalNumber",), always=True),
    )
    read_only = TRACKED_ATTRIBUTES
