"""Entries of the admin's autocomplete choosers."""

from __future__ import annotations

from typing import Any

from django.contrib.admin.views.autocomplete import AutocompleteJsonView

from domain.admin.visible_rows import with_visible_references


class Choices(AutocompleteJsonView):
    """The view of a chooser's entries."""

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """As Django's; sets references to hidden rows to null in the texts."""
        context: dict[str, Any] = super().get_context_data(**kwargs)
        context["object_list"] = with_visible_references(self.request, list(context["object_list"]), ())
        return context
