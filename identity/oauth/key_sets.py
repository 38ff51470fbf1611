"""The registered keys of applications: stored with them, or published at their jwks_uri."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

import requests

from foundation.egress.client import EgressSession
from foundation.egress.policy import ANYWHERE
from foundation.errors import PlatformError
from foundation.messages import reason_of
from identity.client_keys import InvalidKey, Jwk, algorithms_of, key_set_parse
from identity.lru import GenerationalCache
from identity.models import TrustedApplication

_FRESH_SECONDS = 3600.0
# Clients can send unknown key ids, and an unreachable application must not cause a fetch for every request.
_RETRY_SECONDS = 60.0
_TIMEOUT_SECONDS = 5
#: Administrators enter the URLs, and applications may be in the private network.
_session = EgressSession(ANYWHERE)


@dataclass(slots=True)
class _Published:
    """The keys at a URL, as of the last successful request; `problem`: why the last one failed."""

    keys: list[Jwk] = field(default_factory=list)
    problem: str = ""
    requested_at: float = float("-inf")
    lock: threading.Lock = field(default_factory=threading.Lock)

    def is_due(self, found: list[Jwk]) -> bool:
        """Whether to fetch the keys; `found`: the known keys that match a request."""
        age = time.monotonic() - self.requested_at
        return age >= (_FRESH_SECONDS if found else _RETRY_SECONDS)


_published: GenerationalCache[str, _Published] = GenerationalCache(512)


def keys_for(application: TrustedApplication, kid: str | None, algorithm: str) -> list[Jwk]:
    """The application's keys for this algorithm and, if given, key id. Raises InvalidKey if it has no keys at all.

    An unknown key id may be that of a new key: published keys are fetched again, at most once a minute.
    """
    if application.json_web_key_set:
        return _fitting(key_set_parse(application.json_web_key_set), kid, algorithm)
    url = application.json_web_key_set_url
    if not url:
        raise InvalidKey("the application has no keys")
    published = _published.get(url)
    if published is None:
        published = _Published()
        _published.put(url, published)
    found = _fitting(published.keys, kid, algorithm)
    if published.is_due(found):
        # While one thread fetches, others use the known keys.
        if published.lock.acquire(blocking=not published.keys):
            try:
                if published.is_due(found):
                    _fetch(url, published)
            finally:
                published.lock.release()
        found = _fitting(published.keys, kid, algorithm)
    if not published.keys:
        raise InvalidKey(f"the keys at jwks_uri cannot be used: {published.problem}")
    return found


def forget() -> None:
    """Drop the cache (tests)."""
    _published.clear()


def _fetch(url: str, published: _Published) -> None:
    published.requested_at = time.monotonic()
    try:
        response = _session.get(url, headers={"Accept": "application/json"}, timeout=_TIMEOUT_SECONDS)
        if response.status_code != 200:
            raise InvalidKey(f"the address answered {response.status_code}")
        published.keys, published.problem = key_set_parse(response.content), ""
    except InvalidKey as exc:
        published.problem = str(exc)
    except (PlatformError, requests.RequestException) as exc:
        published.problem = str(reason_of(exc))


def _fitting(keys: list[Jwk], kid: str | None, algorithm: str) -> list[Jwk]:
    named = [key for key in keys if kid is None or key.get("kid") == kid]
    return [key for key in named if algorithm in algorithms_of(key)]
