"""Checks of calculated attributes before they are saved (spec 10.1)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn

from domain.model.attribute_scripts import script_engine
from domain.model.calculated_attributes import PARAMETERS, Definition, stored_row
from domain.model.naming import near
from domain.model.registry import repositories
from domain.query.bind.calculated_types import check_definition
from domain.syntax.calculations import ExpressionRow
from foundation import errors
from foundation.messages import TranslatableMessage as Message

if TYPE_CHECKING:
    from domain.dataset.records.record import Record
    from domain.model.repository import Repository

_NAME = re.compile(r"[^\W\d]\w{0,127}")


def check_attribute(attribute: Record) -> None:
    """Raise Refused for a definition that cannot be evaluated, with the row and the reason."""
    name, repository = _named(attribute)
    _check_script(attribute)
    definition = _definition(attribute, repository, name)
    try:
        check_definition(repository, definition, tuple(_others(attribute)))
    except errors.BadRequest as exc:
        raise errors.Refused(exc.code, *exc.parameters, target="Expressions") from exc


def _named(attribute: Record) -> tuple[str, Repository[Any]]:
    """The name and the repository, which must exist; the name must be free there."""
    given = attribute.values["RepositoryName"]
    repository = repositories.for_entity_name(given)
    if repository is None:
        known = [each.name for each in repositories]
        raise errors.BadRequest(errors.UNKNOWN_REPOSITORY, given, near(given, known), target="RepositoryName")
    if given != repository.name:
        attribute.dataset.assign(attribute, "RepositoryName", repository.name)
    name = attribute.values["Name"]
    if not _NAME.fullmatch(name):
        _refuse(attribute, Message("its name needs letters, digits and _ only, and no digit first"), "Name")
    lowered = name.lower()
    for each in repository.lineage:
        if each.attribute(name) is not None or each.collection(name) is not None:
            _refuse(attribute, Message("{0} has an attribute {1} already", each.name, name), "Name")
    names = [each.name for each in repository.lineage]
    others = repositories["Systems.Bpm.CalculatedAttributes"].model._default_manager.filter(repository_name__in=names)
    for id, other, where in others.values_list("id", "name", "repository_name"):
        if str(id) != attribute.id and other.lower() == lowered:
            _refuse(attribute, Message("{0} has a calculated attribute {1} already", where, other), "Name")
    return name, repository


def _definition(attribute: Record, repository: Repository[Any], name: str) -> Definition:
    values = attribute.values
    caption, hint = values.get("Caption") or {}, values.get("Hint") or {}
    return Definition(
        repository.name,
        name,
        caption,
        hint,
        values["StartingExpressionNo"],
        tuple(_rows(attribute)),
        (values.get("ScriptText") or "") if _is_script(attribute) else None,
        values.get("ValueType") or "String",
    )


def definition_of(attribute: Record) -> Definition | None:
    """The definition with its pending changes; None for one without a known repository or a name."""
    repository, name = (
        repositories.for_entity_name(attribute.values.get("RepositoryName") or ""),
        attribute.values["Name"],
    )
    return None if repository is None or not name else _definition(attribute, repository, name)


def _is_script(attribute: Record) -> bool:
    return bool(attribute.values.get("ScriptLanguage") == "JavaScript")


def _check_script(attribute: Record) -> None:
    """Check that a script parses, and that a definition has either a script or rows with a result type."""
    values = attribute.values
    if not _is_script(attribute):
        for name in ("ScriptText", "ValueType"):
            if values.get(name):
                _refuse(attribute, Message("{0} belongs to scripts; choose {1}", name, "JavaScript"), name)
        return
    if not (values.get("ScriptText") or "").strip():
        _refuse(attribute, Message("it needs the body of a function"), "ScriptText")
    if any(_rows(attribute)):
        _refuse(attribute, Message("it has rows beside its script; remove them, or choose {0}", "Integrated"))
    try:
        script_engine().check(values["ScriptText"])
    except errors.Refused as exc:
        _refuse(attribute, Message("{0}", exc.message), "ScriptText")


def _others(attribute: Record) -> Iterator[Definition]:
    """The other definitions in the same commit, to which this one may refer."""
    for other in attribute.dataset.changed():
        if other is attribute or other.repository is not attribute.repository or other.is_deleted:
            continue
        repository = repositories.for_entity_name(other.values.get("RepositoryName") or "")
        if repository is not None and other.values.get("IsActive") and other.values.get("Name"):
            yield _definition(other, repository, other.values["Name"])


def _rows(attribute: Record) -> Iterator[ExpressionRow]:
    for expression in sorted(attribute.children("Expressions"), key=lambda each: each.values["ExpressionNo"] or 0):
        values = expression.values
        pairs = [(values.get(f"Parameter{n}Type"), values.get(f"Parameter{n}Value")) for n in PARAMETERS]
        yield stored_row(values["ExpressionNo"], values["Operator"], pairs)


def _refuse(attribute: Record, reason: Message, target: str | None = None) -> NoReturn:
    raise errors.Refused(errors.CALCULATION_INVALID, attribute.values["Name"], reason, target=target)
