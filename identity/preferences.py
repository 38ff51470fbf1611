"""Parses Prefer tokens (RFC 7240) and context parameters (spec 08, 8.4); the callers validate them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from email.errors import HeaderParseError
from email.header import decode_header, make_header
from types import MappingProxyType
from urllib.parse import unquote

from django.http import HttpRequest

from foundation import errors
from foundation.guids import parse_guid
from foundation.messages import TranslatableMessage as Message
from foundation.short_texts import cache_short_texts

COMPANY = "CurrentEnterpriseCompanyId"
LOCATION = "CurrentEnterpriseCompanyLocationId"
ROLE = "CurrentRoleId"
CONTEXT_PARAMETERS = (COMPANY, LOCATION, ROLE)
CONTEXT_HEADER = "HTTP_ERPCONTEXTPARAMETERS"
#: Characters of X-Change-Reason.
REASON_LENGTH = 254

#: `UTF-8''`, the beginning of an ext-value (RFC 8187, 3.2.1).
_EXTENDED_VALUE = re.compile(r"^utf-8'[A-Za-z0-9-]*'", re.IGNORECASE)
_BARE_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_NONE: Mapping[str, str] = MappingProxyType({})


def read_prefer(request: HttpRequest) -> Mapping[str, str]:
    """Prefer tokens in lower case → value, "" where bare."""
    header = request.META.get("HTTP_PREFER")
    return parse_prefer(header) if header else _NONE


@cache_short_texts(512, longest=1024)
def parse_prefer(header: str) -> Mapping[str, str]:
    """`return=minimal, maxpagesize="5"; x=y` → {"return": "minimal", "maxpagesize": "5"}; the first of a name wins."""
    result: dict[str, str] = {}
    for preference in header.split(","):
        name, _, value = preference.partition(";")[0].partition("=")
        if name.strip():
            result.setdefault(name.strip().lower(), value.strip().strip('"'))
    return MappingProxyType(result)


def names_context(request: HttpRequest, prefer: Mapping[str, str]) -> bool:
    """Whether the request may have context parameters; most have none."""
    meta = request.META
    return bool(prefer) or CONTEXT_HEADER in meta or "Current" in meta.get("QUERY_STRING", "")


def context_guid(request: HttpRequest, prefer: Mapping[str, str], name: str) -> str | None:
    """A context parameter: Prefer, query, or ErpContextParameters (name=value;…). None if absent or no guid."""
    text = prefer.get(name.lower())
    if text is None and name in request.META.get("QUERY_STRING", ""):
        text = request.GET.get(name)
    if text is None and (header := request.META.get(CONTEXT_HEADER)):
        text = parse_prefer(header.replace(";", ",")).get(name.lower())
    if not text:
        return None
    try:
        return parse_guid(text)
    except ValueError:
        return None


def read_reason(request: HttpRequest) -> str:
    """The caller's reason for the changes of this request (X-Change-Reason), "" for none.

    Raises BadRequest for a text that is empty, too long or has control characters.
    """
    header: str | None = request.META.get("HTTP_X_CHANGE_REASON")
    if header is None:
        return ""
    text = _read_text(header.strip())
    if not text:
        # The web server drops the bytes of a value that is not ASCII (platform_site.serving.exchange).
        raise errors.BadRequest(
            errors.INVALID_HEADER,
            "X-Change-Reason",
            Message("it is empty, or has characters beyond ASCII: send those percent-encoded in UTF-8"),
        )
    if len(text) > REASON_LENGTH:
        raise errors.BadRequest(
            errors.INVALID_HEADER, "X-Change-Reason", Message("it has more than {0} characters", REASON_LENGTH)
        )
    if not text.isprintable():
        raise errors.BadRequest(
            errors.INVALID_HEADER, "X-Change-Reason", Message("it has characters that cannot be printed")
        )
    return text


def _read_text(header: str) -> str:
    """The text of a header: percent-encoded UTF-8, also as in RFC 8187, words of RFC 2047, else as it is.

    Bytes beyond ASCII are UTF-8, else Latin-1.
    """
    try:
        text = header.encode("latin-1").decode()
    except UnicodeError:
        text = header
    try:
        if "=?" in text:
            return str(make_header(decode_header(text)))
        encoded = _EXTENDED_VALUE.sub("", text)
        return text if _BARE_PERCENT.search(encoded) else unquote(encoded, errors="strict")
    except (ValueError, LookupError, HeaderParseError):
        return text
