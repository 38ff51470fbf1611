"""Choosers of entities, which load the chosen entities of a page together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from django.contrib.admin.widgets import RelatedFieldWidgetWrapper
from django.db import models

from domain.admin.visible_rows import text_paths
from domain.model.registry import repositories
from identity.admin_bases import Chooser, usable_keys


class EntityChooser(Chooser):
    """A chooser. Loads the chosen entity, unless `load_chosen` has loaded it.

    loaded   key → entity
    """

    loaded: dict[str, Any] | None = None

    def optgroups(self, name: str, value: Sequence[str], attr: dict[str, Any] | None = None) -> Any:
        """The empty option and the chosen entity: the only options before a search."""
        keys = [str(key) for key in value if key not in self.choices.field.empty_values]
        loaded = self.loaded or {}
        if not all(key in loaded for key in keys):
            return super().optgroups(name, value, attr)
        options = [] if self.is_required else [self.create_option(name, "", "", False, 0)]
        for key in keys:
            label = self.choices.field.label_from_instance(loaded[key])
            options.append(self.create_option(name, key, label, True, len(options)))
        return [(None, options, 0)]


def load_chosen(forms: Iterable[Any]) -> None:
    """Load the chosen entities of the forms' choosers: one query for each model."""
    keys: dict[type[models.Model], set[str]] = defaultdict(set)
    fields: dict[type[models.Model], list[Any]] = defaultdict(list)
    for form in forms:
        for name, field in form.fields.items():
            if isinstance(_chooser(field), EntityChooser) and not field.get_limit_choices_to():
                model = field.queryset.model
                fields[model].append(field)
                if (key := form[name].value()) not in field.empty_values:
                    keys[model].add(str(key))
    for model, chosen in keys.items():
        loaded = _load(fields[model][0].queryset, chosen)
        for field in fields[model]:
            _chooser(field).loaded = loaded


def _chooser(field: Any) -> Any:
    widget = field.widget
    return widget.widget if isinstance(widget, RelatedFieldWidgetWrapper) else widget


def _load(readable: Any, keys: Iterable[str]) -> dict[str, Any]:
    valid = usable_keys(readable.model, keys)  # of a POST
    rows = readable.select_related(*text_paths(repositories.for_model(readable.model))).filter(pk__in=valid)
    return {str(row.pk): row for row in rows}
