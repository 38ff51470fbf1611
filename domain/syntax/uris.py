"""Splits raw query strings and relative URIs, then decodes and parses the parts (Part 2, section 2)."""

import re
from collections.abc import Callable
from difflib import get_close_matches
from typing import Any, Final

from domain.syntax import ast
from domain.syntax.errors import ODataSyntaxError
from domain.syntax.options import NESTED_READERS, OptionsParser
from domain.syntax.paths import resource_path
from domain.syntax.percent import percent_decode
from domain.syntax.tokens import ENCODED_SEMICOLON, IDENTIFIER, is_identifier
from domain.syntax.whole_text import parse_whole
from foundation.messages import TranslatableMessage as Message
from foundation.messages import did_you_mean

MAX_OPTIONS: Final = 1000

_READERS: Final[dict[str, Callable[[OptionsParser], object]]] = {
    **{name: reader for name, reader in NESTED_READERS.items() if name != "levels"},
    "deltatoken": OptionsParser.opaque,
    "format": OptionsParser.format,
    "id": OptionsParser.opaque,
    "index": OptionsParser.index,
    "schemaversion": OptionsParser.schema_version,
    "skiptoken": OptionsParser.opaque,
}
"""Name of a system query option, lower case without "$" → how its value is read."""

# Options of a resource without rows. $schemaversion is from Part 1, section 11.2.12.
_OPTIONS_WITHOUT_DATA: Final = frozenset({"format", "schemaversion"})
_OPTIONS_OF: Final = {
    "$batch": _OPTIONS_WITHOUT_DATA,
    "$metadata": _OPTIONS_WITHOUT_DATA,
    "$entity": _OPTIONS_WITHOUT_DATA | {"id"},
}
_OPTIONS_BEHIND_A_TYPE: Final = frozenset({"select", "expand"})
"""What $entity takes besides, where a type behind it says what may be selected and expanded."""

_EXPAND_GROUP: Final = "expandgroup"
"""The platform's own option beside $apply: what `/expandgroup=…` is at the end of it."""

_SEARCHES: Final = re.compile(r"(?:^|(?<=[(;$,/=])|(?<=%28)|(?<=%3B))search[=(](?:[^;()]|\([^()]*+\))*+", re.IGNORECASE)
_RAW_SEMICOLON: Final = re.compile("%3b", re.IGNORECASE)


def query_options(raw: str, *, plus_is_space: bool = False) -> ast.QueryOptions:
    """See domain.syntax.parse_query_options."""
    result: dict[str, Any] = {}
    aliases: dict[str, ast.AliasValue] = {}
    custom: list[tuple[str, str]] = []
    if raw.count("&") >= MAX_OPTIONS:
        raise ODataSyntaxError(Message("More than {0} query options.", MAX_OPTIONS), raw, 0)
    if raw:
        for part in raw.split("&"):
            raw_name, equals, raw_value = part.partition("=")
            name = percent_decode(raw_name, plus_is_space=plus_is_space)
            if "%3" in raw_value:
                raw_value = _with_marked_semicolons(name, raw_value)
            value = percent_decode(raw_value, plus_is_space=plus_is_space)
            _read_option(name, value, equals, result, aliases, custom)
    _append_group_expansions(result)
    return ast.QueryOptions(**result, aliases=tuple(aliases.values()), custom=tuple(custom))


def _with_marked_semicolons(name: str, raw_value: str) -> str:
    """An encoded semicolon belongs to its search word, however deep the search is nested."""
    return _SEARCHES.sub(
        lambda search: _RAW_SEMICOLON.sub(ENCODED_SEMICOLON, search[0]), f"{name}={raw_value}"
    ).removeprefix(f"{name}=")


