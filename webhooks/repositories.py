"""What the Domain API shows of the webhooks (spec 06, 6.3): deliveries and their attempts, read-only."""

from __future__ import annotations

from domain.dataset.records.record import Record
from domain.model.attributes import Child
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation import errors
from webhooks.models import WebHookAttempt, WebHookDelivery


def refuse_change(record: Record) -> None:
    """Workers write these rows, and nobody else: neither callers nor scripts and rules. Asked of deletions too."""
    raise errors.MethodNotAllowed(record.state, ("GET", "HEAD"))


@repositories.register
class WebHookDeliveries(Repository[WebHookDelivery]):
    """Declares Systems.Config.WebHookDeliveries."""

    name = "Systems.Config.WebHookDeliveries"
    display_format = "{WebHookCode}: {State}"
    search_members = ("web_hook_code", "request_url", "last_error")
    children = (Child("Attempts", "Systems.Config.WebHookAttempts"),)
    # `headers` holds secrets as they are; the others are the workers' own.
    unpublished = frozenset(
        {"headers", "is_host_rendered", "sequence", "claim_count", "claim_token", "lease_until_utc"}
    )
    api_names = {"request_url": "RequestURL"}
    ordering = ("-CreationTimeUtc",)
    validations = (refuse_change,)
    access = "ReadOnly"


@repositories.register
class WebHookAttempts(Repository[WebHookAttempt]):
    """Declares Systems.Config.WebHookAttempts."""

    name = "Systems.Config.WebHookAttempts"
    display_format = "{AttemptNo}. {Outcome}"
    ordering = ("AttemptNo",)
    validations = (refuse_change,)
    access = "ReadOnly"
