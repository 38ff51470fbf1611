"""Change tracking (spec 02, 2.2; OData Protocol 4.01, 11.3; OData JSON 4.01, 15).

`Prefer: odata.track-changes` on a set gives `@odata.deltaLink` on the last page. Its $deltatoken holds the position in
the change feed when the first page was read. A delta returns the changes committed after that position: entities that
match the defining query now, and `@removed` for those that were deleted, no longer match $filter, or are no longer
visible to the caller. An entity may be reported twice, which does no harm, but is never missed.

A caller with row policies must learn nothing of hidden entities, not even that they change. So the token of such a
caller also contains marks (truncated hashes of the ids) of the visible entities, and `@removed` names only these. The
token grows with the set: beyond SEEN_MAX entities the set of a restricted caller is not tracked.

An entity is reported only if it was itself written. So a set that depends on changes of other entities (a view,
$expand, $apply, an owned collection), or on their number ($top, $skip), is not tracked: the preference is not applied
then, as the response shows (8.2.8.6), and a $deltatoken beside such an option is answered with 501.
"""

from __future__ import annotations

import base64
import hashlib
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import orjson
from django.conf import settings
from django.db import connection

from domain import query
from domain.dataset.tables.models import ChangeFeedEntry
from domain.model.repository import Repository
from domain.odata.message.references import reference_path
from domain.odata.resources import targets
from domain.query.base.access import Access
from domain.query.base.context_url import context_suffix
from domain.query.base.representation import Representation
from domain.syntax import parse_boolean_expression, parse_select
from domain.syntax.ast import Expression, Logical, QueryOptions
from foundation import errors, signed_tokens
from foundation.messages import TranslatableMessage as Message
from identity.context import CallContext

_DAY_SECONDS = 86_400
#: On PostgreSQL a transaction that was open when the token was made may have written entries with lower ids than the
#: token's last. This many earlier entries are compared with the snapshot in the token.
_IN_FLIGHT_ENTRIES = 20_000
_ENTRIES_FOR_EACH = 4
_SPLIT = b'"value":['
#: Maximum of marks in a token: a link must stay below 8 KB (spec 02, 2.6).
SEEN_MAX = 1000
#: Length of a mark. A hidden entity is falsely reported as removed once in 2^24 / SEEN_MAX changes.
_MARK_BYTES = 3
_UNTRACKED = ("expand", "apply", "top", "skip", "at")


@dataclass(frozen=True, slots=True)
class Watermark:
    """A position in the change feed.

    last       id of the newest visible entry
    snapshot   PostgreSQL's snapshot at that time as text; "" on SQLite, which has one writer at a time
    issued     seconds since the epoch
    seen       marks of the entities that the caller could see, in base64; None for a caller without row policies
    """

    last: int
    snapshot: str
    issued: int
    seen: str | None = None

    def may_report(self, id: str) -> bool:
        """Whether the caller may learn that this entity existed."""
        return self.seen is None or _mark(id) in self._marks()

    def _marks(self) -> frozenset[bytes]:
        return _split_marks(self.seen or "")


@lru_cache(maxsize=16)
def _split_marks(seen: str) -> frozenset[bytes]:
    joined = base64.b64decode(seen)
    return frozenset(joined[at : at + _MARK_BYTES] for at in range(0, len(joined), _MARK_BYTES))


def _mark(id: str) -> bytes:
    return hashlib.blake2b(id.encode(), key=settings.SECRET_KEY.encode()[:64], digest_size=_MARK_BYTES).digest()


def tracks_changes(context: CallContext) -> bool:
    """Whether the caller asks for delta links (OData Protocol 4.01, 8.2.8.6)."""
    return "odata.track-changes" in context.prefer or "track-changes" in context.prefer


def untrackable(target: targets.Collection, options: QueryOptions) -> str | None:
    """The part of a query for which changes cannot be tracked; None if the query can be tracked."""
    if target.parent is not None:
        return Message("an owned collection")
    if target.repository.view_of:
        return Message("a view")
    name = options.first_given(_UNTRACKED)
    return None if name is None else f"${name}"


def watermark_for(repository: Repository[Any], context: CallContext) -> Watermark | None:
    """The current position for the caller; None for a restricted caller who sees more than SEEN_MAX entities."""
    now = watermark_now()
    if not Access(context.permissions).restricts(repository):
        return now
    ids = query.select_ids(repository, ctx=context, limit=SEEN_MAX + 1)
    if len(ids) > SEEN_MAX:
        return None
    return replace(now, seen=base64.b64encode(b"".join(sorted({_mark(id) for id in ids}))).decode())


# --- tokens -------------------------------------------------------------------------------------------------------


