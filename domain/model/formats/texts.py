"""Formats of multilanguage texts and of values of custom properties.

C CURRENT G          the text in the reader's language, or nothing
A ANY                the text in the reader's language, else the English one, else the first
T TRANSLITERATED     as A; Cyrillic letters become Latin ones for a reader of another script
D DUMP CONTENTS      every text: EN=Chair BG=Стол
EN BG DE …           the text in this language, or nothing

V D VD VDI           of a custom property: value, description, both, and the id of an allowed value; with _EN the
                     description in that language
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from domain.model.formats.cultures import is_language
from domain.model.template_syntax import pick_text

_CYRILLIC = "абвгдежзийклмнопрстуфхцчшщъыьэюяёђѓєѕіїјљњћќѝўџґ"
_LATIN = """
    a b v g d e zh z i y k l m n o p r s t u f h ts ch sh sht a y y e yu ya yo dj gj ye dz i yi j lj nj c kj i u dzh g
"""
#: Bulgarian letters by the Bulgarian law on transliteration; letters of other languages by English pronunciation.
_TO_LATIN = {
    ord(letter): text
    for small, written in zip(_CYRILLIC, _LATIN.split(), strict=True)
    for letter, text in ((small, written), (small.upper(), written.capitalize()))
}
#: Languages written in Cyrillic.
_CYRILLIC_READERS = frozenset({"be", "bg", "kk", "ky", "mk", "mn", "ru", "sr", "tg", "uk"})


def transliterated(text: str, language: str) -> str:
    """The text in the script of the language: Cyrillic becomes Latin, unless the language is written in Cyrillic."""
    if language.lower().partition("-")[0] in _CYRILLIC_READERS:
        return text
    return text.translate(_TO_LATIN)


def _transliteration(texts: Mapping[str, str], language: str) -> str:
    own = texts.get(language.upper())
    return transliterated(pick_text(texts, language) or "", language) if own is None else own


def _current(texts: Mapping[str, str], language: str) -> str:
    return texts.get(language.upper(), "")


def _any(texts: Mapping[str, str], language: str) -> str:
    return pick_text(texts, language) or ""


def _dump(texts: Mapping[str, str], language: str) -> str:
    return " ".join(f"{code}={text}" for code, text in texts.items())


_TEXTS: Mapping[str, Callable[[Mapping[str, str], str], str]] = {
    "": _any,
    **dict.fromkeys(("C", "CURRENT", "G"), _current),
    **dict.fromkeys(("A", "ANY"), _any),
    **dict.fromkeys(("T", "TRANSLITERATED"), _transliteration),
    **dict.fromkeys(("D", "DUMP", "CONTENTS"), _dump),
}


def is_text_format(format: str) -> bool:
    """Whether multilanguage texts have the format."""
    return format.upper() in _TEXTS or is_language(format)


def format_texts(texts: Mapping[str, str], format: str, language: str) -> str:
    """A multilanguage text in a valid format (`is_text_format`), for a reader of the language."""
    known = _TEXTS.get(format.upper())
    return str(texts.get(format.upper().replace("_", "-"), "")) if known is None else known(texts, language)


_PROPERTY_FORMATS = ("V", "D", "VD", "VDI")


def is_property_format(format: str) -> bool:
    """Whether values of custom properties have the format, whatever their type."""
    known, suffix, language = format.partition("_")
    return known.upper() in _PROPERTY_FORMATS and (is_language(language) if suffix else True)


def format_property(stored: Mapping[str, Any], value: str, format: str, language: str) -> str:
    """A custom property in a valid format (`is_property_format`).

    stored: {"Value", "Description"?, "ValueId"?}; value: its text. Punctuation of a missing description or id is left
    out, too.
    """
    known, _, asked = format.upper().partition("_")
    texts: Mapping[str, str] = stored.get("Description") or {}
    description = format_texts(texts, asked, language)
    if known in ("V", "D"):
        return value if known == "V" else description
    text = f"{value}: {description}" if description else value
    return f"{text} ({stored['ValueId']})" if known == "VDI" and stored.get("ValueId") else text
