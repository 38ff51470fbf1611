"""SETVALUE: sets an attribute or custom property of the entity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from functools import partial
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext_noop as _

from domain.dataset.checks.authority import Authority, context_of
from domain.dataset.dataset import Dataset
from domain.dataset.lookups.allowed_values import find_allowed
from domain.dataset.lookups.name_binding import Name, UnknownName
from domain.dataset.records.record import UnitOfWork
from domain.events.types import custom_names
from domain.model import custom_properties
from domain.model.attributes import Attribute
from domain.model.custom_values import parse_value
from domain.model.naming import in_words
from domain.model.registry import repositories
from domain.model.template_syntax import format_value
from domain.model.values import parse_input
from foundation import errors
from foundation.kinds import Kind
from identity.context import system_context
from rules.actions.base import VALUE, ActionType, BoundAction, Choice, ParameterRule, action_types, reference_literal
from rules.read_access import may_see
from rules.scope import Finding, RuleScope, finding
from rules.specs import ActionSpec

if TYPE_CHECKING:
    from domain.model.repository import Repository
    from identity.context import CallContext
    from rules.firing import Firing

_NUMBERS = frozenset({Kind.INT, Kind.DECIMAL, Kind.AMOUNT, Kind.QUANTITY})
_MOMENTS = frozenset({Kind.DATE, Kind.DATETIME})


def can_copy(source: Name, target: Attribute) -> bool:
    """Whether values of the source fit the attribute (by kind; the commit checks lengths and ranges)."""
    if target.kind is Kind.REFERENCE:
        return source.kind in (Kind.GUID, Kind.REFERENCE) and _related(source.target, target.target)
    if target.kind is Kind.ENUM:
        return source.kind is Kind.STRING or (source.kind is Kind.ENUM and source.enum is target.enum)
    if target.kind in (Kind.STRING, Kind.MULTILANGUAGE):
        return source.kind is not Kind.BINARY
    return any(source.kind in group and target.kind in group for group in (_NUMBERS, _MOMENTS)) or (
        source.kind is target.kind
    )


def can_set(attribute: Attribute) -> bool:
    """Whether a rule may set the attribute."""
    return not (attribute.read_only or attribute.owner or attribute.name == "Id" or attribute.kind is Kind.BINARY)


def _related(source: str, target: str) -> bool:
    """Whether an entity of one repository may be one of the other; "" is any repository."""
    if not source or not target:
        return True
    one, other = repositories[source].model, repositories[target].model
    return issubclass(one, other) or issubclass(other, one)


def convert(target: Attribute, value: Any, language: str) -> Any:
    """Convert a canonical value of another kind, or a text, to the attribute's kind. Raises
    BadRequest(INVALID_LITERAL).
    """
    if value is None:
        return None
    match target.kind:
        case Kind.STRING if not isinstance(value, str):
            return format_value(value, language=language)
        case Kind.INT if isinstance(value, Decimal):
            return int(value.quantize(Decimal(1), ROUND_HALF_UP))
        case Kind.REFERENCE if isinstance(value, str):
            value = reference_literal(value) or value
        case Kind.MULTILANGUAGE if not isinstance(value, str | dict):
            value = format_value(value, language=language)
    # An empty text means null for kinds without an empty text.
    if value == "" and target.kind not in (Kind.STRING, Kind.MULTILANGUAGE):
        return None
    return parse_input(target, value, language=language)


@action_types.register
class SetValue(ActionType):
    """Parameters: the attribute and its value. Without a value the attribute becomes null."""

    name = "SETVALUE"
    number = 0
    description = _("Sets an attribute or a custom property.")
    phrase = _("set")
    parameters = (
        ParameterRule(_("attribute"), ("Attribute", "Reference")),
        ParameterRule(_("value"), VALUE, required=False, lead=_("to")),
    )

    def check(self, action: ActionSpec, rule: RuleScope) -> Iterator[Finding]:
        """Check that the attribute can be set, and accepts the value's kind."""
        yield from super().check(action, rule)
        written, given = action.parameters[0].value, action.parameters[1]
        try:
            target = rule.bind(written or "")
        except UnknownName as exc:
            if reference_literal(written or "") is not None:
                yield Finding(str(exc), "Parameter1Value")
            return
        if target.text.startswith("@"):
            yield from self._check_custom(action, rule)
            return
        attribute = target.attribute
        if attribute is None or target.hops:
            yield finding("Parameter1Value", _("{0} is not an attribute of the object itself."), target.text)
            return
        if not can_set(attribute):
            yield finding("Parameter1Value", _("{0} cannot be set."), attribute.name)
            return
        if given.value is None:
            if attribute.required:
                yield finding("Parameter2Value", _("{0} needs a value."), attribute.name)
        elif given.type in (None, "Constant") or reference_literal(given.value) is not None:
            try:
                convert(attribute, given.value, "en")
            except errors.BadRequest as exc:
                yield Finding(exc.message, "Parameter2Value")
        elif given.type in ("Attribute", "Reference"):
            try:
                source = rule.bind(given.value)
            except UnknownName:
                return
            if not can_copy(source, attribute):
                yield finding("Parameter2Value", _("The value of {0} does not fit {1}."), source.text, attribute.name)

    def choices(self, index: int, repository: Repository[Any], context: CallContext) -> Sequence[Choice] | None:
        """The attributes and custom properties that can be set."""
        if index:
            return None
        own = [(name, in_words(name)) for name, attribute in repository.attributes.items() if can_set(attribute)]
        return [*own, *((name, name) for name in custom_names(repository))]

    def values_of(self, index: int, action: ActionSpec) -> str:
        """The attribute that is set, for the value's input."""
        return (action.parameters[0].value or "").strip() if index == 1 else ""

    def _check_custom(self, action: ActionSpec, rule: RuleScope) -> Iterator[Finding]:
        given = action.parameters[1]
        if given.value is None or given.type not in (None, "Constant"):
            return
        try:
            code = (action.parameters[0].value or "").strip()[1:]
            _custom_form(Dataset(system_context()), rule.repository, code, given.value, rule.rule.author)
        except errors.PlatformError as exc:
            yield Finding(exc.message, "Parameter2Value")

    def run(self, action: BoundAction, firing: Firing) -> None:
        """Assign as the platform. An entity that is about to be deleted keeps its values."""
        record, dataset = firing.record, firing.dataset
        if record.is_deleted:
            return
        target, language = action.parameters[0].name, dataset.context.language
        assert target is not None
        attribute = target.attribute
        if attribute is None:
            self._set_custom(action, firing, target.custom)
            return
        # Localized for texts, canonical for values that are parsed again.
        readable = attribute.kind in (Kind.STRING, Kind.MULTILANGUAGE)
        value = action.parameters[1].value(firing, escape="text" if readable else "plain")
        value = convert(attribute, value, language)
        if attribute.kind is Kind.MULTILANGUAGE and value is not None:
            value = {**(record.values.get(attribute.name) or {}), **value}
        dataset.assign(record, attribute, value)

    def _set_custom(self, action: BoundAction, firing: Firing, code: str) -> None:
        """Set a custom property. From another custom property it also copies description and id of the value."""
        record, dataset, author = firing.record, firing.dataset, firing.rule.author
        source = action.parameters[1].name
        if source is not None and source.custom:
            holder = source.holder(record)
            copied = None if holder is None else holder.custom.get(source.custom)
            _, stored = _custom_form(dataset, record.repository, code, copied, author)
            if stored is not None and copied is not None:
                stored["ValueId"] = stored["ValueId"] or copied.get("ValueId")
        else:
            definition = custom_properties.by_code(record.repository, code)
            readable = definition is None or definition.kind is Kind.STRING
            text = action.text(1, firing, escape="text" if readable else "plain")
            _, stored = _custom_form(dataset, record.repository, code, text or None, author)
        dataset.assign_custom(record, code, stored)


def _custom_form(
    dataset: UnitOfWork, repository: Any, code: str, value: str | Mapping[str, Any] | None, author: Authority
) -> tuple[str, dict[str, Any] | None]:
    """As custom_values.parse_value, by code; a value that is an entity must be visible to the rule's author."""
    find = partial(find_allowed, dataset, visible=lambda found: may_see(context_of(author), found))
    given = dict(value) if isinstance(value, Mapping) else value
    api_name = custom_properties.PREFIX + custom_properties.escape_code(code)
    return parse_value(repository.name, api_name, given, dataset.context.language, find)
