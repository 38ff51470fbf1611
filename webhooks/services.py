"""What people do with deliveries: redeliver, cancel, send a test, prune (spec 06, 6.3)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext

from domain.dataset.dataset import Dataset
from domain.dataset.records.record import Record
from domain.entities.systems_config import WebHook
from domain.model.registry import repositories
from domain.query import select_ids
from foundation import errors
from foundation.fields import utc_now
from identity.context import CallContext
from webhooks.conf import webhook_settings
from webhooks.models import (
    FINISHED_STATES,
    REDELIVERABLE_STATES,
    TEMPLATE_DELETED,
    CircuitBreaker,
    TemplateHealth,
    WebHookAttempt,
    WebHookDelivery,
)
from webhooks.outbox import announce, deliveries_insert, delivery_prepare
from webhooks.signing import key_of, new_secret
from webhooks.templates import WebHookTemplate, web_hook_get

#: Rows of one statement: databases bound the number of its parameters.
_BATCH = 1000


def delivery_redeliver(delivery_ids: Iterable[str]) -> int:
    """Send finished or suspended deliveries again, the same requests with the same webhook-id; how many.

    Their retries begin anew. What is open already is left alone.
    """
    wanted = WebHookDelivery.objects.filter(pk__in=list(delivery_ids), state__in=REDELIVERABLE_STATES)
    return deliveries_redeliver(wanted)


def deliveries_redeliver(wanted: QuerySet[WebHookDelivery]) -> int:
    """As `delivery_redeliver`, for a query; what it finds in other states is left alone."""
    with transaction.atomic():
        ids = [str(id) for id in wanted.values_list("pk", flat=True)]
        count = 0
        for start in range(0, len(ids), _BATCH):
            # Asked for the state once more: somebody else may have been first, and a worker have claimed it since.
            count += WebHookDelivery.objects.filter(
                pk__in=ids[start : start + _BATCH], state__in=REDELIVERABLE_STATES
            ).update(
                state="Pending",
                next_attempt_time_utc=utc_now(),
                finish_time_utc=None,
                attempt_count=0,
                claim_count=0,
                claim_token=None,
            )
        if count:
            announce(ids[:1], transaction.get_connection())
    return count


def delivery_cancel(delivery_ids: Iterable[str]) -> int:
    """Send these no more; how many. An attempt under way ends as it ends, and is the last."""
    now = utc_now()
    return WebHookDelivery.objects.filter(
        pk__in=list(delivery_ids), state__in=("Pending", "Delivering", "Suspended")
    ).update(state="Cancelled", finish_time_utc=now, next_attempt_time_utc=None, claim_token=None)


def template_forget(record: Record) -> None:
    """With a template that is deleted goes what waits for it, and what is known of its failures.

    What a commit inserts meanwhile is cancelled when a worker comes to it (webhooks.claim).
    """
    if record.is_deleted:
        record.dataset.defer_write(("web hook deleted", record.id), lambda: _cancel_all_of(record.id))


def _cancel_all_of(web_hook_id: str) -> None:
    TemplateHealth.objects.filter(pk=web_hook_id).delete()
    CircuitBreaker.objects.filter(web_hook_id=web_hook_id).delete()
    WebHookDelivery.objects.filter(web_hook_id=web_hook_id, state__in=("Pending", "Suspended")).update(
        state="Cancelled", finish_time_utc=utc_now(), next_attempt_time_utc=None, last_error=TEMPLATE_DELETED
    )


def send_test(*, context: CallContext, web_hook: str, entity_id: str | None = None) -> WebHookDelivery:
    """Send a template once for an entity (the newest one when none is named), outside of any rule; the delivery.

    `web_hook` is a code or guid. Raises NotFound, and Refused where the template cannot be filled in.
    """
    template = web_hook_get(web_hook)
    if template is None:
        raise errors.NotFound(errors.ENTITY_NOT_FOUND, "Systems_Config_WebHook", web_hook)
    dataset = Dataset(context)
    repository = repositories.get(template.repository_name)
    record = dataset.open(repository, entity_id or _newest(template, context))
    delivery = delivery_prepare(template, record, event_type="TEST", events=_SampleEvents(), is_test=True)
    with transaction.atomic():
        deliveries_insert([delivery])
    return WebHookDelivery.objects.get(pk=delivery.id)


def _newest(template: WebHookTemplate, context: CallContext) -> str:
    """The key of the newest entity that the caller may see."""
    found = select_ids(repositories.get(template.repository_name), ctx=context, orderby="Id desc", limit=1)
    if not found:
        raise errors.Refused(
            errors.WEBHOOK_INVALID,
            gettext("{0} has no entity to try the webhook with.").replace("{0}", template.repository_name),
        )
    return found[0]


class _SampleEvents(dict[str, object]):
    """Event values of a test: each is told, as its own name."""

    def __contains__(self, name: object) -> bool:
        return True

    def get(self, name: str, default: object = None) -> object:
        """The name without its sigil."""
        return name.lstrip("$")

    def __bool__(self) -> bool:
        return True


def signing_secret_rotate(web_hook: str, *, secret: str | None = None, overlap: timedelta = timedelta(hours=24)) -> str:
    """Give a template a new signing secret (a generated one unless given); the secret, which is shown this once.

    The former one signs beside it for as long as `overlap`. Secrets are no attributes of the repository, so that no
    read of the API can show them: they are written here and read by workers only.
    """
    key_of(secret := secret or new_secret())
    row = _web_hook_row(web_hook)
    WebHook._default_manager.filter(pk=row.pk).update(
        signing_secret=secret,
        previous_signing_secret=row.signing_secret,
        previous_secret_expires_utc=utc_now() + overlap if row.signing_secret else None,
    )
    return secret


def signing_secret_remove(web_hook: str) -> None:
    """Sign no more."""
    WebHook._default_manager.filter(pk=_web_hook_row(web_hook).pk).update(
        signing_secret=None, previous_signing_secret=None, previous_secret_expires_utc=None
    )


def _web_hook_row(web_hook: str) -> WebHook:
    template = web_hook_get(web_hook)
    if template is None:
        raise errors.NotFound(errors.ENTITY_NOT_FOUND, "Systems_Config_WebHook", web_hook)
    return WebHook._default_manager.get(pk=template.id)


def deliveries_prune(*, before: datetime | None = None, state: str | None = None) -> int:
    """Remove finished deliveries and their attempts, in batches that hold no lock for long; how many."""
    moment = before or utc_now() - timedelta(days=webhook_settings().retention_days)
    states = FINISHED_STATES if state is None else (state,)
    removed = 0
    while True:
        ids = list(
            WebHookDelivery.objects.filter(state__in=states, finish_time_utc__lt=moment).values_list("pk", flat=True)[
                :_BATCH
            ]
        )
        if not ids:
            return removed
        with transaction.atomic():
            WebHookAttempt.objects.filter(delivery_id__in=ids).delete()
            WebHookDelivery.objects.filter(pk__in=ids).delete()
        removed += len(ids)
