"""How long the change feed is kept (spec 02, 2.2): as long as a delta link may still ask for it."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings

from domain.dataset.tables.models import ChangeFeedEntry
from foundation.fields import utc_now

#: Rows deleted by one statement: on SQLite each holds up the other writers, for some milliseconds and no longer.
_ENTRIES_AT_ONCE = 5_000
#: An entry bears the time of its change, which may lie before the commit that made it visible.
_LONGEST_COMMIT = timedelta(days=1)


def change_feed_prune(days: int | None = None) -> int:
    """Delete entries that no delta link can ask for any more; how many.

    days is how long a link stays good, by default DELTA_RETENTION_DAYS. The newest entry stays whatever its age: by it
    a link knows that the feed is still the one that it came from (domain.odata.read.deltas).
    """
    kept = timedelta(days=settings.DELTA_RETENTION_DAYS if days is None else days)
    newest = ChangeFeedEntry.objects.order_by("-id").values_list("id", flat=True).first()
    if newest is None:
        return 0
    old = ChangeFeedEntry.objects.filter(changed_at__lt=utc_now() - kept - _LONGEST_COMMIT, id__lt=newest)
    deleted = 0
    while ids := list(old.order_by("id").values_list("id", flat=True)[:_ENTRIES_AT_ONCE]):
        # Commits of different transactions interleave, so the ids are no range of their own.
        deleted += ChangeFeedEntry.objects.filter(id__in=ids).delete()[0]
    return deleted
