"""Every attribute, enum member, setting and admin page does something, or a reviewed list says that it does not.

An attribute or enum member has an effect if product code names it outside its declaration; labels, hints and columns of
its page, and demo data, do not count. That is a lower bound: a name that several attributes share counts for all of
them. Everything else is in docs/reference/stored-facts.md as a stored fact of the model, with the reason; only what the
reference's model has can be one. What administrators extend the model with is tested one by one: tests.platform_site.
test_effects. The page of each repository has a task in docs/guides/admin-pages.md.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from django.contrib import admin

from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation.enums import enum_types
from platform_site.environment import SETTINGS

ROOT = Path(__file__).parents[2]
ROOMS = (
    "domain",
    "event_sinks",
    "jobs",
    "rules",
    "scripts",
    "webhooks",
    "identity",
    "foundation",
    "platform_site",
    "templates",
)
#: `name = models.CharField(`, and a member of an enum's table `"Name": 5`.
_FIELD = re.compile(r"^    \w+(?:: [^=\n]+)? = (?:models\.\w+|\w*Field)\(", re.MULTILINE)
_MEMBER = re.compile(r'^\s+"\w+": (?:-?\d+|[A-Z0-9_ |]+),$|\{(?:"\w+": -?\d+(?:, )?)+\}', re.MULTILINE)
#: Code that writes rows, so that it names attributes without giving them an effect.
_DEMO = ROOT / "domain" / "demo"
#: Names that code forms: the third parameter of an expression, of `f"Parameter{number}Value"`.
FORMED = {
    "Systems.Bpm.CalculatedAttributeExpressions": {"Parameter3Type", "Parameter3Value"},
}
#: Members that code tells from the others without their name.
OTHERS_OF_A_CHOICE = {
    "Systems.Config.WebHooksRepository.RetryLogic": {"NoRetry"},  # not Retry
    "Systems.Security.RolesRepository.RequiredFactor": {"SecondFactor"},  # compared by its number
    # A scale: the history compares its numbers.
    "Systems.Core.TrackChangesLevel": {
        "DoNotTrackChanges", "TrackLastChangesOnly", "TrackObjectChanges", "TrackObjectAndAttributeChanges",
        "TrackObjectAttributeAndBlobChanges",
    },
}  # fmt: skip


@cache
def named() -> Counter[str]:
    """Word → the number of product files that have it, without declarations of fields and enum members."""
    words: Counter[str] = Counter()
    for room in ROOMS:
        for file in (ROOT / room).rglob("*"):
            if (
                file.suffix not in (".py", ".js", ".html")
                or {"migrations", "node_modules"} & set(file.parts)
                or _DEMO in file.parents
            ):
                continue
            text = _without_options(_MEMBER.sub("", _FIELD.sub("", file.read_text())))
            words.update(set(re.findall(r"\w+", text)))
    return words


def _without_options(text: str) -> str:
    """Python without the values of `admin = AdminOptions(…)`, which show an attribute and do nothing with it."""
    return re.sub(r"^    admin = AdminOptions\(.*?^    \)$", "", text, flags=re.MULTILINE | re.DOTALL)


@cache
def python_sources() -> tuple[str, ...]:
    """The product's Python files."""
    return tuple(file.read_text() for room in ROOMS for file in (ROOT / room).rglob("*.py"))


@cache
def facts(heading: str) -> dict[str, set[str]]:
    """Repository or enum → the names that the list has under a heading."""
    text = (ROOT / "docs/reference/stored-facts.md").read_text()
    section = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([\w.]+)` \| ([^|]+) \| [^|]+ \|$", section, re.MULTILINE)
    return {name: set(re.findall(r"`(\w+)`", listed)) for name, listed in rows}


@cache
def reference() -> dict[str, Any]:
    """The reference's model: repositories with members, and enums with members."""
    facts: dict[str, Any] = json.loads((ROOT / "tests/domain/entities/model_facts.json").read_text())
    return facts


def shipped() -> list[Repository[Any]]:
    return [each for each in repositories if each.model.__module__.startswith("domain.")]


def inert_attributes(repository: Repository[Any]) -> set[str]:
    """Own attributes that no product code names."""
    base = repository.base.attributes if repository.base is not None else {}
    return {
        attribute.name
        for attribute in repository.attributes.values()
        if not (attribute.system or attribute.calculated or attribute.key_alias or attribute.name in base)
        and attribute.name not in FORMED.get(repository.name, ())
        and not any(
            named()[name]
            for name in (attribute.python_name, attribute.name, f"{attribute.python_name}_id", f"{attribute.name}Id")
        )
    }


def test_every_attribute_has_an_effect_or_is_a_listed_fact() -> None:
    found = {each.name: names for each in shipped() if (names := inert_attributes(each))}
    assert found == facts("Attributes"), "give the attribute an effect, or review docs/reference/stored-facts.md"


def test_only_the_reference_has_attributes_without_effect() -> None:
    for name, names in facts("Attributes").items():
        assert names <= reference()["repositories"][name]["members"].keys(), name
    for name, names in facts("Enum members").items():
        assert names <= reference()["enums"][name].keys(), name


def test_every_enum_member_has_an_effect_or_is_a_listed_fact() -> None:
    enums = [enum for enum in enum_types if not enum.name.startswith("Tests.")]
    found = {enum.name: {each for each in enum.members if not named()[each]} for enum in enums}
    found = {name: rest for name, names in found.items() if (rest := names - OTHERS_OF_A_CHOICE.get(name, set()))}
    assert found == facts("Enum members"), "give the member an effect, or review docs/reference/stored-facts.md"


@pytest.mark.parametrize("name", sorted(setting.name for setting in SETTINGS))
def test_every_setting_is_read(name: str) -> None:
    """Some line of the product has its name, besides the one that only assigns it."""
    # Settings of webhooks are the fields of a class (webhooks.conf).
    field = name.removeprefix("WEBHOOK_").lower()
    if field != name.lower():
        assert any(f".{field}" in text for text in python_sources()), f"nothing reads {name}"
        return
    lines = [line for text in python_sources() if name in text for line in text.splitlines() if name in line]
    uses = [line for line in lines if f'"{name}"' not in line or not line.lstrip().startswith(name)]
    assert uses, f"nothing reads {name}"


def test_every_page_of_the_admin_has_a_task() -> None:
    guide = (ROOT / "docs/guides/admin-pages.md").read_text()
    tasks = dict(re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", guide, re.MULTILINE))
    pages = {
        str(model._meta.verbose_name_plural)
        for model in admin.site._registry
        if not model.__module__.startswith("tests.")
    }
    assert not pages - tasks.keys(), "write what the page is for in docs/guides/admin-pages.md"
    assert not tasks.keys() - pages - {"Page", "---"}, "the guide names pages that do not exist"
