"""Index of the active rules in this process: (repository, event) → parameter → rules in order.

Cached under the cache versions "rules" (bumped by every commit of a rule or its children) and "custom_properties", and
the registry's generation. So a saved rule applies to the next write, in this process and in others
(foundation.cache_versions).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from domain.model import custom_properties
from domain.model.registry import repositories
from foundation.versioned_cache import VersionedCache
from rules.compiling import CompiledRule, compile_rule, compile_start
from rules.specs import stored_rules

CACHE_VERSION = "rules"

#: parameter ("" for events without one) → rules in order
Triggers = Mapping[str, tuple[CompiledRule, ...]]


@dataclass(frozen=True, slots=True)
class RuleIndex:
    """A consistent set of rules.

    triggers   (repository, event) → rules by parameter
    startable  repository → rules that users can start, by code
    """

    triggers: Mapping[tuple[str, str], Triggers]
    startable: Triggers


def rule_index() -> RuleIndex:
    """The current index."""
    return _index.get()


def _build() -> RuleIndex:
    specs = stored_rules(active_only=True)
    rules = [compiled for spec in specs for compiled in compile_rule(spec)]
    rules.sort(key=lambda rule: rule.order)
    startable: dict[str, tuple[CompiledRule, ...]] = {}
    for rule in filter(None, map(compile_start, specs)):
        for repository in rule.steps:
            startable[repository] = (*startable.get(repository, ()), rule)
    return RuleIndex(_by_trigger(rules), startable)


_index = VersionedCache(_build, CACHE_VERSION, custom_properties.CACHE_VERSION, state=lambda: repositories.generation)


def _by_trigger(rules: list[CompiledRule]) -> dict[tuple[str, str], Triggers]:
    result: dict[tuple[str, str], dict[str, tuple[CompiledRule, ...]]] = {}
    for rule in rules:
        for repository in rule.steps:
            triggers = result.setdefault((repository, rule.event), {})
            triggers[rule.parameter] = (*triggers.get(rule.parameter, ()), rule)
    return dict(result)
