"""Renders Django's plain inputs, choices and labels without templates, to the same HTML.

The page of an order has about 350 of them, each of two or three templates: half a millisecond each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.forms.renderers import TemplatesSetting
from django.http import HttpRequest
from django.utils.formats import localize
from django.utils.html import conditional_escape
from django.utils.safestring import SafeString

Context = Mapping[str, Any]


class FormRenderer(TemplatesSetting):
    """Django's renderer, with functions in place of the templates of _RENDERERS."""

    def render(self, template_name: str, context: Any, request: HttpRequest | None = None) -> SafeString:
        """The HTML of a widget, a label or another part of a form."""
        make = _RENDERERS.get(template_name)
        if make is not None and (template_name not in _CONDITIONS or _CONDITIONS[template_name](context)):
            return SafeString(make(context))  # every part is escaped
        return SafeString(super().render(template_name, context, request))


def _attributes(attributes: Mapping[str, Any]) -> str:
    """` name="value"` of each; a name alone for True, nothing for False."""
    return "".join(
        f" {conditional_escape(name)}" + ("" if value is True else f'="{conditional_escape(value)}"')
        for name, value in attributes.items()
        if value is not False
    )


def _input(context: Context) -> str:
    widget = context["widget"]
    value = "" if widget["value"] is None else f' value="{conditional_escape(widget["value"])}"'
    return (
        f'<input type="{conditional_escape(widget["type"])}" name="{conditional_escape(widget["name"])}"{value}'
        f"{_attributes(widget['attrs'])}>"
    )


def _textarea(context: Context) -> str:
    widget = context["widget"]
    text = conditional_escape(widget["value"]) if widget["value"] else ""
    return f'<textarea name="{conditional_escape(widget["name"])}"{_attributes(widget["attrs"])}>\n{text}</textarea>'


def _has_plain_options(context: Context) -> bool:
    groups = context["widget"]["optgroups"]
    return all(option["template_name"] == _OPTION for _, options, _ in groups for option in options)


def _select(context: Context) -> str:
    widget = context["widget"]
    parts = [f'<select name="{conditional_escape(widget["name"])}"{_attributes(widget["attrs"])}>']
    for group, options, _ in widget["optgroups"]:
        if group:
            parts.append(f'<optgroup label="{conditional_escape(group)}">')
        parts += map(_option, options)
        if group:
            parts.append("</optgroup>")
    return "\n".join([*parts, "</select>"])


def _option(option: Context) -> str:
    label = conditional_escape(localize(option["label"]))
    return f'<option value="{conditional_escape(option["value"])}"{_attributes(option["attrs"])}>{label}</option>'


def _label(context: Context) -> str:
    label = conditional_escape(context["label"])
    if not context["use_tag"]:
        return label
    return f"<{context['tag']}{_attributes(context['attrs'])}>{label}</{context['tag']}>"


def _no_errors(context: Context) -> str:
    return ""


_OPTION = "django/forms/widgets/select_option.html"
_INPUTS = ("text", "number", "email", "url", "password", "hidden", "date", "time", "datetime", "checkbox", "input")
_ERRORS = ("django/forms/errors/list/default.html", "django/forms/errors/list/ul.html")
#: Template → function that replaces it.
_RENDERERS: dict[str, Callable[[Context], str]] = {
    **{f"django/forms/widgets/{name}.html": _input for name in _INPUTS},
    "django/forms/widgets/textarea.html": _textarea,
    "django/forms/widgets/select.html": _select,
    "django/forms/label.html": _label,
    **dict.fromkeys(_ERRORS, _no_errors),
}
#: Template → whether the function can render this context.
_CONDITIONS: dict[str, Callable[[Context], bool]] = {
    "django/forms/widgets/select.html": _has_plain_options,
    **dict.fromkeys(_ERRORS, lambda context: not context["errors"]),
}
