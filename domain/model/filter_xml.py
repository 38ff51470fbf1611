"""Filter XML (spec 10, 10.2) → the text of an OData $filter.

    <Filter>
      <Condition Attribute="ProductGroup.Code" Operator="Equals" Value="TOOLS"/>
      <Or>
        <Condition Attribute="Active" Operator="Equals" Value="true"/>
        <Condition Attribute="@size" Operator="In"><Value>S</Value><Value>M</Value></Condition>
      </Or>
    </Filter>

Conditions side by side must all hold; And, Or and Not are groups. An attribute is a path with dots, or `@` and the code
of a custom property; its value is written as in conditions of rules. `@parent` and `@parentId` as a value stand for the
value of the parent property and its id.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from xml.etree import ElementTree

from domain.model.attributes import Attribute
from domain.model.custom_properties import PREFIX, escape_code
from domain.model.naming import near
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation import errors
from foundation.kinds import Kind
from foundation.messages import TranslatableMessage as Message

MAX_LENGTH: Final = 32_000
#: As deep as an expression of $filter may be.
MAX_DEPTH: Final = 100
PARENT_VALUES: Final = ("@parent", "@parentId")

_COMPARISONS = {
    "Equals": "eq",
    "NotEquals": "ne",
    "GreaterThan": "gt",
    "GreaterThanOrEqual": "ge",
    "LessThan": "lt",
    "LessThanOrEqual": "le",
}
_OTHER_OPERATORS = ("In", "Like", "IsNull", "NotIsNull")
_GROUPS: dict[str, Callable[[list[str]], str]] = {
    "And": lambda parts: "(" + " and ".join(parts) + ")",
    "Or": lambda parts: "(" + " or ".join(parts) + ")",
    "Not": lambda parts: "not (" + " and ".join(parts) + ")",
}
#: Kinds whose literals have no quotes.
_BARE = {Kind.INT, Kind.DECIMAL, Kind.AMOUNT, Kind.QUANTITY, Kind.BOOL, Kind.DATE, Kind.DATETIME, Kind.GUID}


def filter_of_xml(repository: Repository[Any], text: str, target: str) -> str:
    """The $filter of a Filter XML; `target` is the attribute that holds it. Raises Refused with the reason."""
    if len(text) > MAX_LENGTH or "<!" in text:
        raise _refuse(target, Message("at most {0} characters, without a document type or comments", MAX_LENGTH))
    try:
        root = ElementTree.fromstring(text)  # noqa: S314  (there is no document type, so there are no entities)
    except ElementTree.ParseError as exc:
        line, column = exc.position
        raise _refuse(target, Message("line {0}, column {1} is no XML", line, column + 1)) from exc
    if root.tag != "Filter":
        raise _refuse(target, Message("the outermost element is {0}; it must be {1}", root.tag, "Filter"))
    return _group("And", _Reader(repository, target).parts(root))


def _refuse(target: str, message: Message) -> errors.Refused:
    return errors.Refused(errors.VALIDATION_FAILED, Message("Filter XML: {0}", message), target=target)


def _group(name: str, parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 and name != "Not" else _GROUPS[name](parts)


class _Reader:
    def __init__(self, repository: Repository[Any], target: str) -> None:
        self._repository, self._target = repository, target

    def parts(self, element: ElementTree.Element, depth: int = 0) -> list[str]:
        """The conditions inside a group. Raises Refused for an empty group, which is ambiguous: all or none."""
        if depth > MAX_DEPTH:
            raise _refuse(self._target, Message("Nested deeper than {0} levels.", MAX_DEPTH))
        found = [self._part(child, depth) for child in element]
        if not found:
            raise _refuse(self._target, Message("the element {0} has no condition", element.tag))
        return found

    def _part(self, element: ElementTree.Element, depth: int) -> str:
        if element.tag in _GROUPS:
            return _group(element.tag, self.parts(element, depth + 1))
        if element.tag != "Condition":
            known = ("Condition", *_GROUPS)
            raise _refuse(
                self._target, Message("the element {0} is unknown; there are {1}", element.tag, ", ".join(known))
            )
        return self._condition(element)

    def _condition(self, element: ElementTree.Element) -> str:
        unknown = set(element.keys()) - {"Attribute", "Operator", "Value"}
        if unknown:
            raise _refuse(
                self._target, Message("a condition has no {0}; it has Attribute, Operator, Value", sorted(unknown)[0])
            )
        written = element.get("Attribute", "")
        path, kind = self._path(written)
        operator = element.get("Operator", "Equals").replace("_", "")
        if operator in ("IsNull", "NotIsNull"):
            return f"{path} {'eq' if operator == 'IsNull' else 'ne'} null"
        if operator == "In":
            values = [self._literal(written, kind, child.text or "") for child in element if child.tag == "Value"]
            if not values:
                raise _refuse(self._target, Message("{0}: In needs elements called Value", written))
            return f"{path} in ({','.join(values)})"
        value = element.get("Value")
        if value is None:
            raise _refuse(self._target, Message("{0}: {1} needs a Value", written, operator))
        if operator == "Like":
            return _like(path, value)
        if operator not in _COMPARISONS:
            known = (*_COMPARISONS, *_OTHER_OPERATORS)
            raise _refuse(
                self._target, Message("{0}: {1} is no operator; there are {2}", written, operator, ", ".join(known))
            )
        return f"{path} {_COMPARISONS[operator]} {self._literal(written, kind, value)}"

    def _path(self, written: str) -> tuple[str, Kind]:
        """(path in a $filter, kind of the value)."""
        *references, last = written.split(".")
        current, steps = self._repository, []
        for name in references:
            attribute = self._attribute(current, name)
            if not attribute.is_reference:
                raise _refuse(self._target, Message("{0}: {1} is not a reference", written, name))
            steps.append(attribute.name)
            current = repositories[attribute.target]
        if last.startswith("@"):
            return "/".join([*steps, PREFIX + escape_code(last[1:])]), Kind.STRING
        attribute = self._attribute(current, last)
        return "/".join([*steps, attribute.name]), attribute.kind

    def _attribute(self, repository: Repository[Any], name: str) -> Attribute:
        found = repository.attribute(name)
        if found is None:
            hint = near(name, repository.attributes)
            raise _refuse(self._target, Message("{0} has no attribute '{1}'.{2}", repository.name, name, hint))
        return found

    def _literal(self, written: str, kind: Kind, value: str) -> str:
        if value in PARENT_VALUES:
            return value
        if kind not in _BARE:
            return quoted(value)
        text = value.strip()
        # A single literal: text without quotes could otherwise be any expression.
        if not text or not all(character.isalnum() or character in "+-.:_" for character in text):
            raise _refuse(self._target, Message("{0}: '{1}' is no value of type {2}", written, value, kind.value))
        return text


def quoted(value: str) -> str:
    """A text as a literal of $filter."""
    return "'" + value.replace("'", "''") + "'"


def _like(path: str, pattern: str) -> str:
    """A condition without case, with wildcards: `*` and `%` any text, `?` and `_` one character (spec 05, 5.2)."""
    translated = "".join(
        ".*" if character in "*%" else "." if character in "?_" else _literally(character)
        for character in pattern.lower()
    )
    return f"matchesPattern(tolower({path}),{quoted('^' + translated + '$')})"


def _literally(character: str) -> str:
    return character if character.isalnum() or character.isspace() else f"\\{character}"
