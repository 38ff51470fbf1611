"""Every text of the pages for people exists in every language of the product."""

from __future__ import annotations

import re

import pytest
from django.utils import translation

from platform_site.environment import BASE_DIR

_TEMPLATES = BASE_DIR / "templates" / "identity"


def texts() -> list[str]:
    found: set[str] = set()
    for path in sorted(_TEMPLATES.glob("*.html")):
        page = path.read_text()
        found |= set(re.findall(r'{% translate "([^"]+)" %}', page))
        for block in re.findall(r"{% blocktranslate [^%]*%}(.*?){% endblocktranslate %}", page, re.DOTALL):
            found.add(re.sub(r"{{ (\w+) }}", r"%(\1)s", block))
    assert len(found) > 25
    return sorted(found)


SAME_IN_GERMAN = {"Name", "Token", "Code", "Browser"}


@pytest.mark.parametrize("language", ["bg", "de"])
def test_each_text_is_translated(language: str) -> None:
    with translation.override(language):
        missing = [text for text in texts() if text not in SAME_IN_GERMAN and translation.gettext(text) == text]
    assert missing == []
