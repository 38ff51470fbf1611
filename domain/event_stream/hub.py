"""The subscribers of a process, and the thread that reads the change feed for all of them.

It looks every LOOK_SECONDS, with one query while nothing has happened. Subscribers with the same position share what is
read, and those that also have the same rights what is rendered. The others are served one by one, a page at a time, and
their callers take turns: many subscribers of one caller, each with an old cursor, hold up no other caller's. The thread
ends with its last subscriber.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import Any

from django.db import connection

from domain.entities.custom_entities.live import follow
from domain.event_stream import feed
from domain.event_stream.cloud_events import is_temporary, render
from domain.event_stream.feed import Page
from domain.event_stream.subscription import Rendered, Subscription
from foundation import errors
from foundation.execution_slot import yield_to_requests
from foundation.fair_queue import FairQueue, has_free_place
from identity.session_positions import position_note

logger = logging.getLogger("platform.events")

#: Interval of looks at the feed.
LOOK_SECONDS = 0.2
#: Events that a subscriber is given at once.
PAGE = 50
#: A round ends after this time; the next one goes on with the callers whose turn it is.
ROUND_SECONDS = 0.4
#: The rights of a subscriber are those that it had at most this long ago.
RENEW_SECONDS = 4.0
#: Maximum subscribers of a process; the last ones are for callers with few of them, so that no caller takes all.
SUBSCRIBERS = 800
RESERVED = 100
_RETRY_SECONDS = 5

_Pages = dict[tuple[int, frozenset[str] | None], Page]
_Events = dict[tuple[Any, ...], list[Rendered]]


class Hub:
    """The subscribers of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._subscriptions: dict[Subscription, None] = {}
        self._is_looking = False
        self._stopping = threading.Event()
        # Of the thread alone: those that wait for events, in the order of their callers' turns.
        self._queue: FairQueue[Subscription] = FairQueue()
        self._queued: set[Subscription] = set()

    def check_room(self, caller: str) -> None:
        """Raise Unavailable if the process has no room for another subscriber of the caller."""
        with self._lock:
            taken_by = [each.caller for each in self._subscriptions]
        if not has_free_place(taken_by, caller, places=SUBSCRIBERS, reserved=RESERVED):
            raise errors.Unavailable(
                errors.TOO_MANY_SUBSCRIBERS, SUBSCRIBERS, _RETRY_SECONDS, retry_after_seconds=_RETRY_SECONDS
            )

    def add(self, subscription: Subscription) -> None:
        """Give the subscriber events from now on."""
        with self._lock:
            self._subscriptions[subscription] = None
            if not self._is_looking:
                self._is_looking = True
                threading.Thread(target=self._look, name="change stream", daemon=True).start()

    def remove(self, subscription: Subscription) -> None:
        """Give it none any more, if it is a subscriber."""
        with self._lock:
            self._subscriptions.pop(subscription, None)

    def stop(self) -> None:
        """End all responses, because the process stops; clients go on elsewhere from their cursors."""
        self._stopping.set()
        for subscription in list(self._subscriptions):
            subscription.pass_time(is_stopping=True)

    def _look(self) -> None:
        while True:
            with self._lock:
                subscriptions = list(self._subscriptions)
                self._is_looking = bool(subscriptions)
            if not subscriptions:
                break
            try:
                is_behind = self._serve(subscriptions)
            except Exception:
                # Subscribers keep their positions; the next look may succeed.
                logger.warning("could not read the change feed", exc_info=True)
                connection.close()
                is_behind = False
            for each in subscriptions:
                each.pass_time(is_stopping=self._stopping.is_set())
            if not is_behind:
                self._stopping.wait(LOOK_SECONDS)
        connection.close()

    def _serve(self, subscriptions: list[Subscription]) -> bool:
        """Give subscribers their next events, the callers in turn; returns whether there is more to give at once."""
        follow()
        feed.look()
        for each in subscriptions:
            if each not in self._queued and (feed.is_news(each.last) or _is_to_renew(each)):
                self._queued.add(each)
                self._queue.put(each)
        # They may read next what they are told.
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
                and feed.is_news(subscription.last)
            ):
                return False
            page = _page(subscription, pages)
            is_whole = subscription.give(_events(subscription, page, events), page.last)
        except Exception as error:
            if is_temporary(error):
                raise
            # It may go on from its cursor. The others must not wait for it.
            subscription.fail(error)
            return False
        yield_to_requests()
        return page.is_full or not is_whole


def _is_to_renew(subscription: Subscription) -> bool:
    return time.monotonic() - subscription.renewed_at >= RENEW_SECONDS


def _is_renewed(subscription: Subscription) -> bool:
    """Whether the subscriber still has rights; the response of one that has none ends, as its token has."""
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
    key = subscription.last, subscription.asked.names
    if key not in pages:
        pages[key] = feed.read(subscription.last, PAGE, subscription.asked.names)
    return pages[key]


def _events(subscription: Subscription, page: Page, events: _Events) -> list[Rendered]:
    key = (subscription.scope, subscription.last, subscription.asked)
    if key not in events:
        wanted = [entry for entry in page.entries if subscription.asked.wants(entry)]
        events[key] = render(wanted, subscription.context) if wanted else []
    return events[key]


hub = Hub()
