"""Licensed sessions: opened by the first request, extended by the next ones, closed at sign-out (spec 01, 1.8).

A request of a recently used session runs no query: the process caches until when the session is known to be open (at
most WRITE_SECONDS after the last write), and closing a session bumps the cache version "sessions", so that every
process queries again. Slots are taken in one serialized database transaction, so there are never more open rows than
slots, whatever the number of processes.
"""

from __future__ import annotations

import datetime
import math
import threading
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from django.contrib.sessions.models import Session as BrowserSession
from django.db import OperationalError, connection, transaction
from django.db.models import QuerySet
from django.utils.translation import gettext_noop

from foundation import cache_versions, errors
from foundation.fields import utc_now
from foundation.lock_waits import is_locked, short_lock_wait
from identity import session_hooks
from identity.licences import LicenceTerms, licence_read
from identity.lru import GenerationalCache
from identity.models import Session, SignInApplication, TrustedApplication
from identity.rate_limits import check_session_opening, note_session_opened

CACHE_VERSION = "sessions"
IDLE = datetime.timedelta(minutes=20)
SERVICE_LIFETIME = datetime.timedelta(hours=1)
WRITE_SECONDS = 30
#: Time until the next attempt after the database was busy.
RETRY_SECONDS = 1
MAX_RETRY_SECONDS = 1200
#: Retention of closed sessions and past sign-ins: three times the range of the usage chart.
CLOSED_RETENTION = datetime.timedelta(days=90)
# An arbitrary number that no other lock of the instance uses.
_ADVISORY_LOCK = 0x5E55_1045

CLOSED_EXPIRED = gettext_noop("expired")
CLOSED_SIGNED_OUT = gettext_noop("signed out")
CLOSED_BY_ADMINISTRATOR = gettext_noop("administrator")
CLOSED_PASSWORD = gettext_noop("new password")
CLOSED_FOR_NEWER = gettext_noop("for a newer session")


@dataclass(frozen=True, slots=True)
class SessionKey:
    """Identity of a token's session: `key` is its sid; the other fields are for opening the session."""

    key: str
    user_id: str
    application_id: str
    is_service: bool


@dataclass(slots=True)
class _CachedSession:
    """A cached open session; `fresh_until` is a UTC timestamp."""

    session_id: str
    version: int
    fresh_until: float


_known: GenerationalCache[str, _CachedSession] = GenerationalCache(4096)
_lock = threading.Lock()


def session_touch(key: SessionKey, client_address: str = "") -> str:
    """The id of the open session, opened if needed. Raises Unavailable (NoLicence) if no slot is free.

    Writes the last activity at most every WRITE_SECONDS.
    """
    known = _known.get(key.key)
    # utc_now() rather than a monotonic clock: the compared values are stored, and tests move the clock.
    version = cache_versions.current(CACHE_VERSION)
    if known is not None and known.fresh_until > utc_now().timestamp() and known.version == version:
        return known.session_id
    session_id, fresh_until = _extend(key) or _open(key, client_address)
    _known.put(key.key, _CachedSession(session_id, version, fresh_until.timestamp()))
    return session_id


def session_close(keys: Iterable[str]) -> int:
    """Close the open sessions with these keys; their slots are free when this returns. Returns their number."""
    return _close(Session.objects.filter(key__in=list(keys)), CLOSED_SIGNED_OUT)


def session_close_by_id(session_id: str) -> int:
    return _close(Session.objects.filter(pk=session_id), CLOSED_BY_ADMINISTRATOR)


def session_close_user(user_id: str, reason: str = CLOSED_BY_ADMINISTRATOR) -> int:
    return _close(Session.objects.filter(user_id=user_id), reason)


def sessions_sweep() -> int:
    """Close expired sessions; returns their number. Runs every minute, and when a caller finds no free slot."""
    now = utc_now()
    # Closed as of their expiry, so that the usage history does not depend on the time of the sweep.
    closed: list[str] = []
    with transaction.atomic():
        for session_id, expires in Session.objects.filter(closed=None, expires__lte=now).values_list("pk", "expires"):
            still_open = Session.objects.filter(pk=session_id, closed=None, expires__lte=now)
            if still_open.update(closed=expires, close_reason=CLOSED_EXPIRED):
                closed.append(str(session_id))
        session_hooks.sessions_closed(closed)
    return len(closed)


def sessions_prune() -> int:
    """Delete sessions that closed long ago; returns their number."""
    removed, _details = Session.objects.filter(closed__lt=utc_now() - CLOSED_RETENTION).delete()
    return removed


def browser_sessions_prune() -> int:
    """Delete expired browser sessions and old records of sign-ins; returns the number of sessions."""
    SignInApplication.objects.filter(last_joined__lt=utc_now() - CLOSED_RETENTION).delete()
    _total, removed = BrowserSession.objects.filter(expire_date__lt=utc_now()).delete()
    return removed.get(BrowserSession._meta.label, 0)


def sessions_list(*, include_closed: bool = False) -> QuerySet[Session]:
    """Sessions, newest first, with user and application."""
    result = Session.objects.select_related("user", "application").order_by("-opened")
    return result if include_closed else result.filter(closed=None, expires__gt=utc_now())


