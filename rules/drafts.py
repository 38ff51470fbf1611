"""Drafts of rules: the rows of a rule's page as a RuleSpec, before it is saved."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from django.forms.formsets import DELETION_FIELD_NAME
from django.http import HttpRequest, QueryDict

from domain.admin.context import admin_context
from domain.admin.drafts import STEP, is_removed
from domain.dataset.checks.authority import of_caller
from domain.model.registry import repositories
from rules.specs import ACTIONS, CONDITIONS, EVENTS, RULES, RuleSpec, rule_of_values

#: Collection → (repository of its rows, the field without which a row is empty).
COLLECTIONS: Mapping[str, tuple[str, str]] = {
    "Events": (EVENTS, "event_type"),
    "Conditions": (CONDITIONS, "attribute_name"),
    "Actions": (ACTIONS, "action_type"),
}
_REMOVE = re.compile(r"remove ((?:Events|Conditions|Actions)-\d{1,3})")
#: Maximum rows of a collection on the page.
_MAX_ROWS = 200


def with_step(data: QueryDict) -> QueryDict:
    """The submitted rows after the step, which adds or removes a row."""
    step = data.get(STEP, "")
    changed = data.copy()
    if (removed := _REMOVE.fullmatch(step)) is not None:
        changed[f"{removed[1]}-{DELETION_FIELD_NAME}"] = "on"
    collection = step.removeprefix("add ")
    if collection in COLLECTIONS:
        total = changed.get(f"{collection}-TOTAL_FORMS", "")
        if total.isdigit() and int(total) < _MAX_ROWS:
            changed[f"{collection}-TOTAL_FORMS"] = str(int(total) + 1)
            for name, value in _defaults(collection).items():
                changed[f"{collection}-{total}-{name}"] = value
    return changed


def _defaults(collection: str) -> dict[str, str]:
    """The form values of a new row's fields with a default."""
    attributes = repositories[COLLECTIONS[collection][0]].attributes.values()
    return {
        each.python_name: str(each.field.get_default())
        for each in attributes
        if each.enum is not None and each.field is not None and each.field.has_default()
    }


def draft_of(request: HttpRequest, form: Any, formsets: Mapping[str, Any]) -> RuleSpec:
    """The rule of the page, with the user as its author. formsets: collection → formset."""
    instance = form.instance
    values = {
        attribute.name: _text(form, attribute.python_name, getattr(instance, attribute.python_name, None))
        for attribute in repositories[RULES].attributes.values()
        if attribute.field is not None and attribute.name in _OF_THE_RULE
    }
    rows = {name: [_values(row, name) for row in rows_in(formset, name)] for name, formset in formsets.items()}
    values |= {"Id": str(instance.pk or ""), "Name": instance.name or {}}
    return rule_of_values(
        values, rows["Events"], rows["Conditions"], rows["Actions"], of_caller(admin_context(request))
    )


_OF_THE_RULE = frozenset(
    {"Code", "RepositoryName", "Layer", "IsActive", "ScriptLanguage", "ScriptText", "UserStartable"}
)


def rows_in(formset: Any, collection: str) -> Iterator[Any]:
    """The forms of the rows that are neither removed nor empty."""
    for row in formset.forms:
        if not is_removed(row) and row[COLLECTIONS[collection][1]].value():
            yield row


def _values(row: Any, collection: str) -> dict[str, Any]:
    repository = repositories[COLLECTIONS[collection][0]]
    return {
        attribute.name: _number(value) if attribute.name.endswith("No") else value
        for attribute in repository.attributes.values()
        if attribute.field is not None and not attribute.owner
        for value in (_text(row, attribute.python_name, None),)
    }


def _text(form: Any, name: str, missing: Any) -> Any:
    """The form's value; null for an empty text."""
    value = form[name].value() if name in form.fields else missing
    return None if value == "" else value


def _number(value: Any) -> int | None:
    text = str(value or "")
    return int(text) if text.isdigit() else None
