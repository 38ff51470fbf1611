"""Calls that read. Scripts may send any arguments; only the annotated types are checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from domain.dataset.lookups.calculated_values import calculated_values, value_or_error
from domain.model import calculated_attributes
from foundation import errors
from foundation.guids import is_guid
from foundation.messages import TranslatableMessage as Message
from scripts.bridge import loading, queries
from scripts.bridge.frames import calculated_frame
from scripts.bridge.registry import Answer, host_call
from scripts.bridge.writing import repository_named

if TYPE_CHECKING:
    from scripts.bridge.bridge import Bridge


@host_call("describe", reads=True)
def describe(bridge: Bridge, name: str) -> Answer:
    repository = repository_named(name)
    return {"t": [bridge.frames.describe(repository)], "v": repository.name}


@host_call("query", reads=True)
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


@host_call("get", reads=True)
def get(bridge: Bridge, name: str, ids: list[Any]) -> Answer:
    repository = repository_named(name)
    guids: list[str] = []
    if len(ids) > queries.MAX_ROWS:
        raise errors.Refused(errors.SCRIPT_LIMIT, Message("rows ({0})", queries.MAX_ROWS))
    for given in ids:
        id = bridge.writer.entity_id(given) or (given.strip() if isinstance(given, str) else "")
        if not is_guid(id):
            raise errors.BadRequest(errors.INVALID_KEY, given, repository.entity_type, target="Id")
        guids.append(id.lower())
    return bridge.listed(loading.visible(bridge.dataset, repository, guids))


@host_call("follow", reads=True)
def follow(bridge: Bridge, handles: list[Any], name: str) -> Answer:
    records = [record for record in bridge.handles.known(handles) if record is not None]
    return bridge.listed(loading.follow(bridge.dataset, records, name))


@host_call("children", reads=True)
def children(bridge: Bridge, handles: list[Any], name: str) -> Answer:
    parents = bridge.handles.known(handles)
    present = [record for record in parents if record is not None]
    result = iter(loading.children(bridge.dataset, present, name))
    lists = [[] if parent is None else next(result) for parent in parents]
    answer = bridge.frames.of(record for members in lists for record in members)
    return {**answer, "m": [[bridge.handles.show(record) for record in members] for members in lists]}


@host_call("measures", reads=True)
def measures(bridge: Bridge, handles: list[Any], name: str) -> Answer:
    return list(loading.measures(bridge.dataset, bridge.handles.present(handles), name))


@host_call("display", reads=True)
def display(bridge: Bridge, handles: list[Any]) -> Answer:
    return list(loading.display_texts(bridge.dataset, bridge.handles.present(handles)))


@host_call("calculated", reads=True)
def calculated(bridge: Bridge, handles: list[Any], ahead: list[Any], name: str) -> Answer:
    """Values of entities of one repository, each `{"v": value}` or `{"e": error}`; None for an unknown attribute."""
    records = bridge.handles.present(handles)
    known = calculated_attributes.definition(records[0].repository, name) if records else None
    if known is None or any(record.repository is not records[0].repository for record in records):
        return None
    next_ones = [record for record in bridge.handles.known(ahead) if record is not None]
    found = calculated_values(
        records,
        known.api_name,
        ahead=[record for record in next_ones if record.repository is records[0].repository],
        depth=bridge.depth + 1,
    )
    if len(found) == 1:
        value_or_error(known.api_name, found[0])
    return [{"v": calculated_frame(each.value), "f": each.failure is not None} for each in found]


@host_call("refresh", reads=True)
def refresh(bridge: Bridge, handles: list[Any]) -> Answer:
    records = bridge.handles.known(handles)
    answer = bridge.frames.of(record for record in records if record is not None)
    # A deleted entity keeps its last values; only changing it fails.
    return {**answer, "gone": bridge.handles.gone(handles, records)}
