"""Response headers whose checks are cached per value, for the web server's processes.

Django encodes and checks name and value of each header, and looks each up again for the server: with nine headers an
eighth of the CPU time of a keyed read. Most headers have few values, which are checked only when first set.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from django.http import response
from django.http.response import ResponseHeaders

#: Headers with few values; others, such as ETag, would fill the cache.
_REPEATED: Final = frozenset(
    {
        "Cache-Control",
        "Content-Language",
        "Content-Type",
        "OData-Version",
        "Vary",
        "X-Content-Type-Options",
    }
)
_MAX_CHECKED: Final = 1000
#: (name, value) → name and value as Django stores them.
_checked: dict[tuple[str, str], tuple[str, str]] = {}


class QuickHeaders(ResponseHeaders):
    """Django's headers, with the same checks."""

    _store: dict[str, tuple[str, str]]

    def __setitem__(self, name: str, value: Any) -> None:
        if name not in _REPEATED or not isinstance(value, str):
            super().__setitem__(name, value)
            return
        key = name.lower()
        known = _checked.get((name, value))
        if known is None:
            super().__setitem__(name, value)
            if len(_checked) < _MAX_CHECKED:
                _checked[name, value] = self._store[key]
        else:
            self._store[key] = known

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.lower() in self._store

    def items(self) -> Collection[tuple[str, str]]:  # type: ignore[override]
        """(name, value) of each header."""
        return self._store.values()


def use_quick_headers() -> None:
    """Make new responses use QuickHeaders."""
    response.ResponseHeaders = QuickHeaders  # type: ignore[misc]
