"""A rule's page as a sentence: "When an object of … is about to be saved, if …, then …" (spec 05, 5.5).

The rows are those of the page's formsets. Each shows only the fields of its event, comparison or action, in inputs for
the chosen names. templates/rules/_sentence.html submits the form after each choice to update the following inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.forms import BoundField, Widget
from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _

from domain.admin.context import admin_context
from domain.admin.drafts import STEP, is_removed
from domain.dataset.lookups.name_binding import Name, UnknownName
from domain.events.types import EventType, event_types
from domain.model.naming import in_words
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation.kinds import Kind
from rules.actions import MESSAGE, TEMPLATES, ActionType, ParameterRule, action_types
from rules.conditions import comparisons
from rules.pickers import attribute_choices, drop_down, text_input, value_input
from rules.scope import RuleScope, scopes_of
from rules.specs import ActionSpec, ParameterSpec, RuleSpec

_MOMENTS = frozenset({Kind.DATE, Kind.DATETIME})
#: Types of parameters in words; Reference is a choice only if stored: a constant can also name an entity.
_TYPES = {
    "Constant": _("exactly"),
    "Interpolate": _("text with {Names}"),
    "FormattedString": _("text with {Names:format}"),
    "Attribute": _("the value of"),
    "Reference": _("the reference"),
    "ChildList": _("the rows of"),
}
#: Title and first words of the clauses.
_CLAUSES: dict[str, tuple[str, str]] = {
    "Events": (_("When"), _("or")),
    "Conditions": (_("If"), _("and")),
    "Actions": (_("Then"), _("and")),
}
_ADD = {
    "Events": _("Add another event"),
    "Conditions": _("Add a condition"),
    "Actions": _("Add an action"),
}


@dataclass(frozen=True, slots=True)
class Part:
    """An input of the sentence, with the words before it."""

    field: BoundField
    words: str = ""


@dataclass(slots=True)
class Row:
    """One event, condition or action: `parts` are read as a sentence, `more` is folded below, `hint` explains it."""

    form: Any
    word: str
    parts: list[Part] = field(default_factory=list)
    more: list[Part] = field(default_factory=list)
    hint: str = ""

    @property
    def prefix(self) -> str:
        """Conditions-0"""
        return str(self.form.prefix)

    @property
    def is_removed(self) -> bool:
        """Whether saving deletes the row."""
        return is_removed(self.form)

    @property
    def key_fields(self) -> list[BoundField]:
        """The hidden inputs of the formset."""
        return list(self.form.hidden_fields())

    @property
    def removal(self) -> str:
        """The name of the button that removes the row."""
        return gettext("Remove {0}").replace("{0}", str(self.parts[0].field.value() or self.prefix))

    @property
    def is_more_wrong(self) -> bool:
        """Whether a folded field has an error."""
        return any(part.field.errors for part in self.more)

    @property
    def errors(self) -> list[str]:
        """Messages about fields that the sentence does not show."""
        shown = {part.field.name for part in (*self.parts, *self.more)}
        return [text for name, texts in self.form.errors.items() if name not in shown for text in texts]


@dataclass(frozen=True, slots=True)
class Clause:
    """The events, conditions or actions."""

    collection: str
    title: str
    add: str
    management: Any
    rows: Sequence[Row]

    @property
    def is_empty(self) -> bool:
        """Whether it has no row."""
        return all(row.is_removed for row in self.rows)


def clauses(request: HttpRequest, rule: RuleSpec, formsets: Mapping[str, Any]) -> list[Clause]:
    """The clauses of the page's formsets (collection → formset), which get the inputs of the sentence."""
    scopes = SentenceInputs(request, rule)
    fill: dict[str, Callable[[Row], None]] = {
        "Events": scopes.fill_event,
        "Conditions": scopes.fill_condition,
        "Actions": scopes.fill_action,
    }
    result = []
    for collection, (title, following) in _CLAUSES.items():
        formset, rows, word = formsets[collection], [], ""
        for form in formset.forms:
            row = Row(form, word)
            if not row.is_removed:
                fill[collection](row)
                word = gettext(following)
            rows.append(row)
        if request.POST.get(STEP) == f"add {collection}" and rows and rows[-1].parts:
            # Not autofocus: browsers log an error if another element has the focus.
            rows[-1].parts[0].field.field.widget.attrs["data-begin"] = True
        result.append(Clause(collection, gettext(title), gettext(_ADD[collection]), formset.management_form, rows))
    return result


