"""The entries that choosers of the admin offer."""

from __future__ import annotations

from typing import Any

from django.contrib.admin.views.autocomplete import AutocompleteJsonView

from domain.admin.rights import with_visible_references


class Choices(AutocompleteJsonView):
    """What a chooser offers."""

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """As Django's; references to rows that the user may not see are null in the texts."""
        context: dict[str, Any] = super().get_context_data(**kwargs)
        context["object_list"] = with_visible_references(self.request, list(context["object_list"]), ())
        return context
