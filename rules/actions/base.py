"""What an action type is, and the catalogue of them (spec 05, 5.3).

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
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _

from domain.dataset.lookups.names import Name, UnknownName
from domain.dataset.templates.template import Escape, InvalidTemplate, Template
from domain.model.interpolation import format_value
from foundation.guids import is_guid, parse_guid
from foundation.kinds import Kind
from rules.scope import Finding, RuleScope, found
from rules.specs import ActionSpec, ParameterSpec

if TYPE_CHECKING:
    from rules.firing import Firing

ParameterType = Literal["Constant", "Attribute", "Reference", "ChildList", "FormattedString", "Interpolate"]

_KEY = re.compile(r"^\w+\((?P<guid>[^()]*)\)$")

#: FormattedString and Interpolate are both templates of spec 05, 5.4.
TEMPLATES: tuple[ParameterType, ...] = ("FormattedString", "Interpolate")
MESSAGE: tuple[ParameterType, ...] = ("Constant", *TEMPLATES)
VALUE: tuple[ParameterType, ...] = ("Constant", "Attribute", "Reference", *TEMPLATES)


@dataclass(frozen=True, slots=True)
class ParameterRule:
    """What an action type takes as one of its parameters. The first of `types` is meant where the rule names none."""

    title: str
    types: tuple[ParameterType, ...]
    required: bool = True


@dataclass(frozen=True, slots=True)
class BoundParameter:
    """A parameter whose names are known: a constant text, a name, or a template."""

    type: ParameterType
    constant: str | None = None
    name: Name | None = None
    template: Template | None = None

    @property
    def kind(self) -> Kind:
        """Of what `value` gives."""
        return self.name.kind if self.name is not None else Kind.STRING

    def value(self, firing: Firing, *, escape: Escape = "text") -> Any:
        """The canonical value of an attribute; the text of a constant or template."""
        if self.name is not None:
            return self.name.read(firing.record, firing.events)
        if self.template is not None:
            return firing.render(self.template, escape)
        return self.constant

    def text(self, firing: Firing, *, escape: Escape = "text") -> str:
        """The value as text; null as the empty one."""
        value = self.value(firing, escape=escape)
        return value if isinstance(value, str) else format_value(value, language=firing.dataset.context.language)


NOTHING = BoundParameter("Constant")


@dataclass(frozen=True, slots=True)
class BoundAction:
    """An action of a compiled rule. `parameters` are as many as its type declares."""

    spec: ActionSpec
    type: ActionType
    parameters: tuple[BoundParameter, ...]

    def text(self, index: int, firing: Firing, *, escape: Escape = "text") -> str:
        """The parameter's value as text."""
        return self.parameters[index].text(firing, escape=escape)


class ActionType:
    """Base of every action type. `name` is public and stored: never renamed, never reused."""

    name: ClassVar[str] = ""
    description: ClassVar[str] = ""
    parameters: ClassVar[tuple[ParameterRule, ...]] = ()
    #: False: rules can hold it, nobody is offered it.
    is_available: ClassVar[bool] = True

    def check(self, action: ActionSpec, rule: RuleScope) -> Iterator[Finding]:
        """What is wrong with the action, when its rule is saved; asked for each of the rule's events.

        Extend with `yield from super().check(action, rule)`: it checks types, names and templates.
        """
        for index, spec in enumerate(action.parameters):
            if index >= len(self.parameters):
                if spec.value:
                    yield found(f"Parameter{index + 1}Value", _("{0} has no parameter {1}."), self.name, index + 1)
                continue
            bound = bind_parameter(self.parameters[index], spec, rule, index)
            if isinstance(bound, Finding):
                yield bound

    def bind(self, action: ActionSpec, rule: RuleScope) -> BoundAction:
        """The action with its names bound. Raises BrokenAction where `check` would find something."""
        bound = []
        for index, declared in enumerate(self.parameters):
            parameter = bind_parameter(declared, action.parameters[index], rule, index)
            if isinstance(parameter, Finding):
                raise BrokenAction(parameter.message)
            bound.append(parameter)
        return BoundAction(action, self, tuple(bound))

    def run(self, action: BoundAction, firing: Firing) -> None:
        """Act: change the dataset, or refuse. Nothing leaves the process before the commit."""
        raise NotImplementedError


class BrokenAction(ValueError):
    """The action can no longer be done; the text says why."""


def reference_literal(text: str) -> str | None:
    """The guid that a text is, alone or as OData shows references: Crm_Sales_Customers(0189…)."""
    literal = _KEY.sub(r"\g<guid>", text.strip())
    return parse_guid(literal) if is_guid(literal) else None


def bind_parameter(
    declared: ParameterRule, spec: ParameterSpec, rule: RuleScope, index: int
) -> BoundParameter | Finding:
    """The parameter ready for use, or what is wrong with it."""
    number = index + 1
    title = gettext(declared.title)
    if spec.value is None or spec.value.strip() == "":
        if declared.required:
            return found(f"Parameter{number}Value", _("Parameter {0} ({1}) is missing."), number, title)
        return NOTHING
    type: Any = spec.type or declared.types[0]
    if type not in declared.types:
        return found(
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
        return found(f"Parameter{number}Value", _("{0} is not a reference."), name.text)
    return BoundParameter(type, name=name)


class ActionTypes:
    """The catalogue, in order of registration."""

    def __init__(self) -> None:
        self._by_name: dict[str, ActionType] = {}

    def register(self, declaration: type[ActionType]) -> type[ActionType]:
        """Class decorator. A missing or taken name fails at start-up."""
        if not declaration.name or declaration.name in self._by_name:
            raise ValueError(f"action type {declaration.__name__} has no name, or one that is taken")
        if len(declaration.parameters) > 3:
            raise ValueError(f"action type {declaration.name} declares more parameters than a rule can hold")
        self._by_name[declaration.name] = declaration()
        return declaration

    def get(self, name: str) -> ActionType | None:
        """The type with this name."""
        return self._by_name.get(name)

    def all(self) -> list[ActionType]:
        """Every type, in order of registration."""
        return list(self._by_name.values())


action_types = ActionTypes()