class SentenceInputs:
    """The names that the rows of a rule may use, and the inputs for them."""

    def __init__(self, request: HttpRequest, rule: RuleSpec) -> None:
        self.request = request
        is_known = rule.repository in repositories
        self.repository: Repository[Any] | None = repositories[rule.repository] if is_known else None
        self.scopes = [each for each in _scopes(rule, self.repository) if isinstance(each, RuleScope)]
        self.events = list({name.name: name for scope in self.scopes for name in scope.events}.values())

    def bind(self, text: str) -> Name | None:
        """The name in the first scope that resolves it."""
        for scope in self.scopes:
            try:
                return scope.bind(text)
            except UnknownName:
                continue
        return None

    # --- events -------------------------------------------------------------------------------------------------------

    def fill_event(self, row: Row) -> None:
        """Add the event and, if it takes one, its parameter."""
        event = event_types.get(_value(row, "event_type"))
        offered: Sequence[EventType] = list(event_types) if self.repository is None else event_types.of(self.repository)
        choices = [("", "---------"), *((each.name, _phrase_of(each)) for each in offered)]
        _add(row, "event_type", gettext("Event"), drop_down(choices, _value(row, "event_type")))
        if event is not None:
            row.hint = f"{event.name}: {gettext(event.description)}"
            if event.parameter is not None:
                _add(row, "event_parameter", gettext("Event parameter"), self._parameter_input(event, row))
        _add_more(row, "execution_priority", gettext("Priority"))
        _add_more(row, "layer", gettext("Layer"))

    def _parameter_input(self, event: EventType, row: Row) -> Widget:
        text = _value(row, "event_parameter")
        if self.repository is None or event.parameter is None:
            return text_input()
        try:
            chosen = event.parameter.normalise(self.repository, text) if text else ""
        except ValueError:
            chosen = ""
        # Keeps the stored spelling.
        choices = [
            (text if each == chosen else each, in_words(each)) for each in event.parameter.choices(self.repository)
        ]
        return drop_down([("", "---------"), *choices], text)

    # --- conditions ---------------------------------------------------------------------------------------------------

    def fill_condition(self, row: Row) -> None:
        """Add the attribute, a comparison for its kind, and a value if the comparison takes one."""
        text = _value(row, "attribute_name")
        name = self.bind(text) if text else None
        _add(row, "attribute_name", gettext("Attribute"), self._name_input(text))
        chosen = _value(row, "comparison_type")
        comparison = comparisons.get(chosen)
        choices = [
            (
                each.name,
                gettext(each.phrase_of_time if name and name.kind in _MOMENTS and each.phrase_of_time else each.phrase),
            )
            for each in comparisons
            if name is None or name.kind in each.kinds
        ]
        _add(row, "comparison_type", gettext("Comparison"), drop_down(choices, chosen))
        if comparison is None or comparison.needs_value:
            value = _value(row, "value")
            is_typed = name is not None and chosen != "Like"
            widget = value_input(self.request, name, value) if is_typed and name is not None else text_input()
            _add(row, "value", gettext("Value"), widget)
        _add_more(row, "condition_no", gettext("Number"))
        _add_more(row, "notes", gettext("Notes"))

    def _name_input(self, chosen: str) -> Widget:
        if self.repository is None:
            return text_input()
        return drop_down(attribute_choices(self.request, self.repository, chosen, self.events), chosen)

    # --- actions ------------------------------------------------------------------------------------------------------

    def fill_action(self, row: Row) -> None:
        """Add the action and its parameters."""
        chosen = _value(row, "action_type")
        choices = [(each.name, _phrase_of(each)) for each in action_types if each.is_available]
        _add(row, "action_type", gettext("Action"), drop_down([("", "---------"), *choices], chosen))
        action_type = action_types.get(chosen)
        if action_type is not None:
            row.hint = f"{action_type.name}: {gettext(action_type.description)}"
            for index, declared in enumerate(action_type.parameters):
                self._add_parameter(row, action_type, index, declared)
        _add_more(row, "action_no", gettext("Number"))

    def _add_parameter(self, row: Row, action_type: ActionType, index: int, declared: ParameterRule) -> None:
        number, title, lead = index + 1, gettext(declared.title), gettext(declared.lead) if declared.lead else ""
        type_name, value_name = f"parameter_{number}_type", f"parameter_{number}_value"
        text = _value(row, value_name)
        type = _value(row, type_name)
        offered = None
        if self.repository is not None:
            offered = action_type.choices(index, self.repository, admin_context(self.request))
        if offered is not None:
            _hide(row, type_name, type or declared.types[0])
            _add(row, value_name, title, drop_down([("", "---------"), *offered], text), lead)
            return
        type = type if type in declared.types else _usual_type(row, declared, ParameterSpec(None, text or None))
        types = [(each, gettext(_TYPES[each])) for each in declared.types if each != "Reference" or each == type]
        _add(row, type_name, gettext("{0}: type").replace("{0}", title), drop_down(types, type), lead)
        _preset(row, type_name, type)
        _add(row, value_name, title, self._parameter_value(row, action_type, index, type, text))

    def _parameter_value(self, row: Row, action_type: ActionType, index: int, type: str, text: str) -> Widget:
        if type in TEMPLATES:
            return text_input(lines=2)
        if type == "Attribute":
            return self._name_input(text)
        described = action_type.values_of(index, _spec(row))
        name = self.bind(described) if described else None
        if name is not None and type == "Constant":
            return value_input(self.request, name, text)
        return text_input(lines=2 if action_type.parameters[index].types == MESSAGE else 1)


