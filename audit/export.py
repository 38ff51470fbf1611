"""Exports entries as lines of JSON: as stored, or with the fields by which a SIEM classifies events (OCSF)."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from typing import Any

import orjson

from audit.hashing import Row, moment
from audit.kinds import UNKNOWN, entry_kinds
from audit.models import AuditEntry
from audit.rows import chained_rows

#: Version of the schema of these field names (https://schema.ocsf.io).
OCSF_VERSION = "1.3.0"


def entry_lines(*, first: int, last: int | None, kind: str, as_ocsf: bool) -> Iterator[bytes]:
    """A line for each chained entry of these positions; kind: only of this kind, "" for all. Reads in batches."""
    shape: Callable[[Row], dict[str, Any]] = _as_ocsf if as_ocsf else _as_stored
    for step in chained_rows(first - 1):
        for row in step:
            if last is not None and row.position > last:
                return
            if kind in {"", row.kind}:
                yield orjson.dumps(shape(row), option=orjson.OPT_APPEND_NEWLINE)


def _as_stored(row: Row) -> dict[str, Any]:
    return {
        "position": row.position,
        "id": row.id,
        "kind": row.kind,
        "at": moment(row.at),
        "actor": row.actor,
        "subject": row.subject,
        # As stored: the hash is computed over exactly these characters.
        "content": row.content,
        "seal": row.seal,
        "hash": row.hash,
    }


def _as_ocsf(row: Row) -> dict[str, Any]:
    kind, content = entry_kinds.get(row.kind), content_of(row)
    ocsf = kind.ocsf if kind is not None else UNKNOWN
    at = datetime.datetime.fromisoformat(moment(row.at))
    result: dict[str, Any] = {
        "class_uid": ocsf.class_uid,
        "category_uid": ocsf.class_uid // 1000,
        "activity_id": ocsf.activity_id,
        "type_uid": ocsf.class_uid * 100 + ocsf.activity_id,
        "severity_id": ocsf.severity_id,
        "status_id": ocsf.status_id,
        "time": int(at.timestamp() * 1000),
        "message": f"{row.kind} {row.subject}".rstrip(),
        "metadata": {
            "version": OCSF_VERSION,
            "uid": str(row.id),
            "sequence": row.position,
            "event_code": row.kind,
            "correlation_uid": content.get("requestId", ""),
            "product": {"name": "Business platform"},
        },
        "actor": {"user": {"name": row.actor}},
        "unmapped": {"subject": row.subject, "content": content, "hash": row.hash},
    }
    if "address" in content:
        result["src_endpoint"] = {"ip": content["address"]}
    if "application" in content:
        result["actor"]["app_name"] = content["application"]
    if "session" in content:
        result["actor"]["session"] = {"uid": content["session"]}
    return result


def content_of(row: Row | AuditEntry) -> dict[str, Any]:
    """The content; empty if it is no longer a JSON object."""
    try:
        content = orjson.loads(row.content)
    except orjson.JSONDecodeError:
        return {}
    return content if isinstance(content, dict) else {}
