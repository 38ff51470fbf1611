"""Validates a template when it is saved, in admin and API (spec 06, 6.1)."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import orjson
from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _

from domain.dataset.records.record import Record
from domain.dataset.templates.record_template import Slot, json_literal, sample_text
from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.model.template_syntax import Part, TemplateError, parse
from foundation import errors
from foundation.egress.client import certain_refusal, present_refusal
from foundation.egress.policy import POLICY_SETTING, Destination, EgressPolicy, destination_of, egress_policy
from foundation.errors import Detail
from foundation.kinds import Kind
from foundation.messages import TranslatableMessage as Message
from foundation.messages import of_json, reason_of, translated
from rules.read_access import unreadable_repository
from webhooks.demo_destination import is_demo_host
from webhooks.headers import InvalidHeader, check_value, header_lines
from webhooks.render import CompiledRequest, InvalidTemplate, compile_request, split_url
from webhooks.reschedule import MAX_RETRIES

TIMEOUT_SECONDS = range(1, 121)


def check_web_hook(record: Record) -> None:
    """Refuse a template that cannot work. An invalid JSON body only gives a warning."""
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
    yield from _check_url(record)
    compiled: dict[str, CompiledRequest] = {}
    for target, arguments in (
        ("URL", {"url": record.url or ""}),
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
    for target, request in compiled.items() if record.is_active else ():
        yield from _check_reading(record, repository, target, request)
    if "Body" in compiled and (problem := json_problem(record, compiled["Body"])):
        _warn(record, problem)


def _check_reading(
    record: Record, repository: Repository[Any], target: str, request: CompiledRequest
) -> Iterator[Detail]:
    """Check that the authors, who choose the URL, may read all data that an active template sends."""
    paths = list(request.paths)
    for author in record.dataset.authorities.get(record.key, ()):
        if name := unreadable_repository(author, repository.name, paths):
            yield _problem(target, _("The webhook reads {0}, which you may not read."), name)


def _content_type(record: Record) -> str | None:
    try:
        lines = list(header_lines(record.headers))
    except InvalidHeader:
        return None
    return next((value for name, value in lines if name.lower() == "content-type"), None)


def _check_url(record: Record) -> Iterator[Detail]:
    """Refuse an invalid URL, and one to which requests are certainly refused; warn if they are refused at present.

    An inactive template, or a URL that was saved before, only gives a warning: the setting may have changed, and other
    edits must stay possible. Activating the template checks again. A URL that the server itself writes, such as demo
    data, only gives a warning, too.
    """
    url = record.url or ""
    problem = url_problem(url)
    if problem is not None:
        yield _problem("URL", _("The URL cannot be used: {0}"), translated(problem, gettext))
        return
    try:
        origin, _rest = split_url(parse(url))
    except TemplateError:
        return  # _check_texts reports it
    certain, warning = _refusals(origin)
    is_new_here = record.is_changed("url") or record.is_changed("is_active")
    if certain is not None and record.by_client and record.is_active and is_new_here:
        yield _problem("URL", "{0}", translated(certain, gettext))
    elif (text := certain or warning) is not None:
        _warn(record, translated(text, gettext))


def url_problem(url: str) -> str | None:
    """The problem of a URL template; None if it is valid."""
    try:
        origin, rest = split_url(parse(url))
    except TemplateError:
        return None  # _check_texts reports it
    if not origin:
        return Message("it must be absolute and begin with http:// or https://")
    sample = "".join(part if isinstance(part, str) else "x" for part in rest)
    try:
        destination_of(_sample_origin(origin) + sample)
    except ValueError as exc:
        return reason_of(exc)
    return None


def _sample_origin(origin: Sequence[Part]) -> str:
    """The origin with a sample for each placeholder: a name in the host, a number in the port."""
    sample = ""
    for part in origin:
        in_port = ":" in sample.partition("://")[2].rpartition("]")[2]
        sample += part if isinstance(part, str) else "1" if in_port else "x"
    return sample


def _refusals(origin: Sequence[Part]) -> tuple[str | None, str | None]:
    """(reason for a certain refusal, reason for a present refusal) of requests by the instance's egress policy."""
    policy = egress_policy()
    destination = destination_of(_sample_origin(origin))
    if all(isinstance(part, str) for part in origin):
        if is_demo_host(destination.host):
            return None, None
        certain = certain_refusal(destination, policy=policy)
        if certain is not None:
            text = Message(
                "Requests to {0} are refused: {1}. The setting {2} can allow it.",
                destination.name,
                certain,
                POLICY_SETTING,
            )
            return text, None
        at_present = _present_refusal(destination, policy, int(time.monotonic() // _REMEMBER_SECONDS))
        if at_present is None:
            return None, None
        text = Message(
            "Requests to {0} are refused at present: {1}. The setting {2} can allow it.",
            destination.name,
            at_present,
            POLICY_SETTING,
        )
        return None, text
    pieces = _host_pieces(origin)
    listed = policy.may_list(pieces) if len(pieces) > 1 else policy.lists(destination.host)
    if listed:
        return None, None
    text = Message(
        "The URL has a placeholder in its host or port. The setting {0} must list the hosts that it may become, each by"
        " its name or as *.example.com; no entry fits.",
        POLICY_SETTING,
    )
    return text, None


def _host_pieces(origin: Sequence[Part]) -> list[str]:
    """The literal pieces of an origin's host, between placeholders. IPv6 addresses have no brackets."""
    placeholder = "\0"
    text = "".join(part if isinstance(part, str) else placeholder for part in origin).partition("://")[2]
    host = text[1:].partition("]")[0] if text.startswith("[") else text.partition(":")[0]
    return host.split(placeholder)


#: Time limit of a DNS lookup, which delays the save, and how long its result is cached.
_DNS_SECONDS = 0.5
_REMEMBER_SECONDS = 60


@lru_cache(maxsize=256)
def _present_refusal(destination: Destination, policy: EgressPolicy, minute: int) -> str | None:
    return present_refusal(destination, timeout_seconds=_DNS_SECONDS, policy=policy)


def _warn(record: Record, text: str) -> None:
    """Add the warning once: a commit may validate several times."""
    if text not in record.dataset.warnings:
        record.dataset.warnings.append(text)


def json_problem(record: Record, compiled: CompiledRequest) -> str | None:
    """A warning if the body, rendered with sample values, is no JSON."""
    if compiled.body is None or compiled.body_format != "json":
        return None
    sample = "".join(part if isinstance(part, str) else _sample(part) for part in compiled.body.parts)
    try:
        orjson.loads(sample)
    except orjson.JSONDecodeError as exc:
        why = Message("{0} (line {1}, column {2})", of_json(exc), exc.lineno, exc.colno)
        return errors.format_message(
            _("The body of the webhook {0} does not make valid JSON: {1}"), [str(record.code), why]
        )
    return None


def _sample(slot: Slot) -> str:
    """A sample value as it appears in the body."""
    if slot.quoted:
        return "x"
    if slot.kind is Kind.BOOL:
        return "true"
    text = sample_text(slot)
    return json_literal(text, is_number=text != "x")
