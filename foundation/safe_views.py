"""Decorator for read-only views."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe

V = TypeVar("V", bound=Callable[..., Any])


def reads_only(view: V) -> V:
    """Refuse methods other than GET and HEAD with 405 and Allow (RFC 9110, 15.5.6).

    Exempt from the CSRF check, which runs before the view and would answer 403; unsafe methods are refused anyway.
    """
    return csrf_exempt(require_safe(view))
