"""Operators on texts: CONCAT LEFT RIGHT LEN SUBSTRING POS REPLACE TOLOWER TOUPPER INCNUM FORMATSTRING INTERPOLATE."""

from __future__ import annotations

import re
from typing import Any, ClassVar

from django.utils.translation import gettext_noop as _

from domain.model.formats import specifiers
from domain.model.template_syntax import Placeholder, TemplateError, parse
from domain.query.base.bound import INTEGER, STRING, Bound, Call, Computed, Sort, all_of, call, fixed
from domain.query.bind.calculations.logic import constant_text
from domain.query.bind.calculations.operators import Operator, operators
from domain.query.bind.calculations.place import Place, as_text
from domain.query.bind.calculations.terms import Failure, Term, Value, is_not_null, is_null
from domain.query.bind.texts import as_scalar, format_part, or_empty
from foundation import errors
from foundation.kinds import Kind
from foundation.messages import TranslatableMessage as Message

_DIGITS = re.compile(r"[Nn][0-9]")
_LAST_NUMBER = re.compile(r"(\d{1,100})(?=\D*$)", re.ASCII)


def _text_call(name: str, value_type: Any, *values: Value) -> Value:
    failures = (failure for value in values for failure in value.failures)
    return Value(call(name, value_type, *(value.bound for value in values))).with_failures(*failures)


@operators.register
class Concat(Operator):
    """CONCAT(text, text, text?): null if one of them is null."""

    name = "CONCAT"
    arity = 2, 3
    parameters = (_("text"), _("text"), _("text"))

    def bind(self, at: Place) -> Term:
        result = at.text(0)
        for index in range(1, at.count):
            result = _text_call("concat", STRING, result, at.text(index))
        return result


@operators.register
class Left(Operator):
    """LEFT(text, length)."""

    name = "LEFT"
    arity = 2, 2
    parameters = (_("text"), _("length"))

    def bind(self, at: Place) -> Term:
        return _text_call("substring", STRING, at.text(0), Value(fixed(0, INTEGER)), at.whole(1))


@operators.register
class Right(Operator):
    """RIGHT(text, length)."""

    name = "RIGHT"
    arity = 2, 2
    parameters = (_("text"), _("length"))

    def bind(self, at: Place) -> Term:
        text, length = at.text(0), at.whole(1)
        start = Value(call("sub", INTEGER, call("length", INTEGER, text.bound), length.bound))
        return _text_call("substring", STRING, text, start, length)


@operators.register
class Len(Operator):
    """LEN(text)."""

    name = "LEN"
    arity = 1, 1
    parameters = (_("text"),)

    def bind(self, at: Place) -> Term:
        return _text_call("length", INTEGER, at.text(0))


@operators.register
class Substring(Operator):
    """SUBSTRING(text, start from 0, length)."""

    name = "SUBSTRING"
    arity = 2, 3
    parameters = (_("text"), _("start"), _("length"))

    def bind(self, at: Place) -> Term:
        return _text_call("substring", STRING, at.text(0), *(at.whole(index) for index in range(1, at.count)))


@operators.register
class Pos(Operator):
    """POS(term, text): the first position, from 0; -1 if the text has no such term."""

    name = "POS"
    arity = 2, 2
    parameters = (_("term"), _("text"))

    def bind(self, at: Place) -> Term:
        term, text = at.text(0), at.text(1)
        return _text_call("indexof", INTEGER, text, term)


@operators.register
class Replace(Operator):
    """REPLACE(text, term, by)."""

    name = "REPLACE"
    arity = 3, 3
    parameters = (_("text"), _("term"), _("by"))

    def bind(self, at: Place) -> Term:
        return _text_call("replace", STRING, at.text(0), at.text(1), at.text(2))


class _Case(Operator):
    arity = 1, 1
    function: ClassVar[str]

    def bind(self, at: Place) -> Term:
        return _text_call(self.function, STRING, at.text(0))


@operators.register
class ToLower(_Case):
    """TOLOWER(text)."""

    name = "TOLOWER"
    parameters = (_("text"),)
    function = "tolower"


@operators.register
class ToUpper(_Case):
    """TOUPPER(text)."""

    name = "TOUPPER"
    parameters = (_("text"),)
    function = "toupper"


