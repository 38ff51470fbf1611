"""Crm.Sales.SalesAnalytics: the lines of sales orders with the attributes of their orders, for reports."""

from __future__ import annotations

from django.db import models

from domain.entities.behaviour import refuse_change
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation.fields import ExactDecimalField, GuidField, ReferenceField
from foundation.models import Entity


def _reference(to: str, *, null: bool = False) -> ReferenceField:
    # The rows of a view restrict no deletion: the references of the order and its line do.
    return ReferenceField(to, models.DO_NOTHING, null=null, db_constraint=False)


class SalesAnalyticsEntry(Entity):
    """A line of a sales order, as the view in domain/migrations/_views.py selects it; the id is the line's."""

    document_date = models.DateField(null=True)
    line_amount = ExactDecimalField(38, 2)
    line_discount_amount = ExactDecimalField(38, 2)
    quantity_base = ExactDecimalField(38, 3)
    sales_analytic_id = GuidField()
    standard_quantity_base = ExactDecimalField(38, 3)
    customer = _reference("Customer")
    document_currency = _reference("Currency")
    end_customer_party = _reference("Party", null=True)
    enterprise_company = _reference("EnterpriseCompany")
    enterprise_company_location = _reference("CompanyLocation", null=True)
    product = _reference("Product")
    sales_person = _reference("SalesPerson", null=True)
    store = _reference("Store", null=True)

    class Meta:
        managed = False
        db_table = "domain_salesanalytics"


@repositories.register
class SalesAnalytics(Repository[SalesAnalyticsEntry]):
    name = "Crm.Sales.SalesAnalytics"
    display_format = "{SalesAnalyticId}: {DocumentDate}"
    validations = (refuse_change,)
    category = "Views"
    access = "ReadOnly"
    view_of = "Crm.Sales.SalesOrderLines"
