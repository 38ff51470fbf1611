"""Creating many tables that refer to each other, at once.

The order of CreateModel and AddField that Django derives for tables with circular references makes SQLite rebuild
tables, and the state render models, some two hundred times. The state is built from the same operations; the tables are
created once, from the state that they lead to.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.backends.utils import truncate_name
from django.db.migrations.operations import SeparateDatabaseAndState
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState

_CUSTOM = "custom_property_values"


class CreateTables(SeparateDatabaseAndState):
    """Brings the state forward operation by operation, then creates every table; foreign keys follow at the end."""

    def __init__(self, operations: Sequence[Operation]) -> None:
        super().__init__(state_operations=operations)

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        # While models are rendered, each operation would render its whole neighbourhood again.
        state.__dict__.pop("apps", None)
        super().state_forwards(app_label, state)

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        for model in to_state.apps.get_app_config(app_label).get_models():
            if model._meta.managed and self.allow_migrate_model(schema_editor.connection.alias, model):
                schema_editor.create_model(model)
                if schema_editor.connection.vendor == "postgresql" and _CUSTOM in {
                    f.name for f in model._meta.local_fields
                }:
                    schema_editor.execute(_custom_index(model._meta.db_table))

    def database_backwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        for model in reversed(list(from_state.apps.get_app_config(app_label).get_models())):
            if model._meta.managed and self.allow_migrate_model(schema_editor.connection.alias, model):
                schema_editor.delete_model(model)

    def describe(self) -> str:
        return "Create the tables of all models at once"


def _custom_index(table: str) -> str:
    """What finds entities by the value of a custom property; it costs nothing for those that have none.

    Not an index of the models: they are the same on SQLite, which has nothing like it.
    """
    name = truncate_name(f"{table}_custom_gin", 60, 8)
    return (
        f'CREATE INDEX "{name}" ON "{table}" USING gin (({_CUSTOM}::jsonb) jsonb_path_ops) WHERE {_CUSTOM} IS NOT NULL'
    )


def at_once(operations: Sequence[Operation]) -> list[Operation]:
    """The same operations for the state, one for the database."""
    return [CreateTables(operations)]
