"""Calls that read. Scripts may send any arguments; only the annotated types are checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from foundation import errors
from foundation.guids import is_guid
from foundation.messages import TranslatableMessage as Message
from scripts.bridge import loading, queries
from scripts.bridge.registry import Answer, host_call
from scripts.bridge.writing import repository_named

if TYPE_CHECKING:
    from scripts.bridge.bridge import Bridge


@host_call("describe")
def describe(bridge: Bridge, name: str) -> Answer:
    repository = repository_named(name)
    return {"t": [bridge.frames.describe(repository)], "v": repository.name}


@host_call("query")
def query(bridge: Bridge, name: str, filter: Any, options: Any) -> Answer:
    repository = repository_named(name)
    chosen = queries.read_options(options)
    language = bridge.dataset.context.language
    text = queries.filter_text(repository, filter, chosen.get("filter") or "", bridge.writer.entity_id, language)
    limit = queries.fetch_limit(chosen.get("fetch"))
    records = loading.query(bridge.dataset, repository, text, queries.order_text(chosen.get("orderBy")), limit)
    if len(records) > queries.MAX_ROWS:
        raise errors.Refused(errors.SCRIPT_LIMIT, Message("rows ({0})", queries.MAX_ROWS))
    return bridge.listed(records)


@host_call("get")
def get(bridge: Bridge, name: str, ids: list[Any]) -> Answer:
    repository = repository_named(name)
    wanted: list[str] = []
    if len(ids) > queries.MAX_ROWS:
        raise errors.Refused(errors.SCRIPT_LIMIT, Message("rows ({0})", queries.MAX_ROWS))
    for given in ids:
        id = bridge.writer.entity_id(given) or (given.strip() if isinstance(given, str) else "")
        if not is_guid(id):
            raise errors.BadRequest(errors.INVALID_KEY, given, repository.entity_type, target="Id")
        wanted.append(id.lower())
    return bridge.listed(loading.visible(bridge.dataset, repository, wanted))


@host_call("follow")
def follow(bridge: Bridge, handles: list[Any], name: str) -> Answer:
    records = [record for record in bridge.handles.known(handles) if record is not None]
    return bridge.listed(loading.follow(bridge.dataset, records, name))


@host_call("children")
def children(bridge: Bridge, handles: list[Any], name: str) -> Answer:
    parents = bridge.handles.known(handles)
    present = [record for record in parents if record is not None]
    result = iter(loading.children(bridge.dataset, present, name))
    lists = [[] if parent is None else next(result) for parent in parents]
    answer = bridge.frames.of(record for members in lists for record in members)
    return {**answer, "m": [[bridge.handles.show(record) for record in members] for members in lists]}


@host_call("measures")
def measures(bridge: Bridge, handles: list[Any], name: str) -> Answer:
    return list(loading.measures(bridge.dataset, bridge.handles.present(handles), name))


@host_call("display")
def display(bridge: Bridge, handles: list[Any]) -> Answer:
    return list(loading.display_texts(bridge.dataset, bridge.handles.present(handles)))


@host_call("refresh")
def refresh(bridge: Bridge, handles: list[Any]) -> Answer:
    records = bridge.handles.known(handles)
    answer = bridge.frames.of(record for record in records if record is not None)
    # A deleted entity can still be read in its last state; only changing it fails.
    return {**answer, "gone": bridge.handles.gone(handles, records)}
