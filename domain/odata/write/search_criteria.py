"""Search criteria: the values by which the entity for an object of a body is found (`@erpnet.findBy`, spec 14.1).

Only the first that has a value is used: ExternalId (with ExternalSystem), Id, Code, Name, DisplayText. Their values are
in the annotation, else in the object itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from domain.dataset.lookups.lookup_key import Match
from domain.dataset.lookups.name_binding import bind_path
from domain.model.repository import Repository
from domain.model.values import parse_input
from domain.odata.message.json_body import invalid_body
from domain.odata.message.references import annotation
from foundation import errors
from foundation.guids import parse_guid
from foundation.kinds import Kind
from foundation.messages import TranslatableMessage as Message
from foundation.messages import quoted

FIND_BY = ("ExternalId", "Id", "Code", "Name", "DisplayText")
_ANNOTATION = "@erpnet.findBy"
_TEXTS = (Kind.STRING, Kind.MULTILANGUAGE)


@dataclass(frozen=True, slots=True)
class Criterion:
    """One search criterion.

    values    path of API names → value, as in LookupKey
    members   members of the object that have the values; none if they are in the annotation
    """

    values: Mapping[str, Any]
    match: Match
    members: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ByAttribute:
    """An `@erpnet.findBy` that only the platform's code uses, not JSON: any attribute, by its path of API names."""

    path: tuple[str, ...]
    value: Any

    def criterion(self, repository: Repository[Any]) -> Criterion:
        """The criterion that the values are equal."""
        return Criterion({bind_path(repository, self.path).text: self.value}, "equals")


def criterion_of_annotation(repository: Repository[Any], given: Any) -> Criterion:
    """The criterion of an `@erpnet.findBy`. Raises BadRequest for an invalid one."""
    if isinstance(given, ByAttribute):
        return given.criterion(repository)
    if not isinstance(given, dict):
        raise invalid_body(
            Message("@erpnet.findBy must be an object such as {0}, not {1}", '{"Code": "…"}', quoted(given)),
            target=_ANNOTATION,
        )
    known = _known_names(repository)
    found: dict[str, Any] = {}
    for name, value in given.items():
        if name.startswith("@"):
            continue
        criterion = known.get(name.replace("/", ".").lower())
        if criterion is None:
            raise invalid_body(
                Message("@erpnet.findBy has no {0}; it takes {1}", quoted(name), ", ".join(_shown_names(repository))),
                target=f"{_ANNOTATION}/{name}",
            )
        if value is not None:
            found.setdefault(criterion, value)
    for criterion in FIND_BY:
        if criterion in found:
            return _criterion(repository, criterion, found, target=f"{_ANNOTATION}/{criterion}")
    raise invalid_body(
        Message("@erpnet.findBy has no search value; it takes {0}", ", ".join(_shown_names(repository))),
        target=_ANNOTATION,
    )


def criterion_of(repository: Repository[Any], body: Mapping[str, Any]) -> Criterion | None:
    """The criterion of `@erpnet.findBy`, else of the object's own members. Raises BadRequest for an invalid one."""
    given = body.get("@erpnet.findBy")
    return criterion_of_members(repository, body) if given is None else criterion_of_annotation(repository, given)


def names_only(repository: Repository[Any], body: Mapping[str, Any]) -> bool:
    """Whether the body only identifies an entity, and has no data of it (spec 14.1).

    A search property that is not used, because an earlier one has a value, is data. The key and the display text never
    are: no write sets them.
    """
    criterion = None
    if annotation(body, "id") is None:
        criterion = criterion_of(repository, body)
        if criterion is None:
            return False
    named = {"Id", "DisplayText"} if criterion is None else {"Id", "DisplayText", *criterion.members}
    return all(name in named or name.startswith("@") for name in body)


