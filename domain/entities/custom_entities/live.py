"""Keeps the repositories of this process up to date with the stored definitions of custom entities.

`follow` is called where a unit of work begins: a request, a part of a batch, a task, a command (by its first dataset).
It compares the stored cache version with the one that this process serves and, if they differ, rebuilds the
repositories of changed definitions. Work in progress keeps the repositories that it holds.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any

from django.apps import apps
from django.db import connection
from django_q.signals import pre_execute

from domain.entities.custom_entities.building import APP, build
from domain.entities.custom_entities.definitions import PREFIX, EntityDefinition, stored
from domain.model import model_version
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation import cache_versions
from foundation.enums import enum_types

logger = logging.getLogger("platform.domain")

_lock = threading.Lock()
#: The definitions whose repositories are in the registry, by name.
_served: dict[str, EntityDefinition] = {}
_listeners: list[Callable[[], None]] = []


def listen(listener: Callable[[], None]) -> None:
    """Call the function after each change of the registry, to rebuild admin pages and URLs made from it."""
    _listeners.append(listener)


def follow() -> None:
    """Rebuild repositories whose definitions changed, and begin a unit of work. Does nothing inside a transaction."""
    if model_version.is_current():
        return  # before the connection is accessed, which costs each request more than the comparison
    if connection.in_atomic_block:
        return
    if not model_version.is_served():
        with _lock:
            if not model_version.is_served():
                version = cache_versions.current(model_version.CACHE_VERSION)
                _serve(stored())
                model_version.set_served(version)
    model_version.begin_work()


def _before_task(**signal: Any) -> None:
    follow()


def start() -> None:
    """Follow in the processes of the task queue and in commands, too; called once at start-up."""
    pre_execute.connect(_before_task)
    model_version.register_follower(follow)


def served() -> Mapping[str, EntityDefinition]:
    """The definitions that this process serves, by name."""
    return _served


def _serve(definitions: dict[str, EntityDefinition]) -> None:
    rebuilt = _to_rebuild(definitions)
    removed = [name for name in _served if name not in definitions or name in rebuilt]
    for name in removed:
        apps.all_models[APP].pop(_served[name].singular.lower(), None)
    # A repository that is not rebuilt keeps the enum types of its former definition.
    serving = {name: each if name in rebuilt else _served[name] for name, each in definitions.items()}
    built: list[Repository[Any]] = []
    for name in sorted(rebuilt):
        try:
            built.append(build(definitions[name], definitions))
        except Exception:
            # A definition that cannot be built must not prevent the others.
            logger.exception("the custom entity %s cannot be served", name)
    # Before the repositories, so that other threads find the enum types of their attributes.
    enum_types.exchange(PREFIX, (enum for each in serving.values() for enum in each.enum_types))
    repositories.exchange([name for name in removed if name in repositories], built)
    _served.clear()
    _served.update(serving)
    apps.clear_cache()
    for listener in _listeners:
        listener()


def _to_rebuild(definitions: Mapping[str, EntityDefinition]) -> set[str]:
    """Names of new and changed definitions, their owners, and those whose models refer to one of them."""
    changed = {name for name, definition in definitions.items() if _served.get(name) != definition}
    lost = _served.keys() - definitions.keys()
    owners = {_served[name].owner for name in lost} | {definitions[name].owner for name in changed}
    owners |= {_served[name].owner for name in changed & _served.keys()}
    changed |= owners & definitions.keys()
    while True:
        referring = {name for name, each in definitions.items() if name not in changed and each.targets & changed}
        if not referring:
            return changed
        changed |= referring
