"""Account pages: login, logout, password, profile (spec 01, 1.6)."""

from __future__ import annotations

import datetime
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _

from foundation import errors
from foundation.guids import is_guid
from foundation.languages import active_language
from identity.account_pages import form_page, own_form_action, own_form_page, user_of
from identity.audit_actors import actor_of
from identity.browser_sessions import stored_key
from identity.browser_sign_ins import browsers_list
from identity.devices import devices_list
from identity.factors.flow import password_accepted
from identity.factors.listing import factors_of
from identity.factors.passkeys import assertion_begin, relying_party_id
from identity.federation.logout import upstream_sign_out
from identity.forms import LoginForm, PasswordForm, ReferenceTokenForm
from identity.grants import grants_list
from identity.languages import in_ui_language
from identity.limited_pages import limited_page, limited_text
from identity.login_target import application_name_of, safe_next
from identity.mailed_links import mail_is_configured
from identity.models import IdentityProvider, ReferenceToken, User
from identity.oauth import logout
from identity.oauth.sign_in import sign_in_stored
from identity.password_checks import password_authenticate
from identity.passwords import password_set
from identity.permissions import may_enter_admin
from identity.pictures import picture_get
from identity.profile_pages import PictureForm
from identity.reference_tokens import (
    ReferenceTokenRefused,
    applications_for,
    reference_token_issue,
    reference_token_revoke,
    reference_tokens_list,
)


@form_page
def login_page(request: HttpRequest) -> HttpResponse:
    """The login form. `next` is a URL of this instance; `login_hint` fills the login in, `ui_locales` chooses the
    language.
    """
    return in_ui_language(request.GET.get("ui_locales", ""), lambda: _login(request, safe_next(request)))


@form_page
def logout_page(request: HttpRequest) -> HttpResponse:
    """GET shows a form, POST signs out everywhere."""
    if request.method == "GET" and sign_in_stored(request) is not None:
        response = render(request, "identity/logout.html", {"action": request.path, "fields": [], "proof": ""})
        response.form_leads_away = upstream_sign_out(request) is not None  # type: ignore[attr-defined]
        return response
    return logout.sign_out_everywhere(request)


@own_form_page
def password_page(request: HttpRequest) -> HttpResponse:
    """Change the user's password; signs out other browsers, and applications if the user chooses so."""
    user = user_of(request)
    form = PasswordForm(request, user, request.POST or None)
    if request.method == "POST" and form.is_valid():
        password_set(
            user, form.cleaned_data["new_password"], ends_access=form.cleaned_data["ends_access"], by=actor_of(request)
        )
        update_session_auth_hash(request, user)
        messages.success(request, _("Your password has been changed."))
        return redirect("identity:profile")
    return limited_page(request, "identity/password.html", {"form": form}, form.limited)


@own_form_page
def profile_page(request: HttpRequest) -> HttpResponse:
    """The profile and the user's personal tokens; POST issues a token and shows it once."""
    user = user_of(request)
    form = ReferenceTokenForm(applications_for(user), request.POST or None)
    token = None
    if request.method == "POST" and form.is_valid():
        try:
            token, _row = reference_token_issue(
                user=user,
                application=form.application,
                name=form.cleaned_data["name"],
                scopes=form.cleaned_data["scopes"],
                lifetime=datetime.timedelta(days=form.cleaned_data["days"]),
                by=actor_of(request),
            )
            form = ReferenceTokenForm(applications_for(user), None)
        except ReferenceTokenRefused as refused:
            form.add_error(None, errors.reason(refused))
    context = {
        "form": form,
        "token": token,
        "tokens": reference_tokens_list(user=user),
        "person": user,
        "picture": picture_get(user.pk),
        "picture_form": PictureForm(),
        "devices": devices_list(user),
        "grants": grants_list(user),
        "browsers": browsers_list(user, stored_key(request.session.session_key or "")),
        "person_name": user.display_name(active_language()),
        "accounts": user.federated_accounts.select_related("provider"),
        "providers": IdentityProvider.objects.filter(is_active=True).exclude(accounts__user=user),
        "may_enter_admin": may_enter_admin(user),
        "factors": factors_of(user),
    }
    return render(request, "identity/profile.html", context)


@own_form_action
def token_revoke(request: HttpRequest, token_id: str) -> HttpResponse:
    """Revoke one of the user's personal tokens."""
    if not is_guid(token_id):
        raise Http404
    row = get_object_or_404(ReferenceToken, pk=token_id, user=user_of(request), kind=ReferenceToken.PERSONAL)
    reference_token_revoke(row, by=actor_of(request))
    messages.success(request, _("The token has been revoked."))
    return redirect("identity:profile")


def _login(request: HttpRequest, target: str) -> HttpResponse:
    form = LoginForm(request.POST or None, initial={"login": request.GET.get("login_hint", "")[:64]})
    if request.method == "POST" and form.is_valid():
        try:
            user = password_authenticate(request, form.cleaned_data["login"], form.cleaned_data["password"])
        except errors.TooManyRequests as limited:
            form.add_error(None, limited_text(limited))
            return _login_form(request, form, target, limited)
        if user is not None:
            return password_accepted(request, user, target)
        # One text for all causes, so that it does not reveal which logins exist.
        form.add_error(None, _("The login or the password is wrong."))
    return _login_form(request, form, target)


def _login_form(
    request: HttpRequest, form: LoginForm, target: str, limited: errors.TooManyRequests | None = None
) -> HttpResponse:
    application_name = application_name_of(target)
    hint = {name: value for name, value in request.GET.items() if name == "login_hint" and value}
    context = {
        "form": form,
        "next": target,
        "application_name": application_name,
        "reset_offered": mail_is_configured(),
        "providers": IdentityProvider.objects.filter(is_active=True),
        "provider_query": urlencode({**({"next": target} if target else {}), **hint}),
        "stranger": _user_without_admin_access(request, target),
        "ceremony": assertion_begin(request) if relying_party_id(request) else None,
    }
    response = limited_page(request, "identity/login.html", context, limited)
    response.form_leads_away = bool(application_name)  # type: ignore[attr-defined]
    return response


def _user_without_admin_access(request: HttpRequest, target: str) -> User | None:
    """The signed-in user without admin access whom the admin site has redirected here, or None."""
    user = request.user
    sent = target.startswith(reverse("admin:index"))
    return user if sent and isinstance(user, User) and not may_enter_admin(user) else None
