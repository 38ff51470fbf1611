"""Writes a typed Python client: a package of pydantic models and of entity sets with their operations.

The source is the CSDL tree of `$metadata`, so the client has what the instance publishes, custom properties included.
"""

from __future__ import annotations

import keyword
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from domain.odata.metadata.csdl import CONTAINER, SCHEMA, csdl_tree
from domain.odata.metadata.csdl_xml import Node

_RUNTIME = Path(__file__).with_name("runtime.py")
_OWN = f"{SCHEMA}."
#: Edm types → Python's; others are JSON values.
_TYPES = {
    "Edm.Binary": "Binary",
    "Edm.Boolean": "bool",
    "Edm.Date": "date",
    "Edm.DateTimeOffset": "datetime",
    "Edm.Decimal": "Decimal",
    "Edm.Double": "float",
    "Edm.Guid": "UUID",
    "Edm.Int16": "int",
    "Edm.Int32": "int",
    "Edm.Int64": "int",
    "Edm.String": "str",
}
#: Complex types that the runtime declares.
_IN_RUNTIME = {"MultilanguageString": "MultilanguageString", "OpenObject": "Json"}

_MODEL_HEAD = '''"""Types of the instance, written by `manage.py generate_client`."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import ClassVar
from uuid import UUID

from .runtime import Binary, Complex, Entity, Json, MultilanguageString

__all__ = ["Binary", "Decimal", "Json", "MultilanguageString", "UUID", "date", "datetime"]
'''
_SERVICE_HEAD = '''"""Entity sets and operations of the instance, written by `manage.py generate_client`."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from functools import cached_property
from typing import Any
from uuid import UUID

from pydantic import TypeAdapter

from . import model
from .runtime import Binary, Connection, EntitySet, Json, Key, MultilanguageString

__all__ = ["UUID", "Binary", "Decimal", "Json", "MultilanguageString", "Service", "date", "datetime"]
'''


def write_python_client(directory: Path) -> list[Path]:
    """Write the package to the directory, which is created; returns its files. Raises OSError."""
    schema = csdl_tree("4.01", custom=True)[SCHEMA]
    files = {
        "__init__.py": _package(),
        "runtime.py": _RUNTIME.read_text(),
        "model.py": _MODEL_HEAD + "".join(_model(schema)),
        "service.py": _SERVICE_HEAD + "".join(_service(schema)),
        "py.typed": "",
    }
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (directory / name).write_text(text)
    return [directory / name for name in files]


def _package() -> str:
    names = ["ApiError", "ClientCredentials", "literal"]
    imports = f"from . import model\nfrom .runtime import {', '.join(names)}\nfrom .service import Service\n"
    exported = ", ".join(f'"{name}"' for name in [*names, "Service", "model"])
    return f'"""A typed client of the instance: see Service."""\n\n{imports}\n__all__ = [{exported}]\n'


# --- model --------------------------------------------------------------------------------------------------------


def _model(schema: Node) -> Iterator[str]:
    for name, node in _kinds(schema, "EnumType"):
        members = {member: value for member, value in node.items() if not member.startswith(("$", "@"))}
        # A value of a flags enum is a string: member names joined by commas.
        yield f"\n\nclass {name}(StrEnum):\n"
        yield "".join(f'    {_identifier(member)} = "{member}"\n' for member in members) or "    pass\n"
    for name, node in _kinds(schema, "ComplexType"):
        if name not in _IN_RUNTIME:
            yield f"\n\nclass {_class_name(name)}(Complex):\n"
            yield "".join(_members(schema, node)) or "    pass\n"
    sets = {node["$Type"]: set_name for set_name, node in _sets(schema)}
    for name, node in _base_types_first(schema):
        base = str(node.get("$BaseType", "Entity")).removeprefix(_OWN)
        yield f"\n\nclass {name}({base}):\n"
        yield f'    entity_set: ClassVar[str] = "{sets.get(_OWN + name, "")}"\n\n'
        yield "".join(_members(schema, node))


def _members(schema: Node, node: Node) -> Iterator[str]:
    for name, member in node.items():
        if not name.startswith(("$", "@")):
            yield f"    {name}: {_annotation(schema, member)} | None = None\n"


def _annotation(schema: Node, member: Node, prefix: str = "") -> str:
    """The Python type of a property, parameter or result. prefix: module of the model classes with a dot, or ""."""
    name = str(member.get("$Type", "Edm.String"))
    if name.startswith(_OWN):
        own = name.removeprefix(_OWN)
        is_flags = schema.get(own, {}).get("$IsFlags") if isinstance(schema.get(own), dict) else False
        annotation = "str" if is_flags else _IN_RUNTIME.get(own) or prefix + _class_name(own)
    else:
        annotation = _TYPES.get(name, "Json")
    return f"list[{annotation}]" if member.get("$Collection") else annotation


