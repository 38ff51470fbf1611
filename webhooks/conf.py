"""Settings of the webhooks: `settings.WEBHOOKS`, a dict of the names below; what it leaves out has these defaults."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed


@dataclass(frozen=True, slots=True)
class WebhookSettings:
    """Units are in the names.

    retry_seconds                  wait before the first, second … retry (spec 06, 6.2); the last one repeats
    retry_jitter                   each wait is stretched or shrunk by up to this share, so that retries spread
    retry_after_max_seconds        the longest Retry-After that is honoured
    default_retries                what RetryLogic = Retry means
    connect_timeout_seconds        of one attempt; the template's TimeoutSeconds bounds all of it
    sweep_seconds                  how often each worker looks for what is due and was not announced
    lease_margin_seconds           a claim holds this long beyond the template's timeout; then another worker may claim
    lost_claims_max                claims that ended without a record (the worker died) before one counts as a failure
    concurrency                    attempts at once in one worker process
    destination_concurrency        attempts at once to one destination, all workers together; one template may have half
                                   of what the others leave free
    breaker_failures               failures in a row, of a template at a destination, that open the circuit
    breaker_open_seconds           how long it stays open the first, second … time; the last one repeats
    suspend_failures               failed attempts of a template in a row that suspend it …
    suspend_after_seconds          … when the first of them is this old
    retention_days                 finished deliveries are pruned after
    stored_answer_bytes            of an answer's body, kept in the attempt
    """

    retry_seconds: tuple[float, ...] = (5, 30, 120, 600, 1800, 3600, 7200, 14400, 28800, 43200)
    retry_jitter: float = 0.2
    retry_after_max_seconds: float = 86_400
    default_retries: int = 3
    connect_timeout_seconds: float = 5
    sweep_seconds: float = 2
    lease_margin_seconds: float = 20
    lost_claims_max: int = 5
    concurrency: int = 64
    destination_concurrency: int = 32
    breaker_failures: int = 5
    breaker_open_seconds: tuple[float, ...] = (30, 60, 120, 300, 600)
    suspend_failures: int = 50
    suspend_after_seconds: float = 3600
    retention_days: int = 30
    stored_answer_bytes: int = 4096


@lru_cache(maxsize=1)
def webhook_settings() -> WebhookSettings:
    """The settings in force. Raises ImproperlyConfigured for a name that is none."""
    given: dict[str, Any] = dict(getattr(settings, "WEBHOOKS", {}))
    known = {field.name for field in fields(WebhookSettings)}
    if unknown := sorted(set(given) - known):
        raise ImproperlyConfigured(f"settings.WEBHOOKS has no {', '.join(unknown)}; it has {', '.join(sorted(known))}.")
    for name, value in given.items():
        if isinstance(value, list):
            given[name] = tuple(value)
    return WebhookSettings(**given)


def _forget(*, setting: str, **kwargs: Any) -> None:
    if setting == "WEBHOOKS":
        webhook_settings.cache_clear()


setting_changed.connect(_forget, dispatch_uid="webhooks.conf")
