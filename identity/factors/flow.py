"""The steps of a sign-in after its first proof: another factor, or the registration of one that a role requires.

Until the last step the user is not signed in: the session has only a pending sign-in, which only the pages of
identity.factors read. So no other URL can skip a step.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Literal

from django.contrib.auth import login
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.crypto import constant_time_compare

from audit.record import record
from identity.audit_actors import actor_of, user_subject
from identity.audit_kinds import SignedIn
from identity.backends import RoleBackend
from identity.factors.listing import Factors, factors_of
from identity.factors.methods import KEY, PASSWORD, Amr, amr_with, level_of, level_requested
from identity.factors.passkeys import relying_party_id
from identity.factors.policy import required_level
from identity.known_browsers import browser_remember
from identity.login_target import acr_values_of, safe_next
from identity.models import User
from identity.oauth import logout
from identity.oauth.fresh_login import fresh_logins_restore, fresh_logins_save
from identity.oauth.sign_in import sign_in_get, sign_in_started, sign_in_stored

_PENDING = "pending_sign_in"
#: Maximum age of a sign-in whose user changes factors, and of a pending sign-in.
FRESH_SECONDS = 15 * 60

Step = Literal["done", "prove", "register"]


@dataclass(frozen=True, slots=True)
class PendingSignIn:
    """A sign-in whose user has given the first proof.

    target        URL after the sign-in, "" for the profile
    auth_time     UTC timestamp of the oldest proof in `amr`
    is_recovered  whether a recovery code was used: a lost factor may be replaced
    """

    user: User
    amr: Amr
    target: str
    auth_time: float
    is_recovered: bool = False

    @property
    def level(self) -> int:
        """The required level: of the roles, of acr_values, and at least 1 for a user with a second factor."""
        requested = level_requested(acr_values_of(self.target))
        return max(required_level(str(self.user.pk)), requested, int(bool(factors_of(self.user))))

    @property
    def is_fresh(self) -> bool:
        """Whether its proofs are young enough to change factors."""
        return time.time() - self.auth_time < FRESH_SECONDS

    def proven(self, proof: str, *, recovered: bool = False) -> PendingSignIn:
        """The sign-in after another proof; a passkey is a whole sign-in by itself."""
        auth_time = time.time() if proof == KEY else self.auth_time
        amr = amr_with(self.amr, proof)
        return replace(self, amr=amr, auth_time=auth_time, is_recovered=self.is_recovered or recovered)


@dataclass(frozen=True, slots=True)
class Offer:
    """The proofs that a pending sign-in may give next, at the host of the request."""

    passkey: bool
    code: bool
    recovery: bool

    def __bool__(self) -> bool:
        return self.passkey or self.code or self.recovery


def step_of(pending: PendingSignIn) -> Step:
    """The next step. A user with factors proves one before registering another."""
    reached, required = level_of(pending.amr), pending.level
    if reached >= required:
        return "done"
    factors = factors_of(pending.user)
    if not factors or pending.is_recovered or (reached >= 1 and not factors.passkeys):
        return "register"
    return "prove"


def offer_of(request: HttpRequest, pending: PendingSignIn) -> Offer:
    """The accepted proofs. If a passkey is required and registered, codes are not: they could be phished."""
    factors: Factors = factors_of(pending.user)
    rp_id = relying_party_id(request)
    by_passkey_only = bool(factors.passkeys) and pending.level == 2
    return Offer(
        passkey=any(passkey.rp_id == rp_id for passkey in factors.passkeys),
        code=factors.app is not None and not by_passkey_only and level_of(pending.amr) < 1,
        recovery=factors.recovery_codes > 0,
    )


def password_accepted(request: HttpRequest, user: User, target: str) -> HttpResponse:
    """The response to a correct password: the next step, or the completed sign-in."""
    return sign_in_continue(request, PendingSignIn(user, (PASSWORD,), target, time.time()))


def passkey_accepted(request: HttpRequest, user: User, target: str) -> HttpResponse:
    """The response to a passkey that was used without a login."""
    return sign_in_continue(request, PendingSignIn(user, amr_with((), KEY), target, time.time()))


def sign_in_continue(request: HttpRequest, pending: PendingSignIn) -> HttpResponse:
    """Sign the user in if nothing is missing, else redirect to the page of the next step."""
    step = step_of(pending)
    if step == "done":
        return _sign_in(request, pending)
    # A new session key, against session fixation.
    request.session.cycle_key()
    request.session[_PENDING] = {
        "user": str(pending.user.pk),
        "hash": pending.user.get_session_auth_hash(),
        "amr": pending.amr,
        "target": pending.target,
        "auth_time": pending.auth_time,
        "is_recovered": pending.is_recovered,
        "since": time.time(),
    }
    return page_of(step)


def page_of(step: Step) -> HttpResponseRedirect:
    """The page of a step."""
    return redirect("identity:second_factor" if step == "prove" else "identity:factor_new")


def pending_get(request: HttpRequest) -> PendingSignIn | None:
    """The pending sign-in of this browser; None once it has expired or the user or the password has changed."""
    stored = request.session.get(_PENDING)
    if not stored or time.time() - stored["since"] >= FRESH_SECONDS:
        return None
    user = User.objects.filter(pk=stored["user"]).first()
    if user is None or not may_sign_in(user):
        return None
    if not constant_time_compare(stored["hash"], user.get_session_auth_hash()):
        return None
    return PendingSignIn(
        user, tuple(stored["amr"]), stored["target"], stored["auth_time"], bool(stored["is_recovered"])
    )


def step_up_get(request: HttpRequest) -> PendingSignIn | None:
    """The browser's sign-in as a pending one for the parameter `next`; None without either."""
    target, sign_in = safe_next(request), sign_in_get(request)
    if not target or sign_in is None:
        return None
    return PendingSignIn(sign_in.user, sign_in.amr, target, sign_in.auth_time.timestamp())


def may_sign_in(user: User) -> bool:
    """Whether the user is active and of a type that signs in."""
    return RoleBackend().user_can_authenticate(user)


def _sign_in(request: HttpRequest, pending: PendingSignIn) -> HttpResponse:
    proofs = fresh_logins_save(request)
    former = sign_in_stored(request)
    if former is not None and former.user != pending.user:
        # Another user of this browser is signed out first: tokens, slots, back channel.
        logout.sign_out(request)
    request.session.pop(_PENDING, None)
    # Changes the session key (session fixation).
    login(request, pending.user)
    sign_in_started(request, pending.amr, pending.auth_time)
    record(SignedIn, by=actor_of(request), subject=user_subject(pending.user), methods=list(pending.amr))
    response = HttpResponseRedirect(pending.target or reverse("identity:profile"))
    fresh_logins_restore(request, response, proofs)
    browser_remember(response, pending.user.login)
    return response
