"""RuleSpec: a stored rule as plain values, from a dataset that is being saved or from the tables."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from domain.dataset.checks.authority import NOBODY, Authority
from domain.dataset.records.record import Record
from domain.entities import systems_bpm as bpm
from domain.model.registry import repositories
from domain.model.values import in_language
from foundation.guids import is_guid
from rules.authors import AUTHORS

#: A name in braces, but not JSON such as {"value": 1}.
_PLACEHOLDER = re.compile(r"\{[$#@\w]")
#: The supported script languages. The model also has CSharp, which is refused.
LANGUAGES = ("Integrated", "JavaScript")
RULES = "Systems.Bpm.UserBusinessRules"
EVENTS = "Systems.Bpm.UserBusinessRuleEvents"
CONDITIONS = "Systems.Bpm.UserBusinessRuleConditions"
ACTIONS = "Systems.Bpm.UserBusinessRuleActions"


@dataclass(frozen=True, slots=True)
class EventSpec:
    """An event of the rule. `index` is its position in the collection, for error targets."""

    index: int
    event_type: str
    parameter: str | None
    priority: str
    layer: str


@dataclass(frozen=True, slots=True)
class ConditionSpec:
    index: int
    number: int
    attribute_name: str
    comparison: str
    value: str | None


@dataclass(frozen=True, slots=True)
class ParameterSpec:
    """A parameter of an action; type None: the default type (rules.actions.base)."""

    type: str | None
    value: str | None

    @property
    def has_placeholder(self) -> bool:
        """Whether the value looks like a template: `{Name}`, `{$user}`, but not `{"json": 1}`."""
        return bool(self.value) and _PLACEHOLDER.search(self.value or "") is not None


@dataclass(frozen=True, slots=True)
class ActionSpec:
    """An action of the rule, always with three `parameters`."""

    index: int
    number: int
    action_type: str
    parameters: tuple[ParameterSpec, ParameterSpec, ParameterSpec]


@dataclass(frozen=True, slots=True)
class RuleSpec:
    id: str
    code: str
    name: Mapping[str, str]
    repository: str
    layer: str
    is_active: bool
    script_language: str
    script_text: str | None
    events: tuple[EventSpec, ...]
    conditions: tuple[ConditionSpec, ...]
    actions: tuple[ActionSpec, ...]
    user_startable: bool = False
    #: The user who saved the rule last; the rule acts with that user's authority.
    author: Authority = NOBODY

    def title(self, language: str) -> str:
        """Code and name, for messages."""
        name = in_language(dict(self.name), language)
        return f"{self.code} ({name})" if name else self.code

    @property
    def has_script(self) -> bool:
        """Whether a script runs after the actions."""
        return self.script_language == "JavaScript" and bool((self.script_text or "").strip())

    def can_refuse(self) -> bool:
        """Whether the rule may refuse an operation, and so fails closed when it is broken.

        A script refuses by Action.cancel or an uncaught exception.
        """
        if self.has_script and any(word in (self.script_text or "") for word in ("cancel", "throw")):
            return True
        return any(action.action_type == "FAIL" for action in self.actions)


def rule_from_record(record: Record) -> RuleSpec:
    """The rule in its dataset, including pending changes."""
    return rule_of_values(
        record.values,
        [child.values for child in record.children("Events")],
        [child.values for child in record.children("Conditions")],
        [child.values for child in record.children("Actions")],
        authors_of([record.id]).get(record.id, NOBODY),
    )


def stored_rules(*, active_only: bool, only: Collection[str] | None = None) -> list[RuleSpec]:
    """Every stored rule, by code, in five queries; `only` selects guids."""
    rules = bpm.UserBusinessRule.objects.order_by("code")
    if active_only:
        rules = rules.filter(is_active=True)
    if only is not None:
        # URLs may contain any text; PostgreSQL refuses to compare a guid with other text.
        rules = rules.filter(pk__in=[text for text in only if is_guid(text)])
    rows = [_api_names(RULES, row) for row in rules.values()]
    ids = {row["Id"] for row in rows}
    events = _by_rule(EVENTS, bpm.UserBusinessRuleEvent.objects.order_by("id").values(), ids)
    conditions = _by_rule(CONDITIONS, bpm.UserBusinessRuleCondition.objects.order_by("id").values(), ids)
    actions = _by_rule(ACTIONS, bpm.UserBusinessRuleAction.objects.order_by("id").values(), ids)
    authors = authors_of(ids)
    return [
        rule_of_values(row, events.get(id, []), conditions.get(id, []), actions.get(id, []), authors.get(id, NOBODY))
        for row in rows
        for id in (row["Id"],)
    ]


def authors_of(ids: Collection[str]) -> dict[str, Authority]:
    """Guid of a rule → author."""
    return AUTHORS.of(ids)


def _api_names(repository: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """Columns of Django's `values()` under their API names."""
    return {
        attribute.name: row[attribute.field.attname]
        for attribute in repositories[repository].attributes.values()
        if attribute.field is not None and not attribute.key_alias
    }


def _by_rule(
    repository: str, rows: Iterable[Mapping[str, Any]], rule_ids: set[str]
) -> dict[str, list[Mapping[str, Any]]]:
    result: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        rule_id = row["user_business_rule_id"]
        if rule_id in rule_ids:
            result.setdefault(rule_id, []).append(_api_names(repository, row))
    return result


def rule_of_values(
    values: Mapping[str, Any],
    events: Sequence[Mapping[str, Any]],
    conditions: Sequence[Mapping[str, Any]],
    actions: Sequence[Mapping[str, Any]],
    author: Authority,
) -> RuleSpec:
    """The rule of a record's values and those of its rows, by API name."""
    return RuleSpec(
        id=values["Id"],
        code=values["Code"] or "",
        name=values["Name"] or {},
        repository=values["RepositoryName"] or "",
        layer=values["Layer"] or "BackEnd",
        is_active=bool(values["IsActive"]),
        script_language=values["ScriptLanguage"] or "Integrated",
        script_text=values["ScriptText"],
        events=tuple(_event(index, row) for index, row in enumerate(events)),
        # Conditions and actions run by number; the key decides between equal numbers.
        conditions=_ordered([_condition(index, row) for index, row in enumerate(conditions)]),
        actions=_ordered([_action(index, row) for index, row in enumerate(actions)]),
        user_startable=bool(values["UserStartable"]),
        author=author,
    )


def _ordered(items: list[Any]) -> tuple[Any, ...]:
    return tuple(sorted(items, key=lambda item: (item.number, item.index)))


def _event(index: int, row: Mapping[str, Any]) -> EventSpec:
    return EventSpec(
        index,
        row["EventType"] or "",
        row["EventParameter"],
        row["ExecutionPriority"] or "Normal",
        row["Layer"] or "BackEnd",
    )


def _condition(index: int, row: Mapping[str, Any]) -> ConditionSpec:
    return ConditionSpec(
        index, row["ConditionNo"] or 0, row["AttributeName"] or "", row["ComparisonType"] or "", row["Value"]
    )


def _action(index: int, row: Mapping[str, Any]) -> ActionSpec:
    first, second, third = (
        ParameterSpec(row[f"Parameter{number}Type"], row[f"Parameter{number}Value"]) for number in (1, 2, 3)
    )
    return ActionSpec(index, row["ActionNo"] or 0, row["ActionType"] or "", (first, second, third))
