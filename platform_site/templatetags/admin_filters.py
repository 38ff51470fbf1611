"""The active filters of a list: each condition in words, with a link to the list without it."""

from __future__ import annotations

from typing import Any

from django import template
from django.core.exceptions import FieldDoesNotExist
from django.utils.text import capfirst

register = template.Library()
#: Lookup in a query string → its sign; others are shown as equality.
_SIGNS = {"gte": " ≥", "gt": " >", "lte": " ≤", "lt": " <"}


@register.inclusion_tag("admin/_active_filters.html")
def active_filters(cl: Any) -> dict[str, Any]:
    """The active conditions of the list `cl`: those of its filters, and those that are only in its query string."""
    left = dict(cl.get_filters_params())
    found = []
    for spec in cl.filter_specs:
        names = [name for name in spec.expected_parameters() if name in cl.params]
        for name in names:
            left.pop(name, None)
        if names:
            found.append((f"{capfirst(str(spec.title))}: {_chosen(spec, cl, names)}", _without(cl, names)))
    found += [(_in_words(cl.lookup_opts, name, value), _without(cl, [name])) for name, value in left.items()]
    return {"filters": found}


def _chosen(spec: Any, cl: Any, names: list[str]) -> str:
    """The text of the filter's choice; for filters with input fields, the values in the query string."""
    for choice in spec.choices(cl):
        if choice.get("selected") and "display" in choice:
            return str(choice["display"])
    return " – ".join(_text(cl.params[name]) for name in names)


def _in_words(opts: Any, name: str, value: Any) -> str:
    field_name, _, lookup = name.partition("__")
    title, labels = field_name, {}
    try:
        field = opts.get_field(field_name)
        title, labels = field.verbose_name, dict(getattr(field, "flatchoices", ()))
    except FieldDoesNotExist:
        pass  # an annotation; the list refuses unknown names
    values = [str(labels.get(each, each)) for each in _text(value).split(",")]
    return f"{capfirst(str(title))}{_SIGNS.get(lookup, ':')} {', '.join(values)}"


def _text(value: Any) -> str:
    """The value of a parameter: a text or, in some versions of Django, a list."""
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _without(cl: Any, names: list[str]) -> str:
    result: str = cl.get_query_string(remove=names)
    return result
