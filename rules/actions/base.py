"""Base class and catalogue of action types (spec 05, 5.3).

    @action_types.register
    class Warn(ActionType):
        name = "WARNING"
        parameters = (ParameterRule(_("Message"), MESSAGE),)

        def run(self, action: BoundAction, firing: Firing) -> None:
            firing.dataset.warnings.append(action.text(0, firing))

Instances are shared, so stateless. Apps above this one register their own in AppConfig.ready (webhooks: WEBHOOK).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _

from domain.dataset.lookups.name_binding import Name, ReferencePath, UnknownName, paths_of
from domain.dataset.templates.record_template import Escape, InvalidTemplate, Template
from domain.model.rule_enums import USER_BUSINESS_RULE_ACTION_TYPE
from domain.model.template_syntax import format_value
from foundation.enums import EnumCatalogue
from foundation.guids import is_guid, parse_guid
from foundation.kinds import Kind
from rules.scope import Finding, RuleScope, finding
from rules.specs import ActionSpec, ParameterSpec

if TYPE_CHECKING:
    from domain.model.repository import Repository
    from identity.context import CallContext
    from rules.firing import Firing

ParameterType = Literal["Constant", "Attribute", "Reference", "ChildList", "FormattedString", "Interpolate"]

#: (value, text) of a drop-down.
Choice = tuple[str, str]

_KEY = re.compile(r"^\w+\((?P<guid>[^()]*)\)$")

#: Kinds of template parameters (spec 05, 5.4).
TEMPLATES: tuple[ParameterType, ...] = ("FormattedString", "Interpolate")
MESSAGE: tuple[ParameterType, ...] = ("Constant", *TEMPLATES)
VALUE: tuple[ParameterType, ...] = ("Constant", "Attribute", "Reference", *TEMPLATES)


@dataclass(frozen=True, slots=True)
class ParameterRule:
    """A parameter of an action type: its label and accepted types; `lead`: the words before it in a sentence."""

    title: str
    types: tuple[ParameterType, ...]
    required: bool = True
    lead: str = ""

    def default_type(self, spec: ParameterSpec) -> ParameterType:
        """The type of a parameter without one in the rule: messages with names in braces are templates."""
        return "Interpolate" if self.types == MESSAGE and spec.has_placeholder else self.types[0]


@dataclass(frozen=True, slots=True)
class BoundParameter:
    """A parameter with resolved names: a constant text, a name, or a template."""

    type: ParameterType
    constant: str | None = None
    name: Name | None = None
    template: Template | None = None

    @property
    def kind(self) -> Kind:
        """The kind of `value`."""
        return self.name.kind if self.name is not None else Kind.STRING

    @property
    def paths(self) -> Iterator[ReferencePath]:
        """The reference paths that the parameter reads besides the entity."""
        if self.name is not None:
            yield from paths_of(self.name)
        if self.template is not None:
            yield from self.template.paths

    def value(self, firing: Firing, *, escape: Escape = "text") -> Any:
        """The canonical value of an attribute; the text of a constant or template."""
        if self.name is not None:
            return self.name.read(firing.record, firing.events)
        if self.template is not None:
            return firing.render(self.template, escape)
        return self.constant

    def text(self, firing: Firing, *, escape: Escape = "text") -> str:
        """The value as text; null as ""."""
        value = self.value(firing, escape=escape)
        return value if isinstance(value, str) else format_value(value, language=firing.dataset.context.language)


EMPTY_PARAMETER = BoundParameter("Constant")


@dataclass(frozen=True, slots=True)
class BoundAction:
    """An action of a compiled rule, with as many `parameters` as its type declares."""

    spec: ActionSpec
    type: ActionType
    parameters: tuple[BoundParameter, ...]

    def text(self, index: int, firing: Firing, *, escape: Escape = "text") -> str:
        """The parameter's value as text."""
        return self.parameters[index].text(firing, escape=escape)


