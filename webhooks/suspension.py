"""Suspends templates that keep failing, and notifies administrators (spec 06, 6.2).

A suspended template's deliveries wait (state Suspended), new ones too. `web_hook_resume` sends them.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from datetime import datetime, timedelta

from django.contrib.auth import get_user_model
from django.db import transaction
from django.db.models import F
from django.utils.translation import gettext

from domain.dataset.dataset import Dataset
from foundation.fields import utc_now
from identity.context import system_context
from webhooks.conf import webhook_settings
from webhooks.models import TemplateHealth, WebHookDelivery
from webhooks.statements import rows_delete

logger = logging.getLogger(__name__)

NOTIFICATION_CLASS = "WebHookSuspended"


def templates_suspended(web_hook_ids: Collection[str]) -> set[str]:
    """The suspended ones of the templates."""
    result = TemplateHealth.objects.filter(web_hook_id__in=web_hook_ids, suspended_at__isnull=False)
    return {str(id) for id in result.values_list("web_hook_id", flat=True)}


def templates_succeeded(web_hook_ids: Collection[str]) -> None:
    """End the run of failures. A suspended template stays suspended until it is resumed."""
    if web_hook_ids:
        rows_delete(TemplateHealth, ["web_hook_id"], [(id,) for id in web_hook_ids], "suspended_at IS NULL")


def template_failed(web_hook_id: str, *, now: datetime) -> bool:
    """Count a failed attempt; True if it suspends the template."""
    settings = webhook_settings()
    TemplateHealth.objects.get_or_create(web_hook_id=web_hook_id, defaults={"failing_since": now})
    TemplateHealth.objects.filter(pk=web_hook_id).update(failures=F("failures") + 1)
    suspended = TemplateHealth.objects.filter(
        pk=web_hook_id,
        suspended_at__isnull=True,
        failures__gte=settings.suspend_failures,
        failing_since__lte=now - timedelta(seconds=settings.suspend_after_seconds),
    ).update(suspended_at=now)
    if suspended:
        deliveries_suspend(web_hook_id)
    return bool(suspended)


def deliveries_suspend(web_hook_id: str) -> int:
    """Suspend the waiting deliveries; returns their number."""
    return WebHookDelivery.objects.filter(state="Pending", web_hook_id=web_hook_id, is_test=False).update(
        state="Suspended", next_attempt_time_utc=None
    )


def web_hook_resume(web_hook_id: str) -> int:
    """End a suspension: suspended deliveries become due now, in order. Returns their number."""
    with transaction.atomic():
        TemplateHealth.objects.filter(pk=web_hook_id).delete()
        return WebHookDelivery.objects.filter(state="Suspended", web_hook_id=web_hook_id).update(
            state="Pending", next_attempt_time_utc=utc_now()
        )


def administrators_notify(web_hook_code: str) -> None:
    """Notify every administrator in Systems.Core.Notifications. Never raises, so that the suspension stays."""
    try:
        dataset = Dataset(system_context())
        subject = gettext("The webhook {0} keeps failing and has been suspended.").replace("{0}", web_hook_code)
        for user_id in (
            get_user_model()._default_manager.filter(is_admin=True, active=True).values_list("pk", flat=True)
        ):
            dataset.create(
                "Systems.Core.Notifications",
                {
                    "User": str(user_id),
                    "Subject": subject[:256],
                    "NotificationClass": NOTIFICATION_CLASS,
                    "Priority": "High",
                },
            )
        dataset.commit()
    except Exception:
        logger.exception("administrators were not notified of a suspended webhook", extra={"web_hook": web_hook_code})
