"""The Try page: evaluates a rule for a chosen entity, in a dataset that is discarded (spec 05, 5.5)."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from domain.admin.context import admin_context
from domain.admin.drafts import STEP, entities_to_try
from domain.admin.visible_rows import rows_of, with_visible_references
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation import dry_runs, errors
from foundation.guids import is_guid
from rules.dry_run import DryRun, draft_dry_run
from rules.newest import MAX_ENTITIES, run_on_newest
from rules.past_runs import MAX_CHANGES, past_run
from rules.specs import RuleSpec, stored_rules
from rules.validation import check_rule

#: Default number of past changes to run the rule against.
_LAST = 100


def try_page(page: admin.ModelAdmin[Any], request: HttpRequest, object_id: str) -> HttpResponse:
    """GET offers entities (`q` searches), POST evaluates the rule for `entity`, the `newest` or the `last` changes."""
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
        "last": _LAST,
        "most_changes": MAX_CHANGES,
    }
    if rule.repository in repositories:
        repository = repositories[rule.repository]
        context["entities"] = entities_to_try(repository, request, context["q"])
        if request.method == "POST" and "last" in request.POST:
            context["last"] = _number(request.POST["last"])
            context["past"] = past_run(rule=rule, context=admin_context(request), last=context["last"])
        entity = request.POST.get("entity", "").strip().lower()
        if request.method == "POST" and "newest" in request.POST:
            context["history"] = run_on_newest(rule, newest_of(repository, request), admin_context(request))
        elif request.method == "POST" and entity:
            context |= evaluated(rule, repository, entity, request)
    return TemplateResponse(request, "rules/try.html", context)


def newest_of(repository: Repository[Any], request: HttpRequest) -> list[tuple[str, str]]:
    """(guid, display text) of the newest entities that the user may read."""
    rows = rows_of(request, repository.model._default_manager.order_by("-pk"))
    shown = with_visible_references(request, list(rows[:MAX_ENTITIES]), ())
    return [(str(entity.pk), str(entity)) for entity in shown]


def _number(text: str) -> int:
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 6 else _LAST
    return min(max(number, 1), MAX_CHANGES)


def tried_draft(rule: RuleSpec, request: HttpRequest) -> dict[str, Any]:
    """Template values for a rule's page beside its sentence: entities to try it on, problems, and a dry run.

    `try_entity` of the POST is the chosen entity. A script may send requests, so a rule with one runs only in the step
    "try".
    """
    inputs = {"try_q": request.POST.get("try_q", "").strip(), "try_entity": request.POST.get("try_entity", "").lower()}
    if rule.repository not in repositories:
        return inputs
    repository = repositories[rule.repository]
    result: dict[str, Any] = {**inputs, "try_entities": entities_to_try(repository, request, inputs["try_q"])}
    if request.method != "POST":
        return result
    result["draft_problems"] = list(dict.fromkeys(each.message for each in check_rule(rule, {rule.author})))
    entity = inputs["try_entity"]
    if not is_guid(entity) or not rows_of(request, repository.model._default_manager.filter(pk=entity)).exists():
        return {**result, "try_entity": ""}
    result["waits_for_try"] = rule.has_script and request.POST.get(STEP) != "try"
    if not result["draft_problems"] and not result["waits_for_try"]:
        result |= evaluated(rule, repository, entity, request)
    if entity not in (key for key, _ in result["try_entities"]):
        result["try_entities"] = [*entities_to_try(repository, request, entity), *result["try_entities"]]
    return result


def evaluated(rule: RuleSpec, repository: Repository[Any], entity: str, request: HttpRequest) -> dict[str, Any]:
    """Values for templates/rules/_attempts.html: a dry run on the entity. The rule need not be stored."""
    attempts: list[DryRun] = []
    problem = ""
    rows = rows_of(request, repository.model._default_manager.filter(pk=entity)) if is_guid(entity) else None
    shown = None if rows is None else rows.first()
    try:
        if shown is None:
            raise errors.NotFound(errors.ENTITY_NOT_FOUND, repository.entity_type, entity)
        # Also rolls back writes of scripts and number sequences.
        with dry_runs.dry_run():
            attempts = draft_dry_run(rule=rule, entity_id=entity, context=admin_context(request))
    except errors.PlatformError as exc:
        problem = exc.message
    if shown is not None:
        with_visible_references(request, [shown], ())
    return {"attempts": attempts, "problem": problem, "entity": shown, "entity_id": entity, "tried": True}
