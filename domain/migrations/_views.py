"""Database views of the domain.

A later migration that changes a table of a view drops the view first and creates it again: PostgreSQL refuses the change
otherwise, and SQLite refuses to rename the rebuilt table.
"""

from __future__ import annotations

from collections.abc import Mapping

from django.db import router
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState


class CreateView(Operation):
    """Creates the view of an unmanaged model.

    name     of the view
    select   statement by database vendor
    """

    def __init__(self, name: str, select: Mapping[str, str]) -> None:
        self.name = name
        self.select = select

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        """The model is in the state already."""

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        if router.allow_migrate(schema_editor.connection.alias, app_label):
            schema_editor.execute(f'CREATE VIEW "{self.name}" AS {self.select[schema_editor.connection.vendor]}')

    def database_backwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        if router.allow_migrate(schema_editor.connection.alias, app_label):
            schema_editor.execute(f'DROP VIEW "{self.name}"')

    def describe(self) -> str:
        return f"Create the view {self.name}"


#: {gross} is quantity × unit price, rounded to two decimals. Adjustments are left out: the lines that they correct show
#: their effect.
_SALES_ANALYTICS = """
SELECT
    line.id AS id,
    line.object_version AS object_version,
    CAST(NULL AS text) AS custom_property_values,
    document.document_date AS document_date,
    line.line_amount AS line_amount,
    {gross} - line.line_amount AS line_discount_amount,
    line.quantity_base AS quantity_base,
    line.id AS sales_analytic_id,
    line.standard_quantity_base AS standard_quantity_base,
    header.customer_id AS customer_id,
    header.document_currency_id AS document_currency_id,
    COALESCE(line.line_end_customer_party_id, header.end_customer_party_id) AS end_customer_party_id,
    document.enterprise_company_id AS enterprise_company_id,
    document.enterprise_company_location_id AS enterprise_company_location_id,
    line.product_id AS product_id,
    header.sales_person_id AS sales_person_id,
    COALESCE(line.line_store_id, header.store_id) AS store_id
FROM domain_salesorderline line
JOIN domain_salesorder header ON header.document_ptr_id = line.sales_order_id
JOIN domain_document document ON document.id = line.sales_order_id
WHERE document.adjusted_document_id IS NULL
"""
#: On SQLite decimals are scaled integers: 3 and 5 decimals make 8.
_SCALED = "line.quantity * line.unit_price"

SALES_ANALYTICS = CreateView(
    "domain_salesanalytics",
    {
        "sqlite": _SALES_ANALYTICS.format(
            gross=f"CAST(({_SCALED} + CASE WHEN {_SCALED} < 0 THEN -500000 ELSE 500000 END) / 1000000 AS INTEGER)"
        ),
        "postgresql": _SALES_ANALYTICS.format(gross="round(line.quantity * line.unit_price, 2)"),
    },
)
