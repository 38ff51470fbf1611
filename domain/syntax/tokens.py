"""The regular expressions of the grammar's tokens.

A token is matched where the grammar expects it, so there is no token list and no keyword is reserved: ``eq eq eq``
compares two properties. Quantifiers are possessive, so no match backtracks. Where the ABNF has a plain string, its
letters match in either case, with ASCII rules: with Unicode rules ``ſ`` would match ``s``.
"""

import re
import unicodedata
from typing import Final

MAX_IDENTIFIER_LENGTH: Final = 128  # rule odataIdentifier

_ANY_CASE: Final = re.ASCII | re.IGNORECASE

# Characters beyond ASCII are checked one by one after the match (is_identifier): the classes of rule
# identifierCharacter have no short form in a regular expression.
# Negated classes: a class of a million characters takes milliseconds to compile, each time it occurs.
_HEAD: Final = r"[^\x00-@\[-^`{-\x7f]"  # a letter, "_" or beyond ASCII
_TAIL: Final = r"[^\x00-/:-@\[-^`{-\x7f]"  # or a digit
_IDENTIFIER: Final = rf"{_HEAD}{_TAIL}*+"
_NAME: Final = rf"{_IDENTIFIER}(?:\.{_IDENTIFIER})*+"
_GUID: Final = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_CLOCK: Final = r"[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]++)?+)?+"

SPACE = re.compile(r"[ \t]*+")
IDENTIFIER = re.compile(_IDENTIFIER)
NAME = re.compile(_NAME)
PLAIN_ITEM = re.compile(rf"{_NAME}(?=[,;)]|\Z)")
ARGUMENT_NAME = re.compile(rf"({_IDENTIFIER})=")
AT_NAME = re.compile(rf"@({_NAME})(?:#({_IDENTIFIER}))?+")
VARIABLE = re.compile(rf"\$(?:it|this|these|root)(?!{_TAIL})")
TYPE_NAME = re.compile(rf"(?:Collection\(({_NAME})\)|({_NAME}))")
LONE_TYPE_NAME = re.compile(rf"[ \t]*+(?:Collection\({_NAME}\)|{_NAME})[ \t]*+\)")

STRING = re.compile(r"'([^']*+(?:''[^']*+)*+)'")
JSON_STRING = re.compile(r'"([^"\\]*+(?:\\.[^"\\]*+)*+)"', re.DOTALL)
GUID = re.compile(_GUID, _ANY_CASE)
# The beginning of a date, valid or not: no other token continues with dashes.
DATE = re.compile(
    rf"(-?+[0-9]{{4,}}+-[0-9]{{2}}-[0-9]{{2}})(?:T({_CLOCK})(Z|[+-][0-9]{{2}}:[0-9]{{2}})?+|Z)?+(?!{_TAIL}|[-+])",
    _ANY_CASE,
)
DATE_BEGINNING = re.compile(r"-?+[0-9]{4,}+-[0-9]{2}-[0-9]{2}")
CLOCK = re.compile(_CLOCK)
SHORT_CLOCK = re.compile(r"[0-9]{2}:[0-9]{2}")
NUMBER = re.compile(r"[+-]?+[0-9]++(\.[0-9]++)?+(e([+-]?+[0-9]++))?+", _ANY_CASE)
MINUS_INFINITY = re.compile(rf"-INF(?!{_TAIL})")
DIGITS = re.compile(r"[0-9]++")

OPERATOR = re.compile(
    rf"(?:[ \t]++|(?<=\)))(and|or|eq|ne|lt|le|gt|ge|has|in|like|add|sub|mul|divby|div|mod)(?!{_TAIL})([ \t]*+)",
    _ANY_CASE,
)
# "not" is a property if a binary operator or nothing follows it.
NOT = re.compile(
    r"not(?:[ \t]++|(?=\())(?!(?:and|or|eq|ne|lt|le|gt|ge|has|in|like|add|sub|mul|divby|div|mod)[ \t]|[),;:\]}]|\Z)",
    _ANY_CASE,
)
DIRECTION = re.compile(rf"[ \t]++(asc|desc)(?!{_TAIL})", _ANY_CASE)

ENUM_MEMBERS = re.compile(rf"(?:{_IDENTIFIER}|[+-]?[0-9]++)(?:,(?:{_IDENTIFIER}|[+-]?[0-9]++))*+")
DURATION = re.compile(
    r"(-)?P(?=[0-9T])(?:([0-9]++)D)?+(?:T(?=[0-9])(?:([0-9]++)H)?+(?:([0-9]++)M)?+(?:([0-9]++)(?:\.([0-9]++))?S)?+)?+",
    _ANY_CASE,
)
# Rule binaryValue: unused bits of an incomplete group of four characters must be 0, hence the short classes.
BASE64_TAIL = re.compile(r"(?:[A-Za-z0-9_-]{2}[AEIMQUYcgkosw048]=?|[A-Za-z0-9_-][AQgw](?:==)?)?")
BASE64 = re.compile(r"(?:[A-Za-z0-9_-]{4})*+")

#: %3B in a search expression. A literal ";" ends a nested $search, an encoded one belongs to the word; this code point
#: is a noncharacter, so no text contains it.
ENCODED_SEMICOLON: Final = "\ufdd0"
SEARCH_WORD = re.compile(r"""[^ \t"();'][^ \t"();]*+""")
SEARCH_PHRASE = re.compile(r'"([^"]++)"')

OPTION_NAME = re.compile(r"(\$?[a-z]++)=", _ANY_CASE)
ALIAS_NAME = re.compile(rf"@({_IDENTIFIER})=")

_LETTER_CATEGORIES: Final = frozenset({"Lu", "Ll", "Lt", "Lm", "Lo", "Nl"})
_NAME_CATEGORIES: Final = _LETTER_CATEGORIES | {"Nd", "Mn", "Mc", "Pc", "Cf"}


def is_identifier(text: str) -> bool:
    """Whether text, one part of a match of NAME or IDENTIFIER, is an odataIdentifier."""
    if len(text) > MAX_IDENTIFIER_LENGTH:
        return False
    if text.isascii():
        return True
    if ord(text[0]) > 127 and unicodedata.category(text[0]) not in _LETTER_CATEGORIES:
        return False
    return all(ord(character) < 128 or unicodedata.category(character) in _NAME_CATEGORIES for character in text)


def is_name(text: str) -> bool:
    """Whether text, a match of NAME, consists of identifiers."""
    return (len(text) <= MAX_IDENTIFIER_LENGTH and text.isascii()) or all(map(is_identifier, text.split(".")))
