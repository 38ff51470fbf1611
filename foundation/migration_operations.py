"""Migration operations for models that refer to each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.apps.registry import Apps
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations import CreateModel, SeparateDatabaseAndState
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState
from django.db.models import Model


class AtOnce(SeparateDatabaseAndState):
    """The operations that Django derives, with the state rendered once instead of after each of them.

    Models with circular references take hundreds of CreateModel, AddField and AddIndex. Each would render the models
    around it again, and on SQLite often rebuild a table. So new tables are created from the state to which all
    operations lead, foreign keys and indexes included; the operations on older tables follow in their order.
    """

    def __init__(self, operations: Sequence[Operation]) -> None:
        super().__init__(state_operations=operations)
        self._created = {each.name_lower for each in operations if isinstance(each, CreateModel)}

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        # Without rendered models the state only changes its notes about them.
        state.__dict__.pop("apps", None)
        super().state_forwards(app_label, state)

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        for model in self._new_tables(app_label, schema_editor, to_state.apps):
            schema_editor.create_model(model)
        for operation in self._on_older_tables():
            operation.database_forwards(app_label, schema_editor, from_state, to_state)

    def database_backwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        for operation in reversed(self._on_older_tables()):
            operation.database_backwards(app_label, schema_editor, from_state, to_state)
        for model in reversed(list(self._new_tables(app_label, schema_editor, from_state.apps))):
            schema_editor.delete_model(model)

    def describe(self) -> str:
        return "Change all models at once"

    def _new_tables(self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, apps: Apps) -> Iterable[type[Model]]:
        for model in apps.get_app_config(app_label).get_models():
            is_new = model._meta.model_name in self._created and model._meta.managed
            if is_new and self.allow_migrate_model(schema_editor.connection.alias, model):
                yield model

    def _on_older_tables(self) -> list[Operation]:
        changed = [(each, getattr(each, "model_name_lower", None)) for each in self.state_operations]
        return [each for each, model in changed if model is not None and model not in self._created]
