"""Repair change stamps that earlier versions stored with an offset on SQLite, in tables of custom entities too."""

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

_COLUMN = "aggregate_last_update_time_utc"


def repair(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Remove the offset, which is that of UTC."""
    connection = schema_editor.connection
    if connection.vendor != "sqlite":
        return
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT m.name FROM sqlite_master m JOIN pragma_table_info(m.name) c ON c.name = %s WHERE m.type = 'table'",
            [_COLUMN],
        )
        for (table,) in cursor.fetchall():
            cursor.execute(
                f"UPDATE {connection.ops.quote_name(table)} SET {_COLUMN} = replace({_COLUMN}, '+00:00', '') "  # noqa: S608
                f"WHERE {_COLUMN} LIKE '%%+00:00'",
                [],
            )


class Migration(migrations.Migration):
    dependencies = [("domain", "0001_initial")]

    operations = [migrations.RunPython(repair, migrations.RunPython.noop)]
