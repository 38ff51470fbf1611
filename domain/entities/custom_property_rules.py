"""Validations of the definitions of custom properties (spec 10, 10.2), run when a definition is saved."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

from domain import query
from domain.dataset.lookups.allowed_values import names_parent, with_parent
from domain.dataset.tables.custom_indexes import write_index
from domain.entities.calculation_uses import has, refuse_if_used
from domain.model.custom_properties import PREFIX, AllowedValue, Definition, escape_code
from domain.model.custom_values import stored_form
from domain.model.filter_xml import filter_of_xml
from domain.model.naming import near
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation import errors
from foundation.messages import TranslatableMessage as Message

if TYPE_CHECKING:
    from domain.dataset.records.record import Record

_MEASURES = ("Unit", "Currency")
#: Attributes that may not change while values are stored.
_IDENTITY = ("EntityName", "Code", "PropertyType")
_FILTERS = ("AllowedValuesFilter", "AllowedValuesFilterXML")
#: A parent's value, to check a filter that depends on it.
_SAMPLE = {"Value": "x", "ValueId": "00000000-0000-0000-0000-000000000000"}
_OF_INDEX = (*_IDENTITY, "IsIndexed", "IsActive")
_NO_ORDER = ("Picture",)


def _refuse(target: str, message: Message) -> errors.Refused:
    return errors.Refused(errors.VALIDATION_FAILED, message, target=target)


def of_a_known_repository(definition: Record) -> None:
    """The repository of the property must exist."""
    for name in ("EntityName", "AllowedValuesEntityName"):
        given = definition.values.get(name)
        if given is not None and repositories.for_entity_name(given) is None:
            known = [repository.entity_name for repository in repositories]
            raise errors.BadRequest(errors.UNKNOWN_REPOSITORY, given, near(given, known), target=name)


def of_one_type(definition: Record) -> None:
    """The attributes that restrict values must fit the property's type."""
    values, kind = definition.values, str(definition.values["PropertyType"])
    if kind == "Reference" and not values.get("AllowedValuesEntityName"):
        raise _refuse(
            "AllowedValuesEntityName", Message("A reference needs the repository that it refers to: name it here")
        )
    measures = [name for name in _MEASURES if values.get(name)]
    if measures and kind != "Number":
        raise _refuse(
            measures[0], Message("Only numbers have a unit or currency; the type of this property is {0}", kind)
        )
    if len(measures) > 1:
        raise _refuse(measures[1], Message("A number has either a unit or a currency: remove one of them"))
    length = values.get("MaskLength")
    if length is not None and (length < 1 or kind != "Text"):
        raise _refuse("MaskLength", Message("A number of characters from 1 on, for texts only"))
    for name in ("IsIndexed", "IsSearchable"):
        if values.get(name) and kind in _NO_ORDER:
            raise _refuse(name, Message("Pictures cannot be searched: use another type, or switch this off"))


def indexed_by_a_plain_code(definition: Record) -> None:
    """The code of an indexed property must have no character that JSON escapes, which not every database can index."""
    code = str(definition.values["Code"])
    if definition.values.get("IsIndexed") and json.dumps(code, ensure_ascii=False) != f'"{code}"':
        raise _refuse(
            "IsIndexed", Message("The code has a quotation mark, backslash or control character: choose a plainer one")
        )


def named_apart(definition: Record) -> None:
    """Codes of one entity must have different API names: `a-b` and `a_u002Db` have the same."""
    code = str(definition.values["Code"])
    name = escape_code(code)
    repository = repositories.for_entity_name(definition.values.get("EntityName") or "")
    if "_u" not in name or repository is None:
        return
    names = [each.entity_name for each in repository.lineage]
    for other in definition.dataset.find_all(definition.repository, entity_name__in=names):
        taken = str(other.values["Code"])
        if taken != code and escape_code(taken) == name:
            raise _refuse("Code", Message("{0} has this name in the API already, as {1}", taken, PREFIX + name))


def required_in_documents(definition: Record) -> None:
    """RequiredFromState needs a repository of documents, and a property that is marked as required."""
    values = definition.values
    if not values.get("RequiredFromState"):
        return
    repository = repositories.for_entity_name(values.get("EntityName") or "")
    if repository is not None and not repository.is_document:
        raise _refuse("RequiredFromState", Message("{0} are no documents, and so have no states", repository.name))
    if not values.get("Required"):
        raise _refuse("RequiredFromState", Message("Mark the property as required, too, or remove the state"))


def parents_without_cycle(definition: Record) -> None:
    """The parent property must belong to the same entities; parents must not form a cycle."""
    parent = _related(definition, "AllowedValuesParentProperty")
    if parent is not None and parent.values.get("EntityName") != definition.values.get("EntityName"):
        raise _refuse(
            "AllowedValuesParentProperty",
            Message("The parent {0} belongs to {1}: take a property of the same entities", parent.values["Code"],
                    parent.values["EntityName"]),
        )  # fmt: skip
    for name in ("AllowedValuesParentProperty", "AllowedValuesProperty"):
        passed, current = {definition.id}, _related(definition, name)
        while current is not None:
            if current.id in passed:
                raise _refuse(
                    name, Message("The properties form a circle: {0} depends on itself", current.values["Code"])
                )
            passed.add(current.id)
            current = _related(current, name)
    shared = _related(definition, "AllowedValuesProperty")
    if shared is not None and shared.values.get("AllowedValuesProperty"):
        raise _refuse(
            "AllowedValuesProperty",
            Message("{0} shares the values of another property itself: name that one", shared.values["Code"]),
        )


def _related(definition: Record, name: str) -> Record | None:
    id = definition.values.get(name)
    return definition.dataset.load(definition.repository, id) if id is not None else None


