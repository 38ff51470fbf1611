"""Actions on deliveries and templates: redeliver, cancel, send a test, rotate secrets, prune (spec 06, 6.3)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext

from audit.actors import Actor
from audit.record import record
from domain.dataset.dataset import Dataset
from domain.dataset.records.record import Record
from domain.entities.systems_config import WebHook
from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.query import select_ids
from foundation import errors
from foundation.fields import utc_now
from foundation.guids import is_guid
from identity.audit_kinds import SecretChanged
from identity.context import CallContext
from rules.read_access import REASON
from webhooks.authentication import authentication_schemes
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
from webhooks.outbox import NewDelivery, announce, deliveries_insert, delivery_prepare
from webhooks.templates import WebHookTemplate, web_hook_get

#: Rows of one statement: databases bound the number of its parameters.
_BATCH = 1000


def delivery_redeliver(delivery_ids: Iterable[str]) -> int:
    """Send finished or suspended deliveries again, the same requests with the same webhook-id; returns their number.

    Their retries start again. Open deliveries are unchanged.
    """
    deliveries = WebHookDelivery.objects.filter(pk__in=list(delivery_ids), state__in=REDELIVERABLE_STATES)
    return deliveries_redeliver(deliveries)


def deliveries_redeliver(deliveries: QuerySet[WebHookDelivery]) -> int:
    """As `delivery_redeliver`, for a query; deliveries in other states are unchanged."""
    with transaction.atomic():
        ids = [str(id) for id in deliveries.values_list("pk", flat=True)]
        count = 0
        for start in range(0, len(ids), _BATCH):
            # The state is checked again: another request may have redelivered it, or a worker leased it.
            count += WebHookDelivery.objects.filter(
                pk__in=ids[start : start + _BATCH], state__in=REDELIVERABLE_STATES
            ).update(
                state="Pending",
                next_attempt_time_utc=utc_now(),
                finish_time_utc=None,
                attempt_count=0,
                lease_count=0,
                lease_token=None,
            )
        if count:
            announce(ids[:1], transaction.get_connection())
    return count


def deliveries_to_replay(web_hook_id: str, since: datetime, until: datetime) -> QuerySet[WebHookDelivery]:
    """The template's events of a time range whose delivery has ended, tests left out."""
    return WebHookDelivery.objects.filter(
        web_hook_id=web_hook_id,
        is_test=False,
        state__in=REDELIVERABLE_STATES,
        creation_time_utc__gte=since,
        creation_time_utc__lt=until,
    )


def delivery_cancel(delivery_ids: Iterable[str]) -> int:
    """Cancel deliveries; returns their number. An attempt in flight finishes, and is the last."""
    now = utc_now()
    return WebHookDelivery.objects.filter(
        pk__in=list(delivery_ids), state__in=("Pending", "Delivering", "Suspended")
    ).update(state="Cancelled", finish_time_utc=now, next_attempt_time_utc=None, lease_token=None)


def template_cleanup(record: Record) -> None:
    """Cancel the waiting deliveries of a deleted template, and delete its failure state.

    Deliveries that other commits insert meanwhile are cancelled when a worker leases them (webhooks.lease).
    """
    if record.is_deleted:
        record.dataset.defer_write(("web hook deleted", record.id), lambda: _cancel_all_of(record.id))


def _cancel_all_of(web_hook_id: str) -> None:
    TemplateHealth.objects.filter(pk=web_hook_id).delete()
    CircuitBreaker.objects.filter(web_hook_id=web_hook_id).delete()
    WebHookDelivery.objects.filter(web_hook_id=web_hook_id, state__in=("Pending", "Suspended")).update(
        state="Cancelled", finish_time_utc=utc_now(), next_attempt_time_utc=None, last_error=TEMPLATE_DELETED
    )


def send_test(*, context: CallContext, web_hook: str, entity: str = "") -> WebHookDelivery:
    """Send a template once for an entity, without a rule; returns the delivery.

    Parameters and errors as those of `delivery_preview`.
    """
    delivery = delivery_preview(context=context, web_hook=web_hook, entity=entity)
    with transaction.atomic():
        deliveries_insert([delivery])
    return WebHookDelivery.objects.get(pk=delivery.id)


