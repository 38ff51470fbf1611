"""Scopes: resolution of names at a place in a query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from domain.query.base.bound import Bound, Output, Source
from foundation.messages import TranslatableMessage as Message

_NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Scope:
    """The names at one place of a query: lambda variables, then computed names, then the members of `this`.

    this        the row whose members need no prefix; None in a relation that is no set of entities
    it          the row of `$it`: of the set that the request addresses
    variables   lambda variables by name
    computed    $compute names and aliases of $apply, by name
    outputs     columns of a derived relation by path ("Amount", "Customer/Number"); it replaces `this`
    label       name of the row's type in messages
    """

    this: Source | None
    it: Source | None = None
    variables: Mapping[str, Source] = field(default_factory=lambda: _NOTHING)
    computed: Mapping[str, Bound] = field(default_factory=lambda: _NOTHING)
    outputs: Mapping[str, Output] = field(default_factory=lambda: _NOTHING)
    label: str = ""

    def with_variable(self, name: str, source: Source) -> Scope:
        """The scope inside a lambda."""
        return replace(self, variables={**self.variables, name: source})

    def with_computed(self, computed: Mapping[str, Bound]) -> Scope:
        """The scope after a $compute."""
        return replace(self, computed={**self.computed, **computed})

    @property
    def type_label(self) -> str:
        if self.this is not None:
            return self.this.repository.set_name
        return self.label or Message("the result of $apply")


def entity_scope(source: Source) -> Scope:
    """The scope of a set's rows."""
    return Scope(source, source)
