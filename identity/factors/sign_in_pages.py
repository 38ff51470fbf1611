"""Pages of the steps of a sign-in: a passkey without a login, a second factor, the factor that a role requires."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from urllib.parse import urlencode

from django.forms import Form
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.utils.translation import gettext as _

from foundation import errors
from identity import rate_limits
from identity.account_pages import form_action, form_page, safe_page
from identity.audit_actors import anonymous_actor
from identity.factors import authenticator_app, recovery
from identity.factors.flow import (
    PendingSignIn,
    may_sign_in,
    offer_of,
    page_of,
    passkey_accepted,
    pending_get,
    sign_in_continue,
    step_of,
    step_up_get,
)
from identity.factors.forms import CodeForm, RecoveryForm
from identity.factors.methods import KEY, ONE_TIME_CODE
from identity.factors.notices import CODE_USED, user_notify
from identity.factors.passkeys import PasskeyRefused, assertion_begin, assertion_complete, relying_party_id
from identity.instance import client_address
from identity.known_browsers import known_browser_id
from identity.limited_pages import limited_page, limited_text
from identity.login_target import DECLINED, acr_values_of, application_name_of, login_page, safe_next
from identity.models import User
from identity.password_checks import sign_in_failed


@form_action
def passkey_login(request: HttpRequest) -> HttpResponse:
    """Sign in by a passkey alone, from the login page: `state`, `credential` and `next`."""
    target = safe_next(request)
    try:
        user = _passkey_user(request, None)
        if not may_sign_in(user):
            raise PasskeyRefused(_("This account does not sign in."))
        return passkey_accepted(request, user, target)
    except PasskeyRefused as refused:
        sign_in_failed(request, "passkey")
        problem, limited = str(refused), rate_limits.guess_refusal("passkey", client_address(request))
    context = {"problem": limited_text(limited) if limited else problem, "back": login_page(target).url}
    return limited_page(request, "identity/factors/refused.html", context, limited, status=400)


@form_page
def second_factor(request: HttpRequest) -> HttpResponse:
    """Request another factor of a pending sign-in, or of the signed-in user if `next` requires it."""
    pending = step_up_get(request) or pending_get(request)
    if pending is None:
        return login_page(safe_next(request))
    return _Page(request, pending).respond() if step_of(pending) == "prove" else _to_current_step(request, pending)


@safe_page
def factor_new(request: HttpRequest) -> HttpResponse:
    """Choose a factor to register: a role requires one, or the application at `next`."""
    pending = step_up_get(request) or pending_get(request)
    if pending is None or not pending.is_fresh:
        return login_page(safe_next(request) if pending is None else pending.target)
    if step_of(pending) != "register":
        return _to_current_step(request, pending)
    context = {
        "account": pending.user,
        "application_name": application_name_of(pending.target),
        "next": _next_of(request),
        "passkeys_work": bool(relying_party_id(request)),
        "passkey_only": pending.level == 2,
        "declined": _declined(request, pending),
    }
    return render(request, "identity/factors/new.html", context)


class _Page:
    """The page of one pending sign-in with the forms of the proofs that it may give."""

    def __init__(self, request: HttpRequest, pending: PendingSignIn) -> None:
        self.request, self.pending, self.user = request, pending, pending.user
        self.offer = offer_of(request, pending)
        posted = request.POST if request.method == "POST" else None
        self.code = CodeForm(posted if posted and "code" in posted else None)
        self.recovery = RecoveryForm(posted if posted and "recovery_code" in posted else None)
        self.problem = ""

    def respond(self) -> HttpResponse:
        """The response: the next step after a correct proof, else the page."""
        try:
            if proven := self._proven():
                return sign_in_continue(self.request, proven)
        except errors.TooManyRequests as limited:
            self.problem = limited_text(limited)
            return self._page(limited)
        return self._page()

    def _proven(self) -> PendingSignIn | None:
        """The pending sign-in with the posted proof. Raises TooManyRequests."""
        if self.offer.passkey and "credential" in self.request.POST:
            try:
                _passkey_user(self.request, self.user)
            except PasskeyRefused as refused:
                sign_in_failed(self.request, "passkey", login=self.user.login)
                rate_limits.count_guess("passkey", client_address(self.request))
                self.problem = str(refused)
                return None
            authenticator_app.failures_forget(self.user)
            return self.pending.proven(KEY)
        if self.offer.code and self.code.is_valid():
            if self._is_right(self.code, "code", partial(authenticator_app.code_use, by=anonymous_actor(self.request))):
                return self.pending.proven(ONE_TIME_CODE)
        elif (
            self.offer.recovery
            and self.recovery.is_valid()
            and self._is_right(self.recovery, "recovery_code", recovery.code_use)
        ):
            user_notify(self.user, CODE_USED, by=anonymous_actor(self.request))
            authenticator_app.failures_forget(self.user)
            # A recovery code is a one-time password; RFC 8176 has no separate value.
            return self.pending.proven(ONE_TIME_CODE, recovered=True)
        return None

    def _is_right(self, form: Form, field: str, use: Callable[[User, str], bool]) -> bool:
        """Whether the code is right, under the limits of passwords. Raises TooManyRequests."""
        login = self.user.login
        attempt = rate_limits.count_login_attempt(
            login, client_address(self.request), known_browser_id(self.request, login)
        )
        if use(self.user, form.cleaned_data[field]):
            attempt.undo()
            return True
        sign_in_failed(self.request, "code", login=login)
        if authenticator_app.app_is_blocked(self.user) and field == "code":
            form.add_error(field, _("The app accepts no codes any more: too many were wrong. Use another way."))
        else:
            form.add_error(field, _("The code is wrong, or was used already."))
        return False

    def _page(self, limited: errors.TooManyRequests | None = None) -> HttpResponse:
        context = {
            "account": self.user,
            "application_name": application_name_of(self.pending.target),
            "next": _next_of(self.request),
            "offer": self.offer,
            "ceremony": assertion_begin(self.request, self.user) if self.offer.passkey else None,
            "code_form": self.code,
            "recovery_form": self.recovery,
            "problem": self.problem,
            "other": login_page(self.pending.target).url,
            "declined": _declined(self.request, self.pending),
        }
        page = limited_page(self.request, "identity/factors/second_factor.html", context, limited)
        page.form_leads_away = bool(context["application_name"])  # type: ignore[attr-defined]
        return page


def _passkey_user(request: HttpRequest, user: User | None) -> User:
    """The user of the posted passkey. Raises PasskeyRefused."""
    state, response = request.POST.get("state", ""), request.POST.get("credential", "")
    return assertion_complete(request, state=state, response=response, user=user)


def _to_current_step(request: HttpRequest, pending: PendingSignIn) -> HttpResponse:
    """The response to a page whose step is not the current one."""
    target = _next_of(request)
    if not target:
        return sign_in_continue(request, pending)
    step = step_of(pending)
    return HttpResponseRedirect(target if step == "done" else f"{page_of(step).url}?{urlencode({'next': target})}")


def _next_of(request: HttpRequest) -> str:
    """`next` for the page's forms and links, without a pending sign-in of the session."""
    return safe_next(request) if step_up_get(request) else ""


def _declined(request: HttpRequest, pending: PendingSignIn) -> str:
    """The URL by which the user declines acr_values; "" if the sign-in needs the factor anyway."""
    if not _next_of(request) or not acr_values_of(pending.target):
        return ""
    return f"{pending.target}&{DECLINED}=1"