def delivery_preview(*, context: CallContext, web_hook: str, entity: str = "") -> NewDelivery:
    """The delivery of a template for an entity; nothing is stored.

    `web_hook` is a code or guid; `entity` an id, a code or the beginning of a display text, "" for the newest.
    Raises NotFound, and Refused if the template cannot be rendered.
    """
    template = web_hook_get(web_hook)
    if template is None:
        raise errors.NotFound(errors.ENTITY_NOT_FOUND, "Systems_Config_WebHook", web_hook)
    return template_preview(context=context, template=template, entity=entity)


def template_preview(*, context: CallContext, template: WebHookTemplate, entity: str = "") -> NewDelivery:
    """As `delivery_preview`, for a template that need not be stored."""
    repository = repositories.get(template.repository_name)
    record = Dataset(context).open(repository, _entity_find(repository, entity.strip(), context))
    delivery = delivery_prepare(template, record, event_type="TEST", events=_SampleEvents(), is_test=True)
    if name := template.hidden_from_author(record, {}):
        raise errors.Refused(errors.INTERPOLATION_FAILED, template.code, errors.format_message(REASON, [name]))
    return delivery


def _entity_find(repository: Repository[Any], text: str, context: CallContext) -> str:
    """The key of the entity that the text identifies and the caller may see."""
    if is_guid(text):
        return text.lower()
    literal = "'" + text.replace("'", "''") + "'"
    conditions: list[str | None] = [] if text else [None]
    if text and repository.code is not None:
        conditions.append(f"{repository.code.name} eq {literal}")
    if text:
        conditions.append(f"startswith(DisplayText,{literal})")
    for condition in conditions:
        if found := select_ids(repository, ctx=context, filter=condition, orderby="Id desc", limit=1):
            return found[0]
    missing = gettext("{0} has no entity to try the webhook with.").replace("{0}", repository.name)
    if text:
        missing = gettext("{0} has no entity with the id, code or name {1}.").replace("{0}", repository.name)
    raise errors.Refused(errors.WEBHOOK_INVALID, missing.replace("{1}", text))


class _SampleEvents(dict[str, object]):
    """Event values of a test: each is the attribute's name."""

    def __contains__(self, name: object) -> bool:
        return True

    def get(self, name: str, default: object = None) -> object:
        """The name without its sigil."""
        return name.lstrip("$")

    def __bool__(self) -> bool:
        return True


def signing_secret_rotate(
    web_hook: str, *, scheme: str = "", overlap: timedelta = timedelta(hours=24), by: Actor
) -> str:
    """Set a new signing secret of a template and return it; it is shown only once.

    `scheme` names the authentication scheme of the secret; if empty, it is that of the former secret, which
    also signs for the time of `overlap`. Secrets are not attributes of the repository, so the API cannot read them.
    Raises NotFound for an unknown template or scheme.
    """
    row = _web_hook_row(web_hook)
    chosen = authentication_schemes.get(scheme) if scheme else authentication_schemes.of(row.signing_secret or "")
    if chosen is None:
        raise errors.NotFound(errors.ENTITY_NOT_FOUND, authentication_schemes.kind, scheme)
    secret = chosen.new_secret()
    with transaction.atomic():  # with the audit entry
        WebHook._default_manager.filter(pk=row.pk).update(
            signing_secret=secret,
            previous_signing_secret=row.signing_secret,
            previous_secret_expires_utc=utc_now() + overlap if row.signing_secret else None,
        )
        record(SecretChanged, by=by, subject=f"webhook {row.code}")
    return secret


def signing_secret_remove(web_hook: str, *, by: Actor) -> None:
    """Remove the signing secret."""
    row = _web_hook_row(web_hook)
    with transaction.atomic():
        WebHook._default_manager.filter(pk=row.pk).update(
            signing_secret=None, previous_signing_secret=None, previous_secret_expires_utc=None
        )
        record(SecretChanged, by=by, subject=f"webhook {row.code}", removed=True)


def _web_hook_row(web_hook: str) -> WebHook:
    template = web_hook_get(web_hook)
    if template is None:
        raise errors.NotFound(errors.ENTITY_NOT_FOUND, "Systems_Config_WebHook", web_hook)
    return WebHook._default_manager.get(pk=template.id)


def deliveries_prune(*, before: datetime | None = None, state: str | None = None) -> int:
    """Delete finished deliveries and their attempts, in batches with short locks; returns their number."""
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
