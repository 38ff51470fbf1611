"""Caches documents of the whole model ($metadata, OpenAPI, the plain JSON model) until the model changes.

The version of the model is the registry's generation and the cache version of the custom properties. A commit of
definitions and `/api/domain/reset` bump the cache version, so that every process renders the documents again.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from domain.model import custom_properties
from domain.model.registry import repositories
from domain.odata.message.message import ODataResponse
from foundation import cache_versions
from foundation.texts import comma_separated

#: The highest gzip level: documents are compressed once and read often.
_LEVEL = 9


@dataclass(slots=True)
class Document:
    """A rendered document. The ETag is weak: the compressed form has it too (RFC 9110, 8.8.3.3)."""

    body: bytes
    etag: str = field(init=False)
    _gzipped: bytes | None = None

    def __post_init__(self) -> None:
        self.etag = f'W/"{hashlib.sha256(self.body).hexdigest()[:32]}"'

    def gzipped(self) -> bytes:
        """The body compressed."""
        if self._gzipped is None:
            self._gzipped = gzip.compress(self.body, _LEVEL, mtime=0)
        return self._gzipped


#: key → (version of the model, document).
_kept: dict[str, tuple[tuple[int, int], Document]] = {}


def model_document(key: str, write: Callable[[], bytes]) -> Document:
    """The cached document, or a new one if the model has changed."""
    version = (repositories.generation, cache_versions.current(custom_properties.CACHE_VERSION))
    known = _kept.get(key)
    if known is not None and known[0] == version:
        return known[1]
    document = Document(write())
    _kept[key] = (version, document)
    return document


def document_response(document: Document, media_type: str, headers: Mapping[str, str]) -> ODataResponse:
    """The document for a request's headers (lower-case names): 304 for a matching ETag, gzip where accepted."""
    answered = {"ETag": document.etag, "Cache-Control": "no-cache"}
    if etag_matches(headers.get("if-none-match", ""), document.etag):
        return ODataResponse(304, b"", answered)
    answered["Content-Type"] = f"{media_type};charset=utf-8"
    if accepts_gzip(headers.get("accept-encoding", "")):
        return ODataResponse(200, document.gzipped(), {**answered, "Content-Encoding": "gzip"})
    return ODataResponse(200, document.body, answered)


def etag_matches(header: str, etag: str) -> bool:
    """If-None-Match by weak comparison (RFC 9110, 13.1.2)."""
    if header.strip() == "*":
        return True
    return any(part.removeprefix("W/") == etag.removeprefix("W/") for part in comma_separated(header))


def accepts_gzip(header: str) -> bool:
    """Whether Accept-Encoding (RFC 9110, 12.5.3) allows gzip, by name or by `*`, and not with q=0."""
    return accepts_coding("gzip", header, "*" in header)


def accepts_coding(coding: str, header: str, any_will_do: bool = False) -> bool:
    """Whether Accept-Encoding allows the coding by its name, or by `*` if any_will_do, and not with q=0."""
    if coding not in header.lower() and not any_will_do:
        return False
    qualities: dict[str, bool] = {}
    for part in header.lower().split(","):
        name, _, parameters = part.partition(";")
        qualities[name.strip()] = parameters.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return qualities.get(coding, any_will_do and qualities.get("*", False))


__all__ = ["Document", "accepts_coding", "accepts_gzip", "document_response", "etag_matches", "model_document"]
