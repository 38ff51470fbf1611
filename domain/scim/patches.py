"""PATCH (RFC 7644, 3.5.2): operations applied to the JSON of a resource, which is then stored as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from domain.scim.errors import ScimError
from domain.scim.filters import And, Comparison, Not, Or, PatchPath, Tree, ValuePath, parse_path
from foundation.messages import TranslatableMessage as Message

MAX_OPERATIONS: Final = 1000
#: Maximum list values examined by all operations of a request together: about two seconds of work.
MAX_STEPS: Final = 1_000_000
_READ_ONLY: Final = frozenset({"id", "meta", "groups", "schemas"})
_NAMES: Final = frozenset({"add", "replace", "remove"})

Resource = dict[str, Any]


def patched(resource: Resource, body: Any, attributes: Mapping[str, bool]) -> Resource:
    """The resource after the operations of a PatchOp; `resource` itself is not modified.

    attributes: name → whether it is multi-valued. Raises ScimError.
    """
    operations = _member(body, "Operations") if isinstance(body, dict) else None
    if not isinstance(operations, list) or not operations:
        raise ScimError(400, Message("The body must be a PatchOp with Operations."), "invalidSyntax")
    if len(operations) > MAX_OPERATIONS:
        raise ScimError(413, Message("A PATCH has at most {0} operations.", MAX_OPERATIONS))
    result = {name: _copied(value) for name, value in resource.items()}
    steps = 0
    for name, path, value in _changes(operations):
        steps += 1 + sum(len(each) for each in result.values() if isinstance(each, list))
        if steps > MAX_STEPS:
            raise ScimError(413, Message("It is too much for one PATCH. Send fewer operations."))
        _apply(result, name, path, value, attributes)
    return result


def _changes(operations: list[Any]) -> Iterator[tuple[str, PatchPath, Any]]:
    """(op, path, value) of each change; an operation without a path has several. Raises ScimError."""
    for operation in operations:
        name = str(_member(operation, "op") or "").lower() if isinstance(operation, dict) else ""
        if name not in _NAMES:
            raise ScimError(400, Message("The op of an operation is add, replace or remove."), "invalidSyntax")
        path, value = _member(operation, "path"), _member(operation, "value")
        if path is not None and not isinstance(path, str):
            raise ScimError(400, Message("A path is a text."), "invalidPath")
        if path:
            yield name, parse_path(path), value
        elif isinstance(value, dict) and name != "remove":
            for each, part in value.items():
                # Clients repeat the id of the patched resource.
                if each.lower() not in _READ_ONLY:
                    yield name, parse_path(each), part
        else:
            raise ScimError(400, Message("Without a path, value is an object; remove needs a path."), "noTarget")


def _apply(result: Resource, name: str, path: PatchPath, value: Any, attributes: Mapping[str, bool]) -> None:
    known = {each.lower(): each for each in (*attributes, *_READ_ONLY)}
    attribute = known.get(path.attribute.lower())
    if attribute is None:
        raise ScimError(400, Message("There is no attribute {0}.", path.attribute[:100]), "invalidPath")
    if attribute in _READ_ONLY:
        raise ScimError(400, Message("{0} is read-only.", attribute), "mutability")
    if attributes[attribute]:
        result[attribute] = _several(list(result.get(attribute) or ()), name, path, value)
    elif path.filter is not None:
        raise ScimError(400, Message("{0} has one value, which no filter chooses.", attribute), "invalidPath")
    elif path.part:
        whole = dict(result.get(attribute) or {}) if isinstance(result.get(attribute), dict | None) else {}
        whole[path.part] = None if name == "remove" else value
        result[attribute] = whole
    elif name == "remove":
        result.pop(attribute, None)
    elif isinstance(value, dict) and isinstance(result.get(attribute), dict):
        result[attribute] = {**result[attribute], **value}
    else:
        result[attribute] = value


def _several(items: list[Any], name: str, path: PatchPath, value: Any) -> list[Any]:
    """The values of a multi-valued attribute after one operation."""
    if path.filter is None and not path.part:
        return _whole(items, name, path.attribute, value)
    chosen = [item for item in items if path.filter is None or _matches(path.filter, item)]
    if not chosen and name == "add" and isinstance(path.filter, Comparison) and path.filter.operator == "eq":
        chosen = [{path.filter.path: path.filter.value}]
        items = [*items, *chosen]
    if not chosen and name == "replace":
        raise ScimError(400, Message("No value meets the filter of the path."), "noTarget")
    if name == "remove" and not path.part:
        return [item for item in items if not any(item is each for each in chosen)]
    for item in chosen:
        if path.part:
            item[path.part] = None if name == "remove" else value
        elif isinstance(value, dict):
            item.update(value)
        else:
            raise ScimError(400, Message("The value of {0} is an object.", path.attribute), "invalidValue")
    return items


def _whole(items: list[Any], name: str, attribute: str, value: Any) -> list[Any]:
    given = value if isinstance(value, list) else [] if value is None else [value]
    named = {str(each.get("value")) if isinstance(each, dict) else str(each) for each in given}
    others = [item for item in items if str(item.get("value")) not in named]
    if name == "remove":
        return others if named else []
    if not all(isinstance(each, dict) for each in given):
        raise ScimError(400, Message("The value of {0} is an object.", attribute), "invalidValue")
    return given if name == "replace" else [*others, *given]


def _matches(tree: Tree, item: Any) -> bool:
    """Whether a value of a multi-valued attribute matches a filter."""
    match tree:
        case And(parts):
            return all(_matches(part, item) for part in parts)
        case Or(parts):
            return any(_matches(part, item) for part in parts)
        case Not(part):
            return not _matches(part, item)
        case ValuePath():
            raise ScimError(400, Message("A filter in a path has no filter within."), "invalidPath")
    found = _member(item, tree.path) if isinstance(item, dict) else None
    if tree.operator == "pr":
        return found not in (None, "")
    if tree.operator in ("eq", "ne"):
        is_equal: bool = _folded(found) == _folded(tree.value)
        return is_equal == (tree.operator == "eq")
    left, right = str(found or "").lower(), str(tree.value).lower()
    match tree.operator:
        case "co":
            return right in left
        case "sw":
            return left.startswith(right)
        case "ew":
            return left.endswith(right)
    raise ScimError(400, Message("A path does not compare by {0}.", tree.operator), "invalidPath")


def _folded(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


def _member(body: Mapping[str, Any], name: str) -> Any:
    """A member by its name in any case (RFC 7643, 2.1)."""
    return next((value for each, value in body.items() if each.lower() == name.lower()), None)


def _copied(value: Any) -> Any:
    return [dict(each) if isinstance(each, dict) else each for each in value] if isinstance(value, list) else value
