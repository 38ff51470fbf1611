"""Database-backed browser sessions that a stolen database copy cannot open.

The cookie's key is looked up by its digest, and the data (the user, a password link's token) is encrypted
(foundation.encryption). Data that cannot be decrypted is an empty session: the person signs in again. Unknown keys
count as guesses.
"""

from __future__ import annotations

import hashlib
import logging
from typing import Any

from asgiref.sync import sync_to_async
from django.contrib.sessions.backends.db import SessionStore as DatabaseStore
from django.contrib.sessions.middleware import SessionMiddleware
from django.contrib.sessions.models import Session as BrowserSession
from django.http import HttpRequest, HttpResponse

from foundation.encryption import Unreadable, decrypt, encrypt
from foundation.fields import utc_now
from identity.browser_sign_ins import browser_sign_in_record
from identity.instance import client_address
from identity.rate_limits import guess_refusal

logger = logging.getLogger(__name__)


def stored_key(session_key: str) -> str:
    """The stored form of the cookie's key: 160 bits in hex, as long as the column."""
    return hashlib.blake2b(session_key.encode(), digest_size=20).hexdigest()


class SessionStore(DatabaseStore):
    """The session engine of SESSION_ENGINE."""

    #: Whether the key was looked up and does not exist, not even as an expired session.
    key_is_unknown = False

    def encode(self, session_dict: dict[str, Any]) -> str:
        return encrypt(super().encode(session_dict))

    def decode(self, session_data: bytes | str) -> dict[str, Any]:
        """The data of a stored session; empty if it cannot be decrypted."""
        opened = decrypt(session_data if isinstance(session_data, str) else session_data.decode())
        if isinstance(opened, Unreadable):
            logger.warning("a browser session cannot be opened: %s", opened.reason)
            return {}
        return super().decode(opened)

    def exists(self, session_key: str) -> bool:
        return BrowserSession.objects.filter(session_key=stored_key(session_key)).exists()

    async def aexists(self, session_key: str) -> bool:
        """As `exists`."""
        return await sync_to_async(self.exists)(session_key)

    def delete(self, session_key: str | None = None) -> None:
        """Delete the session with this key, by default the current one."""
        if key := session_key or self.session_key:
            BrowserSession.objects.filter(session_key=stored_key(key)).delete()

    async def adelete(self, session_key: str | None = None) -> None:
        """As `delete`."""
        await sync_to_async(self.delete)(session_key)

    def create_model_instance(self, data: dict[str, Any]) -> BrowserSession:
        """The row of this session."""
        return self._as_stored(super().create_model_instance(data))

    async def acreate_model_instance(self, data: dict[str, Any]) -> BrowserSession:
        """As `create_model_instance`."""
        return self._as_stored(await super().acreate_model_instance(data))

    @staticmethod
    def _as_stored(row: Any) -> BrowserSession:
        row.session_key = stored_key(row.session_key)
        stored: BrowserSession = row
        return stored

    def _get_session_from_db(self) -> BrowserSession | None:
        key = self.session_key
        result = BrowserSession.objects.filter(session_key=stored_key(key)).first() if key else None
        self.key_is_unknown = bool(key) and result is None
        if result is None or result.expire_date <= utc_now():
            self._session_key = None
            return None
        return result

    async def _aget_session_from_db(self) -> BrowserSession | None:
        return await sync_to_async(self._get_session_from_db)()


class BrowserSessionMiddleware(SessionMiddleware):
    """Refuse an address that guesses session keys (spec 01, 1.9). Valid keys are accepted from it.

    Django deletes the cookie of an unknown session, so a browser is refused once at most.
    """

    def process_request(self, request: HttpRequest) -> HttpResponse | None:  # type: ignore[override]
        super().process_request(request)
        if not request.session.session_key:
            return None
        request.session.get("")  # loads the session
        request.session.accessed = False  # no view has used the session yet, so it must not vary the response
        unknown = getattr(request.session, "key_is_unknown", False)
        limited = guess_refusal("session-key", client_address(request)) if unknown else None
        if limited is None:
            return None
        return HttpResponse(limited.message, status=429, content_type="text/plain", headers=dict(limited.headers()))

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        """As Django's; then records the browser of a signed-in user, whose session is stored now."""
        result: HttpResponse = super().process_response(request, response)
        if request.session.session_key:
            browser_sign_in_record(request, stored_key(request.session.session_key))
        return result