def kept_by_values(definition: Record) -> None:
    """Attributes in _IDENTITY must not change while values are stored."""
    changed = [name for name in _IDENTITY if name in definition.original_values]
    if definition.is_deleted or definition.is_new or not changed:
        return
    before = {**definition.values, **definition.original_values}
    repository = repositories.for_entity_name(before["EntityName"])
    if repository is not None and _has_values(repository, before["Code"]):
        raise _refuse(
            changed[0],
            Message("{0} have values of this property, which would be lost: define another, or remove the values",
                    repository.name),
        )  # fmt: skip


def _has_values(repository: Repository[Any], code: str) -> bool:
    key = json.dumps(code, ensure_ascii=False) + ":{"
    return bool(repository.model._default_manager.filter(custom_property_values__contains=key).exists())


def needed_by_no_calculation(definition: Record) -> None:
    """A property that a calculated attribute uses must not change or be deleted."""
    before = {**definition.values, **definition.original_values}
    is_gone = definition.is_deleted or not definition.values.get("IsActive")
    if (
        definition.is_new
        or not before.get("IsActive")
        or not (is_gone or set(_IDENTITY) & set(definition.original_values))
    ):
        return
    code, declared = f"@{before['Code']}", before["EntityName"]
    refuse_if_used(
        definition.dataset, lambda use: use.name == code and has(repositories.for_entity_name(use.repository), declared)
    )


def default_of_its_type(definition: Record) -> None:
    """The default must be a valid value of the property; that of a Reference is checked when an entity is created."""
    values = definition.values
    text = values.get("DefaultValue")
    if text is None:
        return
    if str(values["PropertyType"]) == "Picture":
        raise _refuse("DefaultValue", Message("Pictures have no default: remove it"))
    listed = {
        child.values["PropertyAllowedValueField"]: AllowedValue(child.id, child.values["PropertyAllowedValueField"], {})
        for child in definition.children("AllowedValues")
        if child.values.get("Active") is not False
    }
    from_entities = bool(values.get("AllowedValuesEntityName") or values.get("AllowedValuesProperty"))
    _check(
        definition,
        text,
        "DefaultValue",
        allowed=listed,
        limited=bool(values.get("LimitToAllowedValues")) and not from_entities,
    )


def _check(definition: Record, text: str, target: str, **limits: Any) -> None:
    values = definition.values
    known = Definition(
        id=definition.id,
        repository="",
        code=str(values["Code"]),
        api_name=target,
        property_type=str(values["PropertyType"]),
        name={},
        max_length=values.get("MaskLength"),
        **{"limited": False, **limits},
    )
    stored_form(known, text, "EN", lambda _known, _text, _id: None)


def values_of_its_type(definition: Record) -> None:
    """Allowed values must have the property's type, in its canonical text form."""
    if str(definition.values["PropertyType"]) in ("Text", "Reference"):
        return
    for child in definition.children("AllowedValues"):
        _check(definition, child.values.get("PropertyAllowedValueField") or "", "AllowedValues")


def filters_of_entities(definition: Record) -> None:
    """The filters of allowed entities must be valid for the repository of these entities."""
    values = definition.values
    given = [name for name in _FILTERS if values.get(name)]
    if not given:
        return
    repository = repositories.for_entity_name(values.get("AllowedValuesEntityName") or "")
    if repository is None:
        raise _refuse(
            given[0],
            Message("A filter chooses among entities: name their repository in {0}", "AllowedValuesEntityName"),
        )
    for name in given:
        is_xml = name == "AllowedValuesFilterXML"
        text = filter_of_xml(repository, values[name], name) if is_xml else values[name]
        if names_parent(text) and not values.get("AllowedValuesParentProperty"):
            raise _refuse(name, Message("@parent stands for the value of the parent property: name that one, too"))
        try:
            query.compile_filter(repository, with_parent(text, _SAMPLE))
        except errors.BadRequest as error:
            raise _refuse(name, Message("{0}", error.message)) from error


def _of_stored(check: Any) -> Any:
    def validate(definition: Record) -> None:
        if not definition.is_deleted:
            check(definition)

    validate.__doc__ = check.__doc__
    return validate


def index_of_values(definition: Record) -> None:
    """Create or drop the index of the values with the commit, as the definition is marked as indexed or not."""
    values = definition.values
    if definition.is_deleted or definition.is_new or any(name in definition.original_values for name in _OF_INDEX):
        before = {**values, **definition.original_values}
        if definition.is_new and not values.get("IsIndexed"):
            return
        definition.dataset.defer_write(("custom index", definition.id), partial(_write_index, definition, before))


def _write_index(definition: Record, before: dict[str, Any]) -> None:
    old, values = repositories.for_entity_name(before["EntityName"]), definition.values
    new = repositories.for_entity_name(values["EntityName"])
    if old is not None:
        write_index(definition.id, old.name, None)
    if new is not None and not definition.is_deleted and values.get("IsIndexed") and values.get("IsActive"):
        known = Definition(
            id=definition.id,
            repository=new.name,
            code=str(values["Code"]),
            api_name="",
            property_type=str(values["PropertyType"]),
            limited=False,
            name={},
        )
        write_index(definition.id, new.name, known)


VALIDATIONS = (
    of_a_known_repository,
    *map(
        _of_stored,
        (
            of_one_type,
            indexed_by_a_plain_code,
            named_apart,
            required_in_documents,
            parents_without_cycle,
            filters_of_entities,
            default_of_its_type,
            values_of_its_type,
        ),
    ),
    kept_by_values,
    needed_by_no_calculation,
    index_of_values,
)
