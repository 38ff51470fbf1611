"""Generates reference pages of the documentation from the source."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from foundation.errors import error_codes_by_number
from platform_site.environment import BASE_DIR, SETTINGS

DIRECTORY = BASE_DIR / "docs" / "reference"

_ORIGIN = "<!-- Made by `manage.py generate_docs`; change the source, not this file. -->"

_ERROR_CODES = f"""# Error codes

{_ORIGIN}

Every failing answer of the Domain API is `{{"error": {{...}}}}` with one of these codes. Numbers and types never change
meaning; messages may, and are localised. `{{0}}`, `{{1}}` … are the entries of `parameters`.
`manage.py error_codes --json` prints the same list for programs.

| Code | Type | HTTP status | Message |
|---:|---|---:|---|
"""

_SETTINGS = f"""# Settings

{_ORIGIN}

Read from the environment, or from a file `.env` beside `manage.py`; the environment wins. With make they may also be
given as variables: `make run PORT=9000`. A value that does not fit its type stops the start with a sentence.

| Name | Type | Default | Meaning |
|---|---|---|---|
"""


def error_codes_page() -> str:
    """docs/reference/error-codes.md: the error codes as a table."""
    rows = (
        f"| {entry.number} | `{entry.type}` | {entry.status} | {_cell(entry.message_format)} |\n"
        for entry in error_codes_by_number()
    )
    return _ERROR_CODES + "".join(rows)


def settings_page() -> str:
    """docs/reference/settings.md: the settings as a table."""
    rows = (
        f"| `{setting.name}` | {setting.type} | {setting.default} | {_cell(setting.meaning)} |\n"
        for setting in SETTINGS
    )
    return _SETTINGS + "".join(rows)


PAGES: dict[str, Callable[[], str]] = {"error-codes.md": error_codes_page, "settings.md": settings_page}


def outdated() -> Iterator[tuple[Path, str]]:
    """Pages whose file is missing or differs: path and expected text."""
    for name, page in PAGES.items():
        path, text = DIRECTORY / name, page()
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            yield path, text


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")
