"""Back-channel logout (OpenID Connect Back-Channel Logout 1.0, 2.4 to 2.6): sent by the worker, server to server."""

from __future__ import annotations

import logging
import time
import uuid

from django_q.tasks import async_task

from foundation.egress.client import EgressSession
from foundation.egress.policy import ANYWHERE
from identity.models import TrustedApplication
from identity.oauth import jwt

logger = logging.getLogger(__name__)
_EVENT = "http://schemas.openid.net/event/backchannel-logout"
_TIMEOUT_SECONDS = 5
_LIFETIME_SECONDS = 120
#: Administrators enter the URLs, and applications may be in the private network.
_session = EgressSession(ANYWHERE)


def enqueue(application: TrustedApplication, *, issuer: str, subject: str, sid: str) -> None:
    """Enqueue the logout token: a slow application must not delay the sign-out."""
    try:
        async_task("identity.oauth.backchannel.send", str(application.pk), issuer, subject, sid)
    except Exception:
        # A failure of the broker must not fail the sign-out.
        logger.exception("back-channel logout of %s could not be enqueued", application.application_uri)


def send(application_id: str, issuer: str, subject: str, sid: str) -> int:
    """Send one logout token; returns the HTTP status. Raises for any but 200 and 204, so that the worker retries."""
    application = TrustedApplication.objects.get(pk=application_id)
    url = application.back_channel_logout_url
    if not url:
        return 0
    now = int(time.time())
    token = jwt.sign(
        {
            "iss": issuer,
            "aud": application.application_uri,
            "iat": now,
            "exp": now + _LIFETIME_SECONDS,
            "jti": uuid.uuid4().hex,
            "sub": subject,
            "sid": sid,
            "events": {_EVENT: {}},
        },
        type_=jwt.LOGOUT_TOKEN_TYPE,
    )
    response = _session.post(url, data={"logout_token": token}, timeout=_TIMEOUT_SECONDS)
    if response.status_code not in {200, 204}:
        raise RuntimeError(f"back-channel logout answered {response.status_code}")
    return response.status_code
