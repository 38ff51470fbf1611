"""URLs of the account pages, under /id/, and of the profile, under /profile/; identity.oauth.urls has the endpoints."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, path
from django.views.generic import RedirectView

from identity import cors, email_change, password_reset, profile, profile_pages, view_as, views
from identity.factors import registration_pages as factors
from identity.factors import sign_in_pages
from identity.federation import logout as federation_logout
from identity.federation import views as federation

app_name = "identity"

#: Allows only safe methods.
_PROFILE = RedirectView.as_view(pattern_name="identity:profile", http_method_names=["get", "head", "options"])

urlpatterns: list[URLPattern | URLResolver] = [
    # The URL of the profile site in the discovery document; redirects anonymous users to the login.
    path("id", _PROFILE),
    path("id/", _PROFILE),
    path("id/account/login", views.login_page, name="login"),
    path("id/account/logout", views.logout_page, name="logout"),
    path("id/account/password", views.password_page, name="password"),
    path("id/account/email", email_change.request_page, name="email"),
    path("id/account/email/<str:uid>/set", email_change.set_page, name="email_set"),
    path("id/account/email/<str:uid>/<str:token>", email_change.link_page, name="email_link"),
    path("id/account/view-as/stop", view_as.stop_page, name="view_as_stop"),
    path("id/account/reset", password_reset.request_page, name="reset"),
    path("id/account/reset/<str:uid>/set", password_reset.set_page, name="reset_set"),
    path("id/account/reset/<str:uid>/<str:token>", password_reset.link_page, name="reset_link"),
    path("id/account/passkey", sign_in_pages.passkey_login, name="passkey_login"),
    path("id/account/second-factor", sign_in_pages.second_factor, name="second_factor"),
    path("id/account/second-factor/new", sign_in_pages.factor_new, name="factor_new"),
    path("id/account/factors/passkey", factors.passkey_add, name="passkey_add"),
    path("id/account/factors/passkey/<str:passkey_id>/rename", factors.passkey_rename, name="passkey_rename"),
    path("id/account/factors/passkey/<str:passkey_id>/remove", factors.passkey_remove, name="passkey_remove"),
    path("id/account/factors/app", factors.app_add, name="app_add"),
    path("id/account/factors/app/remove", factors.app_remove, name="app_remove"),
    path("id/account/factors/recovery-codes", factors.recovery_codes, name="recovery_codes"),
    path("id/federation/<slug:code>/start", federation.start, name="federation_start"),
    path("id/federation/<slug:code>/callback", federation.callback, name="federation_callback"),
    path("id/federation/<slug:code>/connect", federation.connect, name="federation_connect"),
    path("id/federation/<slug:code>/disconnect", federation.disconnect, name="federation_disconnect"),
    path("id/federation/<slug:code>/signed-out", federation_logout.signed_out, name="federation_signed_out"),
    path("profile/", views.profile_page, name="profile"),
    path("profile/me", cors.for_applications(profile.MeView.as_view()), name="me"),
    path("profile/me/picture", cors.for_applications(profile.PictureView.as_view())),
    path("profile/me/picture/<str:size>", cors.for_applications(profile.PictureView.as_view()), name="picture"),
    path("profile/picture", profile_pages.picture_page, name="picture_page"),
    path("profile/devices/<str:session_id>/sign-out", profile_pages.device_page, name="device_sign_out"),
    path("profile/applications/<str:application_id>/revoke", profile_pages.grant_page, name="grant_revoke"),
    path("profile/browsers/<str:key>/sign-out", profile_pages.browser_page, name="browser_sign_out"),
    path("profile/tokens/<str:token_id>/revoke", views.token_revoke, name="token_revoke"),
]
