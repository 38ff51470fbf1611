"""Settings of Django REST framework: defaults of the views that answer JSON (identity.rest)."""

from __future__ import annotations

from typing import Any

REST_FRAMEWORK: dict[str, Any] = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["identity.rest.TokenAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_THROTTLE_CLASSES": ["identity.rest.CallerThrottle"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "identity.rest.FirstRenderer",
    "DEFAULT_PARSER_CLASSES": [
        "identity.rest.JSONParser",
        "rest_framework.parsers.FormParser",
        "rest_framework.parsers.MultiPartParser",
    ],
    "DEFAULT_RENDERER_CLASSES": ["identity.rest.JSONRenderer"],
    "DEFAULT_METADATA_CLASS": None,
    "EXCEPTION_HANDLER": "domain.odata.http.exceptions.exception_handler",
    "UNAUTHENTICATED_USER": None,
}
