"""What a dataset tells beside an answer: warnings of rules, and traces where they are asked for (spec 05, 5.3, 5.5).

X-Warnings, @erpnet.warnings    messages of WARNING actions; the annotation where the answer has a JSON object for it
@erpnet.trace, X-Rule-Trace     what rules did, for administrators who send `Prefer: erpnet.trace-rules`; in the JSON
                                object, of errors too; of answers without one, and of errors, in the header as far as
                                MAX_TRACE_HEADER_BYTES allow
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from domain.dataset.dataset import Dataset
from domain.odata.message.message import JSON, ODataResponse
from identity.context import CallContext

TRACE_RULES = "erpnet.trace-rules"
#: Servers and proxies in front of us refuse answers with larger headers than some 8 KB in all.
MAX_TRACE_HEADER_BYTES = 4096


def trace_asked(context: CallContext) -> bool:
    """Whether the caller asked for traces and may have them: they show values whatever the caller's rights."""
    return TRACE_RULES in context.prefer and context.user is not None and context.user.is_admin


def tell(response: ODataResponse, dataset: Dataset | None) -> ODataResponse:
    """The answer with what the dataset of its request has to tell."""
    if dataset is None:
        return response
    told: dict[str, Any] = {}
    if dataset.warnings and response.status < 400:
        response.headers["X-Warnings"] = " | ".join(" ".join(text.split()) for text in dataset.warnings)
        told["@erpnet.warnings"] = dataset.warnings
    if trace_asked(dataset.context):
        applied = response.headers.get("Preference-Applied")
        response.headers["Preference-Applied"] = f"{applied}, {TRACE_RULES}" if applied else TRACE_RULES
        told["@erpnet.trace"] = dataset.traces
        if response.status >= 400 or not _is_object(response):
            response.headers["X-Rule-Trace"] = trace_header(dataset.traces)
    if told and _is_object(response):
        response.body = _with_members(response.body, told)
    return response


def trace_header(traces: Sequence[Mapping[str, Any]]) -> str:
    """The first entries as a JSON array in ASCII; how many are left out is its last element, if any are."""
    parts: list[str] = []
    size = 2
    for position, entry in enumerate(traces):
        part = json.dumps(entry, separators=(",", ":"), default=str)
        size += len(part) + 1
        # Room for the note that says how many are missing.
        if size > MAX_TRACE_HEADER_BYTES - 24:
            parts.append(f'{{"LeftOut":{len(traces) - position}}}')
            break
        parts.append(part)
    return f"[{','.join(parts)}]"


def _is_object(response: ODataResponse) -> bool:
    return response.headers.get("Content-Type", "").startswith(JSON) and response.body[:1] == b"{"


def _with_members(body: bytes, members: Mapping[str, Any]) -> bytes:
    # Spliced in: reading a large body again to add a line to it would cost more than the body did.
    rest = body.rstrip()[:-1]
    comma = b"" if rest.strip() == b"{" else b","
    return rest + comma + orjson.dumps(members, default=str)[1:]
