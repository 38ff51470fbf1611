"""Adds warnings and, on request, traces of rules to a response (spec 05, 5.3, 5.5).

X-Warnings, @erpnet.warnings    messages of WARNING actions, in the header percent-encoded; the annotation in responses
                                that are a JSON object
@erpnet.trace, X-Rule-Trace     the run of rules, for administrators who send `Prefer: erpnet.trace-rules`; the
                                annotation in responses that are a JSON object, the header in all others and in
                                errors, up to MAX_TRACE_HEADER_BYTES
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import orjson

from domain.dataset.dataset import Dataset
from domain.odata.message.message import JSON, ODataResponse
from foundation import dry_runs
from identity.context import CallContext

#: Printable ASCII without the percent sign.
_PLAIN_IN_HEADERS = "".join(map(chr, range(32, 127))).replace("%", "")
TRACE_RULES = "erpnet.trace-rules"
#: Servers and proxies refuse responses with larger headers than some 8 KB in all.
MAX_TRACE_HEADER_BYTES = 4096
MAX_WARNINGS_HEADER_BYTES = 2048


def trace_asked(context: CallContext) -> bool:
    """Whether the caller requests traces and is an administrator: traces show values regardless of rights."""
    return TRACE_RULES in context.prefer and context.user is not None and context.user.is_admin


def annotate(response: ODataResponse, dataset: Dataset | None) -> ODataResponse:
    """The response with warnings and traces of the request's dataset."""
    if dataset is None:
        return response
    annotations: dict[str, Any] = {}
    if (run := dry_runs.current()) is not None:
        for warning in dataset.warnings:
            run.add("warnings", warning)
    if dataset.warnings and response.status < 400:
        response.headers["X-Warnings"] = warnings_header(dataset.warnings)
        annotations["@erpnet.warnings"] = dataset.warnings
    if trace_asked(dataset.context):
        applied = response.headers.get("Preference-Applied")
        response.headers["Preference-Applied"] = f"{applied}, {TRACE_RULES}" if applied else TRACE_RULES
        annotations["@erpnet.trace"] = dataset.traces
        if response.status >= 400 or not is_object(response):
            response.headers["X-Rule-Trace"] = trace_header(dataset.traces)
    if annotations and is_object(response):
        response.body = with_members(response.body, annotations)
    return response


def warnings_header(warnings: Sequence[str]) -> str:
    """The warnings in one line of ASCII: `%` and characters beyond it are percent-encoded in UTF-8.

    Includes as many as fit, at least one; `…` replaces the rest.
    """
    shown: list[str] = []
    size = 0
    for text in warnings:
        part = quote(" ".join(text.split()), safe=_PLAIN_IN_HEADERS)
        size += len(part) + 3
        if shown and size > MAX_WARNINGS_HEADER_BYTES:
            shown.append(quote("…"))
            break
        shown.append(part)
    return " | ".join(shown)


def trace_header(traces: Sequence[Mapping[str, Any]]) -> str:
    """The first entries as a JSON array in ASCII; the last element counts omitted entries, if any."""
    parts: list[str] = []
    size = 2
    for position, entry in enumerate(traces):
        part = json.dumps(entry, separators=(",", ":"), default=str)
        size += len(part) + 1
        # Room for the element that counts omitted entries.
        if size > MAX_TRACE_HEADER_BYTES - 24:
            parts.append(f'{{"LeftOut":{len(traces) - position}}}')
            break
        parts.append(part)
    return f"[{','.join(parts)}]"


def is_object(response: ODataResponse) -> bool:
    """Whether the body has room for annotations."""
    return response.headers.get("Content-Type", "").startswith(JSON) and response.body[:1] == b"{"


def with_members(body: bytes, members: Mapping[str, Any]) -> bytes:
    """The JSON object with further members."""
    # Inserted as text: parsing a large body again would cost more than rendering it did.
    rest = body.rstrip()[:-1]
    comma = b"" if rest.strip() == b"{" else b","
    return rest + comma + orjson.dumps(members, default=str, option=orjson.OPT_UTC_Z)[1:]
