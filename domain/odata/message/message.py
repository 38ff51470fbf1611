"""Requests and responses of the OData service, without the web framework; a part of a $batch is a request, too."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, BinaryIO, NamedTuple, TypeVar, dataclass_transform

import orjson

from domain.query.base.representation import MetadataLevel, Representation, Version
from domain.syntax.ast import QueryOptions, ResourcePath
from foundation import errors
from foundation.error_summaries import ErrorSummary
from foundation.messages import TranslatableMessage as Message
from foundation.short_texts import cache_short_texts
from foundation.streamed_responses import Push
from identity.context import CallContext

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen_for_checkers(*, kw_only: bool = False) -> Callable[[type[T]], type[T]]:
    """A dataclass that is frozen for the type checker only.

    A dataclass that is frozen at run time sets each field by a function call: for the 26 fields of a request, a twelfth
    of the time of a keyed read in a batch.
    """
    return dataclass(slots=True, eq=False, kw_only=kw_only)


@frozen_for_checkers()
class ReceivedRequest:
    """A request as received, by HTTP or in a batch.

    path           below the service root, as sent (percent-encoded), no leading slash
    query          raw query string
    headers        lower-case names
    service_root   absolute URL ending in "/"
    references     Content-ID → path of the entity created by that part (batch), for `$1` in URLs and bodies
    depth          number of enclosing batches
    body_file      the body of a request that may be too large for memory (Import); then `body` is empty
    batch_version  OData version of the enclosing batch; None outside of batches
    """

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes
    context: CallContext
    service_root: str
    references: Mapping[str, str] = field(default_factory=dict)
    depth: int = 0
    body_file: BinaryIO | None = None
    batch_version: Version | None = None

    @property
    def content_type(self) -> str:
        """Media type without parameters, lower case; "" when there is none."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


@frozen_for_checkers(kw_only=True)
class ODataRequest(ReceivedRequest):
    """A request with parsed path, query string and headers; names in it are not resolved yet.

    resource         the path, with the references of a batch and `$entity?$id=` resolved
    version          of OData in the response: 4.0 or 4.01
    transaction_id   of the Domain transaction; None without one
    """

    resource: ResourcePath
    options: QueryOptions
    version: Version
    transaction_id: str | None

    @property
    def is_read(self) -> bool:
        """Whether the method reads data."""
        return self.method in ("GET", "HEAD")


@dataclass(slots=True)
class ODataResponse:
    """A response.

    push          sends the body later (a long poll)
    error         of a failed request, or of the first failed part of a batch or object of an import
    failed_parts  number of failed parts or objects
    """

    status: int
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    push: Push | None = None
    error: ErrorSummary | None = None
    failed_parts: int = 0


class Outcome(NamedTuple):
    """The result of a write or an operation on its dataset.

    respond   makes the response; called once the dataset is committed, or stored by a Domain transaction
    entity    path of the created or changed entity, for `$1` in later parts of a batch
    """

    respond: Callable[[], ODataResponse]
    entity: str | None = None


NO_STORE = {"Cache-Control": "no-store"}


def no_content() -> ODataResponse:
    """204 with Cache-Control: no-store."""
    return ODataResponse(204, b"", dict(NO_STORE))


JSON = "application/json"
XML = "application/xml"
TEXT = "text/plain"


_VERSION = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")
#: Format parameters without the prefix `odata.`, which 4.0 demands and 4.01 makes optional (OData JSON 4.01, 3).
_FORMAT_OF_401 = re.compile(r";\s*(metadata|streaming)\s*=", re.IGNORECASE)


def odata_version(
    headers: Mapping[str, str], format_option: str | None = None, *, of_batch: Version | None = None
) -> Version:
    """The OData version of the response: 4.0, or 4.01 for a caller who allows it (spec 14, 14.2).

    OData-MaxVersion decides; a part of a batch inherits it. Without it the version is that of the batch, or 4.01 if
    $format or Accept has the syntax of 4.01. OData-Version is the version of the request's body.
    Raises BadRequest if the caller allows less than 4.0, or sends a body of another version.
    """
    body_version = headers.get("odata-version", "").strip()
    if body_version and body_version not in ("4.0", "4.01"):
        reason = Message("'{0}' is not one of {1}", body_version, "4.0, 4.01")
        raise errors.BadRequest(errors.INVALID_HEADER, "OData-Version", reason)
    allowed = headers.get("odata-maxversion", "").strip()
    if allowed:
        if not _VERSION.fullmatch(allowed) or float(allowed) < 4:
            reason = Message("'{0}' is not one of {1}", allowed, "4.0, 4.01")
            raise errors.BadRequest(errors.INVALID_HEADER, "OData-MaxVersion", reason)
        return "4.01" if float(allowed) >= 4.01 else "4.0"
    if of_batch is not None:
        return of_batch
    return "4.01" if _FORMAT_OF_401.search(format_option or headers.get("accept", "")) else "4.0"


