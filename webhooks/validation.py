"""A template is checked when it is saved, in admin and API alike (spec 06, 6.1)."""

from __future__ import annotations

from collections.abc import Iterator

import orjson
from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _

from domain.dataset.record import Record
from domain.dataset.templates import _Slot as Slot
from domain.egress_policy import destination_of
from domain.interpolation import TemplateError, parse
from domain.model.registry import repositories
from foundation import errors
from foundation.errors import Detail
from foundation.kinds import Kind
from foundation.phrases import Phrase, of_json, reason_of
from webhooks.headers import InvalidHeader, check_value, header_lines
from webhooks.render import CompiledRequest, InvalidTemplate, compile_request, origin_of
from webhooks.reschedule import MAX_RETRIES

TIMEOUT_SECONDS = range(1, 121)


def check_web_hook(record: Record) -> None:
    """Refuse a template that cannot work. A JSON body that makes no JSON is a warning only."""
    if record.is_deleted:
        return
    details = [*_check_values(record), *_check_texts(record)]
    if details:
        summary = " ".join(text for detail in details for text in detail.parameters)
        raise errors.Refused(errors.WEBHOOK_INVALID, summary, target=details[0].target, details=details)


def _problem(target: str, message: str, *parameters: object) -> Detail:
    text = errors.format_message(message, [str(parameter) for parameter in parameters])
    return Detail(errors.WEBHOOK_INVALID, (text,), target)


def _check_values(record: Record) -> Iterator[Detail]:
    if record.timeout_seconds not in TIMEOUT_SECONDS:
        yield _problem("TimeoutSeconds", _("TimeoutSeconds must be between 1 and {0}."), TIMEOUT_SECONDS[-1])
    retries = record.max_retries
    if retries is not None and not 0 <= retries <= MAX_RETRIES:
        yield _problem("MaxRetries", _("MaxRetries must be between 0 and {0}."), MAX_RETRIES)
    if record.content_type:
        try:
            check_value("Content-Type", record.content_type)
        except InvalidHeader as exc:
            yield _problem("ContentType", "{0}", errors.reason(exc))


def _check_texts(record: Record) -> Iterator[Detail]:
    if record.repository_name not in repositories:
        yield _problem("RepositoryName", _("There is no repository '{0}'."), record.repository_name)
        return
    repository = repositories[record.repository_name]
    url = record.url or ""
    if problem := url_problem(url):
        yield _problem("URL", _("The URL cannot be used: {0}"), gettext(problem))
    compiled: dict[str, CompiledRequest] = {}
    for target, arguments in (
        ("URL", {"url": url}),
        ("Headers", {"url": "", "headers": record.headers}),
        ("Body", {"url": "", "body": record.body, "content_type": record.content_type or _content_type(record)}),
    ):
        try:
            compiled[target] = compile_request(repository, **{"headers": None, "body": None, **arguments})
        except InvalidHeader as exc:
            yield _problem(target, "{0}", errors.reason(exc))
        except InvalidTemplate as exc:
            for text in exc.problems:
                yield _problem(target, "{0}", text)
    if "Body" in compiled and (problem := json_problem(record, compiled["Body"])):
        record.dataset.warnings.append(problem)


def _content_type(record: Record) -> str | None:
    try:
        lines = list(header_lines(record.headers))
    except InvalidHeader:
        return None
    return next((value for name, value in lines if name.lower() == "content-type"), None)


def url_problem(url: str) -> str | None:
    """Why a URL template is not one; None where it is.

    Scheme, host and port are written out: a value must never choose where data goes.
    """
    origin = origin_of(url)
    if not origin:
        return _("it must be absolute and begin with http:// or https://")
    if "{" in origin:
        return _("its host must be written out, without placeholders")
    try:
        sample = "".join(part if isinstance(part, str) else "x" for part in parse(url))
        destination_of(sample)
    except TemplateError:
        return None  # said with the other placeholders
    except ValueError as exc:
        return reason_of(exc)
    return None


def json_problem(record: Record, compiled: CompiledRequest) -> str | None:
    """A warning when the body, filled in with sample values, is not JSON."""
    if compiled.body is None or compiled.body_format != "json":
        return None
    sample = "".join(part if isinstance(part, str) else _sample(part) for part in compiled.body.parts)
    try:
        orjson.loads(sample)
    except orjson.JSONDecodeError as exc:
        why = Phrase("{0} (line {1}, column {2})", of_json(exc), exc.lineno, exc.colno)
        return errors.format_message(
            _("The body of the webhook {0} does not make valid JSON: {1}"), [str(record.code), why]
        )
    return None


def _sample(slot: Slot) -> str:
    """What a value would leave in the body."""
    if slot.quoted:
        return "x"
    if slot.kind is Kind.BOOL:
        return "true"
    is_number = slot.kind in (Kind.INT, Kind.DECIMAL, Kind.AMOUNT, Kind.QUANTITY)
    return "1" if is_number and slot.placeholder.format.upper() not in ("Q", "CV") else '"x"'
