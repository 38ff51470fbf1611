"""Expansion and content ids in the response to a deep insert (OData Protocol 4.01, 11.4.2.2)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import orjson

from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.odata.write.search_criteria import names_only
from domain.syntax.ast import ExpandItem, NameStep, QueryOptions

#: Navigation property → navigation properties of the objects in it.
_Level = dict[str, "_Level"]
_ENTITY = re.compile(rb'"@odata\.id":"([^"]+)",')


def expanded(options: QueryOptions, repository: Repository[Any], body: Mapping[str, Any]) -> QueryOptions:
    """The options with $expand for the navigation properties that have entities in the body, at each level."""
    level: _Level = {}
    _add(level, repository, body)
    named = {step.name.lower() for item in options.expand for step in item.path[:1] if isinstance(step, NameStep)}
    items = _items({name: below for name, below in level.items() if name.lower() not in named})
    return replace(options, expand=(*options.expand, *items))


def _add(level: _Level, repository: Repository[Any], body: Mapping[str, Any]) -> None:
    for name, value in body.items():
        attribute, child = repository.attribute(name), repository.collection(name)
        if attribute is not None and attribute.is_reference and isinstance(value, dict):
            target = repositories[attribute.target]
            if not names_only(target, value):
                _add(level.setdefault(attribute.name, {}), target, value)
        elif child is not None and isinstance(value, list):
            below = level.setdefault(child.name, {})
            for each in value:
                if isinstance(each, dict):
                    _add(below, repositories[child.repository], each)


def _items(level: _Level) -> tuple[ExpandItem, ...]:
    return tuple(
        ExpandItem((NameStep(name),), options=QueryOptions(expand=_items(below))) for name, below in level.items()
    )


def with_content_ids(body: bytes, content_ids: Mapping[str, tuple[str, str]]) -> bytes:
    """The response with Core.ContentID annotations in the entities; content_ids: path → (name, value)."""

    def annotated(found: re.Match[bytes]) -> bytes:
        given = content_ids.get(found[1].decode())
        return found[0] if given is None else found[0] + orjson.dumps({given[0]: given[1]})[1:-1] + b","

    return _ENTITY.sub(annotated, body) if content_ids else body