def version_of_refusal(headers: Mapping[str, str], *, of_batch: Version | None = None) -> Version:
    """The OData version of the response to a request that could not be parsed; 4.0 if its headers are invalid, too."""
    try:
        return odata_version(headers, of_batch=of_batch)
    except errors.BadRequest:
        return "4.0"


def reads_standard_base64(headers: Mapping[str, str]) -> bool:
    """Whether the client names 4.0 as its highest version: clients of 4.0 read Edm.Binary in base64 (spec 14.1).

    Clients that name no version get base64url, which is what OData JSON says in both versions.
    """
    allowed = headers.get("odata-maxversion", "").strip()
    return bool(_VERSION.fullmatch(allowed)) and float(allowed) < 4.01


def asks_for(options: QueryOptions, word: str) -> bool:
    """Whether the custom query option `options` has the word, in any case."""
    return any(name.lower() == "options" and word in value.lower() for name, value in options.custom)


@dataclass(frozen=True, slots=True)
class Negotiated:
    """The negotiated media type and its OData parameters."""

    media_type: str
    metadata: MetadataLevel = "minimal"
    ieee754: bool = False


_LEVELS: dict[str, MetadataLevel] = {"none": "none", "minimal": "minimal", "full": "full"}
_FORMATS = {"json": JSON, "xml": XML, JSON: JSON, XML: XML}


@cache_short_texts(256, longest=1024)
def negotiate(accept: str, format_option: str | None, served: tuple[str, ...]) -> Negotiated:
    """The media type of the response; $format takes precedence over Accept (OData URL Conventions, 5.1.2).

    The quality of each served type is that of the most specific range that matches it (RFC 9110, 12.5.1). The highest
    quality wins, then the more specific range, then the first of `served`. Raises NotAcceptable.
    """
    if format_option:
        accept = _FORMATS.get(format_option.lower(), format_option)
    elif not accept or accept == "*/*":
        return Negotiated(served[0])
    ranges = [_media_range(part) for part in accept.split(",")]
    result: list[tuple[float, int, Negotiated]] = []
    for offer in served:
        # From the least to the most specific: "*/*", "text/*", "text/plain".
        names = ("*/*", f"{offer.partition('/')[0]}/*", offer)
        matching = [
            (names.index(name), quality, form)
            for name, quality, parameters in ranges
            if name in names and (form := _form(offer, parameters)) is not None
        ]
        if matching:
            specificity = max(rank for rank, _, _ in matching)
            candidates = [(quality, form) for rank, quality, form in matching if rank == specificity]
            quality, form = max(candidates, key=lambda candidate: candidate[0])
            if quality > 0:
                result.append((quality, specificity, form))
    if not result:
        raise errors.NotAcceptable(errors.NOT_ACCEPTABLE, format_option or accept)
    return max(result, key=lambda each: each[:2])[2]


def _media_range(part: str) -> tuple[str, float, dict[str, str]]:
    """Name, quality and parameters of one element of Accept; an invalid quality is 0."""
    name, _, raw_parameters = part.partition(";")
    parameters = _parameters(raw_parameters)
    try:
        quality = float(parameters.get("q", "1"))
    except ValueError:
        quality = 0.0
    return name.strip().lower(), quality, parameters


def _form(offer: str, parameters: Mapping[str, str]) -> Negotiated | None:
    """The offered type with the OData parameters of a media range; None for an unknown metadata level."""
    level = _LEVELS.get(parameters.get("odata.metadata", parameters.get("metadata", "minimal")))
    if level is None:
        return None
    return Negotiated(offer, level, parameters.get("ieee754compatible", "false") == "true")


def _parameters(text: str) -> dict[str, str]:
    result: dict[str, str] = {}
    for part in text.split(";"):
        name, _, value = part.partition("=")
        if name.strip():
            result[name.strip().lower()] = value.strip().strip('"').lower()
    return result


def representation_of(request: ODataRequest, negotiated: Negotiated, *, skip_nulls: bool = False) -> Representation:
    """The JSON format of entities for this caller."""
    return _representation(
        negotiated,
        skip_nulls,
        request.context.language,
        request.service_root,
        request.version,
        reads_standard_base64(request.headers),
    )


@lru_cache(maxsize=256)
def _representation(
    negotiated: Negotiated, skip_nulls: bool, language: str, service_root: str, version: Version, standard_base64: bool
) -> Representation:
    return Representation(
        metadata=negotiated.metadata,
        ieee754=negotiated.ieee754,
        skip_nulls=skip_nulls,
        language=language,
        service_root=service_root,
        version=version,
        standard_base64=standard_base64,
    )


def json_response(value: Any, *, headers: Mapping[str, str] | None = None) -> ODataResponse:
    """A response with a JSON body."""
    return ODataResponse(200, orjson.dumps(value, option=orjson.OPT_UTC_Z), {"Content-Type": JSON, **(headers or {})})
