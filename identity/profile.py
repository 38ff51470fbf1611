"""`GET /profile/me`: the user of a token or cookie (spec 01, 1.6)."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe

from foundation import errors
from identity import authentication, cors, instance
from identity.models import User
from identity.oauth.responses import no_store
from identity.permissions import may_enter_admin


@cors.for_applications
@require_safe
def me(request: HttpRequest) -> HttpResponse:
    """JSON; 401 without a user, 403 for services."""
    try:
        return no_store(JsonResponse(profile_of(request, load_person(request))))
    except errors.PlatformError as error:
        rendered = errors.render(error, correlation_id=getattr(request, "request_id", ""), debug=bool(settings.DEBUG))
        return no_store(JsonResponse(dict(rendered.body), status=rendered.status, headers=dict(rendered.headers)))


def load_person(request: HttpRequest) -> User:
    """The user of the token, else of the cookie. Raises Unauthorized or Forbidden."""
    meta = request.META
    if not any(meta.get(name) for name in ("HTTP_AUTHORIZATION", "HTTP_X_API_KEY", "HTTP_API_KEY")):
        if isinstance(request.user, User) and request.user.active:
            return request.user
        raise errors.Unauthorized(errors.TOKEN_MISSING)
    identity = authentication.identify_caller(request)
    if identity.is_service:
        raise errors.Forbidden(errors.USER_REQUIRED)
    return User.objects.get(pk=identity.caller.id)


def profile_of(request: HttpRequest, user: User) -> dict[str, Any]:
    """The response body."""
    base = instance.base_url(request)
    language = user.default_language or "en"
    return {
        "id": user.pk,
        "login": user.login,
        "name": user.display_name(language),
        "email": user.email,
        "isAdmin": user.is_admin,
        "userType": user.user_type,
        "preferredLanguage": language,
        "instance": base,
        "links": {
            "self": f"{base}/profile/me",
            "profile": f"{base}/profile/",
            "changePassword": f"{base}/id/account/password",
            "logout": f"{base}/id/account/logout",
            **({"admin": f"{base}/admin/"} if may_enter_admin(user) else {}),
        },
    }
