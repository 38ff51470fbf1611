"""Warns of former names of sets and types (spec 02, 2.1), which are accepted wherever a set is named.

The registry accepts them (`for_set`, `for_type`); this module detects their use. The resolver reports names in a path.
Names in references and types, in the query string or the body, are searched in the text, because cached query plans do
not resolve literals again.
"""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import unquote

from django.conf import settings

from domain.model.registry import repositories
from domain.odata.message.message import ODataRequest, ODataResponse
from foundation import errors
from foundation.short_texts import cache_short_texts

#: Larger bodies (imports) are not searched, which would take too long.
MAX_BODY_BYTES = 4 * 1024 * 1024
#: The beginning of a key, which follows the name of the set. A pattern beginning with the name would try every word of
#: the text: 0.4 ms for an order of ten lines.
_KEY = re.compile(r"\((?:Id=)?'?[0-9a-f]{8}-", re.IGNORECASE)
_WORD_REVERSED = re.compile(r"\w++(?!\.)")
_NAME_CHARACTERS = 200
_NAMESPACE = "erp."
_TYPE = re.compile(r"(?<![\w.])Erp\.(\w++)", re.IGNORECASE)


def names_used(request: ODataRequest, in_path: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """(former name, new name) of each former name in the request, those of the path first.

    Raises BadRequest(RENAMED_SET) if the instance refuses former names (REFUSE_RENAMED_SETS).
    """
    result = dict(in_path)
    generation = repositories.generation
    if request.query:
        result.update(_named_in_query(request.query, generation))
    if request.body and len(request.body) <= MAX_BODY_BYTES and not request.path.startswith("$batch"):
        result.update(_named_in(request.body.decode("utf-8", errors="replace"), generation))
    if result and settings.REFUSE_RENAMED_SETS:
        old, new = next(iter(result.items()))
        raise errors.BadRequest(errors.RENAMED_SET, old, new, target=old)
    return list(result.items())


def new_name(old: str) -> str:
    """The current name of a set or type."""
    known = repositories.for_set(old)
    if known is not None:
        return known[0].set_name
    derived = repositories.for_type(old)
    return derived.entity_type if derived is not None else old


def warn(response: ODataResponse, renamed: list[tuple[str, str]]) -> ODataResponse:
    """The response with a warning (RFC 7234, 5.5.7) for each former name."""
    if renamed:
        texts = (f'299 - "{old} is now called {new}."' for old, new in renamed)
        response.headers["Warning"] = ", ".join(texts)
    return response


@cache_short_texts(2048, longest=1024)
def _named_in_query(query: str, generation: int) -> tuple[tuple[str, str], ...]:
    return _named_in(unquote(query), generation)


def _named_in(text: str, generation: int) -> tuple[tuple[str, str], ...]:
    """(former name, new name) of each former name in the text."""
    former = _former_names(generation)
    words = [(key.start(), _word_before(text, key.start())) for key in _KEY.finditer(text)]
    if _NAMESPACE in text.lower():
        words += [(match.end(), match[1]) for match in _TYPE.finditer(text)]
    return tuple((word, new_name(word)) for _, word in sorted(words) if word.lower() in former)


def _word_before(text: str, end: int) -> str:
    """The name that ends at the position; "" if there is none or it is part of a qualified name."""
    match = _WORD_REVERSED.match(text[max(0, end - _NAME_CHARACTERS) : end][::-1])
    return match[0][::-1] if match else ""


@lru_cache(maxsize=2)
def _former_names(generation: int) -> frozenset[str]:
    return frozenset({*repositories.old_set_names(), *repositories.old_type_names()})


__all__ = ["MAX_BODY_BYTES", "names_used", "new_name", "warn"]
