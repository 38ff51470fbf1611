"""The language of a request: culture= or lang=, .AspNetCore.Culture, Accept-Language, the user's (spec 02, 2.6)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import unquote

from django.conf import settings
from django.core.exceptions import SuspiciousOperation
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.middleware.locale import LocaleMiddleware
from django.utils import translation
from django.utils.cache import patch_vary_headers
from django.utils.translation import get_language
from django.utils.translation.trans_real import parse_accept_lang_header

from foundation.short_texts import cache_short_texts

if TYPE_CHECKING:
    from identity.context import CallContext

DEFAULT = "en"
CULTURE_COOKIE = ".AspNetCore.Culture"
#: Query options; the first that names a language counts.
LANGUAGE_OPTIONS = ("culture", "lang")
#: Characters of Accept-Language that are read.
_LONGEST = 500


def request_language(request: HttpRequest, user_language: str = "") -> str:
    """Lower-case language code of two or three letters, for display texts; messages fall back to English."""
    if result := chosen_language(request):
        return result
    accepted = request.META.get("HTTP_ACCEPT_LANGUAGE", "")
    if accepted and (result := _from_header(accepted)):
        return result
    return user_language or DEFAULT


def request_culture(request: HttpRequest, language: str) -> str:
    """The language with a country (`en-GB`) as the request names it, for formats; the language without one."""
    query = request.META.get("QUERY_STRING", "")
    if "culture=" in query or "lang=" in query:
        named = [_option(request, name) for name in LANGUAGE_OPTIONS]
    elif CULTURE_COOKIE in request.META.get("HTTP_COOKIE", ""):
        named = list(_cookie_parts(request.COOKIES.get(CULTURE_COOKIE, "")))
    else:
        header = request.META.get("HTTP_ACCEPT_LANGUAGE", "")
        named = [tag for tag, _ in parse_accept_lang_header(header[:_LONGEST])] if header else []
    for tag in named:
        if _code(tag) == language:
            return tag[:20]
    return language


def chosen_language(request: HttpRequest) -> str | None:
    """The language that the query option culture= or lang=, or the culture cookie, names; None without them."""
    query = request.META.get("QUERY_STRING", "")
    if "culture=" in query or "lang=" in query:
        for name in LANGUAGE_OPTIONS:
            if result := _code(_option(request, name)):
                return result
    if CULTURE_COOKIE in request.META.get("HTTP_COOKIE", ""):
        return _from_cookie(request.COOKIES.get(CULTURE_COOKIE, ""))
    return None


class CultureMiddleware(LocaleMiddleware):
    """Activates the language of a page: what `chosen_language` says, else Django's choice."""

    def process_request(self, request: HttpRequest) -> None:
        """Activate the language before the view runs."""
        chosen = chosen_language(request)
        if chosen is None:
            super().process_request(request)
            return
        translation.activate(message_language(chosen))
        request.LANGUAGE_CODE = translation.get_language() or DEFAULT

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        """Name the language, and that the cookie takes part in its choice."""
        patch_vary_headers(response, ("Cookie",))
        return super().process_response(request, response)


def other_message_language(request: HttpRequest, language: str) -> str:
    """The language of messages, where that of display texts has no translations and the request accepts another one
    that has: the instance has texts in any language, and messages in a few. "" where the two need not differ.
    """
    if message_language(language) == language or chosen_language(request) is not None:
        return ""
    other = _translated(request.META.get("HTTP_ACCEPT_LANGUAGE", ""))
    return "" if other == DEFAULT else other


def messages_of(context: CallContext) -> str:
    """The language of a caller's messages."""
    return context.message_language or message_language(context.language)


@contextmanager
def activate_request_language(request: HttpRequest) -> Iterator[str]:
    """Activate the language of messages for the request and yield its code."""
    texts = request_language(request)
    language = other_message_language(request, texts) or message_language(texts)
    with translation.override(language):
        yield language


@lru_cache(maxsize=256)
def message_language(language: str) -> str:
    """The language of messages for a requested language: English if there are no translations."""
    code = language.partition("-")[0]
    return code if code in dict(settings.LANGUAGES) else DEFAULT


def ui_language(ui_locales: str) -> str:
    """The first of ui_locales with translations (OIDC Core, 3.1.2.1), else the active language."""
    spoken = {code for code, _name in settings.LANGUAGES}
    requested = (tag.partition("-")[0].lower() for tag in ui_locales.split())
    return next((code for code in requested if code in spoken), None) or get_language() or DEFAULT


def in_ui_language(ui_locales: str, make_response: Callable[[], HttpResponse]) -> HttpResponse:
    """The response in the language of ui_locales, which its headers name."""
    with translation.override(ui_language(ui_locales)):
        response = make_response()
        response.headers.setdefault("Content-Language", get_language() or DEFAULT)
        return response


@lru_cache(maxsize=512)
def _accepted(header: str) -> tuple[str, ...]:
    # Highest quality first (RFC 9110, 12.5.4).
    return tuple(code for tag, quality in parse_accept_lang_header(header) if quality and (code := _code(tag)))


def _from_header(header: str) -> str | None:
    return next(iter(_accepted(header[:_LONGEST])), None)


def _translated(header: str) -> str:
    """The first accepted language with translations; "" for none."""
    return next((code for code in _accepted(header[:_LONGEST]) if message_language(code) == code), "")


def _from_cookie(value: str) -> str | None:
    """`c=bg-BG|uic=bg-BG`: uic is the language of texts."""
    return next((code for tag in _cookie_parts(value) if (code := _code(tag))), None)


def _cookie_parts(value: str) -> tuple[str, str]:
    parts = dict(part.partition("=")[::2] for part in unquote(value).split("|"))
    return parts.get("uic", ""), parts.get("c", "")


def _option(request: HttpRequest, name: str) -> str:
    """A query option; "" in a query that Django refuses."""
    try:
        return request.GET.get(name, "")
    except SuspiciousOperation:
        return ""


@cache_short_texts(512, longest=100)
def _code(tag: str) -> str | None:
    primary = tag.strip().replace("_", "-").partition("-")[0].lower()
    return primary if primary.isascii() and primary.isalpha() and len(primary) in {2, 3} else None
