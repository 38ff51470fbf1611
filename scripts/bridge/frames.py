"""Serializes records as columns, and describes repositories, for scripts.

frame         {"n": repository, "h": [handle…], "i": [guid…], "c": {attribute: [value…]}, "s": [state…] | null,
              "x": [custom properties…] | null}; columns without any value are left out
description   {"n": repository, "k": identity, "a": [[attribute, kind, extra?]…], "c": [collection…], "o": [operation…]}
kinds         v unchanged · i the guid · d date or time as ISO text · m texts by language · r guid of a reference
(extra:
              identity of its target) · a, q number of an amount or quantity (extra: path of its measure)
"""

from __future__ import annotations

import base64
import datetime
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from operator import itemgetter
from typing import Any

from domain.dataset.checks import access
from domain.dataset.records.record import Record
from domain.model.attributes import Attribute
from domain.model.members import DISPLAY_TEXT
from domain.model.registry import derived, repositories
from domain.model.repository import Repository
from domain.odata.operations.catalogue import operations
from foundation.kinds import Kind
from foundation.texts import utc_text
from scripts.bridge import loading
from scripts.bridge.handles import Handles

_KINDS = {
    Kind.DATE: "d",
    Kind.DATETIME: "d",
    Kind.MULTILANGUAGE: "m",
    Kind.REFERENCE: "r",
    Kind.AMOUNT: "a",
    Kind.QUANTITY: "q",
}
_CONVERTERS: dict[Kind, Callable[[Any], Any]] = {
    Kind.DECIMAL: float,
    Kind.AMOUNT: float,
    Kind.QUANTITY: float,
    Kind.BINARY: lambda value: base64.b64encode(value).decode(),
}


class Frames:
    """Frames of one run; the first entities of a repository are sent with its description."""

    def __init__(self, handles: Handles) -> None:
        self._handles = handles
        self._described: set[str] = set()

    def of(self, records: Iterable[Record]) -> dict[str, Any]:
        """{"t": descriptions, "f": frames} of the records, each once."""
        groups: dict[str, list[Record]] = {}
        for record in records:
            groups.setdefault(record.repository.name, []).append(record)
        answer: dict[str, Any] = {"f": [self._frame(group) for group in groups.values()]}
        new = [group[0].repository for name, group in groups.items() if name not in self._described]
        if new:
            answer["t"] = [self.describe(repository) for repository in new]
        return answer

    def describe(self, repository: Repository[Any]) -> dict[str, Any]:
        """The description, for the current answer."""
        self._described.add(repository.name)
        return description(repository)

    def _frame(self, records: Sequence[Record]) -> dict[str, Any]:
        repository = records[0].repository
        show = self._handles.show
        states = [record.object_state for record in records]
        return {
            "n": repository.name,
            "h": [show(record) for record in records],
            "i": [record.id for record in records],
            "c": columns(repository, self._handles.dataset.previewed(records)),
            "s": None if states.count("Unchanged") == len(states) else states,
            "x": list(map(access.visible_custom, records)) if any(record.custom for record in records) else None,
        }


def columns(repository: Repository[Any], records: Sequence[Record]) -> dict[str, list[Any]]:
    """Attribute → values in the script's form, null for hidden references; without attributes that are always null."""
    names, getter, converters = _shape(repository)
    try:
        rows = [getter(record.values) for record in records]
    except KeyError:  # a pending row whose stored row was deleted
        rows = [tuple([record.values.get(name) for name in names]) for record in records]
    result: dict[str, list[Any]] = {}
    empty = len(rows)
    for name, convert, values in zip(names, converters, zip(*rows, strict=True), strict=True):
        if name in repository.references:
            values = loading.without_hidden(
                records[0].dataset, repositories[repository.references[name].target], values
            )
        if values.count(None) == empty:
            continue
        if convert is None:
            result[name] = list(values)
        else:
            result[name] = [None if value is None else convert(value) for value in values]
    return result


def calculated_frame(value: Any) -> Any:
    """The value of a calculated attribute in the script's form: dates as texts in the API's format."""
    match value:
        case Decimal():
            return float(value)
        case datetime.datetime():
            return utc_text(value)
        case datetime.date():
            return value.isoformat()
    return value


def value_of(attribute: Attribute, record: Record) -> Any:
    """A value in the script's form."""
    value = record.values.get(attribute.name)
    if attribute.is_reference and access.leads_to_hidden(record, attribute.name):
        return None
    convert = _CONVERTERS.get(attribute.kind)
    return value if value is None or convert is None else convert(value)


@derived
def _shape(
    repository: Repository[Any],
) -> tuple[tuple[str, ...], Callable[[Any], Any], tuple[Callable[[Any], Any] | None, ...]]:
    stored = [attribute for attribute in repository.attributes.values() if _is_stored(attribute)]
    names = tuple(attribute.name for attribute in stored)
    # With one name itemgetter returns a bare value.
    getter: Callable[[Any], Any] = itemgetter(*names) if len(names) > 1 else lambda values: (values[names[0]],)
    return names, getter, tuple(_CONVERTERS.get(attribute.kind) for attribute in stored)


def _is_stored(attribute: Attribute) -> bool:
    return attribute.field is not None and not attribute.key_alias and attribute.name not in ("Id", DISPLAY_TEXT)


@derived
def description(repository: Repository[Any]) -> dict[str, Any]:
    """The description of a repository for scripts."""
    members: list[list[str]] = []
    for attribute in repository.attributes.values():
        if attribute.name in ("Id", DISPLAY_TEXT):
            continue
        if attribute.key_alias:
            members.append([attribute.name, "i"])
        elif attribute.is_reference:
            members.append([attribute.name, "r", repositories[attribute.target].identity_name])
        elif attribute.is_measured:
            members.append([attribute.name, _KINDS[attribute.kind], "/".join(attribute.measure)])
        else:
            members.append([attribute.name, _KINDS.get(attribute.kind, "v")])
    return {
        "n": repository.name,
        "k": repository.identity_name,
        "a": members,
        "c": list(repository.collections),
        "o": [operation.name for operation in operations.of(repository) if not operation.raw_body],
    }
