"""Maps an upstream account to a user, connected or new, and its claims to roles.

An account is connected only by a user who is signed in here and has entered the password, or with a new user. An equal
e-mail address or login upstream proves nothing: the provider's administrator could choose it.
"""

from __future__ import annotations

import unicodedata

from django.db import IntegrityError, transaction

from audit.actors import PLATFORM, Actor
from audit.record import record
from foundation import errors
from foundation.fields import utc_now
from foundation.messages import TranslatableMessage as Message
from foundation.validators import email_problem
from identity.audit_actors import user_subject
from identity.audit_kinds import AccessChanged, AccountChanged
from identity.backends import RoleBackend
from identity.changes import access_changed
from identity.federation.provider import FederationFailed, Identity
from identity.models import FederatedAccount, IdentityProvider, IdentityProviderRole, RoleUser, User

_LOGIN_LENGTH = 64


@transaction.atomic
def account_enter(provider: IdentityProvider, identity: Identity) -> FederatedAccount:
    """The account of a person who has signed in upstream; creates a user if the provider's policy allows it.

    Updates its roles by the claims. Raises FederationFailed for a person without an account and for a user who may not
    sign in.
    """
    # Locked, so that the second of two concurrent sign-ins sees the roles that the first has added.
    accounts = FederatedAccount.objects.select_related("user").select_for_update(of=("self",))
    account = accounts.filter(provider=provider, subject=identity.subject).first()
    if account is None:
        account = _create(provider, identity)
    if not RoleBackend().user_can_authenticate(account.user):
        raise FederationFailed(Message("Your user is disabled. Ask an administrator."))
    _follow_roles(provider, identity, account.user)
    account.last_login = utc_now()
    account.save(update_fields=["last_login"])
    return account


def account_connect(provider: IdentityProvider, identity: Identity, user: User) -> FederatedAccount:
    """Connect the account to the signed-in user. Raises FederationFailed if either is connected already."""
    try:
        with transaction.atomic():
            result = FederatedAccount.objects.create(provider=provider, subject=identity.subject, user=user)
            _follow_roles(provider, identity, user)
            by = Actor(user.login)
            record(AccountChanged, by=by, subject=user_subject(user), provider=provider.code, change="connected")
            return result
    except IntegrityError as exc:
        raise FederationFailed(
            Message("That account is connected to another user, or you have connected another. Disconnect it first.")
        ) from exc


def account_disconnect(user: User, provider: IdentityProvider) -> bool:
    """Remove the user's account at the provider; returns whether there was one. Roles from its claims stay until an
    administrator removes them.

    Raises FederationFailed if the user could no longer sign in.
    """
    own = FederatedAccount.objects.filter(user=user)
    if not user.has_usable_password() and own.exclude(provider=provider).count() == 0:
        raise FederationFailed(Message("It is your only way to sign in. Set a password first."))
    return bool(own.filter(provider=provider).delete()[0])


def _create(provider: IdentityProvider, identity: Identity) -> FederatedAccount:
    if not provider.new_users:
        raise FederationFailed(
            Message(
                "No user here is connected to your account at {0}. Sign in with your password and connect it in your "
                "profile, or ask an administrator.",
                provider.name,
            )
        )
    login = _login(provider, identity)
    try:
        # The login is claimed with it: one that another user has or had is refused (identity.logins).
        user = User.objects.create_user(
            login,
            name={"EN": (_storable(identity.text("name")) or login)[:254]},
            email=_email(identity),
            user_type=provider.new_users,
        )
    except (IntegrityError, errors.Refused) as exc:
        raise FederationFailed(
            Message(
                "The login {0} belongs to another user here. If it is you, sign in with your password and connect "
                "your account in your profile.",
                login,
            )
        ) from exc
    record(AccountChanged, by=PLATFORM, subject=user_subject(user), provider=provider.code, change="created")
    return FederatedAccount.objects.create(provider=provider, subject=identity.subject, user=user)


def _email(identity: Identity) -> str | None:
    """The verified e-mail address; None if it is invalid or too long (truncated it could be another person's)."""
    email = identity.text("email")
    is_usable = identity.claims.get("email_verified") is True and len(email) <= 254 and email_problem(email) is None
    return email if is_usable else None


def _storable(text: str) -> str:
    """The text without control characters and halves of surrogate pairs, which databases refuse."""
    return "".join(character for character in text if unicodedata.category(character) not in ("Cc", "Cs"))


def _login(provider: IdentityProvider, identity: Identity) -> str:
    login = identity.text(provider.login_claim)
    unusable = any(unicodedata.category(character)[0] in "CZ" for character in login)
    if not login or len(login) > _LOGIN_LENGTH or unusable:
        raise FederationFailed(
            Message(
                "Your account has no usable login: the claim {0} is absent, too long or has blanks.",
                provider.login_claim,
            )
        )
    return login


def _follow_roles(provider: IdentityProvider, identity: Identity, user: User) -> None:
    """Add the roles whose claim values the person has, and remove the provider's other mapped roles."""
    if not provider.role_claim:
        return
    has = identity.values(provider.role_claim)
    mapped = IdentityProviderRole.objects.filter(provider=provider).values_list("claim_value", "role_id")
    due = {role for value, role in mapped if value in has}
    lost = {role for _value, role in mapped} - due
    memberships = RoleUser.objects.filter(user=user, enterprise_company=None, company_location=None)
    present = set(memberships.filter(role_id__in=due).values_list("role_id", flat=True))
    changed = bool(memberships.filter(role_id__in=lost).delete()[0])
    for role in due - present:
        RoleUser.objects.create(user=user, role_id=role)
        changed = True
    if changed:
        access_changed(RoleUser)
        subject = user_subject(user)
        record(AccessChanged, by=PLATFORM, subject=subject, provider=provider.code, roles=sorted(map(str, due)))
