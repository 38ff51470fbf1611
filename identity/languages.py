"""The language of a request (spec 02, 2.6): culture= query, .AspNetCore.Culture cookie, Accept-Language, the user's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from urllib.parse import unquote

from django.conf import settings
from django.http import HttpRequest
from django.utils import translation
from django.utils.translation import get_language
from django.utils.translation.trans_real import parse_accept_lang_header

DEFAULT = "en"
CULTURE_COOKIE = ".AspNetCore.Culture"


def request_language(request: HttpRequest, user_language: str = "") -> str:
    """Lower-case code of two or three letters. Display texts take any language; messages fall back to English."""
    meta = request.META
    if "culture=" in meta.get("QUERY_STRING", "") and (found := _code(request.GET.get("culture", ""))):
        return found
    cookie = meta.get("HTTP_COOKIE", "")
    if CULTURE_COOKIE in cookie and (found := _from_cookie(request.COOKIES.get(CULTURE_COOKIE, ""))):
        return found
    accepted = meta.get("HTTP_ACCEPT_LANGUAGE", "")
    if accepted and (found := _from_header(accepted)):
        return found
    return user_language or DEFAULT


@contextmanager
def speaking(request: HttpRequest) -> Iterator[str]:
    """Within, messages come out in the language that this yields: the request's, English where there are no texts."""
    language = message_language(request_language(request))
    with translation.override(language):
        yield language


@lru_cache(maxsize=256)
def message_language(language: str) -> str:
    """The language that messages come out in when one is asked for: English where there are no texts in it."""
    code = language.partition("-")[0]
    return code if code in dict(settings.LANGUAGES) else DEFAULT


def ui_language(ui_locales: str) -> str:
    """The first of ui_locales that the pages speak (OIDC Core, 3.1.2.1), else what the request had."""
    spoken = {code for code, _name in settings.LANGUAGES}
    wanted = (tag.partition("-")[0].lower() for tag in ui_locales.split())
    return next((code for code in wanted if code in spoken), None) or get_language() or DEFAULT


@lru_cache(maxsize=512)
def _from_header(header: str) -> str | None:
    # Highest quality first (RFC 9110, 12.5.4).
    return next((code for tag, _quality in parse_accept_lang_header(header[:500]) if (code := _code(tag))), None)


def _from_cookie(value: str) -> str | None:
    """`c=bg-BG|uic=bg-BG`: uic is the language of texts."""
    parts = dict(part.partition("=")[::2] for part in unquote(value).split("|"))
    return _code(parts.get("uic", "")) or _code(parts.get("c", ""))


@lru_cache(maxsize=512)
def _code(tag: str) -> str | None:
    primary = tag.strip().replace("_", "-").partition("-")[0].lower()
    return primary if primary.isascii() and primary.isalpha() and len(primary) in {2, 3} else None
