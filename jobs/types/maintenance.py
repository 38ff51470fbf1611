"""Prune and RefreshStatistics: maintenance of the database."""

from __future__ import annotations

from collections.abc import Iterator

from django.db import connection
from django.utils.translation import gettext_noop as _

from domain.model.naming import near
from foundation import errors
from foundation.messages import TranslatableMessage as Message
from foundation.messages import quoted
from foundation.pruning import pruners
from identity.context import CallContext
from jobs.run import Run
from jobs.types.base import JobType, Setting, SettingRefused, Values, job_types


@job_types.register
class Prune(JobType):
    """As manage.py prune. progress: {"removed": {pruner: number of rows}}"""

    name = "Prune"
    number = 101
    description = _("Deletes what is past its retention, as manage.py prune does.")
    settings = (
        Setting(
            "Only", list, ["tokens"], _("Only these; none: all"), required=False, default=[],
            choices=lambda context: pruners.names(),
        ),
    )  # fmt: skip
    administrators_only = True

    def check(self, values: Values, context: CallContext) -> Iterator[SettingRefused]:
        """The names are those of `manage.py prune --only`."""
        for name in values["Only"]:
            if name not in pruners:
                told = Message(
                    "there is nothing to prune with the name {0}.{1}", quoted(name), near(str(name), pruners.names())
                )
                yield SettingRefused("Only", told)

    def run(self, run: Run, values: Values) -> str:
        """Run all pruners, also after failures. Raises Refused with the failures."""
        removed = run.progress.setdefault("removed", {})
        failed: list[str] = []
        for name in values["Only"] or list(pruners.names()):
            if name in removed:
                continue
            run.check_time()
            try:
                removed[name] = pruners[name]()
                run.log(f"{name}: {removed[name]}")
            except Exception as exc:
                failed.append(f"{name}: {type(exc).__name__}: {exc}")
            run.record()
        if failed:
            raise errors.Refused(errors.JOB_FAILED, "; ".join(failed))
        return f"{sum(removed.values())} rows deleted."


@job_types.register
class RefreshStatistics(JobType):
    """ANALYZE: refreshes the database's statistics, which its query planner uses."""

    name = "RefreshStatistics"
    number = 103
    description = _("Refreshes the statistics by which the database plans queries.")
    administrators_only = True

    def run(self, run: Run, values: Values) -> str:
        """Analyze table by table; progress: {"after": table}."""
        tables = sorted(connection.introspection.table_names())
        with connection.cursor() as cursor:
            if connection.vendor == "sqlite":
                # Maximum rows per index: analyzing a whole large table would lock the database for long.
                cursor.execute("PRAGMA analysis_limit = 1000")
            for table in tables:
                if table <= run.progress.get("after", ""):
                    continue
                run.check_time()
                cursor.execute(f"ANALYZE {connection.ops.quote_name(table)}")
                run.progress["after"] = table
                run.record()
        return f"The statistics of {len(tables)} tables are new."
