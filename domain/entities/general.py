"""General: the enterprise companies, for which the instance keeps books."""

from __future__ import annotations

from django.db import models

from domain.model import reference_data
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation.enums import EnumType
from foundation.fields import AmountField, EnumField, ExactDecimalField, ReferenceField
from foundation.models import AggregateRoot

ENTERPRISE_COMPANY_DEFAULT_COSTING_METHOD = EnumType(
    "General.EnterpriseCompaniesRepository.DefaultCostingMethod",
    {"AverageCost": 0, "ExplicitlySpecifyLot": 1, "SetByBlockedForDocument": 2},
)


class EnterpriseCompany(AggregateRoot):
    """A company that this instance keeps books for."""

    bi_start_date = models.DateTimeField(null=True, blank=True)
    default_costing_method = EnumField(ENTERPRISE_COMPANY_DEFAULT_COSTING_METHOD, default="AverageCost")
    default_customer_credit_limit_base = AmountField(18, 2, currency="BaseCurrency", null=True, blank=True)
    edit_period_start_date = models.DateTimeField(null=True, blank=True)
    end_date_of_closed_accounting_period = models.DateField(null=True, blank=True)
    is_active = models.BooleanField(default=True)
    print_images_retention_months = models.IntegerField(default=60)
    reporting_currency_end_date = models.DateField(null=True, blank=True)
    reporting_currency_processed_date = models.DateField(null=True, blank=True)
    reporting_currency_rate = ExactDecimalField(18, 6, null=True, blank=True)
    reporting_currency_start_date = models.DateField(null=True, blank=True)
    saft_initial_compliance_date = models.DateField(null=True, blank=True)
    ui_base_color = models.IntegerField(null=True, blank=True)
    advance_product = ReferenceField("Product", null=True, blank=True)
    base_currency = ReferenceField("Currency")
    company = ReferenceField("Company")
    reporting_currency = ReferenceField("Currency", null=True, blank=True)
    vat_document_amount_type = ReferenceField("DocumentAmountType", null=True, blank=True)


@repositories.register
class EnterpriseCompanies(Repository[EnterpriseCompany]):
    name = "General.EnterpriseCompanies"
    base_table = "Gen_Enterprise_Companies"
    cache_version = reference_data.CACHE_VERSION
    code_member = "company.registration_number"
    name_member = "company.party_name"
    read_only = frozenset({"end_date_of_closed_accounting_period", "reporting_currency_processed_date"})
    api_names = {
        "bi_start_date": "BIStartDate",
        "ui_base_color": "UIBaseColor",
        "vat_document_amount_type": "VATDocumentAmountType",
    }
