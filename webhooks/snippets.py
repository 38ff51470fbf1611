"""Sample programs for receivers that check the signature (Standard Webhooks); tests run all but those in C#."""

from __future__ import annotations

from dataclasses import dataclass

from django.template.loader import render_to_string

#: Ending of the file → name of the language. The templates are in templates/webhooks/snippets.
_PROGRAMS = {
    "verify.py": "Python",
    "verify.mjs": "JavaScript",
    "verify.cs": "C#",
    "verify.sh": "openssl",
    "send.sh": "curl",
}


@dataclass(frozen=True, slots=True)
class Snippet:
    """A program; `key` names it on its page."""

    key: str
    language: str
    code: str


def verification_snippets() -> list[Snippet]:
    """The programs, by file name."""
    return [
        Snippet(name, language, render_to_string(f"webhooks/snippets/{name}.txt").strip())
        for name, language in _PROGRAMS.items()
    ]
