"""General.Currencies: currencies and exchange rates."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from django.db import models

from domain.entities.behaviour import fill
from domain.entities.general_documents import Document, DocumentRepository
from domain.model import reference_data
from domain.model.attributes import Child
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation.fields import ExactDecimalField, ReferenceField
from foundation.models import AggregateRoot, Entity, unique

if TYPE_CHECKING:
    from domain.dataset.records.record import Record


class Currency(AggregateRoot):
    """A currency, identified by its sign."""

    currency_sign = models.CharField(max_length=4)
    name = models.CharField(max_length=50)
    is_active = models.BooleanField(default=True)
    show_order = models.IntegerField(default=0)

    class Meta:
        constraints = [unique("currency", "currency_sign")]


@repositories.register
class Currencies(Repository[Currency]):
    name = "General.Currencies.Currencies"
    base_table = "Gen_Currencies"
    cache_version = reference_data.CACHE_VERSION
    category = "Settings"
    code_member = "currency_sign"
    name_member = "name"
    display_format = "{CurrencySign}"
    old_names = {"General.Currencies": "25.1.0.64"}


class CurrencyDirectoryLine(Entity):
    """The rate of one currency in a directory."""

    currency_directory = ReferenceField("CurrencyDirectory", owner=True)
    rate_divisor = ExactDecimalField(18, 6, default=Decimal(1))
    rate_multiplier = ExactDecimalField(18, 6, default=Decimal(1))
    from_currency = ReferenceField("Currency")


@repositories.register
class CurrencyDirectoryLines(Repository[CurrencyDirectoryLine]):
    name = "General.Currencies.CurrencyDirectoryLines"
    base_table = "Gen_Currency_Directory_Lines"
    name_member = "currency_directory.name"
    old_names = {"General.CurrencyDirectoryLines": "25.1.0.64"}


class CurrencyDirectory(Document):
    """A document with the exchange rates of a day."""

    is_default = models.BooleanField(default=True)
    is_single_execution = models.BooleanField(default=False)
    is_valid_field = models.BooleanField(default=True)
    name = models.CharField(max_length=64)
    to_currency = ReferenceField("Currency")


def name_from_date(directory: Record) -> None:
    """Late default: the day of the directory."""
    if directory.document_date is not None:
        fill(directory, "name", directory.document_date.isoformat())


def to_currency_of_company(directory: Record) -> None:
    """Late default: rates to the company's base currency."""
    if (company := directory.enterprise_company) is not None:
        fill(directory, "to_currency_id", company.base_currency_id)


@repositories.register
class CurrencyDirectories(DocumentRepository[CurrencyDirectory]):
    name = "General.Currencies.CurrencyDirectories"
    base_table = "Gen_Currency_Directories"
    children = (Child("Lines", "General.Currencies.CurrencyDirectoryLines"),)
    filled_late = frozenset({"name", "to_currency"})
    late_defaults = (
        name_from_date,
        to_currency_of_company,
    )
    read_only = frozenset({"is_single_execution"})
    old_names = {"General.CurrencyDirectories": "25.1.0.64"}
