"""The event map: the rules and webhooks on each event of a repository, in the order of the events (spec 05, 5.1).

The page lists the repositories with rules, and shows the events of a chosen one. It shows only rules and webhooks that
the user may read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.db.models import Count, Q
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from domain.admin.context import permitted
from domain.admin.page_links import PageLink, page_link
from domain.admin.visible_rows import rows_of
from domain.entities.systems_bpm import RULE_EXECUTION_PRIORITY, UserBusinessRule
from domain.entities.systems_config import WebHook
from domain.events.types import EventType, event_types
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation.languages import active_language
from platform_site.admin_site import SitePage
from rules.specs import ACTIONS, EVENTS, RULES, EventSpec, RuleSpec, stored_rules
from rules.validation import check_rule
from webhooks.templates import web_hook_get

#: Title of a stage → its events, in the order in which they fire (spec 03, 3.1).
STAGES: tuple[tuple[Any, tuple[str, ...]], ...] = (
    (_("Created and edited"), ("CREATENEW", "ATTRIBUTECHANGING", "ATTRIBUTECHANGED")),
    (_("An operation is called"), ("STATECHANGING", "STATECHANGED", "VOIDING", "BEFORERECALCULATE")),
    (_("About to be saved"), ("COMMIT", "CLIENTCOMMIT", "AGGREGATECLIENTCOMMIT")),
    (_("Saved"), ("COMMITTED", "CLIENTCOMMITTED", "AGGREGATECLIENTCOMMITTED")),
)
#: Maximum rules of one repository on the page.
_MOST_RULES = 200


@dataclass(frozen=True, slots=True)
class SentHook:
    """A webhook that a rule sends; url: "" if the user may not open its page."""

    code: str
    url: str
    is_active: bool


@dataclass(frozen=True, slots=True)
class Listener:
    """A rule on an event.

    inherited_from  the base repository whose rule it is; "" for the repository's own
    problem         why it is broken; "" for none
    others          types of its actions besides WEBHOOK
    """

    title: str
    url: str
    parameter: str
    priority: str
    is_active: bool
    inherited_from: str
    problem: str
    others: tuple[str, ...]
    hooks: tuple[SentHook, ...]


@dataclass(frozen=True, slots=True)
class ShownEvent:
    """An event of the repository with its rules in the order in which they run."""

    name: str
    description: str
    listeners: tuple[Listener, ...]


def may_see(request: HttpRequest) -> bool:
    """Whether the user may read rules with their events and actions."""
    return all(permitted(request, "read", repositories[name]) for name in (RULES, EVENTS, ACTIONS))


def map_page(request: HttpRequest, context: dict[str, Any]) -> HttpResponse:
    """The repositories with rules; with the parameter `repository`, its events."""
    visible = rows_of(request, UserBusinessRule._default_manager.all())
    name = request.GET.get("repository", "")
    if not name:
        active, inactive = (Count("pk", filter=Q(is_active=state)) for state in (True, False))
        counted = visible.values("repository_name").annotate(active=active, inactive=inactive)
        context["repositories"] = [
            {**row, "known": row["repository_name"] in repositories} for row in counted.order_by("repository_name")
        ]
        return TemplateResponse(request, "site/event_map.html", context)
    if name not in repositories:
        raise Http404
    repository = repositories[name]
    watched = [base.name for base in _with_bases(repository)]
    chosen = visible.filter(repository_name__in=watched).order_by("-is_active", "code")
    keys = [str(key) for key in chosen.values_list("pk", flat=True)[: _MOST_RULES + 1]]
    rules = stored_rules(active_only=False, only=keys[:_MOST_RULES])
    context |= {
        "repository": repository,
        "stages": list(_stages(request, repository, rules)),
        "has_more": len(keys) > _MOST_RULES,
        "title": repository.name,
        "links": [*context["links"], (str(EVENT_MAP.title), EVENT_MAP.url)],
    }
    return TemplateResponse(request, "site/event_map.html", context)


def _with_bases(repository: Repository[Any]) -> Iterator[Repository[Any]]:
    """The repository, then its bases, whose rules apply to it, too."""
    yield from (each for each in repositories if each is repository or repository in each.subtypes)


def _stages(
    request: HttpRequest, repository: Repository[Any], rules: list[RuleSpec]
) -> Iterator[tuple[str, list[ShownEvent]]]:
    problems = {rule.id: next((found.message for found in check_rule(rule)), "") for rule in rules}
    readable = {str(key) for key in rows_of(request, WebHook._default_manager.all()).values_list("pk", flat=True)}
    may_open = permitted(request, "read", repositories["Systems.Config.WebHooks"])

    def hooks(rule: RuleSpec) -> Iterator[SentHook]:
        for action in rule.actions:
            if action.action_type == "WEBHOOK" and (reference := action.parameters[0].value):
                known = web_hook_get(reference)
                if known is None or not may_open or known.id not in readable:
                    yield SentHook(reference, "", known is not None and known.is_active)
                else:
                    yield SentHook(known.code, reverse("admin:domain_webhook_change", args=[known.id]), known.is_active)

    def listener(rule: RuleSpec, event: EventSpec) -> Listener:
        return Listener(
            title=rule.title(active_language()),
            url=reverse("admin:domain_userbusinessrule_change", args=[rule.id]),
            parameter=event.parameter or "",
            priority=event.priority,
            is_active=rule.is_active,
            inherited_from="" if rule.repository == repository.name else rule.repository,
            problem=problems[rule.id],
            others=tuple(dict.fromkeys(_other_actions(rule))),
            hooks=tuple(hooks(rule)),
        )

    offered = {event.name: event for event in event_types.of(repository)}
    for title, names in STAGES:
        yield (
            str(title),
            [_shown(offered[name], rules, listener) for name in names if name in offered],
        )


def _other_actions(rule: RuleSpec) -> Iterable[str]:
    return [
        *(action.action_type for action in rule.actions if action.action_type != "WEBHOOK"),
        *([gettext("script")] if rule.has_script else []),
    ]


def _shown(event: EventType, rules: list[RuleSpec], listener: Any) -> ShownEvent:
    """The event with its rules by parameter, priority and code, as they run."""
    found = [(spec, rule) for rule in rules for spec in rule.events if spec.event_type.upper() == event.name]
    found.sort(key=lambda pair: (pair[0].parameter or "", _rank(pair[0].priority), pair[1].code, pair[1].id))
    return ShownEvent(event.name, gettext(event.description), tuple(listener(rule, spec) for spec, rule in found))


def _rank(priority: str) -> int:
    return RULE_EXECUTION_PRIORITY.members.get(priority, RULE_EXECUTION_PRIORITY.members["Normal"])


@page_link(UserBusinessRule, WebHook)
def map_link(request: HttpRequest, obj: Any) -> PageLink | None:
    """The link from a rule or webhook to the event map of its repository."""
    if obj.repository_name not in repositories or not may_see(request):
        return None
    return PageLink(
        gettext("Events"), f"{EVENT_MAP.url}?{urlencode({'repository': obj.repository_name})}", "account_tree"
    )


EVENT_MAP = SitePage("events", _("Events with rules and webhooks"), "Automation", map_page, may_see)
