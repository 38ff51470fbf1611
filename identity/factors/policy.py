"""The factors that the roles of a user require (Role.required_factor)."""

from __future__ import annotations

from collections.abc import Iterable

from foundation.versioned_cache import VersionedCache
from identity import permissions
from identity.factors.methods import FACTOR_LEVELS, level_of
from identity.models import Role

#: Guid of an active role that requires a factor → its level. If empty, as in most instances, no user is queried.
_levels: VersionedCache[dict[str, int]] = VersionedCache(
    lambda: {
        str(role_id): FACTOR_LEVELS[factor]
        for role_id, factor in Role.objects.filter(is_active=True)
        .exclude(required_factor="None")
        .values_list("pk", "required_factor")
    },
    permissions.CACHE_VERSION,
)


def required_level(user_id: str) -> int:
    """The highest level that an active role of the user requires, also for administrators."""
    levels = _levels.get()
    if not levels:
        return 0
    return max((levels.get(role_id, 0) for role_id in permissions.roles_of(user_id)), default=0)


def is_enough(user_id: str, amr: Iterable[str]) -> bool:
    """Whether a sign-in with these amr values meets the requirements of the user's roles."""
    return level_of(amr) >= required_level(user_id)