def _close(sessions: QuerySet[Session], reason: str) -> int:
    with transaction.atomic():
        ids = [str(pk) for pk in sessions.filter(closed=None).values_list("pk", flat=True)]
        closed = Session.objects.filter(pk__in=ids, closed=None).update(closed=utc_now(), close_reason=reason)
        if closed:
            session_hooks.sessions_closed(ids)
            cache_versions.bump(CACHE_VERSION)
    return closed


def _extend(key: SessionKey) -> tuple[str, datetime.datetime] | None:
    """Extend the open session by one conditional update; None if there is none, or if it has ended meanwhile."""
    now = utc_now()
    row = (
        Session.objects.filter(key=key.key, closed=None, expires__gt=now)
        .values_list("pk", "last_activity", "absolute_expires", "expires")
        .first()
    )
    if row is None:
        return None
    session_id, last_activity, absolute_expires, expires = row
    if (now - last_activity).total_seconds() >= WRITE_SECONDS:
        extended = min(now + IDLE, absolute_expires) if absolute_expires else now + IDLE
        try:
            with short_lock_wait():
                kept = Session.objects.filter(pk=session_id, closed=None).update(last_activity=now, expires=extended)
        except OperationalError as exc:
            if not is_locked(exc):
                raise
            # A later request will extend it.
            return str(session_id), min(expires, now + datetime.timedelta(seconds=RETRY_SECONDS))
        if not kept:
            return None
        last_activity, expires = now, extended
    return str(session_id), min(expires, last_activity + datetime.timedelta(seconds=WRITE_SECONDS))


def _open(key: SessionKey, client_address: str) -> tuple[str, datetime.datetime]:
    with _lock, transaction.atomic():
        # SQLite: the transaction began IMMEDIATE, so it is the only writer. PostgreSQL: this lock makes it the only
        # opener; it is released with the transaction.
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_ADVISORY_LOCK])
        # A concurrent request may have opened the session.
        if result := _extend(key):
            return result
        # Under the lock, so that each of several concurrent requests sees the counts of the earlier ones.
        check_session_opening(key.application_id, key.user_id)
        opened = _take_slot(key, client_address)
    # Raised outside, so that the sweep is committed.
    if isinstance(opened, errors.PlatformError):
        raise opened
    return opened


@dataclass(frozen=True, slots=True)
class _Holder:
    """An open session, as read when a slot is taken."""

    id: str
    user_id: str
    application_id: str
    last_activity: datetime.datetime
    expires: datetime.datetime


def _holders() -> list[_Holder]:
    rows = Session.objects.filter(closed=None).values_list(
        "pk", "user_id", "application_id", "last_activity", "expires"
    )
    return [_Holder(str(pk), str(user), str(application), last, ends) for pk, user, application, last, ends in rows]


def _take_slot(key: SessionKey, client_address: str) -> tuple[str, datetime.datetime] | errors.Unavailable:
    sessions_sweep()
    terms = licence_read()
    holders = _holders()
    replaced = _replaced(key.application_id, holders)
    open_by_user = Counter(holder.user_id for holder in holders if holder.id not in replaced)
    now = utc_now()
    if not terms.admits(key.user_id, open_by_user):
        seconds = _seconds_until_free(key.user_id, terms, holders, now)
        return errors.Unavailable(errors.NO_LICENCE, seconds, retry_after_seconds=seconds)
    if replaced:
        _close(Session.objects.filter(pk__in=replaced), CLOSED_FOR_NEWER)
        now = utc_now()  # so that the sessions do not overlap in the usage history
    absolute = now + SERVICE_LIFETIME if key.is_service else None
    session = Session.objects.create(
        key=key.key,
        user_id=key.user_id,
        application_id=key.application_id,
        is_service=key.is_service,
        client_address=client_address,
        opened=now,
        last_activity=now,
        absolute_expires=absolute,
        expires=now + IDLE,
    )
    note_session_opened(key.application_id, key.user_id)
    return session.pk, now + datetime.timedelta(seconds=WRITE_SECONDS)


def _replaced(application_id: str, holders: list[_Holder]) -> set[str]:
    """Ids of the application's longest idle sessions to close before a new one opens; none below MaxSessions.

    Several if an administrator has lowered the limit.
    """
    limit = TrustedApplication.objects.filter(pk=application_id).values_list("max_sessions", flat=True).first()
    if limit is None:
        return set()
    own = sorted((holder.last_activity, holder.id) for holder in holders if holder.application_id == application_id)
    return {session_id for _last_activity, session_id in own[: max(0, len(own) - limit + 1)]}


def _seconds_until_free(user_id: str, terms: LicenceTerms, holders: list[_Holder], now: datetime.datetime) -> int:
    """Seconds until a slot for this user can become free: 1 to MAX_RETRY_SECONDS."""
    open_by_user = Counter(holder.user_id for holder in holders)
    useful = [
        holder.expires
        for holder in holders
        # The end of a session on a reserved seat frees a slot for its owner only.
        if holder.user_id == user_id or terms.beyond_seats(holder.user_id, open_by_user[holder.user_id]) > 0
    ]
    if not useful:
        return MAX_RETRY_SECONDS
    return min(MAX_RETRY_SECONDS, max(1, math.ceil((min(useful) - now).total_seconds())))


def forget() -> None:
    """Drop the cached sessions (tests)."""
    _known.clear()


def open_count() -> int:
    """The number of taken slots."""
    return Session.objects.filter(closed=None, expires__gt=utc_now()).count()
