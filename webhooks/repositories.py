"""Repositories of webhooks in the Domain API (spec 06, 6.3): deliveries and attempts, read-only."""

from __future__ import annotations

from domain.entities.behaviour import refuse_change
from domain.model.attributes import Child, DescribedEntity
from domain.model.registry import repositories
from domain.model.repository import Repository
from webhooks.models import WebHookAttempt, WebHookDelivery


@repositories.register
class WebHookDeliveries(Repository[WebHookDelivery]):
    name = "Systems.Config.WebHookDeliveries"
    display_format = "{WebHookCode}: {State}"
    search_members = ("web_hook_code", "request_url", "last_error")
    describes = DescribedEntity("RepositoryName", "EntityId", behind="ReadRepositories")
    children = (Child("Attempts", "Systems.Config.WebHookAttempts"),)
    # `headers` holds secrets in clear; the others are internal to the workers.
    unpublished = frozenset(
        {"headers", "is_host_rendered", "sequence", "lease_count", "lease_token", "lease_until_utc"}
    )
    api_names = {"request_url": "RequestURL"}
    ordering = ("-CreationTimeUtc",)
    validations = (refuse_change,)
    access = "ReadOnly"


@repositories.register
class WebHookAttempts(Repository[WebHookAttempt]):
    name = "Systems.Config.WebHookAttempts"
    display_format = "{AttemptNo}. {Outcome}"
    ordering = ("AttemptNo",)
    validations = (refuse_change,)
    access = "ReadOnly"
