"""Prunes the change feed (spec 02, 2.2): entries are kept as long as delta links may need them."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings

from domain.dataset.tables.models import ChangeFeedEntry
from foundation.fields import utc_now

#: Rows deleted by one statement: on SQLite each blocks the other writers for some milliseconds.
_ENTRIES_AT_ONCE = 5_000
#: An entry's time is that of its change, up to this long before the commit that makes it visible.
_LONGEST_COMMIT = timedelta(days=1)


def change_feed_prune() -> int:
    """Delete entries that no delta link needs any more (DELTA_RETENTION_DAYS); returns their number.

    The newest entry is always kept: it identifies the feed for delta links (domain.odata.read.deltas).
    """
    kept = timedelta(days=settings.DELTA_RETENTION_DAYS)
    newest = ChangeFeedEntry.objects.order_by("-id").values_list("id", flat=True).first()
    if newest is None:
        return 0
    old = ChangeFeedEntry.objects.filter(changed_at__lt=utc_now() - kept - _LONGEST_COMMIT, id__lt=newest)
    deleted = 0
    while ids := list(old.order_by("id").values_list("id", flat=True)[:_ENTRIES_AT_ONCE]):
        # Concurrent transactions interleave, so the ids are no contiguous range.
        deleted += ChangeFeedEntry.objects.filter(id__in=ids).delete()[0]
    return deleted