class ActionType:
    """Base of every action type. `name` and `number` are public: never changed, never reused. `name` is stored."""

    name: ClassVar[str] = ""
    number: ClassVar[int]
    description: ClassVar[str] = ""
    #: The action in a sentence, before its parameters: "refuse it".
    phrase: ClassVar[str] = ""
    parameters: ClassVar[tuple[ParameterRule, ...]] = ()
    #: False: stored rules may have it, but new ones cannot choose it.
    is_available: ClassVar[bool] = True
    #: True: shows the entity to users who may not see it, so the rule's author must be allowed to see it.
    discloses_entity: ClassVar[bool] = False

    def check(self, action: ActionSpec, rule: RuleScope) -> Iterator[Finding]:
        """Findings about the action when its rule is saved; called for each of the rule's events.

        Extend with `yield from super().check(action, rule)`: it checks types, names and templates.
        """
        for index, spec in enumerate(action.parameters):
            if index >= len(self.parameters):
                if spec.value:
                    yield finding(f"Parameter{index + 1}Value", _("{0} has no parameter {1}."), self.name, index + 1)
                continue
            bound = bind_parameter(self.parameters[index], spec, rule, index)
            if isinstance(bound, Finding):
                yield bound

    def paths(self, action: BoundAction) -> Iterator[tuple[int, ReferencePath]]:
        """The reference paths that the action reads: (index of the parameter, path)."""
        return ((index, path) for index, parameter in enumerate(action.parameters) for path in parameter.paths)

    def bind(self, action: ActionSpec, rule: RuleScope) -> BoundAction:
        """Resolve the action's names. Raises BrokenAction where `check` would report a finding."""
        bound = []
        for index, declared in enumerate(self.parameters):
            parameter = bind_parameter(declared, action.parameters[index], rule, index)
            if isinstance(parameter, Finding):
                raise BrokenAction(parameter.message)
            bound.append(parameter)
        return BoundAction(action, self, tuple(bound))

    def choices(self, index: int, repository: Repository[Any], context: CallContext) -> Sequence[Choice] | None:
        """The choices for a parameter that the caller may read; None: any text."""
        return None

    def values_of(self, index: int, action: ActionSpec) -> str:
        """The name of the attribute whose values the constant parameter has; "" for texts."""
        return ""

    def run(self, action: BoundAction, firing: Firing) -> None:
        """Run the action: change the dataset, or raise. Nothing is sent before the commit."""
        raise NotImplementedError


class BrokenAction(ValueError):
    """The action can no longer be run; the message says why."""


def listed_in(text: str) -> list[str]:
    """The parts of a parameter's text, which commas, semicolons or spaces separate."""
    return text.replace(",", " ").replace(";", " ").split()


def reference_literal(text: str) -> str | None:
    """The guid in a text: alone or in OData's form of references, Crm_Sales_Customers(0189…)."""
    literal = _KEY.sub(r"\g<guid>", text.strip())
    return parse_guid(literal) if is_guid(literal) else None


def bind_parameter(
    declared: ParameterRule, spec: ParameterSpec, rule: RuleScope, index: int
) -> BoundParameter | Finding:
    """The bound parameter, or a finding."""
    number = index + 1
    title = gettext(declared.title)
    if spec.value is None or spec.value.strip() == "":
        if declared.required:
            return finding(f"Parameter{number}Value", _("Parameter {0} ({1}) is missing."), number, title)
        return EMPTY_PARAMETER
    type: Any = spec.type or declared.default_type(spec)
    if type not in declared.types:
        return finding(
            f"Parameter{number}Type",
            _("Parameter {0} ({1}) must be one of {2}, not {3}."),
            number,
            title,
            ", ".join(declared.types),
            type,
        )
    try:
        if type in TEMPLATES:
            return BoundParameter(type, template=rule.template(spec.value))
        if type == "Constant":
            return BoundParameter(type, constant=spec.value)
        if type == "Reference" and (guid := reference_literal(spec.value)) is not None:
            return BoundParameter(type, constant=guid)
        name = rule.bind(spec.value)
    except (UnknownName, InvalidTemplate) as exc:
        return Finding(str(exc), f"Parameter{number}Value")
    if type == "Reference" and name.kind not in (Kind.REFERENCE, Kind.GUID):
        return finding(f"Parameter{number}Value", _("{0} is not a reference."), name.text)
    return BoundParameter(type, name=name)


class ActionTypes(EnumCatalogue[ActionType]):
    """The catalogue of action types."""

    def add(self, name: str, item: ActionType) -> None:
        """Add a type. Raises ValueError for more parameters than a rule can store, and as every catalogue does."""
        if len(item.parameters) > 3:
            raise ValueError(f"the action type {name} declares more parameters than a rule can hold")
        super().add(name, item)


action_types = ActionTypes("action type", USER_BUSINESS_RULE_ACTION_TYPE)
