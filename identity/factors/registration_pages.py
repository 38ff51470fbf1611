"""Pages that register, name and remove second factors: of the signed-in user, or in a pending sign-in."""

from __future__ import annotations

import time
from typing import Any

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_variables

from foundation.guids import is_guid
from identity.account_pages import form_page, own_form_action
from identity.audit_actors import actor_of
from identity.factors import authenticator_app, notices, recovery
from identity.factors.flow import (
    FRESH_SECONDS,
    PendingSignIn,
    pending_get,
    sign_in_continue,
    step_of,
    step_up_get,
)
from identity.factors.forms import CodeForm, PasskeyForm
from identity.factors.listing import factors_of, factors_remove
from identity.factors.methods import KEY, ONE_TIME_CODE, amr_with, level_of
from identity.factors.passkeys import PasskeyRefused, registration_begin, registration_complete, relying_party_id
from identity.factors.policy import required_level
from identity.login_target import application_name_of, login_page, safe_next
from identity.models import Passkey, User
from identity.oauth.sign_in import sign_in_get, sign_in_started

#: Session key of the user and the secret of the app being set up, so that a reloaded page shows the same secret.
_NEW_SECRET = "new_app_secret"  # noqa: S105


@form_page
def passkey_add(request: HttpRequest) -> HttpResponse:
    """Register a passkey under a name; scripts call the browser's WebAuthn."""
    subject = _subject(request)
    if isinstance(subject, HttpResponse):
        return subject
    user, pending = subject
    if not relying_party_id(request):
        return _page(request, "passkey", subject, works=False)
    initial = {"name": _("Passkey %(number)s") % {"number": Passkey.objects.filter(user=user).count() + 1}}
    form = PasskeyForm(request.POST or None, initial=initial)
    if request.method == "POST" and form.is_valid():
        given = form.cleaned_data
        try:
            with transaction.atomic():
                registration_complete(
                    request, user, name=given["name"], state=given["state"], response=given["credential"]
                )
                notices.user_notify(user, notices.PASSKEY_ADDED, by=actor_of(request))
        except PasskeyRefused as refused:
            form.add_error(None, str(refused))
        else:
            return _added(request, user, pending, KEY, _("The passkey has been added."))
    return _page(request, "passkey", subject, form=form, ceremony=registration_begin(request, user), works=True)


@form_page
@sensitive_variables("secret")
def app_add(request: HttpRequest) -> HttpResponse:
    """Set up an authenticator app: show the QR code, and store the secret once a code proves that the app has it."""
    subject = _subject(request)
    if isinstance(subject, HttpResponse):
        return subject
    user, pending = subject
    if pending is not None and pending.level == 2:
        return login_again(request)  # only a passkey is enough
    secret = _new_secret(request, user)
    form = CodeForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        with transaction.atomic():
            is_added = authenticator_app.app_add(user, secret, form.cleaned_data["code"])
            if is_added:
                notices.user_notify(user, notices.APP_ADDED, by=actor_of(request))
        if is_added:
            del request.session[_NEW_SECRET]
            return _added(request, user, pending, ONE_TIME_CODE, _("The authenticator app has been set up."))
        form.add_error("code", _("The code is wrong. Check that the clock of the phone is right."))
    picture = authenticator_app.qr_code(authenticator_app.secret_uri(request, user, secret))
    spaced = " ".join(secret[at : at + 4] for at in range(0, len(secret), 4))
    return _page(
        request, "app", subject, form=form, picture=picture, secret=spaced, replaces=bool(factors_of(user).app)
    )


@own_form_action
def recovery_codes(request: HttpRequest) -> HttpResponse:
    """Make new recovery codes and show them once."""
    user = fresh_user(request)
    if user is None:
        return login_again(request)
    if not factors_of(user):
        raise Http404
    with transaction.atomic():
        notices.user_notify(user, notices.CODES_MADE, by=actor_of(request))
        return _codes_page(request, user, reverse("identity:profile"))


@own_form_action
def passkey_rename(request: HttpRequest, passkey_id: str) -> HttpResponse:
    """Give a passkey another name."""
    passkey = _passkey(request, passkey_id)
    form = PasskeyForm(request.POST)
    if form.is_valid():
        Passkey.objects.filter(pk=passkey.pk).update(name=form.cleaned_data["name"])
        messages.success(request, _("The passkey has its new name."))
    else:
        messages.error(request, _("A passkey needs a name of at most 64 characters."))
    return redirect("identity:profile")


