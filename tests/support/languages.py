"""What of a text is still English, by the catalogues of messages."""

from __future__ import annotations

import gettext
import re
from functools import lru_cache

from platform_site.environment import BASE_DIR

_WORD = re.compile(r"[^\W\d_]{2,}")


def english_left(text: str, language: str) -> set[str]:
    """Words of the text that stand in English messages and in no message of the language."""
    return words(text) & _only_english(language)


def words(text: str) -> set[str]:
    """What is made of letters, in small ones."""
    return {found.lower() for found in _WORD.findall(text)}


@lru_cache
def _only_english(language: str) -> set[str]:
    catalogue = gettext.translation("django", BASE_DIR / "locale", [language])._catalog  # type: ignore[attr-defined]
    messages = {key[0] if isinstance(key, tuple) else key: text for key, text in catalogue.items() if key}
    return words(" ".join(messages)) - words(" ".join(messages.values()))