def criterion_of_members(repository: Repository[Any], body: Mapping[str, Any]) -> Criterion | None:
    """The criterion of an object's own members; None if it has none."""
    by_lower = {name.lower(): name for name, value in body.items() if not _is_empty(value)}
    for criterion in FIND_BY:
        path = _path_of(repository, criterion)
        if not path:
            continue
        name = by_lower.get(".".join(path).lower())
        value = body[name] if name is not None else None
        if criterion == "Code" and name is None and len(path) > 1:
            name = by_lower.get(path[0].lower())
            value = None if name is None else _behind(body[name], path[1:])
        if name is None or _is_empty(value):
            continue
        found, members = {criterion: value}, {name}
        if criterion == "ExternalId" and (system := by_lower.get("externalsystem")) is not None:
            found["ExternalSystem"] = body[system]
            members.add(system)
        made = _criterion(repository, criterion, found, target=name)
        return Criterion(made.values, made.match, frozenset(members))
    return None


def _is_empty(value: Any) -> bool:
    """Whether the value cannot be a criterion: null, blank, or an object of such values. As a member it is data."""
    if isinstance(value, dict):
        return all(_is_empty(inner) for name, inner in value.items() if "@" not in name)
    return value is None or (isinstance(value, str) and not value.strip())


def _behind(value: Any, path: tuple[str, ...]) -> Any:
    """The value at a path through objects that have no other members; None if there is none."""
    for name in path:
        members = {key: inner for key, inner in value.items() if "@" not in key} if isinstance(value, dict) else {}
        if [key.lower() for key in members] != [name.lower()]:
            return None
        (value,) = members.values()
    return value


def _known_names(repository: Repository[Any]) -> dict[str, str]:
    """Name in lower case → criterion. Paths of the attributes that are code and name stand for Code and Name."""
    known = {".".join(repository.label_path).lower(): "Name", ".".join(repository.code_path).lower(): "Code"}
    known |= {name.lower(): name for name in (*FIND_BY, "ExternalSystem")}
    known.pop("", None)
    return known


def _shown_names(repository: Repository[Any]) -> list[str]:
    names = ("ExternalId", "ExternalSystem", *FIND_BY[1:])
    return [name for name in names if _path_of(repository, name)]


def _path_of(repository: Repository[Any], name: str) -> tuple[str, ...]:
    """The path of API names of a criterion; () if the entity has no such attribute, such as ExternalId of parts."""
    match name:
        case "Code":
            return repository.code_path
        case "Name":
            return repository.label_path
    return (name,) if name in repository.attributes else ()


def _criterion(repository: Repository[Any], criterion: str, found: Mapping[str, Any], *, target: str) -> Criterion:
    value, path = found[criterion], _path_of(repository, criterion)
    if not path:
        raise invalid_body(Message("{0} has no {1} to be found by", repository.entity_type, criterion), target=target)
    match criterion:
        case "Id":
            return Criterion({"Id": given_guid(repository, value)}, "equals")
        case "ExternalId":
            values = {name: _text(found[name], target) for name in ("ExternalId", "ExternalSystem") if name in found}
            return Criterion(values, "equals")
        case "DisplayText":
            return Criterion({"DisplayText": _text(value, target)}, "search")
    bound = bind_path(repository, path)
    if bound.kind is Kind.MULTILANGUAGE and isinstance(value, dict):
        texts = {code: _text(text, target) for code, text in value.items() if "@" not in code and text is not None}
        if not texts:
            _text(value, target)
        return Criterion({bound.text: texts}, "contains" if criterion == "Name" else "equals")
    if bound.kind in _TEXTS:
        return Criterion({bound.text: _text(value, target)}, "contains" if criterion == "Name" else "equals")
    assert bound.attribute is not None
    return Criterion({bound.text: parse_input(bound.attribute, value)}, "equals")


def _text(value: Any, target: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise invalid_body(
            Message("{0} must be a text that is not empty, not {1}", target, quoted(value)), target=target
        )
    return value


def given_guid(repository: Repository[Any], value: Any) -> str:
    """The canonical form of a key in a body. Raises BadRequest(INVALID_KEY)."""
    try:
        return parse_guid(value)
    except (ValueError, TypeError) as exc:
        raise errors.BadRequest(errors.INVALID_KEY, value, repository.entity_type, target="Id") from exc