@own_form_action
def passkey_remove(request: HttpRequest, passkey_id: str) -> HttpResponse:
    """Remove a passkey, unless a role of the user requires it."""
    passkey = _passkey(request, passkey_id)
    return _remove(request, [passkey], app=False)


@own_form_action
def app_remove(request: HttpRequest) -> HttpResponse:
    """Remove the authenticator app, unless a role of the user requires it."""
    return _remove(request, [], app=True)


Subject = tuple[User, PendingSignIn | None]


def _subject(request: HttpRequest) -> Subject | HttpResponse:
    """The user whose factor is registered, and the pending sign-in; else a redirect to a fresh login."""
    pending = step_up_get(request) or pending_get(request)
    if pending is not None and step_of(pending) == "register":
        return (pending.user, pending) if pending.is_fresh else login_page(pending.target)
    user = fresh_user(request)
    return login_again(request) if user is None else (user, None)


def fresh_user(request: HttpRequest) -> User | None:
    """The signed-in user, if the sign-in is fresh enough to change factors, and with a factor if the user has any."""
    sign_in = sign_in_get(request)
    if sign_in is None or time.time() - sign_in.auth_time.timestamp() >= FRESH_SECONDS:
        return None
    return sign_in.user if level_of(sign_in.amr) >= int(bool(factors_of(sign_in.user))) else None


def login_again(request: HttpRequest) -> HttpResponseRedirect:
    """Redirect to the login page, then back to the requested page, or to the profile for a posted form."""
    messages.info(request, _("Sign in again to change how you sign in."))
    return login_page(request.get_full_path() if request.method == "GET" else reverse("identity:profile"))


def _new_secret(request: HttpRequest, user: User) -> str:
    """The secret of the app that the user is setting up; never one shown to another user of this browser."""
    kept = request.session.get(_NEW_SECRET)
    if kept is None or kept["user"] != str(user.pk):
        kept = {"user": str(user.pk), "secret": authenticator_app.secret_make()}
        request.session[_NEW_SECRET] = kept
    return str(kept["secret"])


def _added(request: HttpRequest, user: User, pending: PendingSignIn | None, proof: str, message: str) -> HttpResponse:
    """The response to a registration, which counts as a proof; shows recovery codes to a user who has none."""
    if pending is not None:
        response = sign_in_continue(request, pending.proven(proof))
    else:
        sign_in = sign_in_get(request)
        assert sign_in is not None
        request.session.cycle_key()
        sign_in_started(request, amr_with(sign_in.amr, proof), sign_in.auth_time.timestamp())
        response = redirect("identity:profile")
    if recovery.codes_left(user):
        messages.success(request, message)
        return response
    page = _codes_page(request, user, response.headers["Location"])
    page.cookies = response.cookies
    return page


def _codes_page(request: HttpRequest, user: User, target: str) -> HttpResponse:
    """New recovery codes; this response is the only one that has them."""
    context = {"codes": recovery.codes_make(user), "target": target, "account": user}
    return render(request, "identity/factors/codes.html", context)


def _remove(request: HttpRequest, passkeys: list[Passkey], *, app: bool) -> HttpResponse:
    user = fresh_user(request)
    if user is None:
        return login_again(request)
    factors = factors_of(user)
    if app and factors.app is None:
        raise Http404
    kept = [each for each in factors.passkeys if each not in passkeys]
    level = 2 if kept else int(factors.app is not None and not app)
    if level < required_level(str(user.pk)):
        messages.error(request, _("A role of yours requires this factor. Add another one first."))
        return redirect("identity:profile")
    with transaction.atomic():
        factors_remove(user, passkeys=passkeys, app=app)
        notices.user_notify(user, notices.APP_REMOVED if app else notices.PASSKEY_REMOVED, by=actor_of(request))
    messages.success(request, _("It has been removed."))
    return redirect("identity:profile")


def _passkey(request: HttpRequest, passkey_id: str) -> Passkey:
    """One of the user's own passkeys."""
    if not is_guid(passkey_id):
        raise Http404
    return get_object_or_404(Passkey, pk=passkey_id, user_id=request.user.pk)


def _page(request: HttpRequest, name: str, subject: Subject, **context: Any) -> HttpResponse:
    user, pending = subject
    target = "" if pending is None else pending.target
    next_ = safe_next(request) if pending is not None else ""
    response = render(
        request, f"identity/factors/{name}.html", {"account": user, "next": next_, "is_step": bool(pending), **context}
    )
    response.form_leads_away = bool(application_name_of(target))  # type: ignore[attr-defined]
    return response
