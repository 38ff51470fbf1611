"""The active language."""

from __future__ import annotations

from django.utils.translation import get_language


def active_language() -> str:
    """The code of the active language without a region: `bg` of `bg-BG`; English where translation is off."""
    return (get_language() or "en").partition("-")[0]
