"""The domain's migration creates all tables at once; what it creates is what the models say."""

from __future__ import annotations

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import connection


@pytest.mark.django_db
def test_the_migration_leads_to_the_models() -> None:
    call_command("makemigrations", "domain", "identity", check=True, dry_run=True, verbosity=0)


@pytest.mark.django_db
def test_every_table_has_its_columns_foreign_keys_and_unique_constraints() -> None:
    tables = connection.introspection.table_names()
    for model in apps.get_app_config("domain").get_models():
        meta = model._meta
        assert (meta.db_table in tables) == meta.managed
        with connection.cursor() as cursor:
            columns = {c.name for c in connection.introspection.get_table_description(cursor, meta.db_table)}
            constraints = connection.introspection.get_constraints(cursor, meta.db_table)
        assert columns == {field.column for field in meta.local_concrete_fields}
        if not meta.managed:
            continue  # a view has columns only
        foreign = {tuple(c["columns"]) for c in constraints.values() if c["foreign_key"]}
        expected = {(field.column,) for field in meta.local_concrete_fields if field.remote_field is not None}
        assert foreign == expected, meta.db_table
        unique = {tuple(c["columns"]) for c in constraints.values() if c["unique"]}
        for constraint in meta.constraints:
            names = getattr(constraint, "fields", ())
            fields = [field for name in names for field in meta.local_concrete_fields if field.name == name]
            assert tuple(field.column for field in fields) in unique, meta.db_table
