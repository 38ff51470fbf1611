"""What tests of webhooks act on: a repository with little in it, a template, and its deliveries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from domain.dataset.dataset import Dataset
from domain.dataset.records.record import Record
from foundation import cache_versions
from identity.context import AllPermissions, CallContext, Caller
from webhooks.lease import Lease, deliveries_lease, leases_expire
from webhooks.models import WebHookDelivery
from webhooks.outbox import deliveries_insert, delivery_prepare
from webhooks.record import Finished, deliveries_record
from webhooks.send import Outcome, delivery_send
from webhooks.templates import web_hook_get

CURRENCIES = "General.Currencies.Currencies"
WEB_HOOKS = "Systems.Config.WebHooks"

CALLER = CallContext(
    user=Caller("00000000-0000-7000-8000-000000000001", "anna", "Anna", is_admin=True), permissions=AllPermissions()
)

#: The author of templates must exist.
PLATFORM = CallContext(user=None, permissions=AllPermissions())


def new_currency(sign: str = "EUR", name: str = "Euro", *, context: CallContext = CALLER) -> Record:
    """A committed entity."""
    dataset = Dataset(context)
    record = dataset.create(CURRENCIES, {"CurrencySign": sign, "Name": name}, by_client=True)
    dataset.commit()
    return record


def new_web_hook(url: str, *, code: str = "HOOK", context: CallContext = PLATFORM, **values: Any) -> Record:
    """A committed template for currencies."""
    dataset = Dataset(context)
    given = {"Code": code, "Name": {"EN": code}, "RepositoryName": CURRENCIES, "URL": url}
    record = dataset.create(WEB_HOOKS, {**given, **values}, by_client=True)
    dataset.commit()
    cache_versions.expire()
    return record


def new_delivery(code: str, record: Record) -> WebHookDelivery:
    """A delivery in the outbox, as the action leaves it."""
    template = web_hook_get(code)
    assert template is not None
    delivery = delivery_prepare(template, record, event_type="COMMIT")
    deliveries_insert([delivery])
    return WebHookDelivery.objects.get(pk=delivery.id)


def reloaded(delivery: WebHookDelivery) -> WebHookDelivery:
    """As the database has it."""
    return WebHookDelivery.objects.get(pk=delivery.pk)


def deliver_due(limit: int = 100, *, send: Callable[[Lease], Outcome] = delivery_send) -> Sequence[Finished]:
    """Lease, send and record once, sequentially and in this thread."""
    leases_expire()
    finished = [(lease, send(lease)) for lease in deliveries_lease(limit)]
    if finished:
        deliveries_record(finished)
    return finished
