"""Decorators of account pages: never cached, protected against cross-site requests, for the methods that they have."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_protect
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from identity.models import User

View = Callable[..., HttpResponse]
_get_or_post = require_http_methods(["GET", "POST"])


def safe_page(view: View) -> View:
    """A page for GET and HEAD, which changes nothing."""
    return never_cache(require_safe(view))


def form_page(view: View) -> View:
    """A page for GET and POST; what is posted stays out of error reports."""
    return _of_secrets(_get_or_post(view))


def form_action(view: View) -> View:
    """The target of a form, for POST only."""
    return _of_secrets(require_POST(view))


def own_form_page(view: View) -> View:
    """As `form_page`, for signed-in users; others are sent to the login page."""
    return _of_secrets(login_required(_get_or_post(view)))


def own_form_action(view: View) -> View:
    """As `form_action`, for signed-in users; others are sent to the login page."""
    return _of_secrets(login_required(require_POST(view)))


def _of_secrets(view: View) -> View:
    return sensitive_post_parameters()(never_cache(csrf_protect(view)))


def user_of(request: HttpRequest) -> User:
    """The signed-in user of an own page."""
    assert isinstance(request.user, User)
    return request.user
