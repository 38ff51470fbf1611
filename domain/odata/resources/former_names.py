"""Former names of sets and types (spec 02, 2.1): understood wherever a set is named, and answered with a warning.

What is understood is the registry's matter (`for_set`, `for_type`); here is only found out that it was used. Names in
a path are seen when it is resolved. Those in reference texts and type names, in the query string or the body, are
found in the text: plans of queries are kept, so their literals are not looked at one by one.
"""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import unquote

from django.conf import settings

from domain.model.registry import repositories
from domain.odata.message.message import ODataRequest, ODataResponse
from foundation import errors

#: Only Import sends more in one request; looking through all of it would cost more than the warning is worth.
MAX_BODY_BYTES = 4 * 1024 * 1024
#: A set in front of a key, a type behind its namespace. Whether the word is a former name is looked up: a pattern that
#: holds all such names tries each of them at each place, half a millisecond for an order of ten lines.
_NAMES = re.compile(r"(?<![\w.])(?:(?P<set>\w++)(?=\((?:Id=)?'?[0-9a-f]{8}-)|Erp\.(?P<type>\w++))", re.IGNORECASE)
#: Query strings up to this length are remembered with what they name.
_REMEMBERED_CHARACTERS = 1024


def names_used(request: ODataRequest, in_path: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """(former name, new name) of everything that the request names so, the path's first.

    Raises BadRequest(RENAMED_SET) where the instance accepts former names no longer (REFUSE_RENAMED_SETS).
    """
    found = dict(in_path)
    generation = repositories.generation
    if request.query:
        short = len(request.query) <= _REMEMBERED_CHARACTERS
        named = _named_in_query if short else _named_in_query.__wrapped__
        found.update(named(request.query, generation))
    if request.body and len(request.body) <= MAX_BODY_BYTES and not request.path.startswith("$batch"):
        found.update(_named_in(request.body.decode("utf-8", errors="replace"), generation))
    if found and settings.REFUSE_RENAMED_SETS:
        old, new = next(iter(found.items()))
        raise errors.BadRequest(errors.RENAMED_SET, old, new, target=old)
    return list(found.items())


def new_name(old: str) -> str:
    """What a set or type is called now."""
    known = repositories.for_set(old)
    if known is not None:
        return known[0].set_name
    derived = repositories.for_type(old)
    return derived.entity_type if derived is not None else old


def warn(response: ODataResponse, renamed: list[tuple[str, str]]) -> ODataResponse:
    """The answer with a warning (RFC 7234, 5.5.7) for each former name."""
    if renamed:
        texts = (f'299 - "{old} is now called {new}."' for old, new in renamed)
        response.headers["Warning"] = ", ".join(texts)
    return response


@lru_cache(maxsize=2048)
def _named_in_query(query: str, generation: int) -> tuple[tuple[str, str], ...]:
    return _named_in(unquote(query), generation)


def _named_in(text: str, generation: int) -> tuple[tuple[str, str], ...]:
    """(former name, new name) of what a text names so."""
    former = _former_names(generation)
    words = (match["set"] or match["type"] for match in _NAMES.finditer(text))
    return tuple((word, new_name(word)) for word in words if word.lower() in former)


@lru_cache(maxsize=2)
def _former_names(generation: int) -> frozenset[str]:
    return frozenset({*repositories.old_set_names(), *repositories.old_type_names()})


__all__ = ["MAX_BODY_BYTES", "names_used", "new_name", "warn"]
