"""The values of a calculated attribute's rows on an entity, before the attribute is saved (spec 10.1)."""

from __future__ import annotations

import datetime
import time
from decimal import Decimal
from itertools import islice
from typing import Any

from django.http import HttpRequest
from django.utils import timezone
from django.utils.formats import date_format, number_format
from django.utils.translation import gettext, ngettext

from domain.admin.context import admin_context, admin_dataset
from domain.admin.measures import plain
from domain.admin.visible_rows import rows_of
from domain.dataset.lookups.calculated_values import RecordEnvironment
from domain.dataset.records.record import Record
from domain.model.attribute_scripts import NO_RESULT, script_engine
from domain.model.calculated_attributes import Definition
from domain.model.repository import Repository
from domain.query.base.bound import Rows, Source
from domain.query.bind.calculations.terms import Entity, Term, Value
from domain.query.bind.calculations.tracing import Tracing
from domain.query.bind.texts import as_scalar
from domain.query.run.evaluation import canonical, evaluate
from domain.query.run.scripts import ScriptRows
from foundation.errors import PlatformError
from foundation.guids import is_guid

#: Rows are evaluated one after the other until this time has passed; the rest have no value.
_MAX_SECONDS = 2.0
#: Maximum entities of a list that are counted.
_MAX_COUNTED = 1000
_LONGEST = 200


def row_values(request: HttpRequest, tracing: Tracing, source: Source, entity: str) -> dict[int, str] | None:
    """Number of the row → its value on the entity, as text; with the rights of the user.

    Rows that are evaluated on the entities of a list have no value. None: the entity does not exist, or the user may
    not read it.
    """
    record = _readable(request, source.repository, entity)
    if record is None:
        return None
    scripts = ScriptRows(record.dataset)
    env = RecordEnvironment(((source, record),), scripts)
    scripts.rows.append(env)
    result: dict[int, str] = {}
    deadline = time.monotonic() + _MAX_SECONDS
    first = tracing.definition.start
    for number in sorted(tracing.rows, key=lambda each: (each != first, each)):
        known = tracing.rows[number]
        if known.term is None or known.source != source or time.monotonic() > deadline:
            continue
        # The attribute's value is converted to its type, unlike those of the intermediate rows.
        term = tracing.value if number == first and tracing.value is not None else known.term
        try:
            text = _text(term, record, env)
        except PlatformError as error:
            text = error.message
        if text is not None:
            result[number] = text
    return result


def script_value(request: HttpRequest, definition: Definition, repository: Repository[Any], entity: str) -> str | None:
    """The value of a script on the entity as text, or the error; None if the user may not read the entity."""
    record = _readable(request, repository, entity)
    if record is None:
        return None
    try:
        found = (
            script_engine()
            .results(definition, repository, [record.id], admin_context(request), dataset=record.dataset)
            .get(record.id, NO_RESULT)
        )
    except PlatformError as error:
        return error.message
    return found.error or shown(found.value)


def _readable(request: HttpRequest, repository: Repository[Any], entity: str) -> Record | None:
    """The entity, if the user may read it."""
    if not is_guid(entity) or not rows_of(request, repository.model._default_manager.filter(pk=entity)).exists():
        return None
    return admin_dataset(request).load(repository, entity)


def _text(term: Term, record: Record, env: RecordEnvironment) -> str | None:
    match term:
        case Value():
            number = None if term.failed_row is None else evaluate(term.failed_row, env)
            if number is not None:
                return gettext("fails in row %(number)s") % {"number": number}
            bound = as_scalar(term.bound)
            return shown(canonical(evaluate(bound, env), bound.type))
        case Entity():
            key = evaluate(term.key, env)
            found = None if key is None else record.dataset.load(term.source.repository, str(key))
            return shown(None if found is None else found.dataset.display_text(found))
        case Rows():
            count = sum(1 for _ in islice(env.items(term), _MAX_COUNTED))
            return ngettext("%(count)s entity", "%(count)s entities", count) % {"count": count}
    return None


def shown(value: Any) -> str:
    """A canonical value as text for people."""
    match value:
        case None:
            return "null"
        case bool():
            return gettext("Yes") if value else gettext("No")
        case Decimal():
            return number_format(plain(value))
        case datetime.datetime():
            return date_format(timezone.localtime(value), "DATETIME_FORMAT")
        case datetime.date():
            return date_format(value)
    text = str(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
