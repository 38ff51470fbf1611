"""Runs the scripts of JavaScript calculated attributes (spec 10.1), one run for all entities of a page.

A script has the rights of the attribute's reader, and only reading host calls. The history does not record these runs,
which would fill it.
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import orjson
from django.utils.translation import gettext

from domain.dataset.dataset import Dataset
from domain.dataset.records.record import Record
from domain.model.attribute_scripts import ScriptResult
from domain.model.calculated_attributes import Definition
from domain.model.repository import Repository
from foundation import errors
from foundation.guids import is_guid
from foundation.messages import TranslatableMessage as Message
from foundation.messages import translated
from identity.context import CallContext
from scripts.bridge.bridge import MAX_DEPTH, Bridge, RowsOfRun
from scripts.sandbox import positions
from scripts.services import check_source, limits, rows_run

#: Variables of the function body.
_PARAMETERS = ("subject",)
_SHOWN_CHARACTERS = 100


class CalculatedAttributes:
    """The ScriptEngine of domain.model.attribute_scripts."""

    def check(self, source: str) -> None:
        """Raise SourceRefused with the position if the source does not parse."""
        check_source(source, mode="function_body", parameter_names=_PARAMETERS)

    def results(
        self,
        definition: Definition,
        repository: Repository[Any],
        keys: Sequence[str],
        ctx: CallContext,
        *,
        dataset: Any = None,
        depth: int = 0,
    ) -> Mapping[str, ScriptResult]:
        """See ScriptEngine."""
        source = definition.script or ""
        used = Dataset(ctx) if dataset is None else dataset
        loaded = used.load_many(repository, keys)
        records = [record for key in keys if (record := loaded.get(key)) is not None]
        if not records:
            return {}
        try:
            if depth > MAX_DEPTH:
                raise errors.Refused(errors.SCRIPT_LIMIT, Message("scripts within scripts ({0})", MAX_DEPTH))
            found = _run(source, definition.value_type, used, records, depth)
        except errors.Refused as exc:
            # The whole run failed, for example by a limit, so every entity gets the error.
            failed = ScriptResult(error=exc.message)
            return dict.fromkeys((record.id for record in records), failed)
        shown = (_result(each, definition.value_type, source) for each in found)
        return dict(zip((record.id for record in records), shown, strict=False))


def _run(source: str, value_type: str, dataset: Dataset, records: list[Record], depth: int) -> Iterator[Any]:
    """The prelude's result for each record."""
    bridge = Bridge(
        dataset, deadline=time.monotonic() + limits().wall_seconds, transactions=False, read_only=True, depth=depth
    )
    given = bridge.globals_json(rows=RowsOfRun(records, value_type))
    answer = orjson.loads(rows_run(source, bridge, given, _PARAMETERS).value_json)
    return iter(answer if isinstance(answer, list) else [])


def _result(given: Any, value_type: str, source: str) -> ScriptResult:
    """The result of one entity; not trusted, because a script can tamper with the prelude."""
    if not isinstance(given, dict):
        return ScriptResult(error=translated(_no_value(given, value_type), gettext))
    if "e" in given:
        message, name, stack = (str(given.get(part, "")) for part in "ens")
        place = positions.of_exception(stack, name, message, source)
        text = message if name in ("", "Error") else f"{name}: {message}"
        if place.line is not None:
            text = translated(Message("{0} (line {1})", text, place.line), gettext)
        return ScriptResult(error=text, line=place.line)
    value = given.get("v")
    if value is None:
        return ScriptResult()
    try:
        return ScriptResult(_CONVERTERS[value_type](value))
    except (ValueError, OverflowError):
        return ScriptResult(error=translated(_no_value(value, value_type), gettext))


def _no_value(value: Any, value_type: str) -> Message:
    return Message("it returned {0}, which is no {1}", str(value)[:_SHOWN_CHARACTERS], value_type)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError
    return value


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError
    return value


def _decimal(value: Any) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError
    return Decimal(str(value))


def _int32(value: Any) -> int:
    number = _decimal(value)
    if number != int(number) or not -(2**31) <= number < 2**31:
        raise ValueError
    return int(number)


def _date(value: Any) -> datetime.date:
    return _moment(value).date()


def _moment(value: Any) -> datetime.datetime:
    found = datetime.datetime.fromisoformat(_text(value))
    return found.replace(tzinfo=datetime.UTC) if found.tzinfo is None else found.astimezone(datetime.UTC)


def _guid(value: Any) -> str:
    if not is_guid(_text(value)):
        raise ValueError
    return str(value).lower()


_CONVERTERS: Mapping[str, Callable[[Any], Any]] = {
    "String": _text,
    "Boolean": _boolean,
    "Int32": _int32,
    "Decimal": _decimal,
    "Date": _date,
    "DateTime": _moment,
    "Guid": _guid,
}
