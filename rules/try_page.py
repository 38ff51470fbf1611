"""The Try page: evaluates a rule for a chosen entity, in a dataset that is discarded (spec 05, 5.5)."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from domain.admin.context import admin_context
from domain.admin.visible_rows import rows_of, with_visible_references
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation import errors
from foundation.guids import is_guid, parse_guid
from rules.dry_run import DryRun, rule_dry_run
from rules.specs import RuleSpec, stored_rules

#: Maximum number of offered entities; a search narrows them.
OFFERED = 20


def try_page(page: admin.ModelAdmin[Any], request: HttpRequest, object_id: str) -> HttpResponse:
    """GET offers entities (`q` searches), POST evaluates the rule for `entity`."""
    original = page.get_object(request, object_id) if is_guid(object_id) else None
    rule = next(iter(stored_rules(active_only=False, only=[object_id])), None)
    if original is None or rule is None:
        raise Http404
    if not page.has_change_permission(request, original):
        raise PermissionDenied
    context: dict[str, Any] = {
        **page.admin_site.each_context(request),
        "opts": page.opts,
        "rule": rule,
        "original": original,
        "title": rule.title(request.LANGUAGE_CODE),
        "q": request.GET.get("q", "").strip(),
    }
    if rule.repository in repositories:
        repository = repositories[rule.repository]
        context["entities"] = entities_to_try(repository, request, context["q"])
        entity = request.POST.get("entity", "").strip().lower()
        if request.method == "POST" and entity:
            context |= _evaluated(rule, repository, entity, request)
    return TemplateResponse(request, "rules/try.html", context)


def entities_to_try(repository: Repository[Any], request: HttpRequest, text: str) -> list[tuple[str, str]]:
    """(guid, display text) of entities that match the text; without a text, of the newest."""
    model = repository.model
    result = rows_of(request, model._default_manager.all())
    if is_guid(text):
        result = result.filter(pk=parse_guid(text))
    elif text and model in admin.site._registry:
        result, _ = admin.site._registry[model].get_search_results(request, result, text)
    offered = with_visible_references(request, list(result.order_by("-pk")[:OFFERED]), ())
    return [(str(entity.pk), str(entity)) for entity in offered]


def _evaluated(rule: RuleSpec, repository: Repository[Any], entity: str, request: HttpRequest) -> dict[str, Any]:
    attempts: list[DryRun] = []
    problem = ""
    rows = rows_of(request, repository.model._default_manager.filter(pk=entity)) if is_guid(entity) else None
    shown = None if rows is None else rows.first()
    try:
        if shown is None:
            raise errors.NotFound(errors.ENTITY_NOT_FOUND, repository.entity_type, entity)
        # The rollback also discards what a script or a number sequence writes.
        with transaction.atomic():
            attempts = rule_dry_run(rule_id=rule.id, entity_id=entity, context=admin_context(request))
            transaction.set_rollback(True)
    except errors.PlatformError as exc:
        problem = exc.message
    if shown is not None:
        with_visible_references(request, [shown], ())
    return {"attempts": attempts, "problem": problem, "entity": shown, "entity_id": entity, "tried": True}
