"""The tables of the shipped entities and of the write engine; Django looks for them here."""

from domain.dataset.tables import models as dataset_models  # noqa: F401
from domain.entities import (  # noqa: F401
    applications_service,
    crm_invoicing,
    crm_presales,
    crm_pricing,
    crm_sales,
    crm_salesforce,
    finance_payments,
    general,
    general_activities,
    general_contacts,
    general_currencies,
    general_documents,
    general_products,
    logistics_inventory,
    regulatory_vat,
    systems_bpm,
    systems_config,
    systems_core,
    systems_documents,
    systems_exchange,
    systems_monitoring,
)
