"""Input of JobConfigurations in the admin: a group of inputs for each job type, generated from its settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import orjson
from django import forms
from django.utils.translation import gettext
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanWidget,
)

from identity.context import CallContext
from jobs.types.base import JobType, Setting, job_types


class SettingsInput(forms.Widget):
    """Inputs for the settings of every type; the value is the JSON of those of the type chosen in `type_field`.

    settings.js shows the group of the chosen type. Values are checked when the job is saved, not here.
    """

    template_name = "jobs/settings.html"
    type_field: ClassVar[str] = "job_type"

    class Media:
        js = ("jobs/settings.js",)

    def __init__(self, context: CallContext) -> None:
        super().__init__()
        self._context = context
        self._refused: dict[str, str] = {}

    def refuse(self, setting: str, message: str) -> str:
        """Show the message at the inputs of a setting; returns it with their label."""
        self._refused[setting] = message
        labels = (each.label for job_type in job_types for each in job_type.settings if each.name == setting)
        return f"{gettext(next(labels, setting))}: {message}"

    def id_for_label(self, id_: str) -> str:
        """None: the label names a group of inputs."""
        return ""

    def get_context(self, name: str, value: Any, attrs: dict[str, Any] | None) -> dict[str, Any]:
        """Adds the groups: (type, description, inputs), where an input is (label, id, HTML, problem)."""
        context = super().get_context(name, value, attrs)
        given = _members(value)
        context["groups"] = [
            (each.name, gettext(each.description), list(self._inputs(name, each, given))) for each in job_types
        ]
        context["type_field"] = self.type_field
        return context

    def _inputs(self, name: str, job_type: JobType, given: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str]]:
        for setting in job_type.settings:
            key = _key(name, job_type, setting)
            value = given.get(setting.name, setting.default)
            widget = _widget(setting, value, self._context)
            # Checkboxes of a list have a label each.
            target = "" if setting.type is list and setting.choices else f"id_{key}"
            problem = self._refused.get(setting.name, "")
            attributes = {"id": f"id_{key}"} | ({"aria-invalid": "true"} if problem else {})
            if setting.required and setting.type is not bool:
                attributes["aria-required"] = "true"
            yield gettext(setting.label), target, widget.render(key, _shown(setting, value), attributes), problem

    def value_from_datadict(self, data: Any, files: Any, name: str) -> str:
        """JobConfigurations of the chosen type, without empty inputs."""
        job_type = job_types.get(data.get(self.type_field) or "")
        if job_type is None:
            return ""
        read = ((setting, _entered(setting, data, _key(name, job_type, setting))) for setting in job_type.settings)
        values = {setting.name: value for setting, value in read if value not in ("", [], None)}
        return orjson.dumps(values).decode() if values else ""

    def value_omitted_from_data(self, data: Any, files: Any, name: str) -> bool:
        """False: browsers omit unchecked checkboxes."""
        return False


def _key(name: str, job_type: JobType, setting: Setting) -> str:
    return f"{name}-{job_type.name}-{setting.name}"


def _members(text: Any) -> Mapping[str, Any]:
    """The stored members; empty for a text that is no JSON object."""
    try:
        value = orjson.loads(text or "{}")
    except orjson.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}


def _widget(setting: Setting, value: Any, context: CallContext) -> forms.Widget:
    result: forms.Widget
    if setting.choices is not None:
        stored = value if isinstance(value, list) else [value] if value else []
        choices = [(name, name) for name in dict.fromkeys([*setting.choices(context), *map(str, stored)])]
        if setting.type is list:
            result = UnfoldAdminCheckboxSelectMultipleWidget(choices=choices)
        else:
            result = UnfoldAdminSelectWidget(choices=[("", "---------"), *choices])
    elif setting.type is bool:
        result = UnfoldBooleanWidget()
    elif setting.type is int:
        result = UnfoldAdminIntegerFieldWidget()
    elif setting.type is dict:
        result = UnfoldAdminTextareaWidget(_hint(orjson.dumps(setting.example).decode()) | {"rows": 3})
    else:
        result = UnfoldAdminTextInputWidget(_hint(str(setting.example)))
    return result


def _hint(example: str) -> dict[str, Any]:
    return {"placeholder": example, "spellcheck": "false", "autocomplete": "off"}


def _shown(setting: Setting, value: Any) -> Any:
    if setting.type is dict and isinstance(value, dict):
        return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode() if value else ""
    return value


def _entered(setting: Setting, data: Any, key: str) -> Any:
    """The value of an input. A text that the type cannot parse stays a text, which saving refuses."""
    if setting.type is bool:
        return key in data
    if setting.type is list:
        return data.getlist(key)
    text = (data.get(key) or "").strip()
    if setting.type is int and text.lstrip("-").isdecimal():
        return int(text)
    if setting.type is dict and text:
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError:
            return text
    return text
