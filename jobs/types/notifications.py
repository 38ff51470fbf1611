"""DeleteOldNotifications: deletes notifications of a certain age."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from django.utils.translation import gettext_noop as _

from domain.dataset.checks import access
from domain.model.registry import repositories
from domain.query.api.rows import select_ids
from foundation.fields import utc_now
from foundation.messages import TranslatableMessage as Message
from identity.context import CallContext
from jobs.run import Run
from jobs.types.base import JobType, Setting, SettingRefused, Values, job_types

_NOTIFICATIONS = "Systems.Core.Notifications"
#: Notifications per commit.
BATCH = 100


@job_types.register
class DeleteOldNotifications(JobType):
    """progress: {"deleted": number}"""

    name = "DeleteOldNotifications"
    number = 2
    description = _("Deletes notifications that are older than a number of days.")
    settings = (
        Setting("Days", int, 90, _("Older than so many days"), required=False, default=90),
        Setting("OnlyRead", bool, True, _("Only those that were read"), required=False, default=False),
    )

    def check(self, values: Values, context: CallContext) -> Iterator[SettingRefused]:
        """A number of days, and the right to delete notifications."""
        if not 1 <= values["Days"] <= 36500:
            yield SettingRefused("Days", Message("{0} must be like {1}", "Days", 90))
        if not access.allowed(context, repositories[_NOTIFICATIONS], "delete"):
            yield SettingRefused("", Message("you may not delete {0}", _NOTIFICATIONS))

    def run(self, run: Run, values: Values) -> str:
        """Delete in batches. Raises Forbidden for notifications that the author may not delete."""
        repository = repositories[_NOTIFICATIONS]
        oldest = (utc_now() - timedelta(days=values["Days"])).strftime("%Y-%m-%dT%H:%M:%SZ")
        condition = f"CreationTimeUtc lt {oldest}" + (" and IsRead eq true" if values["OnlyRead"] else "")
        run.progress.setdefault("deleted", 0)
        while ids := select_ids(repository, ctx=run.context, filter=condition, orderby="Id", limit=BATCH):
            run.check_time()
            dataset = run.dataset()
            for id in ids:
                dataset.delete(dataset.open(repository, id, "delete"))
            run.progress["deleted"] += len(ids)
            dataset.commit()
        return f"{run.progress['deleted']} notifications deleted."
