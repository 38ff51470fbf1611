"""Bring the catalogues of messages up to date: `python locale/update.py`, or `--check` to only say what is not.

Every text for people is written in English in the source, in gettext's functions or Django's template tags. This
collects them into one catalogue for each language (locale/<lang>/LC_MESSAGES/django.po), drops what is no longer said,
and compiles the .mo files. Those are kept in the repository, so that an instance needs no gettext tools. A new text is
left empty in the .po: translate it there and run this again. Needs the development requirements (Babel).
"""

from __future__ import annotations

import ast
import io
import re
import sys
from collections.abc import Iterator, Sequence
from gettext import GNUTranslations
from pathlib import Path

from babel.messages.catalog import Catalog, Message
from babel.messages.extract import extract
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po
from django.conf import settings
from django.utils.translation.template import templatize

ROOT = Path(__file__).resolve().parent.parent
LANGUAGES = ("bg", "de")
APPS = (
    "foundation", "audit", "identity", "domain", "scripts", "rules", "webhooks", "jobs", "event_sinks", "platform_site",
)  # fmt: skip
KEYWORDS: dict[str, tuple[int, ...] | None] = {
    "_": None,
    "gettext": None,
    "gettext_noop": None,
    "gettext_lazy": None,
    "ngettext": (1, 2),
    "ngettext_lazy": (1, 2),
    "Message": (1,),
    "TranslatableMessage": (1,),
}
# Written by hand: Babel's header has dates in it, and a run that changes no text is to change no byte.
HEADER = """msgid ""
msgstr ""
"Language: {language}\\n"
"MIME-Version: 1.0\\n"
"Content-Type: text/plain; charset=utf-8\\n"
"Content-Transfer-Encoding: 8bit\\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\\n"

"""
# Texts that are looked up by a name: file → the dictionary whose values they are.
TABLES = {"identity/scopes.py": "DESCRIPTIONS"}

MessageId = str | tuple[str, ...]
_PLACEHOLDER = re.compile(r"\{\d\}|%\(\w+\)[.\d]*[a-z]|%[sd]")


def po_path(language: str) -> Path:
    """The catalogue of a language."""
    return ROOT / "locale" / language / "LC_MESSAGES" / "django.po"


def messages() -> dict[MessageId, set[str]]:
    """Every text that the sources hand to gettext → the files that do."""
    found: dict[MessageId, set[str]] = {}
    for path, text in _sources():
        # The tokeniser is Python's; what templatize leaves of a template's layout is no code to it.
        lines = "\n".join(line.lstrip() for line in templatize(text).splitlines()) if path.suffix != ".py" else text
        for _line, message, _comments, _context in extract("python", io.BytesIO(lines.encode()), keywords=KEYWORDS):
            if message:
                found.setdefault(message, set()).add(str(path.relative_to(ROOT)))
    for name, table in TABLES.items():
        for text in _values(ast.parse((ROOT / name).read_text(encoding="utf-8")), table):
            found.setdefault(text, set()).add(name)
    return found


def _sources() -> Iterator[tuple[Path, str]]:
    for app in APPS:
        for path in sorted((ROOT / app).rglob("*.py")):
            yield path, path.read_text(encoding="utf-8")
    for directory in (ROOT / "templates", *(ROOT / app / "templates" for app in APPS)):
        for path in sorted(directory.rglob("*")):
            if path.suffix in {".html", ".txt"}:
                yield path, path.read_text(encoding="utf-8")


def _values(tree: ast.Module, table: str) -> Iterator[str]:
    for node in tree.body:
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        if isinstance(target, ast.Name) and target.id == table and isinstance(node, ast.Assign):
            yield from ast.literal_eval(node.value).values()


def load(language: str) -> Catalog:
    """The stored catalogue."""
    with po_path(language).open("rb") as file:
        return read_po(file, locale=language)


def merged(language: str, current: dict[MessageId, set[str]]) -> Catalog:
    """The stored translations of the texts that the sources have now."""
    stored = {message.id: message.string for message in load(language)}
    catalog = Catalog(locale=language, fuzzy=False)
    for id_, files in sorted(current.items(), key=lambda item: (min(item[1]), str(item[0]))):
        catalog.add(id_, stored.get(id_, ""), locations=[(file, 0) for file in sorted(files)])
    return catalog


def problems(language: str) -> list[str]:
    """What is wrong with a language's catalogue: untranslated, unused, placeholders that differ, .mo out of date."""
    current = messages()
    stored = {message.id: message for message in load(language) if message.id}
    found = [f"{language}: not in the catalogue: {id_!r} ({min(current[id_])})" for id_ in current if id_ not in stored]
    found += [f"{language}: no longer used: {id_!r}" for id_ in stored if id_ not in current]
    for message in stored.values():
        found += [f"{language}: {problem}: {message.id!r}" for problem in _problems(message)]
    if _entries(_compiled(load(language))) != _entries(po_path(language).with_suffix(".mo").read_bytes()):
        found.append(f"{language}: django.mo is older than django.po; run locale/update.py")
    return found


def _problems(message: Message) -> Iterator[str]:
    ids, texts = _texts(message.id), _texts(message.string)
    if not all(texts) or len(texts) != len(ids):
        yield "not translated"
        return
    wanted = sorted(_PLACEHOLDER.findall(ids[-1]))
    for text in texts:
        if sorted(_PLACEHOLDER.findall(text)) != wanted:
            yield "other placeholders"


def _texts(value: str | Sequence[str] | None) -> tuple[str, ...]:
    """One text, or one for each grammatical number."""
    return (value or "",) if value is None or isinstance(value, str) else tuple(value)


def _compiled(catalog: Catalog) -> bytes:
    compiled = io.BytesIO()
    write_mo(compiled, catalog)
    return compiled.getvalue()


def _entries(compiled: bytes) -> dict[object, str]:
    """What a .mo file says; its header, which names Babel's version, aside."""
    translations = GNUTranslations(io.BytesIO(compiled))
    return {id_: text for id_, text in translations._catalog.items() if id_}  # type: ignore[attr-defined]


def update() -> None:
    """Write every .po and .mo anew."""
    current = messages()
    for language in LANGUAGES:
        path = po_path(language)
        text = io.BytesIO()
        write_po(text, merged(language, current), width=118, omit_header=True)
        path.write_text(HEADER.format(language=language) + text.getvalue().decode().lstrip("\n"), encoding="utf-8")
        path.with_suffix(".mo").write_bytes(_compiled(load(language)))


def main(arguments: list[str]) -> int:
    """Exit status 1 where something is left to do."""
    if not settings.configured:
        settings.configure()  # templatize reads the names of its tags from Django, and nothing else
    if "--check" not in arguments:
        update()
    left = [problem for language in LANGUAGES for problem in problems(language)]
    sys.stdout.write("".join(f"{problem}\n" for problem in left) or "Every message is translated.\n")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