def _scopes(rule: RuleSpec, repository: Repository[Any] | None) -> Iterator[Any]:
    if repository is None:
        return
    yield from (scope for _, scope in scopes_of(rule, repository))
    yield RuleScope(rule, repository)


def _phrase_of(each: EventType | ActionType) -> str:
    """The words for the type in the sentence; types of other apps may have only a description."""
    return gettext(each.phrase or each.description or each.name)


def _usual_type(row: Row, declared: ParameterRule, given: ParameterSpec) -> str:
    """The default type of a parameter: for stored rules as they run, for a new message a template."""
    is_new = row.form.instance._state.adding
    return "Interpolate" if is_new and declared.types == MESSAGE else declared.default_type(given)


def _spec(row: Row) -> ActionSpec:
    first, second, third = (
        ParameterSpec(_value(row, f"parameter_{number}_type") or None, _value(row, f"parameter_{number}_value") or None)
        for number in (1, 2, 3)
    )
    return ActionSpec(0, 0, _value(row, "action_type"), (first, second, third))


def _value(row: Row, name: str) -> str:
    value = row.form[name].value() if name in row.form.fields else None
    return "" if value is None else str(value)


def _add(row: Row, name: str, title: str, widget: Widget, words: str = "") -> None:
    """Show the field in the sentence, in this widget, with an accessible name."""
    widget.attrs["aria-label"] = title
    row.form.fields[name].widget = widget
    row.parts.append(Part(row.form[name], words))


def _hide(row: Row, name: str, value: str) -> None:
    """Submit the field as a hidden input."""
    shown = row.form.fields[name]
    shown.widget = shown.hidden_widget()
    _preset(row, name, value)


def _preset(row: Row, name: str, value: str) -> None:
    """Show the field with this value instead of the stored or submitted one."""
    if row.form.is_bound:
        row.form.data[row.form.add_prefix(name)] = value
    row.form.initial[name] = value
    row.form[name].__dict__.pop("initial", None)  # cached by the bound field


def _add_more(row: Row, name: str, title: str) -> None:
    if name in row.form.fields:
        row.form.fields[name].widget.attrs["aria-label"] = title
        row.more.append(Part(row.form[name], title))