# --- service ------------------------------------------------------------------------------------------------------


def _service(schema: Node) -> Iterator[str]:
    bound: dict[str, list[tuple[str, Node]]] = {}
    unbound: list[tuple[str, Node]] = []
    for name, overloads in schema.items():
        for overload in overloads if isinstance(overloads, list) else ():
            if overload.get("$IsBound"):
                bound.setdefault(overload["$Parameter"][0]["$Type"].removeprefix(_OWN), []).append((name, overload))
            else:
                unbound.append((name, overload))
    for set_name, node in _sets(schema):
        entity_type = node["$Type"].removeprefix(_OWN)
        operations = [each for each_type in _lineage(schema, entity_type) for each in bound.get(each_type, ())]
        yield f"\n\nclass {set_name}(EntitySet[model.{entity_type}]):\n"
        yield f'    """The set {set_name}."""\n'
        for name, operation in operations:
            yield _method(schema, name, operation, operation["$Parameter"][1:], is_bound=True)
    yield '\n\nclass Service(Connection):\n    """The Domain API of an instance, with its entity sets."""\n'
    for set_name, node in _sets(schema):
        entity_type = node["$Type"].removeprefix(_OWN)
        yield f'\n    @cached_property\n    def {set_name}(self) -> {set_name}:\n        """The set."""\n'
        yield f"        return {set_name}(self, model.{entity_type})\n"
    for name, operation in unbound:
        yield _method(schema, name, operation, operation.get("$Parameter", []), is_bound=False)


def _method(schema: Node, name: str, operation: Node, parameters: list[Node], *, is_bound: bool) -> str:
    own = ", ".join(_parameter(schema, parameter) for parameter in parameters)
    receiver = "self, key: Key" if is_bound else "self"
    returned = operation.get("$ReturnType")
    annotation = "None" if returned is None else _annotation(schema, returned, "model.")
    target = f'self._call(key, "{name}"' if is_bound else f'self.call("{name}"'
    arguments = ", ".join(f'"{each["$Name"]}": {_identifier(each["$Name"])}' for each in parameters)
    call = f"{target}, is_function={operation['$Kind'] == 'Function'}, arguments={{{arguments}}})"
    text = f"\n    def {name}({receiver}{', *, ' + own if own else ''}) -> {_optional(annotation)}:\n"
    text += f'        """The {operation["$Kind"].lower()} {name}."""\n'
    if annotation == "None":
        return f"{text}        {call}\n"
    text += f"        answer: Any = {call}\n"
    if annotation == "Json":
        return f"{text}        return answer\n"
    return f"{text}        return None if answer is None else TypeAdapter({annotation}).validate_python(answer)\n"


def _parameter(schema: Node, parameter: Node) -> str:
    annotation = _annotation(schema, parameter, "model.")
    if "@Core.OptionalParameter" in parameter:
        return f"{_identifier(parameter['$Name'])}: {annotation} | None = None"
    return f"{_identifier(parameter['$Name'])}: {annotation}"


def _optional(annotation: str) -> str:
    return annotation if annotation in ("None", "Json") else f"{annotation} | None"


# --- the tree -----------------------------------------------------------------------------------------------------


def _kinds(schema: Node, kind: str) -> Iterator[tuple[str, Node]]:
    for name, node in schema.items():
        if isinstance(node, dict) and node.get("$Kind") == kind:
            yield name, node


def _sets(schema: Node) -> Iterator[tuple[str, Node]]:
    for name, node in schema[CONTAINER].items():
        if isinstance(node, dict) and node.get("$Collection"):
            yield name, node


def _lineage(schema: Node, entity_type: str) -> Iterator[str]:
    """The type and its base types."""
    name: str | None = entity_type
    while name is not None:
        yield name
        base: Any = schema[name].get("$BaseType")
        name = None if base is None else str(base).removeprefix(_OWN)


def _base_types_first(schema: Node) -> list[tuple[str, Node]]:
    types = list(_kinds(schema, "EntityType"))
    return sorted(types, key=lambda entry: len(list(_lineage(schema, entry[0]))))


def _class_name(name: str) -> str:
    """The name of a type's class. Amount and Quantity get a suffix: properties of these names would shadow them."""
    return f"{name}Value" if name in ("Amount", "Quantity") else name


def _identifier(name: str) -> str:
    return f"{name}_" if keyword.iskeyword(name) else name
