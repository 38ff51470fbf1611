"""Kinds of audit entries about authentication and access (audit.kinds); other apps write some of them, too."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from audit.kinds import (
    ACCOUNT_CHANGE,
    API_ACTIVITY,
    AUTHENTICATION,
    AUTHORIZE_SESSION,
    ENTITY_MANAGEMENT,
    EntryKind,
    Ocsf,
    entry_kinds,
)

_FAILURE = 2
_LOW, _MEDIUM, _HIGH = 2, 3, 4
_OTHER = 99


@entry_kinds.register
class SignedIn(EntryKind):
    """A user has signed in with every required factor. methods: Authentication Method Reference values."""

    name = "signin.succeeded"
    title = _("Signed in")
    ocsf = Ocsf(AUTHENTICATION, 1)


@entry_kinds.register
class SignInFailed(EntryKind):
    """A wrong password or factor. reason: password, code, passkey, federation or limit."""

    name = "signin.failed"
    title = _("Sign-in failed")
    ocsf = Ocsf(AUTHENTICATION, 1, _MEDIUM, _FAILURE)


@entry_kinds.register
class SignedOut(EntryKind):
    """A user has signed out of a browser and its applications."""

    name = "signin.ended"
    title = _("Signed out")
    ocsf = Ocsf(AUTHENTICATION, 2)


@entry_kinds.register
class ClientRefused(EntryKind):
    """An application, or the scraper of metrics, has sent a wrong secret."""

    name = "client.refused"
    title = _("Wrong client secret")
    ocsf = Ocsf(AUTHENTICATION, 1, _MEDIUM, _FAILURE)


@entry_kinds.register
class GuessingLimited(EntryKind):
    """An address has sent more unknown codes, tokens or links than the limit."""

    name = "guess.limited"
    title = _("Guessing limited")
    ocsf = Ocsf(AUTHENTICATION, _OTHER, _HIGH, _FAILURE)


@entry_kinds.register
class TokenIssued(EntryKind):
    """An access token, with or without a refresh token, or a reference token."""

    name = "token.issued"
    title = _("Token issued")
    ocsf = Ocsf(AUTHORIZE_SESSION, 1)


@entry_kinds.register
class TokenRevoked(EntryKind):
    """A reference token, or all tokens of a sign-in or service (a family)."""

    name = "token.revoked"
    title = _("Token revoked")
    ocsf = Ocsf(AUTHORIZE_SESSION, _OTHER)


@entry_kinds.register
class TokenReused(EntryKind):
    """A code or refresh token was used again; its family was revoked."""

    name = "token.reused"
    title = _("Token used again")
    ocsf = Ocsf(AUTHORIZE_SESSION, _OTHER, _HIGH, _FAILURE)


@entry_kinds.register
class CredentialsChanged(EntryKind):
    """Password, second factors or recovery codes of a user, also the use of a recovery code. change: the sentence."""

    name = "credentials.changed"
    title = _("Password or second factor changed")
    ocsf = Ocsf(ACCOUNT_CHANGE, 3, _LOW)


@entry_kinds.register
class AccountChanged(EntryKind):
    """Users changed their own address, or an identity provider created or connected an account."""

    name = "account.changed"
    title = _("Account changed")
    ocsf = Ocsf(ACCOUNT_CHANGE, _OTHER)


@entry_kinds.register
class SecretChanged(EntryKind):
    """The secret of an application or webhook, or a key of the instance. The entry does not contain the secret."""

    name = "secret.changed"
    title = _("Secret or key changed")
    ocsf = Ocsf(ENTITY_MANAGEMENT, 3, _LOW)


@entry_kinds.register
class ViewAsStarted(EntryKind):
    """An administrator sees the admin as another user."""

    name = "viewas.started"
    title = _("View as another user started")
    ocsf = Ocsf(AUTHENTICATION, _OTHER, _LOW)


@entry_kinds.register
class ViewAsEnded(EntryKind):
    """The administrator has ended the view."""

    name = "viewas.ended"
    title = _("View as another user ended")
    ocsf = Ocsf(AUTHENTICATION, _OTHER)


@entry_kinds.register
class AccessChanged(EntryKind):
    """Users, roles, memberships, permissions, row policies, applications, identity providers or limits."""

    name = "access.changed"
    title = _("Access rights changed")
    ocsf = Ocsf(ENTITY_MANAGEMENT, 3, _LOW)


@entry_kinds.register
class ConfigurationChanged(EntryKind):
    """Rules, scripts, webhooks, jobs, custom properties and entities, or an imported configuration."""

    name = "configuration.changed"
    title = _("Configuration changed")
    ocsf = Ocsf(ENTITY_MANAGEMENT, 3)


@entry_kinds.register
class DataExported(EntryKind):
    """A list was exported, a command has written a file, or a table is streamed."""

    name = "data.exported"
    title = _("Data exported")
    ocsf = Ocsf(API_ACTIVITY, 2)
