"""Inputs of a rule's sentence: names by repository, values by kind (spec 05, 5.5).

Each is a widget for the text that the rule stores, so forms always validate texts. A stored text that a typed input
cannot show gets a text input: opening a page must not change the rule.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.admin.widgets import AutocompleteSelect
from django.http import HttpRequest
from django.utils.translation import gettext
from unfold.widgets import INPUT_CLASSES, UnfoldAdminSelectWidget, UnfoldAdminTextareaWidget, UnfoldAdminTextInputWidget

from domain.admin.context import permitted
from domain.admin.visible_rows import rows_of, with_visible_references
from domain.dataset.lookups.name_binding import EventName, Name
from domain.events.types import custom_names
from domain.model.attributes import Attribute
from domain.model.naming import in_words
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation.enums import DOCUMENT_STATE, EnumType
from foundation.guids import is_guid
from foundation.kinds import Kind
from rules.actions import Choice
from rules.conditions import NUMBERS

Choices = Sequence[Choice | tuple[str, Sequence[Choice]]]

_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?")
_STEP = " › "


# --- names ------------------------------------------------------------------------------------------------------------


def attribute_choices(
    request: HttpRequest, repository: Repository[Any], chosen: str, events: Iterable[EventName] = ()
) -> Choices:
    """The names of one level: attributes, custom properties, at the top the event's values, and references to follow.

    `chosen` determines the level: "Customer.Number" and "Customer." have the names of the customer. A value that ends
    with a dot is a level, not a name.
    """
    path = chosen.rpartition(".")[0]
    level = _target_of(request, repository, path)
    if level is None:
        path, level = "", repository
    prefix, words = (f"{path}.", _path_in_words(path) + _STEP) if path else ("", "")
    members = [each for each in level.attributes.values() if each.kind is not Kind.BINARY and not each.secret]
    groups: list[Choice | tuple[str, Sequence[Choice]]] = [
        (prefix, f"{words}…") if path else ("", "---------"),
        *([("", f"‹ {gettext('back')}")] if path else []),
        (gettext("Attributes"), [(prefix + each.name, words + in_words(each.name)) for each in members]),
        (gettext("Custom properties"), [(prefix + name, words + name) for name in custom_names(level)]),
        (gettext("Of the event"), [(event.name, event.name) for event in events] if not path else []),
        (
            gettext("Through a reference"),
            [
                (f"{prefix}{each.name}.", f"{words}{in_words(each.name)}{_STEP}…")
                for each in members
                if each.is_reference and permitted(request, "read", repositories[each.target])
            ],
        ),
    ]
    return [group for group in groups if group[1]]


def _target_of(request: HttpRequest, repository: Repository[Any], path: str) -> Repository[Any] | None:
    """The repository at the end of a path of references; None for an invalid path or an unreadable repository."""
    for name in path.split(".") if path else ():
        attribute = repository.attribute(name)
        if attribute is None or not attribute.is_reference:
            return None
        repository = repositories[attribute.target]
        if not permitted(request, "read", repository):
            return None
    return repository


def _path_in_words(path: str) -> str:
    return _STEP.join(in_words(part) for part in path.split("."))


# --- widgets ----------------------------------------------------------------------------------------------------------


def drop_down(choices: Choices, chosen: str) -> forms.Widget:
    """A drop-down; an unknown chosen value is added to the choices."""
    flat = {value for group in choices for value, _ in (group[1] if not isinstance(group[1], str) else [group])}
    if chosen and chosen not in flat and not chosen.endswith("."):
        choices = [*choices, (chosen, gettext("{0} (does not exist)").replace("{0}", chosen))]
    widget: forms.Widget = UnfoldAdminSelectWidget(choices=choices)
    return widget


def text_input(*, lines: int = 1) -> forms.Widget:
    """A text input, or a text area for several lines."""
    widget: forms.Widget = UnfoldAdminTextareaWidget({"rows": lines}) if lines > 1 else UnfoldAdminTextInputWidget()
    return widget


def value_input(request: HttpRequest, name: Name, text: str) -> forms.Widget:
    """The input for a value of the name's kind: a date picker, a choice, a chooser of entities, a number or a text."""
    match name.kind:
        case kind if kind in NUMBERS and _is_number(text):
            classes = " ".join(INPUT_CLASSES)
            # Browsers drop a comma from an input of the type number: 79,25 would be 7925. Saving refuses a comma.
            if kind is not Kind.INT:
                return forms.TextInput({"class": classes, "inputmode": "decimal"})
            return forms.NumberInput({"class": classes, "step": "1"})
        case Kind.BOOL if text.lower() in ("", "true", "false"):
            options = [(text if text.lower() == "true" else "true", gettext("Yes"))]
            options.append((text if text.lower() == "false" else "false", gettext("No")))
            return drop_down([("", "---------"), *options], text)
        case Kind.DATE if not text or _DATE.fullmatch(text):
            return _typed("date")
        case Kind.DATETIME if not text or _MOMENT.fullmatch(text):
            return _typed("datetime-local")
        case Kind.ENUM | Kind.STATE:
            enum = name.enum or DOCUMENT_STATE
            return drop_down([("", "---------"), *_members(enum, text)], text)
        case Kind.REFERENCE:
            return _chooser(request, name.attribute, text) or text_input()
    return text_input()


def _typed(type: str) -> forms.Widget:
    widget = forms.TextInput({"class": " ".join(INPUT_CLASSES)})
    widget.input_type = type
    return widget


def _is_number(text: str) -> bool:
    try:
        return not text or Decimal(text).is_finite()
    except InvalidOperation:
        return False


def _members(enum: EnumType, text: str) -> list[Choice]:
    """The members in words; the chosen one keeps the spelling of the text as its value."""
    try:
        named = enum.member(text.replace(" ", "")) if text else ""
    except ValueError:
        named = ""
    return [(text if member == named else member, in_words(member)) for member in enum.members]


def _chooser(request: HttpRequest, attribute: Attribute | None, text: str) -> forms.Widget | None:
    """A search over the entities that the user may read; None for entities without an admin page."""
    if attribute is None or attribute.field is None:
        return None
    model: Any = repositories[attribute.target].model
    if not admin.site.is_registered(model) or not admin.site.is_registered(attribute.field.model):
        return None
    rows = rows_of(request, model._default_manager.all())
    if text and not (is_guid(text) and rows.filter(pk=text.lower()).exists()):
        return None
    widget = AutocompleteSelect(attribute.field, admin.site)
    chosen = forms.ModelChoiceField(rows, widget=widget, required=False)
    chosen.label_from_instance = lambda entity: str(with_visible_references(request, [entity], ())[0])  # type: ignore[method-assign,assignment]
    result: forms.Widget = chosen.widget
    return result
