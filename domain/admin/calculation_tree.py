"""The rows of a calculated attribute as a tree for its page: each row below the one that uses it (spec 10.1).

A row is below its first use; other uses refer to its number. Unused rows come last.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.forms import BoundField
from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _

from domain.admin.context import permitted
from domain.admin.drafts import is_removed
from domain.model.calculated_attributes import PARAMETERS, definitions, stored_row
from domain.model.custom_properties import definitions as custom_definitions
from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.query.base.bound import Rows, Source
from domain.query.bind.calculations import operators
from domain.query.bind.calculations.place import SYSTEM_NAMES
from domain.query.bind.calculations.terms import Entity, Term, Value
from domain.query.bind.calculations.tracing import RowTrace
from domain.syntax.calculations import ExpressionRow
from foundation.kinds import Kind

#: Types of parameters in words.
TYPES = {
    "Constant": _("constant"),
    "Attribute": _("attribute"),
    "Reference": _("the entity of"),
    "ChildList": _("the rows of"),
    "Expression": _("result of row"),
    "Input": _("input of row"),
    "Repository": _("all of repository"),
    "System": _("system value"),
}


@dataclass(frozen=True, slots=True)
class Part:
    """A parameter: its title, and the inputs of its type and value. missing: number of a row that does not exist."""

    title: str
    type: BoundField
    value: BoundField
    missing: int | None = None


@dataclass(slots=True)
class Node:
    """A row with its inferred type, value and problem. `below`: the rows that it is the first to use."""

    form: Any
    number: int | None
    parts: list[Part] = field(default_factory=list)
    type: str = ""
    on: str = ""
    value: str | None = None
    problem: str = ""
    is_start: bool = False
    is_used: bool = True
    below: list[Node] = field(default_factory=list)

    @property
    def hidden(self) -> list[BoundField]:
        """The hidden inputs of the formset."""
        return list(self.form.hidden_fields())

    @property
    def errors(self) -> list[str]:
        """Errors of the inputs, then the problem of the row."""
        found = [text for texts in self.form.errors.values() for text in texts]
        return [*found, self.problem] if self.problem else found

    @property
    def removal(self) -> str:
        """The label of the button that removes the row."""
        return gettext("Remove row %(number)s") % {"number": self.number or "?"}

    @property
    def anchor(self) -> str:
        """The id of the row on the page."""
        return f"row-{self.number}" if self.number is not None else f"row-of-{self.form.prefix}"


def row_of_form(form: Any) -> ExpressionRow | None:
    """The row in the form; None while it has no number or no operator."""
    number, operator = number_of(form["expression_no"].value()), form["operator"].value()
    if number is None or not operator:
        return None
    pairs = [(_value(form, f"parameter_{each}_type"), _value(form, f"parameter_{each}_value")) for each in PARAMETERS]
    return stored_row(number, operator, pairs)


def number_of(value: Any) -> int | None:
    """A whole number of an input; None for anything else."""
    text = str(value if value is not None else "").strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _value(form: Any, name: str) -> str | None:
    value = form[name].value()
    return None if value in (None, "") else str(value)


class Tree:
    """The nodes of the page's forms. start: number of the row that gives the value."""

    def __init__(
        self,
        request: HttpRequest,
        forms: Sequence[Any],
        start: int | None,
        repository: Repository[Any] | None,
        traces: Mapping[int, RowTrace],
        values: Mapping[int, str],
    ) -> None:
        self._request, self._repository = request, repository
        self._start, self._traces, self._values = start, traces, values
        self.removed = [form for form in forms if is_removed(form)]
        self._nodes = [self._node(form) for form in forms if not is_removed(form)]
        #: Number → the first row that has it.
        self._by_number: dict[int, Node] = {
            node.number: node for node in reversed(self._nodes) if node.number is not None
        }
        #: id → suggested values, for the inputs of parameters.
        self.suggestions: dict[str, list[str]] = {}
        for node in self._nodes:
            self._fill(node)
        self.roots = list(self._placed())

    def _node(self, form: Any) -> Node:
        number = number_of(form["expression_no"].value())
        node = Node(form, number, is_start=number is not None and number == self._start)
        known = self._traces.get(number) if number is not None else None
        if known is not None:
            node.type, node.problem, node.is_used = type_text(known.term), known.problem, known.is_used
            node.value = self._values.get(number or 0)
            if known.source is not None and known.source.repository is not self._repository:
                node.on = known.source.repository.name
        return node

    def _placed(self) -> Iterator[Node]:
        """The roots: the starting row, then rows that no other row uses, then remaining rows (cycles)."""
        placed: set[int] = set()

        def place(node: Node) -> None:
            placed.add(id(node))
            for used in self._uses(node):
                if id(used) not in placed:
                    node.below.append(used)
                    place(used)

        used_by_others = {id(used) for node in self._nodes for used in self._uses(node) if used is not node}
        ordered = sorted(self._nodes, key=lambda node: (not node.is_start, id(node) in used_by_others))
        for node in ordered:
            if id(node) not in placed:
                place(node)
                yield node

    def _uses(self, node: Node) -> Iterator[Node]:
        for part in node.parts:
            number = number_of(part.value.value()) if part.type.value() == "Expression" else None
            if number is not None and number in self._by_number:
                yield self._by_number[number]

    # --- inputs -------------------------------------------------------------------------------------------------------

    def _fill(self, node: Node) -> None:
        """Add the parameters of the operator to the node, and any other filled parameters."""
        operator = operators.get(node.form["operator"].value() or "")
        known = self._traces.get(node.number) if node.number is not None else None
        for index, number in enumerate(PARAMETERS):
            kind, value = node.form[f"parameter_{number}_type"], node.form[f"parameter_{number}_value"]
            least, most = operator.arity if operator is not None else (0, 0)
            if index >= most and not kind.value() and not value.value():
                continue
            title = gettext(operator.parameters[index]) if operator and index < most else gettext("too many")
            if least <= index < most:
                title = gettext("%(name)s (optional)") % {"name": title}
            kind.field.widget.attrs["aria-label"] = gettext("%(name)s: type") % {"name": title}
            value.field.widget.attrs["aria-label"] = title
            self._suggest(kind.value() or "", value, known.source if known else None)
            named = number_of(value.value()) if kind.value() == "Expression" else None
            node.parts.append(Part(title, kind, value, named if named not in self._by_number else None))

    def _suggest(self, kind: str, value: BoundField, source: Source | None) -> None:
        """Add a datalist with the names that the type of the parameter allows."""
        repository = source.repository if source is not None else self._repository
        prefix = (
            str(value.value() or "").strip().rpartition(".")[0]
            if kind in ("Attribute", "Reference", "ChildList")
            else ""
        )
        level = self._behind(repository, prefix)
        key = f"names-{kind}-{level.name if level else ''}-{prefix}"
        if key not in self.suggestions:
            found = list(self._names(kind, level))
            self.suggestions[key] = [f"{prefix}.{name}" for name in found] if prefix else found
        value.field.widget.attrs["list"] = key

    def _behind(self, repository: Repository[Any] | None, path: str) -> Repository[Any] | None:
        for name in path.split(".") if path else ():
            attribute = repository.attribute(name) if repository is not None else None
            repository = repositories[attribute.target] if attribute is not None and attribute.is_reference else None
        return repository if repository is None or permitted(self._request, "read", repository) else None

    def _names(self, kind: str, level: Repository[Any] | None) -> Iterator[str]:
        match kind:
            case "Expression" | "Input":
                yield from (str(number) for number in sorted(self._by_number))
            case "Repository":
                yield from sorted(each.name for each in repositories if permitted(self._request, "read", each))
            case "System":
                yield from SYSTEM_NAMES.split(", ")
            case "Reference" if level is not None:
                yield from sorted(level.references)
            case "ChildList" if level is not None:
                yield from level.collections
            case "Attribute" if level is not None:
                yield from _attributes(level)


def _attributes(level: Repository[Any]) -> Iterator[str]:
    for each in level.attributes.values():
        if each.kind is not Kind.BINARY and not each.secret:
            yield f"{each.name}Value" if each.is_measured else each.name
    yield from (f"@{known.code}" for known in custom_definitions(level.name).values())
    yield from (f"#{known.name}" for known in definitions(level).values())


def type_text(term: Term | None) -> str:
    """The inferred type of a row."""
    match term:
        case None:
            return ""
        case Value():
            return str(term.bound.type)
        case Entity():
            return gettext("entity of %(name)s") % {"name": term.source.repository.name}
        case Rows():
            return gettext("list of %(name)s") % {"name": term.variable.repository.name}
    return gettext("clause of SELECT")
