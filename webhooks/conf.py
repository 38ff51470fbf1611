"""Settings of the webhooks: `settings.WEBHOOKS`, a dict with the names below and these defaults."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed


def _setting(default: Any, meaning: str) -> Any:
    return field(default=default, metadata={"meaning": meaning})


@dataclass(frozen=True, slots=True)
class WebhookSettings:
    """The settings with their defaults; units are in the names.

    platform_site.environment reads each from the environment variable WEBHOOK_<NAME>, and documents it, from here.
    """

    retry_seconds: tuple[float, ...] = _setting(
        (5, 30, 120, 600, 1800, 3600, 7200, 14400, 28800, 43200),
        "Wait before the first, second ... retry of a webhook; the last repeats.",
    )
    retry_jitter: float = _setting(0.2, "Random jitter of each wait, as a fraction of it.")
    retry_after_max_seconds: int = _setting(86_400, "Maximum Retry-After of a receiver; a longer one is shortened.")
    default_retries: int = _setting(3, "Retries of a template with RetryLogic Retry.")
    connect_timeout_seconds: float = _setting(
        5.0, "Time to connect; the template's TimeoutSeconds bounds the whole attempt."
    )
    sweep_seconds: float = _setting(2.0, "Interval of the task that sends due deliveries.")
    lease_margin_seconds: float = _setting(20.0, "Time from a template's timeout to the expiry of a worker's lease.")
    lost_leases_max: int = _setting(5, "Expired leases of one delivery before it counts as failed.")
    concurrency: int = _setting(64, "Concurrent attempts in one worker process.")
    destination_concurrency: int = _setting(
        32,
        "Concurrent attempts to one destination, in all workers; a template may use half of those that others leave.",
    )
    breaker_failures: int = _setting(5, "Consecutive failures of a template at a host that open its circuit.")
    breaker_open_seconds: tuple[float, ...] = _setting(
        (30, 60, 120, 300, 600), "Duration of the first, second ... opening of a circuit; the last repeats."
    )
    suspend_failures: int = _setting(50, "Consecutive failed attempts that suspend a template ...")
    suspend_after_seconds: int = _setting(3600, "... if the first of them is at least this old.")
    retention_days: int = _setting(30, "Retention of finished deliveries in days.")
    stored_answer_bytes: int = _setting(4096, "Bytes of a response body that an attempt stores.")


@lru_cache(maxsize=1)
def webhook_settings() -> WebhookSettings:
    """The current settings. Raises ImproperlyConfigured for an unknown name."""
    given: dict[str, Any] = dict(getattr(settings, "WEBHOOKS", {}))
    known = {each.name for each in fields(WebhookSettings)}
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
