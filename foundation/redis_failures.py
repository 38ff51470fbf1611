"""Failures of Redis as public errors (spec 07): callers repeat the request later, as with an unreachable database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from foundation import errors

_RETRY_SECONDS = 5


@contextmanager
def redis_required() -> Iterator[None]:
    """Raises errors.Unavailable if Redis does not answer."""
    import redis  # large, and imported only where it is used

    try:
        yield
    except redis.RedisError as error:
        raise errors.Unavailable(
            errors.REDIS_UNREACHABLE, _RETRY_SECONDS, retry_after_seconds=_RETRY_SECONDS
        ) from error
