"""Buttons on an entity's admin page that start rules, and their view (spec 10.4)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext

from domain.admin.context import admin_dataset, own_repository, permitted
from domain.admin.page_links import PageButton, page_button
from domain.admin.submission import commit
from domain.model.registry import repositories
from domain.model.values import in_language
from foundation import errors
from foundation.guids import is_guid
from foundation.languages import active_language
from rules.compiling import CompiledRule
from rules.index import rule_index
from rules.starting import rule_start, startable_rules


@page_button
def start_buttons(request: HttpRequest, obj: Any) -> Iterable[PageButton]:
    """A button for each startable rule of the repository, for users who may change the entity."""
    repository = own_repository(obj)
    rules = startable_rules(repository.name)
    if not rules or not permitted(request, "update", repository, obj):
        return
    fields = {"repository": repository.name, "entity": str(obj.pk)}
    for rule in rules:
        url = reverse("admin:rules_start", args=[rule.spec.id])
        yield PageButton(gettext("Start: {0}").replace("{0}", _name(rule)), url, "play_arrow", fields)


def _name(rule: CompiledRule) -> str:
    return in_language(dict(rule.spec.name), active_language()) or rule.spec.code


def start_view(request: HttpRequest, object_id: str) -> HttpResponse:
    """Start the rule on the posted entity, and return to its page with the messages of the rule."""
    name, entity = request.POST.get("repository", ""), request.POST.get("entity", "")
    if name not in repositories or not is_guid(entity):
        raise Http404
    known = {rule.spec.id: rule for rules in rule_index().startable.values() for rule in rules}
    try:
        with transaction.atomic():
            dataset = admin_dataset(request)
            record = dataset.open(repositories[name], entity, "update")
            with dataset.operating():
                fired = rule_start(record, object_id)
            commit(request, dataset)
    except errors.NotFound as exc:
        raise Http404 from exc
    except errors.Forbidden as exc:
        raise PermissionDenied from exc
    except errors.PlatformError as error:
        messages.error(request, error.message)
    else:
        title = _name(known[object_id]) if object_id in known else object_id
        if fired:
            messages.success(request, gettext("The rule {0} has run.").replace("{0}", title))
        else:
            messages.warning(request, gettext("The conditions of the rule {0} do not hold.").replace("{0}", title))
    model = repositories[name].model._meta
    return HttpResponseRedirect(reverse(f"admin:{model.app_label}_{model.model_name}_change", args=[entity]))
