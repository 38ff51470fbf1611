"""Licence terms: concurrent sessions, reserved seats, features (spec 01, 1.8)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from django.conf import settings

from foundation import errors
from foundation.versioned_cache import VersionedCache
from identity.models import Licence, ReservedSeat

CACHE_VERSION = "licence"
ADVANCED_BPM = "AdvancedBpm"
#: Every feature that code checks.
FEATURES = (ADVANCED_BPM,)


@dataclass(frozen=True, slots=True)
class LicenceTerms:
    """Licence terms as a value. `seats` maps the guid of a user to the number of reserved slots."""

    sessions: int
    features: frozenset[str] = frozenset()
    seats: Mapping[str, int] = field(default_factory=dict)

    def admits(self, user_id: str, open_by_user: Mapping[str, int]) -> bool:
        """Whether the user may open one more session beside those open now.

        A user's sessions fill their own reserved seats first; further ones take shared slots.
        """
        if sum(open_by_user.values()) >= self.sessions:
            return False
        if open_by_user.get(user_id, 0) < self.seats.get(user_id, 0):
            return True
        shared = self.sessions - sum(self.seats.values())
        return sum(self.beyond_seats(user, count) for user, count in open_by_user.items()) < shared

    def beyond_seats(self, user_id: str, open_sessions: int) -> int:
        """Number of a user's sessions that take shared slots."""
        return max(0, open_sessions - self.seats.get(user_id, 0))


def licence_read() -> LicenceTerms:
    """The terms, read from the database, for opening a session."""
    row = Licence.objects.filter(pk=1).first()
    if row is None:
        return LicenceTerms(sessions=settings.LICENSE_SESSIONS)
    seats = dict(ReservedSeat.objects.values_list("user_id", "seats"))
    return LicenceTerms(row.sessions, frozenset(row.features), {str(user): count for user, count in seats.items()})


def licence_terms() -> LicenceTerms:
    """The terms, cached under the cache version "licence"."""
    return _terms.get()


_terms = VersionedCache(licence_read, CACHE_VERSION)


def require_feature(feature: str) -> None:
    """Raises Forbidden when the licence does not include the feature."""
    if feature not in licence_terms().features:
        raise errors.Forbidden(errors.FEATURE_NOT_LICENSED, feature)
