"""Splits raw query strings, then decodes and parses the parts (Part 2, section 2)."""

import re
from collections.abc import Callable
from difflib import get_close_matches
from typing import Any, Final

from domain.syntax import ast
from domain.syntax.errors import ODataSyntaxError
from domain.syntax.options import NESTED_READERS, OptionsParser
from domain.syntax.percent import percent_decode
from domain.syntax.tokens import ENCODED_SEMICOLON, IDENTIFIER, is_identifier
from domain.syntax.whole_text import parse_whole
from foundation.messages import TranslatableMessage as Message
from foundation.messages import did_you_mean

MAX_OPTIONS: Final = 1000

_READERS: Final[dict[str, Callable[[OptionsParser], object]]] = {
    **{name: reader for name, reader in NESTED_READERS.items() if name != "levels"},
    "at": OptionsParser.opaque,
    "deltatoken": OptionsParser.opaque,
    "format": OptionsParser.format,
    "from": OptionsParser.opaque,
    "id": OptionsParser.opaque,
    "index": OptionsParser.index,
    "schemaversion": OptionsParser.schema_version,
    "skiptoken": OptionsParser.opaque,
    "to": OptionsParser.opaque,
}
"""Name of a system query option, lower case without "$" → how its value is read."""

_TEMPORAL: Final = {"at": "at", "from": "from_time", "to": "to_time"}
"""Options of the temporal extension → fields. They need the "$": without it they are names that operations may have."""

_EXPAND_GROUP: Final = "expandgroup"
"""The platform's own option beside $apply: what `/expandgroup=…` is at the end of it."""

_SEARCHES: Final = re.compile(r"(?:^|(?<=[(;$,/=])|(?<=%28)|(?<=%3B))search[=(](?:[^;()]|\([^()]*+\))*+", re.IGNORECASE)
_RAW_SEMICOLON: Final = re.compile("%3b", re.IGNORECASE)


def parse_query_options(raw: str, *, plus_is_space: bool = False) -> ast.QueryOptions:
    """All options after the "?", still percent-encoded (rule queryOptions).

    Names of system options may lack the "$" and have any case. ``plus_is_space`` is that of ``percent_decode``.
    Positions in errors and nodes count in the decoded value of the option.
    """
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
    """Replace encoded semicolons in $search by ENCODED_SEMICOLON: they belong to the word, at any level of nesting."""
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
    if reader is not None and (key not in _TEMPORAL or name.startswith("$")):
        field = _TEMPORAL.get(key, key)
        if field in found:
            raise ODataSyntaxError(Message("The option ${0} is given twice.", key), value, 0, option=name)
        found[field] = parse_whole(value, reader, option=key if key == _EXPAND_GROUP else f"${key}")
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
