"""Forms of the rule pages, with choices from the catalogues and the stored value."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django import forms
from django.utils.translation import gettext, gettext_lazy
from unfold.widgets import UnfoldAdminSelectWidget

from domain.admin.forms import ChildFormSet, EntityForm
from domain.events.types import event_types
from domain.model.registry import repositories
from domain.model.repository import Repository
from rules.actions import action_types
from rules.specs import LANGUAGES
from rules.trace_switches import traced_rules

#: Id of the list of attribute names on the page (templates/rules/change_form.html).
ATTRIBUTE_LIST = "rule-attributes"

Choice = tuple[str, str]


def repository_choices() -> list[tuple[str, list[Choice]]]:
    """Repository names, grouped by namespace."""
    groups: dict[str, list[Choice]] = {}
    for name in sorted(repository.name for repository in repositories):
        groups.setdefault(name.rpartition(".")[0] or name, []).append((name, name))
    return list(groups.items())


def event_choices() -> list[Choice]:
    """All event types with their descriptions."""
    return [(event.name, f"{event.name} – {gettext(event.description)}") for event in event_types]


def action_choices() -> list[Choice]:
    """The action types that are available in this instance, with their descriptions."""
    return [
        (action.name, f"{action.name} – {gettext(action.description)}")
        for action in action_types
        if action.is_available
    ]


def attribute_names(repository: Repository[Any]) -> Iterable[str]:
    """Suggested names for conditions and actions: attributes of the repository and of its events."""
    yield from repository.attributes
    for event in event_types.of(repository):
        yield from (attribute.name for attribute in event.attributes)


class RuleForm(EntityForm):
    """The form of a rule, with the trace switch, which is no attribute of the rule."""

    trace = forms.BooleanField(
        required=False,
        label=gettext_lazy("Keep traces"),
        help_text=gettext_lazy("Keeps the newest 200 evaluations of this rule, shown below."),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["trace"].initial = self.instance.pk in traced_rules()
        if "repository_name" in self.fields:
            field = forms.ChoiceField(
                choices=[("", "---------"), *repository_choices()],
                widget=UnfoldAdminSelectWidget,
                required=False,
                label=self.fields["repository_name"].label,
            )
            _keep_stored(field, self.instance.repository_name, [name.name for name in repositories])
            self.fields["repository_name"] = field
        if "script_language" in self.fields:
            language: Any = self.fields["script_language"]
            offered = (*LANGUAGES, self.instance.script_language)
            language.choices = [choice for choice in language.choices if choice[0] in offered]


class RowForm(forms.ModelForm[Any]):
    """One event, condition or action."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, field in self.fields.items():
            field.required = False
            if name == "attribute_name" or name.endswith("_value"):
                field.widget.attrs["list"] = ATTRIBUTE_LIST
            elif name == "notes":
                field.widget.attrs["rows"] = 2
        self._offer("event_type", event_choices())
        self._offer("action_type", action_choices())

    def _offer(self, name: str, choices: list[Choice]) -> None:
        if name not in self.fields:
            return
        field = forms.ChoiceField(choices=[("", "---------"), *choices], required=False, label=self.fields[name].label)
        _keep_stored(field, getattr(self.instance, name), [value for value, _ in choices])
        self.fields[name] = field


class RuleFormSet(ChildFormSet):
    """Rows in the dataset's order, so that errors are shown at their rows."""

    def get_queryset(self) -> Any:
        return super().get_queryset().order_by("pk")


def _keep_stored(field: forms.ChoiceField, stored: str | None, known: list[str]) -> None:
    """Keep an unknown stored value as a choice: opening a page must not change the rule."""
    if stored and stored not in known:
        field.choices = [*field.choices, (stored, gettext("{0} (does not exist)").replace("{0}", stored))]  # type: ignore[misc]
