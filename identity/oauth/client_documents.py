"""Client ID metadata documents: the client id is the URL of the application's metadata.

Source: draft-ietf-oauth-client-id-metadata-document. The rules of URLs and documents, lifetimes and the number of
concurrent requests are the toolkit's (oauth2_provider.cimd). Its resolver stores the toolkit's application and gives no
reasons, so this module has its own: it applies the administrator's policy and the egress policy, and the application is
public, with the rights of one that registered itself (identity.oauth.registration).

Anonymous users cause these requests. One takes at most FETCH_SECONDS; an address may cause FETCHES_PER_MINUTE; a failed
URL is not requested again for FAILURE_SECONDS. These limits are per process, except that of an address.
"""

from __future__ import annotations

import datetime
import io
import time
from typing import Any, Final
from urllib.parse import unquote

import urllib3
from django.db import IntegrityError, transaction
from django.db.models import F
from oauth2_provider import cimd

from foundation import errors
from foundation.egress.client import EgressFailed, EgressRequest, send
from foundation.egress.policy import Destination, destination_of
from foundation.fields import utc_now
from foundation.messages import TranslatableMessage as Message
from foundation.messages import reason_of
from identity import rate_limits
from identity.changes import access_changed
from identity.lru import GenerationalCache
from identity.models import RegistrationPolicy, TrustedApplication
from identity.oauth.clients import client_load
from identity.oauth.registration import (
    GRANT_TYPES,
    ClientMetadata,
    RegistrationRefused,
    application_store,
    metadata_check,
    policy_read,
    scopes_possible,
)

FETCH_SECONDS: Final = 1.0
FETCHES_PER_MINUTE: Final = 10
FAILURE_SECONDS: Final = 60.0
#: Maximum time for which an expired document is used while its host is unreachable.
GRACE: Final = datetime.timedelta(days=1)
#: Otherwise a publisher at a listed host could fill the table.
MAX_APPLICATIONS: Final = 1000
_LONGEST_URL = 254
_ACCEPT = (("Accept", "application/json, application/*+json"),)
_SCHEMES = ("https://", "http://")


class DocumentRefused(Exception):
    """The URL or its document cannot be used; the message is for users, and has no secret."""


class DocumentUnavailable(DocumentRefused):
    """The document cannot be loaded now; it may still be valid."""


#: URL → (time.monotonic() of the failure, the failure)
_failures: GenerationalCache[str, tuple[float, DocumentRefused]] = GenerationalCache(512)


def client_resolve(client_id: str, address: str) -> TrustedApplication | None:
    """The application with this id, stored or refreshed from the document at it; None if it is unknown.

    `address` is the caller's. Raises DocumentRefused; TooManyRequests for an address that causes too many requests.
    """
    application = client_load(client_id)
    if application is not None and application.has_document and application.service_half:
        application = None  # the URL of another document
    if application is not None and not application.has_document:
        return application
    policy = policy_read()
    if application is None and not (policy.document_hosts and client_id.lower().startswith(_SCHEMES)):
        return None
    destination = _destination(client_id)
    if not policy.admits_document(destination.host, destination.port):
        raise DocumentRefused(
            Message("Metadata documents of {0} are not allowed; ask an administrator.", destination.host_header)
        )
    if application is not None and (not application.is_enabled or _age(application) <= datetime.timedelta()):
        return application
    try:
        metadata, expires = _fetch_metadata(client_id, destination, policy, address)
    except (DocumentUnavailable, errors.TooManyRequests):
        if application is not None and _age(application) < GRACE:
            return application
        raise
    if application is None:
        return _create(client_id, metadata, expires, policy)
    return _refresh(application, metadata, expires)


def forget() -> None:
    """Drop the failures (tests)."""
    _failures.clear()


def _age(application: TrustedApplication) -> datetime.timedelta:
    """Time since the document has expired."""
    assert application.document_expires_utc is not None
    age: datetime.timedelta = utc_now() - application.document_expires_utc
    return age


def _destination(url: str) -> Destination:
    """Check the URL (draft, 3). Raises DocumentRefused."""
    try:
        cimd._validate_client_id_url(url)
        destination = destination_of(url)
    except (cimd.CIMDError, ValueError) as exc:
        raise _refused(exc) from exc
    # Checks that the toolkit lacks: an empty fragment, and dot segments as browsers parse them.
    if "#" in url:
        raise DocumentRefused(Message("The client_id URL must not have a fragment."))
    if any(unquote(segment) in (".", "..") for segment in url.partition("?")[0].split("/")):
        raise DocumentRefused(Message("The client_id URL must not have dot segments."))
    if len(url) > _LONGEST_URL:
        raise DocumentRefused(Message("The client_id URL may have {0} characters.", _LONGEST_URL))
    return destination


