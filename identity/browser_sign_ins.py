"""Lists the browsers in which a user is signed in to the pages of this instance, and signs them out.

The data of a browser session is encrypted, so its row cannot be found by user. A separate row has the user, and is
deleted with the session. It is written at a page request of a signed-in browser, at most once a minute.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass

from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.models import Session as BrowserSession
from django.db import DatabaseError, transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext

from foundation.fields import utc_now
from foundation.lock_waits import short_lock_wait
from foundation.texts import storable
from identity.instance import client_address
from identity.lru import GenerationalCache
from identity.models import BrowserSignIn, User

_SECONDS = 60.0
_KEPT_CHARACTERS = 300
#: Sign-ins that the profile lists.
_LISTED = 50
#: stored key → (user, monotonic time of the last write by this process)
_written: GenerationalCache[str, tuple[str, float]] = GenerationalCache(4096)

#: Name of the browser or system → pattern of its User-Agent, the more specific ones first.
_BROWSERS = {"Edge": r"Edg(?:e|A|iOS)?/", "Opera": r"OPR/", "Firefox": r"Firefox/|FxiOS/",
             "Chrome": r"Chrome/|CriOS/|Chromium/", "Safari": r"Safari/"}  # fmt: skip
_SYSTEMS = {"Android": "Android", "iPhone": "iPhone", "iPad": "iPad", "Windows": "Windows",
            "macOS": "Mac OS X|Macintosh", "ChromeOS": "CrOS", "Linux": "Linux"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class SignedInBrowser:
    """A sign-in for display; `is_current`: of the requesting browser."""

    sign_in: BrowserSignIn
    name: str
    is_current: bool


def browser_sign_in_record(request: HttpRequest, key: str) -> None:
    """Record that a user is signed in by the session with this stored key."""
    user_id = request.session.get(SESSION_KEY)
    now, known = time.monotonic(), _written.get(key)
    if user_id is None or (known is not None and known[0] == user_id and now - known[1] < _SECONDS):
        return
    _written.put(key, (user_id, now))
    moment = utc_now()
    values = {
        "user_id": user_id,
        "user_agent": storable(request.headers.get("User-Agent", ""))[:_KEPT_CHARACTERS],
        "client_address": client_address(request),
        "last_used": moment,
    }
    try:
        with short_lock_wait(), transaction.atomic():
            if not BrowserSignIn.objects.filter(pk=key).update(**values):
                BrowserSignIn.objects.create(session_id=key, since=moment, **values)
    except DatabaseError:  # signed out meanwhile, or the database is busy: a later request records it
        _written.drop(key)


def browsers_list(user: User, current: str) -> list[SignedInBrowser]:
    """The live sign-ins of the user, the newest use first; current: stored key of the requesting session."""
    rows = _live(user).order_by("-last_used")[:_LISTED]
    return [SignedInBrowser(row, browser_name(row.user_agent), row.pk == current) for row in rows]


def browser_session_get(user: User, key: str) -> BrowserSession | None:
    """The session of the user's sign-in with this stored key."""
    return BrowserSession.objects.filter(pk__in=_live(user).filter(pk=key).values("pk")).first()


def browser_name(user_agent: str) -> str:
    """The display name of a User-Agent: browser and system, as far as known."""
    browser, system = _first(_BROWSERS, user_agent), _first(_SYSTEMS, user_agent)
    if browser and system:
        return gettext("%(browser)s on %(system)s") % {"browser": browser, "system": system}
    return browser or system or gettext("Unknown browser")


def _first(names: dict[str, str], user_agent: str) -> str:
    return next((name for name, pattern in names.items() if re.search(pattern, user_agent)), "")


def _live(user: User) -> QuerySet[BrowserSignIn]:
    return BrowserSignIn.objects.filter(user=user, session__expire_date__gt=utc_now())
