"""The parameters of a managed script: `{name: {type, direction, required, default, description, …JSON Schema}}`.

Arguments and outputs are checked in the platform's own process, where nothing can stop a long check. So patterns are
not supported, nor keywords that visit the same values repeatedly (`unevaluated…`), nor references, which would fetch
documents; uniqueness is checked in one pass; and a value with too many parts for its schema is refused unchecked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any, Final

import orjson
from jsonschema import Draft202012Validator, ValidationError
from jsonschema.exceptions import SchemaError
from jsonschema.validators import extend

from domain.model.naming import near
from foundation.messages import TranslatableMessage as Message
from foundation.messages import json_text, of_json, quoted
from scripts.json_values import as_doubles, comparable, has_more_parts, is_integer, is_multiple

INPUT: Final = "Input"
OUTPUT: Final = "Output"
INPUT_OUTPUT: Final = "InputOutput"
DIRECTIONS: Final = (INPUT, OUTPUT, INPUT_OUTPUT)
_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*\Z")
_REFUSED: Final = frozenset(
    {
        "pattern", "patternProperties", "unevaluatedItems", "unevaluatedProperties",
        "$ref", "$dynamicRef", "$id", "$anchor", "$dynamicAnchor", "$schema",
    }
)  # fmt: skip
_MAX_DEPTH: Final = 20
#: Limit of (parts of a value × parts of its schema); a million take a few seconds at worst.
MAX_CHECKS: Final = 1_000_000
#: Maximum number of problems in one error.
MAX_PROBLEMS: Final = 20
#: Maximum length of a value or of the library's message in a problem.
_MAX_SHOWN: Final = 300


class InvalidSchema(ValueError):
    """An invalid schema; the message has position and reason. line, column: position in text that is no JSON."""

    def __init__(self, text: str, line: int | None = None, column: int | None = None) -> None:
        super().__init__(text)
        self.line = line
        self.column = column


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem of one parameter."""

    parameter: str
    text: str


@dataclass(frozen=True, slots=True)
class ScriptParameter:
    """One parameter. has_default: whether the schema has `default`, which may be null."""

    name: str
    direction: str
    required: bool
    has_default: bool
    default: Any
    description: str
    schema: Mapping[str, Any]
    schema_parts: int

    @property
    def is_input(self) -> bool:
        return self.direction != OUTPUT

    @property
    def is_output(self) -> bool:
        return self.direction != INPUT

    def bound(self, arguments: Mapping[str, Any]) -> Any:
        """The argument, else the default. Null counts as omitted for an optional parameter whose type has no null."""
        value = arguments.get(self.name, self.default)
        is_absent = value is None and not self.required and "null" not in self.schema.get("type", "null")
        return self.default if is_absent else value

    def problems(self, value: Any) -> Iterator[Problem]:
        """Problems of a value; null counts as omitted for optional parameters."""
        if value is None and not self.required:
            return
        if has_more_parts(value, MAX_CHECKS // self.schema_parts):
            yield Problem(self.name, Message("{0}: too many values to be checked against its schema", self.name))
            return
        try:
            as_doubles(value)
            for error in _Validator(self.schema).iter_errors(value):
                place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.absolute_path)
                yield Problem(self.name, Message("{0}: {1}", self.name + place, _reason(error)))
        except OverflowError:
            yield Problem(self.name, Message("{0}: a number is too large for a script", self.name))
        except RecursionError:
            yield Problem(self.name, Message("{0}: nested too deeply", self.name))


@dataclass(frozen=True, slots=True)
class ParameterSchema:
    """All parameters of a script, in their order."""

    parameters: Mapping[str, ScriptParameter]

    def bind(self, arguments: Mapping[str, Any]) -> tuple[dict[str, Any], list[Problem]]:
        """Every declared parameter with its value (default null), and the first MAX_PROBLEMS problems."""
        values = {
            parameter.name: parameter.bound(arguments) if parameter.is_input else None
            for parameter in self.parameters.values()
        }
        return values, list(islice(self._problems(arguments), MAX_PROBLEMS))

    def _problems(self, arguments: Mapping[str, Any]) -> Iterator[Problem]:
        for name in arguments:
            parameter = self.parameters.get(name)
            if parameter is None:
                hint = near(name, list(self.parameters))
                yield Problem(name, Message("'{0}' is not a parameter{1}{2}", name, hint and ".", hint))
            elif not parameter.is_input:
                yield Problem(name, Message("'{0}' is an output", name))
        for parameter in self.parameters.values():
            if not parameter.is_input:
                continue
            if parameter.name in arguments:
                yield from parameter.problems(arguments[parameter.name])
            elif parameter.required and not parameter.has_default:
                yield Problem(parameter.name, Message("'{0}' is required", parameter.name))

    def outputs(self, left: Any) -> tuple[dict[str, Any], list[Problem]]:
        """The outputs among the final `parameters` of the script, and the first MAX_PROBLEMS problems."""
        given = left if isinstance(left, dict) else {}
        declared = [parameter for parameter in self.parameters.values() if parameter.is_output]
        result = {parameter.name: given.get(parameter.name) for parameter in declared}
        problems = (problem for parameter in declared for problem in parameter.problems(result[parameter.name]))
        return result, list(islice(problems, MAX_PROBLEMS))