def _append_group_expansions(found: dict[str, Any]) -> None:
    items: tuple[ast.ExpandItem, ...] | None = found.pop(_EXPAND_GROUP, None)
    if items is None:
        return
    if "apply" not in found:
        raise ODataSyntaxError(
            Message("expandgroup expands what $apply has grouped by, and there is no $apply."),
            "",
            0,
            option=_EXPAND_GROUP,
        )
    found["apply"] = (*found["apply"], ast.ExpandGroupTransformation(items))


def _read_option(
    name: str,
    value: str,
    equals: str,
    found: dict[str, Any],
    aliases: dict[str, ast.AliasValue],
    custom: list[tuple[str, str]],
) -> None:
    """Store one option. equals is empty if the text has no "=" (rule customQueryOption)."""
    key = name.lower().removeprefix("$")
    reader = OptionsParser.expand if key == _EXPAND_GROUP else _READERS.get(key)
    if reader is not None:
        if key in found:
            raise ODataSyntaxError(Message("The option ${0} is given twice.", key), value, 0, option=name)
        found[key] = parse_whole(value, reader, option=key if key == _EXPAND_GROUP else f"${key}")
    elif name.startswith("@"):
        _read_alias(name[1:], value, aliases)
    elif name.startswith("$"):
        _refuse_option(name, key)
    elif name or equals:
        if not name:
            raise ODataSyntaxError(Message("A query option has no name."), f"={value}", 0, ("the name of an option",))
        custom.append((name, value))


def _read_alias(name: str, value: str, aliases: dict[str, ast.AliasValue]) -> None:
    match = IDENTIFIER.fullmatch(name)
    if match is None or not is_identifier(name):
        raise ODataSyntaxError(Message("This is not the name of a parameter alias."), f"@{name}", 1, ("an identifier",))
    if name in aliases:
        raise ODataSyntaxError(Message("The parameter alias @{0} is given twice.", name), value, 0, option=f"@{name}")
    aliases[name] = ast.AliasValue(name, parse_whole(value, OptionsParser.parameter_value, option=f"@{name}"))


def _refuse_option(name: str, key: str) -> None:
    if key == "levels":
        raise ODataSyntaxError(
            Message("The option $levels stands inside $expand only: $expand=Nav($levels=2)."), name, 0
        )
    near = [f"${option}" for option in get_close_matches(key[:64], _READERS, n=3, cutoff=0.7)]
    raise ODataSyntaxError(
        Message("There is no system query option '{0}'.{1}", name[:80], did_you_mean(near)), name, 0, near
    )


def relative_uri(text: str, *, plus_is_space: bool = False) -> ast.RelativeUri:
    """See domain.syntax.parse_relative_uri."""
    rest, hash_sign, fragment = text.partition("#")
    raw_path, _, raw_query = rest.partition("?")
    path = resource_path(raw_path)
    options = query_options(raw_query, plus_is_space=plus_is_space)
    keyword = _leading_keyword(path)
    if hash_sign and keyword != "$metadata":
        raise ODataSyntaxError(Message("Only $metadata may be followed by a fragment."), text, len(rest))
    if keyword in _OPTIONS_OF:
        _check_options(keyword, options, raw_query, has_type=len(path.segments) > 1)
    if keyword == "$entity" and options.id is None:
        raise ODataSyntaxError(Message("$entity needs the option $id."), text, len(text), ("$id=",))
    return ast.RelativeUri(path, options, fragment if hash_sign else None)


def _leading_keyword(path: ast.ResourcePath) -> str:
    first = path.segments[0] if path.segments else None
    return first.name if isinstance(first, ast.KeywordSegment) else ""


def _check_options(keyword: str, options: ast.QueryOptions, raw_query: str, *, has_type: bool) -> None:
    """Rules batchOptions, metadataOptions, entityOptions and entityCastOptions."""
    allowed = _OPTIONS_OF[keyword] | (_OPTIONS_BEHIND_A_TYPE if has_type else frozenset())
    name = options.first_given(sorted(_READERS.keys() - allowed))
    if name is not None:
        raise ODataSyntaxError(Message("The option ${0} does not go with {1}.", name, keyword), raw_query, 0)
