"""URLs of the OpenID provider, under /id/, with the names that the toolkit's views reverse."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, path

from foundation.safe_views import reads_only
from identity import cors
from identity.oauth import authorize, device, discovery, logout, par, registration, token, userinfo

app_name = "oauth2_provider"

urlpatterns: list[URLPattern | URLResolver] = [
    path(
        ".well-known/openid-configuration",
        reads_only(discovery.ConfigurationView.as_view()),
        name="oidc-connect-discovery-info",
    ),
    path(".well-known/openid-configuration/jwks", reads_only(discovery.JwksView.as_view()), name="jwks-info"),
    path("connect/authorize", authorize.AuthorizationEndpoint.as_view(), name="authorize"),
    path("connect/par", cors.for_applications(par.PushedRequestEndpoint.as_view()), name="par"),
    path("connect/token", cors.for_applications(token.TokenEndpoint.as_view()), name="token"),
    path("connect/userinfo", cors.for_applications(userinfo.UserinfoEndpoint.as_view()), name="user-info"),
    path("connect/revocation", cors.for_applications(token.RevocationEndpoint.as_view()), name="revoke-token"),
    path("connect/introspect", token.IntrospectionEndpoint.as_view(), name="introspect"),
    path(
        "connect/deviceauthorization",
        cors.for_applications(device.DeviceAuthorizationEndpoint.as_view()),
        name="device-authorization",
    ),
    path("connect/register", registration.RegistrationEndpoint.as_view(), name="dcr-register"),
    path("device", device.device_page, name="device"),
    path("connect/endsession", logout.EndSessionEndpoint.as_view(), name="rp-initiated-logout"),
]