def watermark_now() -> Watermark:
    """The current position. Taken before the rows are read: changes committed meanwhile are reported again."""
    snapshot = ""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_current_snapshot()::text")
            (snapshot,) = cursor.fetchone()
    last = ChangeFeedEntry.objects.order_by("-id").values_list("id", flat=True).first() or 0
    return Watermark(last, snapshot, int(time.time()))


def make_token(watermark: Watermark, target: targets.Collection, options: QueryOptions) -> str:
    """The opaque $deltatoken, bound to the set and the defining query."""
    payload = orjson.dumps([watermark.last, watermark.snapshot, watermark.issued, watermark.seen])
    return signed_tokens.make_token("deltatoken", _query_key(target, options), payload)


def read_token(token: str, target: targets.Collection, options: QueryOptions) -> Watermark:
    """The position in a token. Raises BadRequest(INVALID_DELTATOKEN), and Gone for one that is too old."""
    try:
        payload = signed_tokens.read_token("deltatoken", _query_key(target, options), token)
    except ValueError as exc:
        raise errors.BadRequest(errors.INVALID_DELTATOKEN) from exc
    watermark = Watermark(*orjson.loads(payload))
    if time.time() - watermark.issued > settings.DELTA_RETENTION_DAYS * _DAY_SECONDS:
        raise errors.Gone(errors.DELTA_EXPIRED)
    return watermark


def _query_key(target: targets.Collection, options: QueryOptions) -> bytes:
    # repr includes positions, which equality ignores; the defining query is rendered again in each link.
    return repr((target.repository.name, _definition(target, options))).encode() + b"\0"


def _definition(target: targets.Collection, options: QueryOptions) -> tuple[Any, ...]:
    return (target.predicates, options.filter, options.search, options.select, options.compute, options.aliases)


# --- the delta ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Changes:
    """Ids of entities in one page of the feed, in order. rest: whether more changes follow after `upto`."""

    written: list[str]
    deleted: list[str]
    upto: Watermark
    rest: bool


class Delta:
    """A page of the changes since a token. Raises BadRequest and Gone, as `read_token`."""

    def __init__(
        self,
        token: str,
        target: targets.Collection,
        options: QueryOptions,
        context: CallContext,
        *,
        max_page_size: int | None,
    ) -> None:
        self._target, self._options, self._context = target, options, context
        self._since = read_token(token, target, options)
        if self._since.seen is None and Access(context.permissions).restricts(target.repository):
            # The token belongs to a caller with more rights, or was made before this caller's rights were reduced.
            raise errors.Gone(errors.DELTA_EXPIRED)
        page = min(max_page_size or settings.PAGE_SIZE_MAX, settings.PAGE_SIZE_MAX)
        self._changes = _changes(target.repository, self._since, page)

    @property
    def written(self) -> list[str]:
        """The ids of the entities that were created or changed, at most a page."""
        return self._changes.written

    def gone(self, matching: Collection[str]) -> list[tuple[str, str]]:
        """(id, reason) of the entities to report as removed. matching: the written ones that match the query."""
        since = self._since
        found = [(id, "deleted") for id in self._changes.deleted if since.may_report(id)]
        return found + [(id, "changed") for id in self.written if id not in matching and since.may_report(id)]

    def next_link(self, base: str) -> tuple[str, str]:
        """(nextLink or deltaLink, the link); base ends with "?" or "&". Call after the entities were read."""
        watermark = _next_watermark(self._since, self._changes, self._target.repository, self._context)
        link = f"{base}$deltatoken={make_token(watermark, self._target, self._options)}"
        return ("nextLink" if self._changes.rest else "deltaLink"), link


def among(ids: Sequence[str], filter: Expression | None) -> Expression:
    """The filter for those of the entities with these ids that match the filter."""
    listed = parse_boolean_expression(f"Id in ({','.join(ids)})")
    return listed if filter is None else Logical("and", (listed, filter))


def read_delta(
    token: str,
    target: targets.Collection,
    options: QueryOptions,
    context: CallContext,
    representation: Representation,
    *,
    link_base: str,
    max_page_size: int | None,
) -> bytes:
    """The JSON body of a delta. link_base is the request's URL without tokens, ending with "?" or "&"."""
    repository = target.repository
    delta = Delta(token, target, options, context, max_page_size=max_page_size)
    shown, matching = _rows(repository, delta.written, options, context, representation)
    gone = delta.gone(matching)
    removed = b",".join(orjson.dumps(_removed(repository, id, reason, representation)) for id, reason in gone)
    value = b",".join(part for part in (shown, removed) if part)
    head = {}
    if representation.metadata != "none":
        head["@odata.context"] = f"{_context(repository, options, representation)}/$delta"
    name, link = delta.next_link(link_base)
    start = orjson.dumps(head)[:-1] + (b"," if head else b"")
    return start + _SPLIT + value + b"]," + orjson.dumps({f"@odata.{name}": link})[1:]


