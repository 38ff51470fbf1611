"""The evaluation context of one row of a calculated attribute on one entity: reads the row's parameters with types."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NoReturn, Protocol

from domain.model.attributes import Child
from domain.model.custom_properties import PREFIX as CUSTOM_PREFIX
from domain.model.custom_properties import escape_code
from domain.model.naming import near
from domain.model.registry import repositories
from domain.query.base.bound import (
    BOOL,
    DATE,
    DATETIME,
    GUID,
    REAL,
    STRING,
    Bound,
    Call,
    Column,
    CustomText,
    FromCall,
    Input,
    RootValue,
    Rows,
    Sort,
    Source,
    ValueType,
    call,
    fixed,
    new_root,
    unchanged,
)
from domain.query.bind.calculations.terms import Entity, Selection, Term, Value
from domain.query.bind.expression_binder import ExpressionBinder
from domain.query.bind.sources import column, follow
from domain.query.bind.texts import as_scalar, reference_text
from domain.syntax.ast import Literal, LiteralKind
from domain.syntax.calculations import ExpressionRow, Parameter, constants
from foundation import errors
from foundation.messages import TranslatableMessage as Message


class Definition(Protocol):
    """The interface of a definition that rows use (calculation.Calculation)."""

    binder: ExpressionBinder

    @property
    def api_name(self) -> str: ...
    def row(self, number: int, this: Source, frames: tuple[tuple[int, Source], ...]) -> Term: ...
    def refuse(self, number: int | None, reason: str) -> NoReturn: ...
    def literal(self, literal: Literal) -> Bound: ...
    def member(self, number: int, source: Source, name: str) -> Value | None: ...
    def children(self, source: Source, child: Child) -> Rows: ...
    def in_order(self, rows: Rows) -> Rows: ...


#: SYS parameters: lower-case name → (the engine's value of the call, type)
_SYSTEM: dict[str, tuple[str, ValueType]] = {
    "login": ("user.login", STRING),
    "userid": ("user.id", GUID),
    "roleid": ("role.id", GUID),
    "rolename": ("role.id", STRING),
    "today": ("today", DATE),
    "now": ("now", DATETIME),
    "utcnow": ("now", DATETIME),
    "enterprisecompanyid": ("company.id", GUID),
    "enterprisecompanylocationid": ("location.id", GUID),
}
SYSTEM_NAMES = "Login, UserId, RoleName, RoleId, Today, Now, UtcNow, EnterpriseCompanyId, EnterpriseCompanyLocationId"
_REFUSED = frozenset({Sort.BINARY, Sort.SECRET, Sort.DURATION, Sort.TIME})


@dataclass(frozen=True, slots=True)
class Place:
    """A row and the entity on which it is evaluated. Operators read their parameters from it.

    this     the entity whose attributes, references and collections its parameters name
    frames   (row, entity that is its input) of the rows that are being evaluated, outermost first
    """

    calculation: Definition
    row: ExpressionRow
    this: Source
    frames: tuple[tuple[int, Source], ...]

    def inside(self, source: Source) -> Place:
        """The same row, with its parameters evaluated on another entity."""
        return replace(self, this=source)

    def refuse(self, reason: str) -> NoReturn:
        """Raise the error that names the row."""
        self.calculation.refuse(self.row.number, reason)

    def refuse_as(self, error: errors.BadRequest) -> NoReturn:
        """Raise the error that names the row, for an error of the query language, whose positions rows do not have."""
        self.refuse(error.parameters[-1] if error.code is errors.TYPE_MISMATCH else errors.reason(error))

    @property
    def count(self) -> int:
        """The number of parameters."""
        return len(self.row.parameters)

    # --- parameters -----------------------------------------------------------------------------------------------

    def term(self, index: int) -> Term:
        """A parameter of any kind."""
        parameter = self.row.parameters[index]
        term: Term
        match parameter.type:
            case "Constant":
                term = Value(self._literal(parameter))
            case "Attribute":
                term = self.named(parameter.value)
            case "Reference":
                term = Entity(self._reference(parameter.value))
            case "ChildList":
                term = self._children(parameter.value)
            case "Expression":
                term = self.calculation.row(self._number(parameter), self.this, self.frames)
            case "Input":
                term = Entity(self._input(self._number(parameter)))
            case "Repository":
                term = self._repository(parameter.value)
            case "System":
                term = Value(self._system(parameter.value))
            case _:
                self.refuse(Message("{0} is no type of a parameter", parameter.type))
        return term

    def value(self, index: int) -> Value:
        """A parameter that is a value; for an entity its guid."""
        term = self.term(index)
        if isinstance(term, Entity):
            return Value(term.key)
        if not isinstance(term, Value):
            self.mismatch(index, Message("a value"))
        if term.bound.type.sort in _REFUSED:
            self.refuse(Message("values of type {0} cannot be calculated with", term.bound.type))
        return term

    def rows(self, index: int) -> Rows:
        """A parameter that is a list."""
        term = self.term(index)
        if not isinstance(term, Rows):
            self.mismatch(index, Message("a list"))
        return term

    def entity(self, index: int) -> Entity:
        """A parameter that is an entity."""
        term = self.term(index)
        if isinstance(term, Value) and isinstance(term.bound, Column) and term.bound.attribute.is_reference:
            return Entity(follow(self.calculation.binder, term.bound.source, term.bound.attribute))
        if not isinstance(term, Entity):
            self.mismatch(index, Message("an entity"))
        return term

    def selection(self, index: int) -> Selection:
        """A parameter that is a clause of SELECT."""
        term = self.term(index)
        if not isinstance(term, Selection):
            self.mismatch(index, Message("a clause: WHERE, ORDERBY or TOP"))
        return term

    def literal(self, index: int) -> Literal:
        """A parameter that is one constant."""
        parameter = self.row.parameters[index]
        if parameter.type != "Constant" or len(listed := constants(parameter.value)) != 1:
            self.mismatch(index, Message("a constant"))
        return listed[0]

    def name(self, index: int) -> str:
        """A parameter that is a constant name, such as ASC or Days."""
        value = self.literal(index).value
        return value.strip() if isinstance(value, str) else ""

    def integer(self, index: int, low: int, high: int) -> int:
        """A constant whole number within limits."""
        literal = self.literal(index)
        if literal.kind is not LiteralKind.INTEGER or not low <= int(str(literal.value)) <= high:
            self.mismatch(index, Message("a whole number from {0} to {1}", low, high))
        return int(str(literal.value))

    # --- values of one type ---------------------------------------------------------------------------------------

    def number(self, index: int) -> Value:
        """A number; the text of a custom property is converted."""
        value = self.value(index)
        bound = value.bound
        if bound.type.sort is Sort.NULL:
            return replace(value, bound=fixed(None, ValueType(Sort.NUMBER, 0, True)))
        if isinstance(bound, CustomText):
            return replace(value, bound=Call(REAL, True, "text_to_number", (replace(bound, type=STRING),)))
        if bound.type.sort is not Sort.NUMBER:
            self.mismatch(index, Message("a number"), bound.type)
        return value

    def whole(self, index: int) -> Value:
        """A whole number."""
        value = self.number(index)
        if not value.bound.type.integer:
            self.mismatch(index, Message("a whole number"), value.bound.type)
        return value

    def text(self, index: int) -> Value:
        """A text; any other value as its text."""
        value = self.value(index)
        term = self.term(index) if value.bound.type.sort in (Sort.GUID, Sort.REFERENCE) else None
        if isinstance(term, Entity) and term.rows is None:
            key = replace(term.key, type=ValueType(Sort.REFERENCE, target=term.source.repository.name))
            return Value(as_scalar(reference_text(self.calculation.binder, key)))
        return replace(value, bound=as_text(self.calculation.binder, value.bound))

    def condition(self, index: int) -> Value:
        """A condition: true, false or null."""
        value = self.value(index)
        if value.bound.type.sort is Sort.NULL:
            return replace(value, bound=fixed(None, BOOL))
        if value.bound.type.sort is not Sort.BOOL:
            self.mismatch(index, Message("a condition"), value.bound.type)
        return value

    def moment(self, index: int) -> Value:
        """A date or date-time; a constant or the text of a custom property is converted to a date."""
        value = self.value(index)
        bound = value.bound
        if bound.type.sort is Sort.NULL:
            return replace(value, bound=fixed(None, DATE))
        if isinstance(bound, CustomText):
            return replace(value, bound=Call(DATE, True, "text_to_date", (replace(bound, type=STRING),)))
        if bound.type.sort not in (Sort.DATE, Sort.DATETIME):
            self.mismatch(index, Message("a date"), bound.type)
        return value

    def mismatch(self, index: int, wanted: str, found: object = None) -> NoReturn:
        """Raise the error for a parameter of the wrong kind or type."""
        written = str(self.row.parameters[index])
        if found is None:
            self.refuse(Message("parameter {0} must be: {1}; {2} is not", index + 1, wanted, written))
        self.refuse(Message("parameter {0} must be: {1}; {2} is {3}", index + 1, wanted, written, found))

    # --- names ----------------------------------------------------------------------------------------------------

    def _number(self, parameter: Parameter) -> int:
        text = parameter.value.strip()
        if not text.isascii() or not text.isdigit() or len(text) > 9:
            self.refuse(Message("{0} needs the number of a row", str(parameter)))
        return int(text)

    def _literal(self, parameter: Parameter) -> Bound:
        listed = constants(parameter.value)
        if len(listed) > 1:
            self.refuse(Message("a list of constants can stand behind IN only"))
        return self.calculation.literal(listed[0])

    def constant_list(self, index: int) -> list[Bound] | None:
        """The constants of a parameter; None if it is no constant."""
        parameter = self.row.parameters[index]
        if parameter.type != "Constant":
            return None
        return [self.calculation.literal(each) for each in constants(parameter.value)]

    def _walk(self, path: str) -> tuple[Source, str]:
        """Follow all but the last name of a path with dots; returns the entity and the last name."""
        source, names = self.this, path.strip().split(".")
        if path.startswith("@"):
            return source, CUSTOM_PREFIX + escape_code(path[1:])
        for name in names[:-1]:
            source = self._follow(source, name)
        last = names[-1]
        return source, CUSTOM_PREFIX + escape_code(last[1:]) if last.startswith("@") else last.removeprefix("#")

    def _follow(self, source: Source, name: str) -> Source:
        attribute = source.repository.attribute(name)
        if attribute is None or not attribute.is_reference:
            self.refuse(
                Message(
                    "{0} has no reference {1}.{2}",
                    source.repository.name,
                    name,
                    near(name, source.repository.references),
                )
            )
        return follow(self.calculation.binder, source, attribute)

    def named(self, path: str) -> Value:
        """An attribute, a custom property or a calculated attribute by its path."""
        source, name = self._walk(path)
        found = self.calculation.member(self.row.number, source, name)
        if found is None:
            repository = source.repository
            self.refuse(
                Message("{0} has no attribute {1}.{2}", repository.name, name, near(name, repository.attributes))
            )
        return found

    def _reference(self, path: str) -> Source:
        source = self.this
        for name in path.strip().split("."):
            source = self._follow(source, name)
        return source

    def _children(self, path: str) -> Rows:
        source, name = self._walk(path)
        child = source.repository.collection(name)
        if child is None:
            repository = source.repository
            self.refuse(
                Message(
                    "{0} has no child collection {1}.{2}", repository.name, name, near(name, repository.collections)
                )
            )
        return self.calculation.children(source, child)

    def _input(self, number: int) -> Source:
        found = next((source for row, source in reversed(self.frames) if row == number), None)
        if found is None:
            self.refuse(Message("INPUT:{0}: this row is not evaluated inside row {0}", number))
        return found

    def _repository(self, name: str) -> Rows:
        repository = repositories.for_entity_name(name.strip())
        if repository is None:
            known = [each.name for each in repositories]
            self.refuse(Message("There is no repository '{0}'.{1}", name, near(name, known)))
        variable = new_root(repository, guarded=self.calculation.binder.access.restricts(repository))
        return self.calculation.in_order(Rows(variable))

    def _system(self, name: str) -> Bound:
        known = _SYSTEM.get(name.strip().lower())
        if known is None:
            self.refuse(Message("SYS:{0} is none of {1}", name, SYSTEM_NAMES))
        if name.strip().lower() == "rolename":
            return self._role_name()
        value, value_type = known
        nullable = value_type in (STRING, GUID)
        return Input(value_type, nullable, FromCall(value), unchanged)

    @staticmethod
    def _role_name() -> Bound:
        """The name of the caller's current role, read regardless of row policies."""
        roles = new_root(repositories["Systems.Security.Roles"], nullable=True)
        key = Input(GUID, True, FromCall("role.id"), unchanged)
        name = as_scalar(column(roles, roles.repository.attributes["Name"]))
        return RootValue(name.type, True, roles, key, name)


def as_text(binder: ExpressionBinder, value: Bound) -> Bound:
    """A value as text, as displayed without a format; null stays null."""
    if value.type.sort is Sort.NULL:
        return fixed(None, STRING)
    if value.type.sort in (Sort.STRING, Sort.TEXTS, Sort.CUSTOM):
        return as_scalar(value)
    value = reference_text(binder, value)
    if value.type.sort in (Sort.STRING, Sort.TEXTS):
        return as_scalar(value)
    return call("to_text", STRING, value)
