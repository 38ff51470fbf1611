"""Issues access tokens to the instance's own pages (spec 09, 9.5), which call the API as any other client.

The page has the origin of the sign-in, so it needs no redirect: the sign-in's cookie and the page's CSRF token are
exchanged for a short-lived access token of a built-in application. Administrators may restrict or disable that trusted
application; it has no redirect URI, so no code or token of it can be sent to another site.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace

from django.db import transaction
from django.http import HttpRequest
from oauth2_provider.settings import oauth2_settings

from foundation import errors
from identity import instance
from identity.audit_actors import actor_of
from identity.changes import tokens_revoked
from identity.factors.methods import acr_met, as_stored
from identity.models import AccessToken, TrustedApplication, User
from identity.oauth.issue import access_token_sign, token_issued
from identity.oauth.sign_in import SignIn, application_joined, sign_in_get
from identity.scopes import API_SCOPES
from identity.sessions import session_close


@dataclass(frozen=True, slots=True)
class PageApplication:
    """The application of a family of pages; registered at first use.

    `uri` is one of identity.applications.PAGE_APPLICATIONS.
    """

    uri: str
    name: str
    scopes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PageToken:
    """An access token for a page's memory."""

    access_token: str
    expires_in_seconds: int
    user: User


def page_user(request: HttpRequest) -> User:
    """The internal user who is signed in.

    Raises Unauthorized without a sign-in, Forbidden for external users.
    """
    return _internal(sign_in_get(request)).user


def _internal(sign_in: SignIn | None) -> SignIn:
    if sign_in is None:
        raise errors.Unauthorized(errors.TOKEN_MISSING)
    if not sign_in.user.may_call():
        raise errors.Forbidden(errors.USER_NOT_INTERNAL)
    return sign_in


def page_token_issue(request: HttpRequest, page: PageApplication) -> PageToken:
    """Issue a token to the signed-in user of the request. The caller has checked CSRF.

    Raises Unauthorized without a sign-in, Forbidden for external users and disabled applications.
    """
    sign_in = _internal(sign_in_get(request))
    application = _application(page)
    if not (application.is_enabled and application.impersonate_as_internal_user_allowed):
        raise errors.Forbidden(errors.APPLICATION_DISABLED, application.name)
    scopes = [scope for scope in application.scopes if scope in API_SCOPES]
    lifetime = oauth2_settings.ACCESS_TOKEN_EXPIRE_SECONDS
    row = AccessToken(
        user=sign_in.user,
        application=application,
        scope=" ".join(scopes),
        sid=sign_in.sid(str(application.pk)),
        token_family=uuid.uuid4(),
        authenticated_by=as_stored(acr_met(sign_in.amr) or "", sign_in.amr),
    )
    token = access_token_sign(
        row, issuer=instance.issuer(request), lifetime_seconds=lifetime, auth_time=sign_in.auth_time
    )
    row.save(force_insert=True)
    by = replace(actor_of(request), application=application.application_uri)
    token_issued(row, by=by, grant="page")
    # Sign-out closes its session and revokes its tokens with those of every other application.
    application_joined(sign_in, application)
    return PageToken(token, lifetime, sign_in.user)


def page_session_close(request: HttpRequest, page: PageApplication) -> None:
    """Close the pages' session and revoke their tokens, which frees the licence slot; the browser stays signed in."""
    sign_in = sign_in_get(request)
    application = TrustedApplication.objects.filter(application_uri=page.uri).first()
    if sign_in is None or application is None:
        return
    sid = sign_in.sid(str(application.pk))
    with transaction.atomic():
        session_close([sid])
        if AccessToken.objects.filter(sid=sid).delete()[0]:
            tokens_revoked()


def _application(page: PageApplication) -> TrustedApplication:
    """The registered application; registers it at first use."""
    application, _created = TrustedApplication.objects.get_or_create(
        application_uri=page.uri,
        defaults={
            "name": page.name,
            "client_type": "Public",
            "impersonate_as_internal_user_allowed": True,
            "scope": " ".join(page.scopes),
        },
    )
    return application


__all__ = ["PageApplication", "PageToken", "page_session_close", "page_token_issue", "page_user"]
