"""Crm.SalesForce: sales persons."""

from __future__ import annotations

from django.db import models

from domain.entities.behaviour import dates_in_order
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation.fields import ExactDecimalField, GuidField, ReferenceField
from foundation.models import AggregateRoot


class SalesPerson(AggregateRoot):
    """A sales person."""

    commission_percent = ExactDecimalField(7, 6, null=True, blank=True)
    commission_policy_id = GuidField(null=True, blank=True)
    contract_end_date = models.DateTimeField(null=True, blank=True)
    contract_start_date = models.DateTimeField(null=True, blank=True)
    is_active = models.BooleanField(default=True)
    enterprise_company = ReferenceField("EnterpriseCompany", null=True, blank=True)
    enterprise_company_location = ReferenceField("CompanyLocation", null=True, blank=True)
    person = ReferenceField("Person")


@repositories.register
class SalesPersons(Repository[SalesPerson]):
    name = "Crm.SalesForce.SalesPersons"
    base_table = "Crm_Sales_Persons"
    name_member = "person.party_name"
    validations = (dates_in_order("contract_start_date", "contract_end_date"),)
    old_names = {"Crm.SalesPersons": "25.1.1.36"}
