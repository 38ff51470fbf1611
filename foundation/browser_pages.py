"""Base view of browser pages below /api/."""

from __future__ import annotations

from django.views.generic import View


class BrowserPage(View):
    """A view below /api/ that uses cookies: its requests pass through all middleware, including CSRF checks.

    platform_site.middleware calls other API views directly.
    """
