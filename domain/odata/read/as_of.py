"""Reads as of a time: $at, and the versions of one entity between $from and $to (spec 12, 12.3).

The options are those of the OData Extension for Temporal Data for system time. A time has a zone; a date such as
2026-11-01 is its midnight, UTC. A read sees the commits up to and including that time.
"""

from __future__ import annotations

import datetime
from dataclasses import replace
from itertools import zip_longest
from typing import Any
from urllib.parse import quote

import orjson
from django.utils.dateparse import parse_date, parse_datetime

from domain import query
from domain.dataset.commit.tracking import as_of, tracking_of
from domain.dataset.tables.history import ObjectChange
from domain.odata.message.message import ODataRequest
from domain.odata.resources import targets
from domain.query.base.representation import Representation
from foundation import errors
from foundation.fields import utc_now
from foundation.messages import TranslatableMessage as Message
from foundation.messages import written
from foundation.short_texts import cache_short_texts
from foundation.texts import utc_text
from identity.context import CallContext

#: Maximum of versions in one response; a next link leads to further ones.
_MOST_VERSIONS = 100


def at_time(context: CallContext, text: str | None) -> CallContext:
    """The context for reads as of the time; unchanged for None. Raises BadRequest."""
    return context if text is None else context.with_(at=as_of(moment_of("$at", text)))


def moment_of(option: str, text: str) -> datetime.datetime:
    """The time that an option names. Raises BadRequest for another text, and for the future."""
    result = _parsed(text)
    if result is None:
        raise errors.BadRequest(
            errors.BAD_QUERY_OPTION,
            option,
            Message("{0} is no time with a zone, such as 2026-01-31T12:00:00Z", written(text)[:100]),
            target=option,
        )
    if result > utc_now():
        raise errors.BadRequest(errors.BAD_QUERY_OPTION, option, Message("it is in the future"), target=option)
    return result


@cache_short_texts(256, longest=100)
def _parsed(text: str) -> datetime.datetime | None:
    try:
        found = parse_datetime(text)
        if found is not None:
            return None if found.tzinfo is None else found.astimezone(datetime.UTC)
        day = parse_date(text)
    except (ValueError, OverflowError):
        return None
    return None if day is None else datetime.datetime(day.year, day.month, day.day, tzinfo=datetime.UTC)


def versions_between(request: ODataRequest, target: targets.Entity, representation: Representation) -> bytes:
    """The versions that an entity had between $from (the beginning of its history) and $to (now), as JSON.

    Each has @erpnet.from, the time from which it held, and @erpnet.to, the time of the change that replaced it. Raises
    BadRequest, and NotFound if the caller can see none.
    """
    options = request.options
    if options.at is not None:
        raise errors.BadRequest(errors.BAD_QUERY_OPTION, "$at", Message("it cannot stand beside $from"), target="$at")
    now = utc_now()
    until = now if options.to_time is None else moment_of("$to", options.to_time)
    if options.from_time is not None:
        since = moment_of("$from", options.from_time)
        if since > until:
            raise errors.BadRequest(errors.BAD_QUERY_OPTION, "$to", Message("it is before $from"), target="$to")
    else:
        # The entity may be older than its history. A read as of a time before the history is refused.
        since = min(tracking_of(target.repository).known_since(now) or until, until)
    changes = ObjectChange.objects.filter(
        entity_item_id=target.key, change_time_utc__gt=since, change_time_utc__lte=until
    )
    times = changes.order_by("change_time_utc").values_list("change_time_utc", flat=True).distinct()
    begun = [since, *times[:_MOST_VERSIONS]]
    versions: list[dict[str, Any]] = []
    bare = replace(options, from_time=None, to_time=None)
    for moment, ended in zip_longest(begun[:_MOST_VERSIONS], begun[1 : _MOST_VERSIONS + 1]):
        context = request.context.with_(at=as_of(moment, now=now))
        found = query.read_entity(target.repository, target.key, bare, context, representation)
        if found is None:
            continue
        values = {"@erpnet.from": utc_text(moment), **orjson.loads(found.body)}
        if ended is not None:
            values["@erpnet.to"] = utc_text(ended)
        versions.append(values)
    if not versions:
        raise errors.NotFound(errors.ENTITY_NOT_FOUND, target.repository.entity_type, target.key)
    body: dict[str, Any] = {"value": versions}
    if len(begun) > _MOST_VERSIONS:
        period = f"$from={quote(utc_text(begun[_MOST_VERSIONS]))}&$to={quote(utc_text(until))}"
        body["@odata.nextLink"] = f"{request.service_root}{request.path}?{period}"
    return orjson.dumps(body)
