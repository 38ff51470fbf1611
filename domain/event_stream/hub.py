"""The subscribers of a process, and the thread that reads the change feed for all of them.

While there are no new entries, it runs one query. Subscribers at the same position share the entries read, and those
with equal rights also the rendered events. Others are served one by one, a page at a time, and their callers take
turns, so that many subscribers of one caller with old cursors do not delay other callers.
"""

from __future__ import annotations

import logging
import time
from typing import Any

from domain.entities.custom_entities.live import follow
from domain.event_stream import feed
from domain.event_stream.cloud_events import is_temporary, render
from domain.event_stream.feed import Page
from domain.event_stream.subscription import Rendered, Subscription
from foundation import errors
from foundation.execution_slot import yield_to_requests
from foundation.fair_queue import FairQueue
from foundation.listeners import RETRY_SECONDS, Listeners
from identity.session_positions import position_note

logger = logging.getLogger("platform.events")

#: Maximum events given to a subscriber at once.
PAGE = 50
#: Maximum time of a round; the next round continues with the next callers.
ROUND_SECONDS = 0.4
#: Maximum age of a subscriber's rights.
RENEW_SECONDS = 4.0

_Pages = dict[tuple[int, frozenset[str] | None], Page]
_Events = dict[tuple[Any, ...], list[Rendered]]


class Hub(Listeners[Subscription]):
    """The subscribers of this process."""

    poll_seconds = 0.2
    #: A process may be a node of its own, which has 1,000 (spec 13, 13.5), also for one caller.
    max_listeners = 1_100
    reserved = 100

    def __init__(self) -> None:
        super().__init__()
        # Used only by the hub's thread: subscribers that wait for events, in the order of their callers' turns.
        self._queue: FairQueue[Subscription] = FairQueue()
        self._queued: set[Subscription] = set()

    def capacity_error(self) -> errors.Unavailable:
        return errors.Unavailable(
            errors.TOO_MANY_SUBSCRIBERS, self.max_listeners, RETRY_SECONDS, retry_after_seconds=RETRY_SECONDS
        )

    def serve(self, listeners: list[Subscription]) -> bool:
        """Give subscribers their next events, the callers in turn; returns whether there is more to give at once."""
        follow()
        feed.poll()
        for each in listeners:
            if each not in self._queued and (feed.has_newer(each.last) or _is_to_renew(each)):
                self._queued.add(each)
                self._queue.put(each)
        # Subscribers may next read the entities of their events.
        position_note(each.context.session_id for each in self._queued)
        deadline = time.monotonic() + ROUND_SECONDS
        pages: _Pages = {}
        events: _Events = {}
        is_behind = False
        while (subscription := self._queue.take()) is not None:
            self._queued.discard(subscription)
            is_behind |= self._give_next(subscription, pages, events)
            if time.monotonic() >= deadline:
                is_behind |= bool(self._queue)
                break
        return is_behind

    def _give_next(self, subscription: Subscription, pages: _Pages, events: _Events) -> bool:
        """Give a subscriber a page; returns whether more may follow at once."""
        try:
            if not (
                subscription.is_open
                and _is_renewed(subscription)
                and subscription.may_send()
                and feed.has_newer(subscription.last)
            ):
                return False
            page = _page(subscription, pages)
            is_whole = subscription.give(_events(subscription, page, events), page.last)
        except Exception as error:
            if is_temporary(error):
                raise
            # The client can reconnect with its cursor. The other subscribers must not wait.
            subscription.fail(error)
            return False
        yield_to_requests()
        return page.is_full or not is_whole


def _is_to_renew(subscription: Subscription) -> bool:
    return time.monotonic() - subscription.renewed_at >= RENEW_SECONDS


def _is_renewed(subscription: Subscription) -> bool:
    """Renew the subscriber's rights; False, with its response ended, if its token or rights have ended."""
    if not _is_to_renew(subscription):
        return True
    try:
        subscription.renew()
    except errors.PlatformError as refusal:
        logger.info("a subscriber may not listen any more: %s", refusal)
        subscription.fail(refusal)
        return False
    return True


def _page(subscription: Subscription, pages: _Pages) -> Page:
    key = subscription.last, subscription.filter.names
    if key not in pages:
        pages[key] = feed.read(subscription.last, PAGE, subscription.filter.names)
    return pages[key]


def _events(subscription: Subscription, page: Page, events: _Events) -> list[Rendered]:
    key = (subscription.scope, subscription.last, subscription.filter)
    if key not in events:
        wanted = [entry for entry in page.entries if subscription.filter.wants(entry)]
        events[key] = render(wanted, subscription.context) if wanted else []
    return events[key]


hub = Hub()
