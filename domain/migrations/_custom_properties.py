"""What finds entities by the value of a custom property on PostgreSQL; it costs nothing for those that have none.

No index of the models: they are the same on SQLite, which has nothing like it.
"""

from __future__ import annotations

from django.db import router
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.backends.utils import truncate_name
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState

_COLUMN = "custom_property_values"


class CreateCustomPropertyIndexes(Operation):
    """Creates an index for each table of the app that has values of custom properties."""

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        """The state has no such indexes."""

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        alias = schema_editor.connection.alias
        if schema_editor.connection.vendor != "postgresql" or not router.allow_migrate(alias, app_label):
            return
        for model in to_state.apps.get_app_config(app_label).get_models():
            if model._meta.managed and _COLUMN in {field.name for field in model._meta.local_fields}:
                schema_editor.execute(_index(model._meta.db_table))

    def database_backwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        """The indexes go with their tables."""

    def describe(self) -> str:
        return "Create the indexes of custom properties"


def _index(table: str) -> str:
    name = truncate_name(f"{table}_custom_gin", 60, 8)
    return (
        f'CREATE INDEX "{name}" ON "{table}" USING gin (({_COLUMN}::jsonb) jsonb_path_ops) WHERE {_COLUMN} IS NOT NULL'
    )
