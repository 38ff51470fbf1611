"""JSON batches: {"requests": […]} in, {"responses": […]} out (OData JSON 4.01, 19)."""

from __future__ import annotations

import base64
import binascii
import json
from decimal import Decimal
from itertools import groupby
from typing import Any

import orjson

from domain.odata.message.json_body import invalid_body, parse_object
from domain.odata.message.message import JSON, ODataRequest, ODataResponse
from domain.odata.service.batch.parts import Done, Part, Serve
from domain.odata.service.batch.runner import Runner, check_count, continue_on_error
from foundation.messages import TranslatableMessage as Message
from foundation.messages import written


def run(request: ODataRequest, serve: Serve) -> ODataResponse:
    """Handle a JSON batch. Raises BadRequest for an invalid one."""
    body = parse_object(request.body)
    requests = body.get("requests")
    if not isinstance(requests, list):
        raise invalid_body(Message("a JSON batch needs an array 'requests'"), target="requests")
    check_count(len(requests))
    parts = [_part(entry, f"requests/{position}") for position, entry in enumerate(requests)]
    _check_names(parts)
    answers: list[dict[str, Any]] = []
    # 19.4: unlike a multipart batch, a JSON batch continues after an error unless the caller prefers otherwise.
    runner = Runner(request, serve)
    for group in runner.run(parts, continue_on_error=continue_on_error(request, default=True)):
        answers.extend(_answer(done) for done in group)
    return runner.response(orjson.dumps({"responses": answers}), JSON)


def _check_names(parts: list[Part]) -> None:
    ids = [part.id for part in parts]
    if len(set(ids)) != len(ids):
        raise invalid_body(Message("two requests of the batch have the same id"), target="requests")
    groups = [name for name, _ in groupby(part.group for part in parts) if name]
    for name in groups:
        if name in ids:
            raise invalid_body(Message("'{0}' is a request and an atomicityGroup", name), target="requests")
        if groups.count(name) > 1:
            raise invalid_body(
                Message("the requests of atomicityGroup '{0}' do not stand side by side", name), target="requests"
            )


def _part(entry: Any, where: str) -> Part:
    if not isinstance(entry, dict):
        raise invalid_body(Message("a request of the batch must be an object"), target=where)
    missing = [name for name in ("id", "method", "url") if not isinstance(entry.get(name), str)]
    if missing:
        raise invalid_body(Message("a request of the batch needs a text for {0}", ", ".join(missing)), target=where)
    headers = entry.get("headers") or {}
    if not isinstance(headers, dict):
        raise invalid_body(Message("headers must be an object"), target=f"{where}/headers")
    lowered = {name.lower(): written(value) for name, value in headers.items()}
    depends_on = entry.get("dependsOn") or []
    return Part(
        id=entry["id"],
        method=entry["method"].upper(),
        url=entry["url"],
        headers=lowered,
        body=_body(entry.get("body"), lowered, f"{where}/body"),
        group=written(entry.get("atomicityGroup") or ""),
        depends_on=tuple(written(id) for id in (depends_on if isinstance(depends_on, list) else [depends_on])),
        condition=written(entry["if"]) if entry.get("if") is not None else None,
    )


def _body(body: Any, headers: dict[str, str], where: str) -> bytes:
    """The body as bytes of the part's content type. Raises BadRequest for a JSON value that does not fit the type."""
    if body is None:
        return b""
    media = headers.get("content-type", "").partition(";")[0].strip().lower()
    if not media or media == JSON or media.endswith("+json"):
        headers.setdefault("content-type", JSON)
        return _as_json(body)
    if not isinstance(body, str):
        raise invalid_body(Message("a body of the type {0} must be a string", media), target=where)
    if media.startswith("text/"):
        return body.encode()
    try:
        return base64.b64decode(body + "=" * (-len(body) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as exc:
        raise invalid_body(Message("a body of the type {0} must be base64url", media), target=where) from exc


def _as_json(value: Any) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError:
        # Decimals and integers beyond 64 bits, which orjson does not write.
        return _exact(value).encode()


def _exact(value: Any) -> str:
    match value:
        case dict():
            return "{" + ",".join(f"{json.dumps(name)}:{_exact(inner)}" for name, inner in value.items()) + "}"
        case list():
            return "[" + ",".join(map(_exact, value)) + "]"
        case Decimal():
            return str(value)
    return json.dumps(value)


def _answer(done: Done) -> dict[str, Any]:
    response = done.response
    answer: dict[str, Any] = {"id": done.part.id, "status": response.status}
    if done.part.group:
        answer["atomicityGroup"] = done.part.group
    answer["headers"] = {name.lower(): value for name, value in response.headers.items()}
    if response.body:
        media = response.headers.get("Content-Type", "")
        if media.startswith(JSON):
            answer["body"] = orjson.Fragment(response.body)
        elif media.startswith("text/"):
            answer["body"] = response.body.decode("utf-8", errors="replace")
        else:
            answer["body"] = base64.urlsafe_b64encode(response.body).decode()
    return answer
