"""Forms of texts that several parts of the platform share."""

from __future__ import annotations

import base64
import re
from datetime import UTC, datetime

_WORD = re.compile(r"[^\W\d_]+(?=[\s,;]|$)")


def storable(text: str) -> str:
    """Replace characters that PostgreSQL cannot store: NUL and lone surrogates."""
    return text.replace("\0", "�").encode("utf-8", "replace").decode()


def decode_base64(text: str) -> bytes:
    """The bytes of base64 or base64url, with or without padding. Raises ValueError for anything else."""
    standard = text.replace("-", "+").replace("_", "/").rstrip("=")
    return base64.b64decode(standard + "=" * (-len(standard) % 4), validate=True)


def comma_separated(text: str) -> list[str]:
    """The parts of a list separated by commas, without white space around them and without empty ones."""
    return [part.strip() for part in text.split(",") if part.strip()]


def sentence(text: str) -> str:
    """The text with a capital at its beginning, unless it begins with a name such as `erp.events` or `$top`."""
    return text[:1].upper() + text[1:] if _WORD.match(text) else text


def base64url(content: bytes) -> str:
    """base64url without padding (RFC 7515, 2)."""
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def utc_text(moment: datetime) -> str:
    """A time with its zone in ISO 8601 in UTC: `2024-02-29T10:20:30Z`, with six decimals where there is a fraction."""
    return f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat()}Z"
