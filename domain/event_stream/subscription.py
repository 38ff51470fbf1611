"""One subscriber of the change stream: its filter, its position, and the framing of its response."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import orjson
from django.http import HttpResponse

from domain.event_stream.cloud_events import type_of
from domain.event_stream.feed import Entry, cursor_of
from foundation.listeners import WHITE_SPACE, Listener, Listeners
from identity.context import CallContext

#: Maximum duration of a stream; then the client reconnects, which redistributes connections over the processes.
STREAM_SECONDS = 3600.0
#: Maximum bytes of events sent at once.
PART_BYTES = 128 * 1024

#: An event: its entry, and its JSON.
Rendered = tuple[Entry, bytes]


@dataclass(frozen=True, slots=True)
class StreamFilter:
    """The filter of a subscriber.

    names        of repositories, a base with those derived from it; None for all
    operations   I, U, D
    """

    names: frozenset[str] | None
    operations: frozenset[str]

    def wants(self, entry: Entry) -> bool:
        """Whether the entry matches the filter."""
        return entry.operation in self.operations and (self.names is None or entry.repository in self.names)


class Framing(Protocol):
    """The framing of events in a response."""

    def first_part(self, last: int) -> bytes:
        """The first part."""

    def events(self, events: Sequence[Rendered], last: int) -> bytes:
        """The part for events; last: the position after them."""

    def keep_alive_part(self, last: int) -> bytes:
        """The keep-alive part of an idle connection."""

    def last_part(self, last: int) -> bytes:
        """The part when the time is over."""

    def failure(self, error: bytes) -> bytes:
        """The last part of a response that has begun and fails; error: the JSON of an error response."""

    def ends_after(self, events: Sequence[Rendered]) -> bool:
        """Whether the response ends with these events."""


class ServerSentEvents:
    """text/event-stream (WHATWG HTML, 9.2). The id of an event is its cursor, which clients repeat as Last-Event-ID."""

    content_type = "text/event-stream"

    def first_part(self, last: int) -> bytes:
        """The client's reconnection time in milliseconds, and its position."""
        return b"retry: 1000\n" + self.keep_alive_part(last)

    def events(self, events: Sequence[Rendered], last: int) -> bytes:
        """One message for each event."""
        return b"".join(
            b"id: %b\nevent: %b\ndata: %b\n\n"
            % (cursor_of(entry.id).encode(), type_of(entry.repository, entry.operation).encode(), event)
            for entry, event in events
        )

    def keep_alive_part(self, last: int) -> bytes:
        """An id without data: updates the client's position, without dispatching a message."""
        return b"id: %b\n\n" % cursor_of(last).encode()

    last_part = keep_alive_part

    def failure(self, error: bytes) -> bytes:
        """A message without an id: the client reconnects at its last position."""
        return b"event: error\ndata: %b\n\n" % error

    def ends_after(self, events: Sequence[Rendered]) -> bool:
        return False


class OneAnswer:
    """A long poll: {"events": […], "cursor": "…"} as soon as there are events, or at the end of the wait."""

    content_type = "application/json"

    def first_part(self, last: int) -> bytes:
        return b""

    def events(self, events: Sequence[Rendered], last: int) -> bytes:
        """The whole document."""
        return orjson.dumps({"events": [orjson.Fragment(event) for _, event in events], "cursor": cursor_of(last)})

    def keep_alive_part(self, last: int) -> bytes:
        return WHITE_SPACE

    def last_part(self, last: int) -> bytes:
        return self.events((), last)

    def failure(self, error: bytes) -> bytes:
        return error

    def ends_after(self, events: Sequence[Rendered]) -> bool:
        return bool(events)


class Subscription(Listener):
    """A subscriber.

    context   of the caller
    renew     authenticates the caller again. Raises PlatformError if the caller may no longer subscribe
    last      position up to which the subscriber has all events
    earlier   ids of entries after `last` that the subscriber must not get: they existed when it subscribed
    seconds   duration of the response
    """

    def __init__(
        self,
        hub: Listeners[Subscription],
        context: CallContext,
        filter: StreamFilter,
        framing: Framing,
        last: int,
        *,
        earlier: frozenset[int] = frozenset(),
        seconds: float,
        renew: Callable[[], CallContext],
        refusal: Callable[[Exception], HttpResponse],
    ) -> None:
        super().__init__(hub, context.user_id, seconds)
        self.context = context
        self.filter = filter
        self.last = last
        self.renewed_at = time.monotonic()
        self._earlier = earlier
        self._framing = framing
        self._renew, self._refusal = renew, refusal

    def first_part(self) -> bytes:
        return self._framing.first_part(self.last)

    def keep_alive_part(self) -> bytes:
        return self._framing.keep_alive_part(self.last)

    def last_part(self) -> bytes:
        return self._framing.last_part(self.last)

    @property
    def scope(self) -> tuple[Any, ...]:
        """All values on which rights, row policies and texts depend: subscribers with equal scopes get equal events."""
        context = self.context
        return (
            context.permissions.key, self.caller, context.application, context.company_id,
            context.location_id, context.role_id, context.language, context.culture, context.root_url,
        )  # fmt: skip

    def fail(self, error: Exception) -> None:
        """End the response with an error: as an error response if nothing has been sent, else as its last part."""
        refusal, writer = self._refusal(error), self._writer
        if self.has_begun:
            self.send(self._framing.failure(refusal.content))
        elif writer is not None:
            writer.refuse(refusal)
        self.close()

    def renew(self) -> None:
        """Update the context to the caller's current rights. Raises PlatformError."""
        self.context = self._renew()
        self.renewed_at = time.monotonic()

    def give(self, events: Sequence[Rendered], last: int) -> bool:
        """Send events up to PART_BYTES, at least one; returns whether all are sent.

        last: the subscriber's position once all are sent.
        """
        if self._earlier:
            events = [event for event in events if event[0].id not in self._earlier]
        count, size = 0, 0
        for _, event in events:
            size += len(event)
            if count and size > PART_BYTES:
                break
            count += 1
        sent, is_whole = events[:count], count == len(events)
        self.last = last if is_whole else sent[-1][0].id
        if sent:
            self.send(self._framing.events(sent, self.last))
            if self._framing.ends_after(sent):
                self.close()
        return is_whole