def _reason(error: ValidationError | SchemaError) -> str:
    """The problem's message: translated for most keywords, for others their name. The library's are English."""
    value, expected = json_text(error.instance), json_text(error.validator_value)
    match error.validator:
        case "type":
            types = error.validator_value if isinstance(error.validator_value, list) else [error.validator_value]
            return Message("{0} is not of type {1}", value, ", ".join(map(str, types)))
        case "enum":
            return Message("{0} is not one of {1}", value, expected)
        case "const":
            return Message("{0} was expected", expected)
        case "minimum":
            return Message("{0} is less than the minimum of {1}", value, expected)
        case "maximum":
            return Message("{0} is greater than the maximum of {1}", value, expected)
        case "exclusiveMinimum":
            return Message("{0} is less than or equal to the minimum of {1}", value, expected)
        case "exclusiveMaximum":
            return Message("{0} is greater than or equal to the maximum of {1}", value, expected)
        case "multipleOf":
            return Message("{0} is not a multiple of {1}", value, expected)
        case "pattern":
            return Message("{0} does not match {1}", value, expected)
        case "minLength" | "minItems":
            return Message("{0} is too short", value)
        case "maxLength" | "maxItems":
            return Message("{0} is too long", value)
        case "uniqueItems":
            return Message("the items are not unique")
        case "required":
            return Message("{0} is a required property", error.message)
        case "additionalProperties":
            known = error.schema.get("properties", {}) if isinstance(error.schema, dict) else {}
            unknown = ", ".join(name for name in error.instance if name not in known)[:_MAX_SHOWN]
            return Message("additional properties are not allowed: {0}", unknown)
        case "anyOf":
            return Message("{0} is not valid under any of the given schemas", value)
    return Message("{0} does not fit {1} of its schema", value, error.validator)


def _unique_items(validator: Any, is_asked: Any, items: Any, schema: Any) -> Iterator[ValidationError]:
    """Replaces the library's check, which compares each pair of objects."""
    if is_asked and validator.is_type(items, "array") and len({comparable(item) for item in items}) < len(items):
        yield ValidationError("the items are not unique")


def _multiple_of(validator: Any, divisor: Any, number: Any, schema: Any) -> Iterator[ValidationError]:
    """Replaces the library's check, whose division fails for decimals with floats and for huge numbers."""
    if validator.is_type(number, "number") and not is_multiple(number, divisor):
        yield ValidationError("")


def _required(validator: Any, names: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
    """Replaces the library's message, which quotes the name as Python does."""
    if validator.is_type(value, "object"):
        for name in names:
            if name not in value:
                yield ValidationError(name)


_Validator = extend(
    Draft202012Validator,
    {"uniqueItems": _unique_items, "multipleOf": _multiple_of, "required": _required},
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine("integer", lambda _, value: is_integer(value)),
)
EMPTY: Final = ParameterSchema({})


@lru_cache(maxsize=256)
def read_schema(text: str | None) -> ParameterSchema:
    """Parse the schema; empty text is a schema without parameters. Raises InvalidSchema."""
    if text is None or not text.strip():
        return EMPTY
    try:
        given = orjson.loads(text)
    except orjson.JSONDecodeError as exc:
        raise InvalidSchema(Message("not valid JSON: {0}", of_json(exc)), exc.lineno, exc.colno) from exc
    if not isinstance(given, dict):
        raise InvalidSchema(Message("an object of parameters is expected"))
    return ParameterSchema({name: _parameter(name, spec) for name, spec in given.items()})


def _parameter(name: str, spec: Any) -> ScriptParameter:
    if not _NAME.match(name):
        raise InvalidSchema(Message("'{0}' is not a name that a script can use", name))
    if not isinstance(spec, dict):
        raise InvalidSchema(Message("{0}: an object with type, direction … is expected", name))
    direction = _direction(name, spec.get("direction", INPUT))
    # A list is JSON Schema's own `required`, with the members of an object.
    required = spec.get("required", False)
    if not isinstance(required, bool | list):
        raise InvalidSchema(Message("{0}: required is true or false", name))
    own = ("direction", "default", "description") if isinstance(required, list) else (
        "direction", "default", "description", "required",
    )  # fmt: skip
    schema = {key: value for key, value in spec.items() if key not in own}
    parts = _check_keywords(name, schema, 0)
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as exc:
        place = ".".join(str(part) for part in exc.absolute_path)
        raise InvalidSchema(Message("{0}: {1}", f"{name}{'.' + place if place else ''}", _reason(exc))) from exc
    parameter = ScriptParameter(
        name,
        direction,
        required is True,
        "default" in spec,
        spec.get("default"),
        str(spec.get("description") or ""),
        schema,
        parts,
    )
    if parameter.has_default and parameter.default is not None:
        wrong = next(parameter.problems(parameter.default), None)
        if wrong is not None:
            raise InvalidSchema(Message("the default does not fit: {0}", wrong.text))
    return parameter


def _direction(name: str, given: Any) -> str:
    result = next((known for known in DIRECTIONS if known.lower() == str(given).lower()), None)
    if result is None:
        raise InvalidSchema(
            Message("{0}: direction is one of {1}, not {2}", name, ", ".join(DIRECTIONS), quoted(given))
        )
    return result


def _check_keywords(where: str, schema: Any, depth: int) -> int:
    """Number of schemas and lists in the schema, itself included. Raises InvalidSchema."""
    if depth > _MAX_DEPTH:
        raise InvalidSchema(Message("{0}: nested too deeply", where))
    if isinstance(schema, list):
        return 1 + sum(_check_keywords(where, item, depth + 1) for item in schema)
    if not isinstance(schema, dict):
        return 1
    parts = 1
    for key, value in schema.items():
        if key in _REFUSED:
            raise InvalidSchema(Message("{0}: {1} is not supported", where, key))
        if key in ("properties", "$defs", "dependentSchemas") and isinstance(value, dict):
            for name, inner in value.items():
                parts += _check_keywords(f"{where}.{name}", inner, depth + 1)
        elif key == "enum" and isinstance(value, list):
            parts += len(value)
        elif key not in ("const", "default", "examples"):
            parts += _check_keywords(where, value, depth + 1)
    return parts