def _fetch_metadata(
    url: str, destination: Destination, policy: RegistrationPolicy, address: str
) -> tuple[ClientMetadata, datetime.datetime]:
    """The metadata at the URL and when they expire. Raises DocumentRefused, TooManyRequests."""
    failed = _failures.get(url)
    if failed is not None and time.monotonic() - failed[0] < FAILURE_SECONDS:
        raise type(failed[1])(*failed[1].args)
    rate_limits.count(f"documents:{rate_limits.counted_as(address)}", FETCHES_PER_MINUTE)
    with cimd._fetch_slot() as is_free:
        if not is_free:
            raise DocumentUnavailable(Message("Too many metadata documents are fetched just now. Try again later."))
        try:
            document, seconds = _fetch(url)
            metadata = _metadata(url, document, destination, policy)
        except DocumentRefused as failure:
            _failures.put(url, (time.monotonic(), failure))
            raise
    return metadata, utc_now() + datetime.timedelta(seconds=seconds)


def _fetch(url: str) -> tuple[dict[str, Any], int]:
    """The document and the seconds for which it may be used. Raises DocumentRefused."""
    try:
        loaded = send(
            EgressRequest(
                "GET", url, _ACCEPT, connect_timeout_seconds=FETCH_SECONDS, total_timeout_seconds=FETCH_SECONDS
            )
        )
    except errors.Refused as refused:
        raise DocumentRefused(refused.message) from refused
    except EgressFailed as failed:
        raise DocumentUnavailable(
            Message("The metadata document at client_id cannot be fetched: {0}", reason_of(failed))
        ) from failed
    if loaded.status == 429 or loaded.status >= 500:
        raise DocumentUnavailable(Message("The host of client_id answers with status {0}.", loaded.status))
    response = urllib3.HTTPResponse(
        io.BytesIO(loaded.body), headers=dict(loaded.headers), status=loaded.status, preload_content=False,
        decode_content=False,
    )  # fmt: skip
    try:
        document: dict[str, Any]
        document, seconds = cimd.SafeMetadataFetcher()._read_document(response)
    except RecursionError as exc:
        raise DocumentRefused(Message("The metadata document at client_id is not JSON.")) from exc
    except cimd.CIMDError as exc:
        raise _refused(exc) from exc
    return document, seconds


def _metadata(
    url: str, document: dict[str, Any], destination: Destination, policy: RegistrationPolicy
) -> ClientMetadata:
    """Check the document (draft, 4.1). Raises DocumentRefused.

    The document is for all servers, so grants, response types and scopes that this instance lacks are ignored.
    """
    if document.get("client_id") != url:
        raise DocumentRefused(Message("The metadata document at client_id has another client_id."))
    given = {"client_name": destination.host, **document}
    for name, known in (("grant_types", GRANT_TYPES), ("response_types", ("code",))):
        if isinstance(values := given.get(name), list):
            given[name] = [value for value in values if value in known]
    if isinstance(scope := given.get("scope"), str):
        possible = scopes_possible(policy)
        given["scope"] = " ".join(word for word in scope.split() if word in possible)
    try:
        cimd._build_application_kwargs(given)
        return metadata_check({**given, "token_endpoint_auth_method": "none"}, policy)
    except (cimd.CIMDError, RegistrationRefused) as exc:
        raise _refused(exc) from exc


def _create(
    url: str, metadata: ClientMetadata, expires: datetime.datetime, policy: RegistrationPolicy
) -> TrustedApplication:
    source = TrustedApplication.RegistrationSource.CIMD
    if TrustedApplication.objects.filter(registration_source=source).count() >= MAX_APPLICATIONS:
        raise DocumentUnavailable(
            Message("There are too many applications with metadata documents; ask an administrator.")
        )
    try:
        with transaction.atomic():
            return application_store(
                metadata,
                policy,
                application_uri=url,
                registration_source=source,
                document_expires_utc=expires,
                notes="By the metadata document at its application URI.",
            )
    except IntegrityError:
        # Another request has stored it meanwhile.
        return TrustedApplication.objects.get(application_uri=url)


def _refresh(
    application: TrustedApplication, metadata: ClientMetadata, expires: datetime.datetime
) -> TrustedApplication:
    """Update name and redirect URIs from the document; administrators set everything else."""
    rows = TrustedApplication.objects.filter(pk=application.pk)
    changed = {"name": metadata.name, "impersonate_login_url": ",".join(metadata.redirect_uris)}
    if all(getattr(application, name) == value for name, value in changed.items()):
        rows.update(document_expires_utc=expires)
    else:
        with transaction.atomic():
            # Applications are entities of the API: the new version shows the change to API clients.
            rows.update(**changed, document_expires_utc=expires, object_version=F("object_version") + 1)
            access_changed(TrustedApplication)
    return rows.select_related("system_user").get()


def _refused(cause: Exception) -> DocumentRefused:
    return DocumentRefused(Message("The client_id cannot be used: {0}", reason_of(cause)))
