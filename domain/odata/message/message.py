"""Requests and answers of the OData service, free of any web framework: a part of a $batch is one like any other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, BinaryIO

import orjson

from domain.query.base.representation import MetadataLevel, Representation
from foundation import errors
from foundation.long_polls import LongPoll
from identity.context import CallContext

if TYPE_CHECKING:
    from domain.dataset.dataset import Dataset


@dataclass(slots=True)
class ODataRequest:
    """One request.

    path           behind the service root, as sent (percent-encoded), no leading slash
    query          raw query string
    headers        lower-case names
    service_root   absolute URL ending in "/"
    references     Content-ID → path of the entity created by that part (batch), for `$1` in URLs and bodies
    depth          how many batches it is nested in
    dataset        what it worked on, once it has one: warnings and traces are told of failures too
    body_file      the body of a request that may be too large for memory (Import); then `body` is empty
    entity         path of the entity that it made or changed, for `$1` in later parts of a batch
    """

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes
    context: CallContext
    service_root: str
    references: dict[str, str] = field(default_factory=dict)
    depth: int = 0
    dataset: Dataset | None = None
    body_file: BinaryIO | None = None
    entity: str | None = None

    @property
    def content_type(self) -> str:
        """Media type without parameters, lower case; "" when there is none."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


@dataclass(slots=True)
class ODataResponse:
    """One answer. With a `poll` the body is what that answers, when it does."""

    status: int
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    poll: LongPoll | None = None


JSON = "application/json"
XML = "application/xml"
TEXT = "text/plain"


def odata_version(headers: Mapping[str, str]) -> str:
    """The version to answer in: 4.0 where the caller allows no more (OData Protocol 4.01, 8.2.7), else 4.01.

    Raises BadRequest where the caller allows less than 4.0, or sends a body of a version that is neither.
    """
    body_version = headers.get("odata-version", "").strip()
    if body_version and body_version not in ("4.0", "4.01"):
        raise errors.BadRequest(errors.INVALID_HEADER, "OData-Version", body_version)
    accepted = headers.get("odata-maxversion", "").strip() or body_version or "4.01"
    try:
        highest = float(accepted)
    except ValueError as exc:
        raise errors.BadRequest(errors.INVALID_HEADER, "OData-MaxVersion", accepted) from exc
    if not highest >= 4:
        raise errors.BadRequest(errors.INVALID_HEADER, "OData-MaxVersion", accepted)
    return "4.01" if highest >= 4.01 else "4.0"


@dataclass(frozen=True, slots=True)
class Negotiated:
    """What the caller accepts: media type and OData's parameters of it."""

    media_type: str
    metadata: MetadataLevel = "minimal"
    ieee754: bool = False


_LEVELS: dict[str, MetadataLevel] = {"none": "none", "minimal": "minimal", "full": "full"}
_FORMATS = {"json": JSON, "xml": XML, JSON: JSON, XML: XML}


@lru_cache(maxsize=256)
def negotiate(accept: str, format_option: str | None, served: tuple[str, ...]) -> Negotiated:
    """What to answer in; $format wins over Accept (OData URL Conventions, 5.1.2).

    The quality of each served type is that of the most specific range that names it (RFC 9110, 12.5.1). The highest
    quality wins, then the more specific range, then the first of `served`. Raises NotAcceptable.
    """
    if format_option:
        accept = _FORMATS.get(format_option.lower(), format_option)
    elif not accept or accept == "*/*":
        return Negotiated(served[0])
    ranges = [_media_range(part) for part in accept.split(",")]
    found: list[tuple[float, int, Negotiated]] = []
    for offer in served:
        # From the least specific to the most specific: "*/*", "text/*", "text/plain".
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
                found.append((quality, specificity, form))
    if not found:
        raise errors.NotAcceptable(errors.NOT_ACCEPTABLE, format_option or accept)
    return max(found, key=lambda each: each[:2])[2]


def _media_range(part: str) -> tuple[str, float, dict[str, str]]:
    """Name, quality and parameters of one element of Accept; a quality that is no number is 0."""
    name, _, raw_parameters = part.partition(";")
    parameters = _parameters(raw_parameters)
    try:
        quality = float(parameters.get("q", "1"))
    except ValueError:
        quality = 0.0
    return name.strip().lower(), quality, parameters


def _form(offer: str, parameters: Mapping[str, str]) -> Negotiated | None:
    """The served type with OData's parameters of a media range; None for a metadata level that does not exist."""
    level = _LEVELS.get(parameters.get("odata.metadata", parameters.get("metadata", "minimal")))
    if level is None:
        return None
    return Negotiated(offer, level, parameters.get("ieee754compatible", "false") == "true")


def _parameters(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in text.split(";"):
        name, _, value = part.partition("=")
        if name.strip():
            found[name.strip().lower()] = value.strip().strip('"').lower()
    return found


def representation_of(
    request: ODataRequest, negotiated: Negotiated, *, version: str, skip_nulls: bool = False
) -> Representation:
    """How entities are written for this caller."""
    return _representation(negotiated, skip_nulls, request.context.language, request.service_root, version)


@lru_cache(maxsize=256)
def _representation(
    negotiated: Negotiated, skip_nulls: bool, language: str, service_root: str, version: str
) -> Representation:
    return Representation(
        metadata=negotiated.metadata,
        ieee754=negotiated.ieee754,
        skip_nulls=skip_nulls,
        language=language,
        service_root=service_root,
        version="4.0" if version == "4.0" else "4.01",
    )


def json_response(value: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> ODataResponse:
    """An answer with a JSON body."""
    return ODataResponse(status, orjson.dumps(value), {"Content-Type": JSON, **(headers or {})})
