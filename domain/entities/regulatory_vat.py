"""Regulatory.Vat: value added tax."""

from __future__ import annotations

from django.db import models

from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation.enums import EnumType
from foundation.fields import EnumField
from foundation.models import AggregateRoot, unique

DEAL_TYPE_ENTRY_TYPE = EnumType("Regulatory.Vat.DealTypesRepository.EntryType", {"Purchases": 0, "Sales": 1})

DEAL_TYPE_TAX_CODE = EnumType(
    "Regulatory.Vat.DealTypesRepository.TaxCode",
    {
        "StandardRate": 0,
        "ReducedRate": 1,
        "SuperReducedRates": 2,
        "IntermediaryParkingRates": 3,
        "TaxExempt": 4,
        "NonSubjectToTax": 5,
    },
)


class DealType(AggregateRoot):
    """A treatment of deals for value added tax."""

    code = models.CharField(max_length=32)
    name = models.CharField(max_length=254)
    entry_type = EnumField(DEAL_TYPE_ENTRY_TYPE)
    is_system = models.BooleanField(default=False)
    tax_code = EnumField(DEAL_TYPE_TAX_CODE)

    class Meta:
        constraints = [unique("deal_type", "code")]


@repositories.register
class DealTypes(Repository[DealType]):
    name = "Regulatory.Vat.DealTypes"
    base_table = "VAT_Deal_Types"
    category = "Settings"
    code_member = "code"
    name_member = "name"
    read_only = frozenset({"is_system"})
    old_names = {"Finance.Vat.DealTypes": "26.2.0.99"}
