"""Systems.Documents: printouts and their data sources."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models

from domain.entities.behaviour import entity_names
from domain.model.admin_options import AdminOptions
from domain.model.attributes import Child
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation.enums import EnumType
from foundation.fields import EnumField, ReferenceField
from foundation.models import AggregateRoot, Entity

if TYPE_CHECKING:
    pass

DATA_SOURCE_QUERY_DEPENDS_ON_CHILD_ROWS = EnumType(
    "Systems.Documents.DataSourceQueriesRepository.DependsOnChildRows",
    {
        "NoChildRowDependency": 0,
        "TheRowIsVisibleIfThereIsAtLeastOneChildRow": 1,
        "TheRowIsVisibleIfAllSubTablesContainChildRows": 2,
    },
)

DATA_SOURCE_TYPE = EnumType(
    "Systems.Documents.DataSourcesRepository.DataSourceType", {"MultiTable": 0, "MasterDetail": 1, "SingleTable": 2}
)

PRINTOUT_ALLOW_PRINTING_ON_STATE = EnumType(
    "Systems.Documents.PrintoutsRepository.AllowPrintingOnState",
    {"New": 0, "Planned": 10, "FirmPlanned": 20, "Released": 30, "Completed": 40, "Closed": 50},
)


class DataSource(AggregateRoot):
    """A data source of printouts."""

    name = models.CharField(max_length=64)
    base_query_name = models.CharField(max_length=128)
    data_source_type = EnumField(DATA_SOURCE_TYPE, default="MultiTable")
    show_parent_tables = models.BooleanField(default=False)


@repositories.register
class DataSources(Repository[DataSource]):
    name = "Systems.Documents.DataSources"
    base_table = "Sys_Data_Sources"
    category = "Settings"
    name_member = "name"
    children = (Child("Queries", "Systems.Documents.DataSourceQueries"),)
    old_names = {"Systems.Reporting.DataSources": "24.1.5.35"}


class DataSourceQuery(Entity):
    """One query of a data source."""

    data_source = ReferenceField("DataSource", owner=True)
    table_name = models.CharField(max_length=64, null=True, blank=True)
    depends_on_child_rows = EnumField(DATA_SOURCE_QUERY_DEPENDS_ON_CHILD_ROWS, default="NoChildRowDependency")
    extensions_list = models.TextField(null=True, blank=True)
    filter_xml = models.TextField(null=True, blank=True)
    first_row = models.BooleanField(default=False)
    reference_path = models.TextField()
    unique_name = models.CharField(max_length=64, null=True, blank=True)


@repositories.register
class DataSourceQueries(Repository[DataSourceQuery]):
    name = "Systems.Documents.DataSourceQueries"
    base_table = "Sys_Data_Source_Queries"
    name_member = "table_name"
    old_names = {"Systems.Reporting.DataSourceQueries": "24.1.5.35"}


class Printout(Entity):
    """A printed form of a type's documents."""

    document_type = ReferenceField("DocumentType", owner=True)
    name = models.CharField(max_length=64)
    allow_printing_on_state = EnumField(PRINTOUT_ALLOW_PRINTING_ON_STATE, default="New")
    application_name = models.CharField(max_length=64, default="")
    backward_compatibility = models.BooleanField(default=False)
    copies = models.IntegerField(default=1)
    definition = models.TextField(null=True, blank=True)
    definition_format = models.CharField(max_length=16, null=True, blank=True, default="default")
    is_default = models.BooleanField(default=False)
    notes = models.CharField(max_length=512, null=True, blank=True)
    ord = models.IntegerField(default=0)
    ord_filter_xml = models.TextField(null=True, blank=True)
    ord_priority = models.IntegerField(null=True, blank=True, default=0)
    enterprise_company = ReferenceField("EnterpriseCompany", null=True, blank=True)
    printout_layout = ReferenceField("PrintoutLayout", null=True, blank=True)
    report = ReferenceField("DataSource", null=True, blank=True)


@repositories.register
class Printouts(Repository[Printout]):
    name = "Systems.Documents.Printouts"
    base_table = "Gen_Printouts"
    name_member = "name"
    old_names = {"General.Printouts": "24.1.5.35"}


class PrintoutLayout(AggregateRoot):
    """The layout of a printout."""

    name = models.CharField(max_length=64, db_index=True)
    binary_layout = models.BinaryField(editable=True, null=True, blank=True)
    document_entity_name = models.CharField(max_length=64)
    layout = models.TextField(null=True, blank=True)
    layout_format = models.CharField(max_length=32)
    notes = models.CharField(max_length=254, null=True, blank=True)
    data_source = ReferenceField("DataSource", null=True, blank=True)


@repositories.register
class PrintoutLayouts(Repository[PrintoutLayout]):
    name = "Systems.Documents.PrintoutLayouts"
    base_table = "Gen_Printout_Layouts"
    name_member = "name"
    admin = AdminOptions(repository_names=frozenset({"document_entity_name"}))
    late_defaults = (entity_names("DocumentEntityName"),)
    old_names = {"General.PrintoutLayouts": "24.1.5.35"}