def _next_watermark(
    since: Watermark, changes: _Changes, repository: Repository[Any], context: CallContext
) -> Watermark:
    """The position of the next link. Raises Gone if the caller's part of the set has become too large."""
    if changes.rest:
        # Keep the marks: entities that later pages report as removed were visible when this delta began.
        return replace(changes.upto, seen=since.seen)
    fresh = watermark_for(repository, context)
    if fresh is None:
        raise errors.Gone(errors.DELTA_EXPIRED)
    return replace(changes.upto, seen=fresh.seen)


def _changes(repository: Repository[Any], since: Watermark, page: int) -> _Changes:
    names = [repository.name, *(subtype.name for subtype in repository.subtypes)]
    now = watermark_now()
    if since.last > now.last:
        # The database was restored from a backup.
        raise errors.Gone(errors.DELTA_EXPIRED)
    entries = ChangeFeedEntry.objects.filter(repository__in=names, id__gt=since.last, id__lte=now.last).order_by("id")
    late = _committed_late(names, since)
    latest = {id: operation for _, id, operation in late}
    last, rest = now.last, False
    # Bounded, because frequently written entities would make a page read the whole feed.
    read = list(entries.values_list("id", "entity_id", "operation")[: _ENTRIES_FOR_EACH * page])
    for entry_id, id, operation in read:
        if id not in latest and len(latest) >= max(page, len(late) + 1):
            rest = True
            break
        # The last operation on an entity counts, and determines its place.
        latest.pop(id, None)
        latest[id] = operation
        last = entry_id
    rest = rest or (len(read) == _ENTRIES_FOR_EACH * page and last < now.last)
    upto = Watermark(last if rest else now.last, now.snapshot, now.issued)
    deleted = [id for id, operation in latest.items() if operation == "D"]
    return _Changes([id for id in latest if latest[id] != "D"], deleted, upto, rest)


def _committed_late(names: Sequence[str], since: Watermark) -> list[tuple[int, str, str]]:
    """Entries at or below the watermark that its snapshot did not see, because their transactions were open."""
    if not since.snapshot or connection.vendor != "postgresql":
        return []
    with connection.cursor() as cursor:
        # xmin is the low half of the transaction's number; those of the feed's newest entries are of the current epoch
        # or, just after a wrap, of the previous one.
        cursor.execute(
            """
            WITH near AS (
                SELECT id, entity_id, operation, xmin::text::bigint AS low,
                       pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS newest
                FROM domain_changefeedentry
                WHERE id <= %s AND id > %s AND repository = ANY(%s)
            ), numbered AS (
                SELECT id, entity_id, operation,
                       CASE WHEN ((newest >> 32) << 32) + low <= newest THEN ((newest >> 32) << 32) + low
                            ELSE ((newest >> 32) << 32) + low - 4294967296 END AS number
                FROM near
            )
            SELECT id, entity_id::text, operation FROM numbered
            WHERE number > 0 AND NOT pg_visible_in_snapshot(number::text::xid8, %s::pg_snapshot)
            ORDER BY id
            """,
            [since.last, since.last - _IN_FLIGHT_ENTRIES, list(names), since.snapshot],
        )
        return [(entry_id, id, operation) for entry_id, id, operation in cursor.fetchall()]


def _rows(
    repository: Repository[Any],
    ids: Sequence[str],
    options: QueryOptions,
    context: CallContext,
    representation: Representation,
) -> tuple[bytes, set[str]]:
    """(the entities that match, as JSON without brackets, their ids)."""
    if not ids:
        return b"", set()
    bare = replace(options, filter=among(ids, options.filter), count=None, orderby=())
    page = query.read_collection(repository, bare, context, representation, max_page_size=len(ids), may_end_early=False)
    start = page.body.index(_SPLIT) + len(_SPLIT)
    keys_only = replace(bare, select=parse_select("Id"), compute=())
    keys = query.read_collection(repository, keys_only, context, Representation("none"), max_page_size=len(ids))
    return page.body[start:-2], {row["Id"] for row in orjson.loads(keys.body)["value"]}


def _removed(repository: Repository[Any], id: str, reason: str, representation: Representation) -> dict[str, Any]:
    """A deleted entity in the format of the version (OData JSON 4.01, 15.3, and 4.0, 15.2)."""
    path = reference_path(repository, id)
    if representation.version == "4.0":
        context = f"{representation.service_root}$metadata#{repository.set_name}/$deletedEntity"
        return {"@odata.context": context, "id": path, "reason": reason}
    return {"@removed": {"reason": reason}, "@odata.id": path}


def _context(repository: Repository[Any], options: QueryOptions, representation: Representation) -> str:
    return f"{representation.service_root}$metadata#{repository.set_name}{context_suffix(repository, options)}"


__all__ = [
    "Delta", "among", "make_token", "read_delta", "read_token", "tracks_changes", "untrackable", "watermark_for",
    "watermark_now",
]  # fmt: skip
