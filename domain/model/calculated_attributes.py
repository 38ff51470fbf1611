"""Calculated attributes: read-only attributes that administrators define for a repository (spec 10.1).

Definitions are entities (Systems.Bpm.CalculatedAttributes), cached in the process under the cache version of the custom
properties; each commit of definitions bumps it, which invalidates plans and metadata too. This module reads their rows
as text; domain.query.bind.calculations binds them and determines their types.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from domain.model.custom_properties import CACHE_VERSION, escape_code
from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.syntax.calculations import ExpressionRow, Parameter
from foundation.versioned_cache import VersionedCache

PREFIX = "CalculatedAttribute_"
#: Repository of the definitions, and of their rows.
DEFINITIONS, EXPRESSIONS = "Systems.Bpm.CalculatedAttributes", "Systems.Bpm.CalculatedAttributeExpressions"
PARAMETERS = (1, 2, 3)


@dataclass(frozen=True, slots=True)
class Definition:
    """One calculated attribute.

    repository   dotted name of the repository that declares it; derived repositories have it too
    start        number of the row that gives the value
    script       source of a JavaScript one; None for rows
    value_type   declared type of a JavaScript one (attribute_scripts.VALUE_TYPES)
    """

    repository: str
    name: str
    caption: Mapping[str, str]
    hint: Mapping[str, str]
    start: int
    rows: tuple[ExpressionRow, ...]
    script: str | None = None
    value_type: str = "String"

    @property
    def api_name(self) -> str:
        """`CalculatedAttribute_Margin`."""
        return PREFIX + escape_code(self.name)


def definitions(repository: Repository[Any]) -> Mapping[str, Definition]:
    """Active calculated attributes of the repository and of those it inherits from, by API name."""
    by_repository = _definitions.get()
    if not by_repository:
        return by_repository  # type: ignore[return-value]
    result: dict[str, Definition] = {}
    current: Repository[Any] | None = repository
    while current is not None:
        result = {**by_repository.get(current.name, {}), **result}
        current = current.base
    return result


def definition(repository: Repository[Any], name: str) -> Definition | None:
    """The active calculated attribute with the API name or the bare name, in any case; None for another name."""
    known = definitions(repository)
    if not known:
        return None
    found = known.get(name)
    if found is None:
        lowered = name.lower()
        found = next((each for each in known.values() if lowered in (each.api_name.lower(), each.name.lower())), None)
    return found


def stored_row(number: int, operator: str, values: Iterable[tuple[str | None, str | None]]) -> ExpressionRow:
    """The row of an entity's operator and (type, value) pairs; pairs without a type are skipped."""
    parameters = (Parameter(kind, value or "") for kind, value in values if kind is not None)
    return ExpressionRow(number, operator, tuple(parameters))


def _load() -> Mapping[str, Mapping[str, Definition]]:
    stored = repositories[EXPRESSIONS].model._default_manager.order_by("expression_no")
    columns = [f"parameter_{number}_{part}" for number in PARAMETERS for part in ("type", "value")]
    rows: dict[Any, list[ExpressionRow]] = {}
    for owner, number, operator, *parts in stored.filter(calculated_attribute__is_active=True).values_list(
        "calculated_attribute_id", "expression_no", "operator", *columns
    ):
        pairs = zip(parts[::2], parts[1::2], strict=True)
        rows.setdefault(owner, []).append(stored_row(number, operator, pairs))
    result: dict[str, dict[str, Definition]] = {}
    for entry in repositories[DEFINITIONS].model._default_manager.filter(is_active=True).order_by("name"):
        known = Definition(
            entry.repository_name,
            entry.name,
            entry.caption or {},
            entry.hint or {},
            entry.starting_expression_no,
            tuple(rows.get(entry.id, ())),
            (entry.script_text or "") if entry.script_language == "JavaScript" else None,
            entry.value_type or "String",
        )
        result.setdefault(entry.repository_name, {})[known.api_name] = known
    return result


_definitions = VersionedCache(_load, CACHE_VERSION)