def next_number(text: str | None, language: str) -> str | None:
    """`A009` → `A010`: the last number of the text plus one; null without a number."""
    if text is None or (found := _LAST_NUMBER.search(text)) is None:
        return None
    number = str(int(found[1]) + 1).zfill(len(found[1]))
    return text[: found.start()] + number + text[found.end() :]


def computed(at: Place, value_type: Any, compute: Any, *arguments: Bound) -> Computed:
    """A call of an operator that is implemented in Python only."""
    return Computed(value_type, True, at.calculation.api_name, at.row.operator, compute, arguments)


@operators.register
class IncNum(Operator):
    """INCNUM(text): the text with its last number increased by one; a text without a number fails."""

    name = "INCNUM"
    arity = 1, 1
    parameters = (_("text"),)

    def bind(self, at: Place) -> Term:
        text = at.text(0)
        result = computed(at, STRING, next_number, text.bound)
        failed = all_of(is_not_null(text.bound), is_null(result)) or is_null(result)
        return Value(result).with_failures(*text.failures, (at.row.number, failed))


_KINDS = {
    Sort.DATE: Kind.DATE,
    Sort.DATETIME: Kind.DATETIME,
}


@operators.register
class FormatString(Operator):
    """FORMATSTRING(value, format): the value in a format of rules and templates, which is a constant."""

    name = "FORMATSTRING"
    arity = 2, 2
    parameters = (_("value"), _("format"))

    def bind(self, at: Place) -> Term:
        value, format = at.value(0), constant_text(at, 1)
        bound = as_scalar(value.bound)
        kind = _KINDS.get(bound.type.sort)
        if bound.type.sort is Sort.NUMBER:
            kind = Kind.INT if bound.type.integer else Kind.DECIMAL
        if kind is None or not specifiers.accepts(kind, format):
            allowed = specifiers.allowed(kind) if kind is not None else ""
            at.refuse(Message("the format '{0}' does not fit {1}; possible are: {2}", format, bound.type, allowed))

        def compute(given: Any, language: str) -> str | None:
            return None if given is None else specifiers.formatted(given, kind, format, specifiers.Reader(language))

        return Value(computed(at, STRING, compute, bound)).with_failures(*value.failures)


@operators.register
class Interpolate(Operator):
    """INTERPOLATE(template, object?): the template's placeholders filled in from the entity, as in a display format."""

    name = "INTERPOLATE"
    arity = 1, 2
    parameters = (_("template"), _("object"))

    def bind(self, at: Place) -> Term:
        if at.count > 1:
            entity = at.entity(1)
            filled = self._filled(at.inside(entity.source), constant_text(at, 0))
            return entity.seen(filled)
        return self._filled(at, constant_text(at, 0))

    @staticmethod
    def _filled(at: Place, template: str) -> Value:
        try:
            parts = parse(template)
        except TemplateError as exc:
            at.refuse(errors.reason(exc))
        bounds: list[Bound] = []
        failures: list[Failure] = []
        for part in parts:
            if not isinstance(part, Placeholder):
                bounds.append(fixed(part, STRING))
                continue
            if part.sigil == "$":
                at.refuse(Message("{{0}} has no value in a calculated attribute", part.name))
            value = at.named(part.sigil + ".".join(part.path))
            failures += value.failures
            bounds.append(or_empty(_formatted(at, value.bound, part.format)))
        joined = Call(STRING, False, "join_texts", tuple(bounds or [fixed("", STRING)]))
        return Value(joined).with_failures(*failures)


def _formatted(at: Place, bound: Bound, format: str) -> Bound:
    """A placeholder's value as text."""
    sort = bound.type.sort
    if format and not (
        sort in (Sort.DATE, Sort.DATETIME)
        or (sort is Sort.TEXTS and format.isalpha())
        or (sort is Sort.NUMBER and _DIGITS.fullmatch(format))
    ):
        at.refuse(
            Message("the format '{0}' does not fit {1}; possible are: {2}", format, bound.type, "N2, EN, yyyy-MM-dd")
        )
    if bound.type.sort in (Sort.REFERENCE, Sort.CUSTOM, Sort.GUID, Sort.ENUM, Sort.STATE, Sort.BOOL):
        return as_text(at.calculation.binder, bound)
    return as_scalar(format_part(bound, format))
