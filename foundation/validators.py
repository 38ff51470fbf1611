"""Validators of texts whose form a standard defines. Forms and the dataset call them."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from zoneinfo import ZoneInfo

from babel import Locale, UnknownLocaleError
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.utils.deconstruct import deconstructible
from django.utils.translation import gettext

from foundation.messages import TranslatableMessage as Message


@deconstructible
class TextValidator:
    """A validator of a model field; `find_problem` returns what is wrong with a text, or None."""

    def __init__(self, find_problem: Callable[[str], Message | None]) -> None:
        self.find_problem = find_problem

    def __call__(self, value: str) -> None:
        """Raises ValidationError in the active language, as Django's forms expect."""
        if problem := self.find_problem(value):
            raise ValidationError(problem.translated(gettext))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TextValidator) and other.find_problem == self.find_problem

    def __hash__(self) -> int:
        return hash(self.find_problem)


def language_problem(code: str) -> Message | None:
    """The problem of a code that is no language of the Unicode CLDR, with or without script and country."""
    try:
        Locale.parse(code.replace("_", "-"), sep="-")
    except (UnknownLocaleError, ValueError):
        return Message("{0} is not a known language. Use a code such as en, de or pt-BR.", code)
    return None


def time_zone_problem(name: str) -> Message | None:
    """The problem of a name that is no time zone of the IANA database."""
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # OSError: the name of a directory, such as Europe
        return Message("{0} is not a known time zone. Use a name such as UTC or Europe/Sofia.", name)
    return None


def email_problem(address: str) -> Message | None:
    """The problem of a text that is no e-mail address by Django's rules."""
    try:
        validate_email(address)
    except ValidationError:
        return Message("{0} is not an e-mail address. It has the form name@example.com.", address)
    return None


def identifier_problem(text: str) -> Message | None:
    """The problem of an identifier with invisible characters: people compare identifiers by sight."""
    if text != text.strip():
        return Message("White space at its beginning or end cannot be seen: remove it.")
    for character in text:
        # Control and format characters (such as zero width space), line and paragraph separators.
        if unicodedata.category(character) in ("Cc", "Cf", "Zl", "Zp"):
            return Message("It has the invisible character {0}: remove it.", f"U+{ord(character):04X}")
    return None


def look_alike_key(text: str) -> str:
    """The normal form (NFKC, case-folded) that texts share if they differ only in case, width or composition."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
