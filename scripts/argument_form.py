"""Form for a managed script's arguments, generated from its ParameterSchema (spec 04, 4.4)."""

from __future__ import annotations

from typing import Any, Final

import orjson
from django import forms
from django.utils.html import escape
from django.utils.translation import gettext, gettext_noop
from django.utils.translation import gettext_lazy as _

from foundation import errors
from foundation.messages import TranslatableMessage as Message
from foundation.messages import of_json
from scripts.parameters import ParameterSchema, ScriptParameter

#: Prefix that separates the names of parameters from other form fields.
PREFIX: Final = "arg:"
_INPUT_TYPES: Final = {"date": "date", "time": "time", "email": "email", "uri": "url"}
_MAX_JSON_CHARACTERS: Final = 1_000_000


class ArgumentForm(forms.Form):
    """One field for each input parameter; an empty field is an omitted argument.

    Invalid values are passed on to the service, which reports them as for any caller.
    """

    def __init__(self, schema: ParameterSchema, data: Any = None) -> None:
        super().__init__(data, auto_id="id_%s")
        for parameter in schema.parameters.values():
            if parameter.is_input:
                self.fields[PREFIX + parameter.name] = _field(parameter)

    def arguments(self) -> dict[str, Any]:
        """The given arguments by parameter; call it when the form is valid."""
        return {name.removeprefix(PREFIX): value for name, value in self.cleaned_data.items() if value is not NOT_GIVEN}


class _NotGiven:
    """An empty field."""

    def __str__(self) -> str:
        return ""


NOT_GIVEN: Final = _NotGiven()


class _TextField(forms.CharField):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__(strip=False, **kwargs)

    def clean(self, value: Any) -> Any:
        return super().clean(value) or NOT_GIVEN


class _NumberField(forms.CharField):
    """A JSON number; other text is passed on for the schema to refuse."""

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        if not text:
            return NOT_GIVEN
        try:
            number = orjson.loads(text)
        except orjson.JSONDecodeError:
            return text
        return number if isinstance(number, int | float) and not isinstance(number, bool) else text


class _JsonField(forms.CharField):
    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        if not text:
            return NOT_GIVEN
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError as exc:
            why = Message("{0} (line {1}, column {2})", of_json(exc), exc.lineno, exc.colno)
            message = errors.format_message(gettext_noop("This is not valid JSON: {0}"), [why])
            raise forms.ValidationError(message) from exc


class _ChoiceField(forms.ChoiceField):
    """Choices as JSON texts: an enum may have numbers and null."""

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        return orjson.loads(text) if text else NOT_GIVEN


def _field(parameter: ScriptParameter) -> forms.Field:
    kind = parameter.schema.get("type")
    options: dict[str, Any] = {
        "required": False,
        "label": parameter.name,
        "help_text": escape(parameter.description),  # Django and Unfold print help texts as they are
    }
    shown = None if not parameter.has_default else orjson.dumps(parameter.default).decode()
    attributes = {"autocomplete": "off", **({"placeholder": shown} if shown is not None else {})}
    if isinstance(parameter.schema.get("enum"), list) or kind == "boolean":
        values = [True, False] if kind == "boolean" else parameter.schema["enum"]
        texts = [orjson.dumps(value).decode() for value in values]
        empty = gettext("default: {0}").format(shown) if shown is not None else "–"
        choices = [("", empty)]
        choices += [
            (text, value if isinstance(value, str) else text) for text, value in zip(texts, values, strict=True)
        ]
        result: forms.Field = _ChoiceField(choices=choices, **options)
    elif kind in ("number", "integer"):
        result = _NumberField(widget=forms.TextInput(attrs={"inputmode": "decimal", **attributes}), **options)
    elif kind == "string":
        widget = forms.TextInput(attrs=attributes)
        widget.input_type = _INPUT_TYPES.get(str(parameter.schema.get("format")), "text")
        if parameter.has_default and isinstance(parameter.default, str):
            widget.attrs["placeholder"] = parameter.default
        result = _TextField(widget=widget, **options)
    else:
        area = forms.Textarea(attrs={"rows": 3, "spellcheck": "false", **attributes})
        result = _JsonField(widget=area, max_length=_MAX_JSON_CHARACTERS, **options)
    result.kind = _kind(parameter)  # type: ignore[attr-defined]  # for the template
    if parameter.required and not parameter.has_default:
        result.widget.attrs["aria-required"] = "true"
    return result


def _kind(parameter: ScriptParameter) -> str:
    kind = parameter.schema.get("type") or ("enum" if "enum" in parameter.schema else "JSON")
    text = "/".join(kind) if isinstance(kind, list) else str(kind)
    return f"{text}, {_('required')}" if parameter.required and not parameter.has_default else text
