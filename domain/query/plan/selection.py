"""Compiles $select, $expand and $compute to the JSON object of one entity (Part 2, 5.1.2 to 5.1.4; spec 02, 2.2).

Without $select an entity has its default members (Repository.default_members); `default` in $select names them, `*`
every attribute. A reference that is not expanded is a link. A selected child collection is expanded. References are
expanded by joins; collections, and references beyond the limit of joins, by one further query each (batches).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from domain.model.attributes import Attribute, Child
from domain.model.custom_properties import definitions
from domain.model.members import DISPLAY_TEXT
from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.query.base.bound import (
    STRING,
    Bound,
    Call,
    ConcreteType,
    Sort,
    Source,
    fixed,
    python_operator,
)
from domain.query.base.representation import ShapeKey
from domain.query.base.scope import Scope
from domain.query.bind.binder import Binder
from domain.query.bind.paths import member_of
from domain.query.bind.sources import cast_source, column, custom_value, follow, measure_text, reference_column, unknown
from domain.query.bind.texts import as_scalar
from domain.query.plan.calculated import ComputedBatch, calculated_pairs
from domain.query.plan.dynamic_types import is_text_in_ieee754, type_control
from domain.query.plan.selected_members import SelectedMembers
from domain.query.run.row_json import RowCode
from domain.query.sql.compiler import Compiler
from domain.syntax import ast
from foundation import errors
from foundation.kinds import Kind
from foundation.messages import TranslatableMessage as Message

#: Maximum of joins that expanded references add to one SELECT; SQLite joins at most 64 tables.
MAX_EXPANDED_JOINS = 24
MAX_LEVELS = 10
MAX_EXPAND_DEPTH = 12

_EDM_NAMES = {
    Kind.GUID: "#Guid",
    Kind.INT: "#Int32",
    Kind.DECIMAL: "#Decimal",
    Kind.DATE: "#Date",
    Kind.DATETIME: "#DateTimeOffset",
    Kind.BINARY: "#Binary",
    Kind.AMOUNT: "#Erp.Amount",
    Kind.QUANTITY: "#Erp.Quantity",
    Kind.MULTILANGUAGE: "#Erp.MultilanguageString",
}


@dataclass(frozen=True, slots=True)
class PathToIt:
    """The references that lead from a batch's rows to the row of `$it`, and the type of that row."""

    references: tuple[Attribute, ...]
    repository: Repository[Any]

    def follow(self, binder: Binder, source: Source) -> Source:
        """The row of `$it` as seen from a row of the batch."""
        for reference in self.references:
            source = follow(binder, source, reference)
        return cast_source(source, self.repository)


@dataclass(frozen=True, slots=True)
class Batch:
    """An expanded collection, its count, or an expanded reference, fetched for all rows by one query.

    position     of the batch in `g`
    key_column   position of the batch's key in the parent row
    as_objects   single rows are objects, not JSON, as members are added to them
    it           path to the row of `$it`; None if no reference leads there
    """

    position: int
    key_column: int
    repository: Repository[Any]
    back: Attribute
    kind: ast.ExpandKind
    options: ast.QueryOptions
    depth: int
    single: bool = False
    as_objects: bool = False
    it: PathToIt | None = None


class EntityCode:
    """Builds the expression of one SELECT's entities. `it`: the row of `$it`, of the set that the request addresses."""

    def __init__(
        self, binder: Binder, compiler: Compiler, code: RowCode, shape: ShapeKey, it: Source | None = None
    ) -> None:
        self.binder = binder
        self.it = it
        self.compiler = compiler
        self.code = code
        self.metadata, self.skip_nulls, self.version = shape.metadata, shape.skip_nulls, shape.version
        self._ieee754 = shape.ieee754
        self.batches: list[Batch | ComputedBatch] = []
        self._joined = 0

    def entity(
        self,
        source: Source,
        options: ast.QueryOptions,
        depth: int = 0,
        computed: Mapping[str, Bound] | None = None,
    ) -> str:
        """The dict expression of one row."""
        if depth > MAX_EXPAND_DEPTH:
            raise errors.NotSupported(Message("$expand deeper than {0} levels", MAX_EXPAND_DEPTH))
        if computed is None:
            computed = self._compute(source, options)
        selected = SelectedMembers.of(source.repository, options, computed)
        pairs = self._annotations(source)
        for name, members in selected.names.items():
            pairs += self._member(source, name, members, selected, computed, depth)
        for name, item in selected.expands.items():
            if name not in selected.names or source.repository.collection(name) is not None:
                pairs += self._expanded(source, name, item, depth)
        for type_name, items in selected.casts.items():
            pairs.append(self._derived(source, type_name, items, selected.cast_expands.pop(type_name, []), depth))
        for type_name, expands in selected.cast_expands.items():
            pairs.append(self._derived(source, type_name, [], expands, depth))
        if self.metadata == "full" and not options.select:
            named = {*selected.names, *selected.expands}
            for name in (*source.repository.references, *source.repository.collections):
                if name not in named:
                    pairs += self._links(source, name)
        return "{" + ", ".join(pairs) + "}"

    def _compute(self, source: Source, options: ast.QueryOptions) -> Mapping[str, Bound]:
        """Nested $compute of an expanded reference."""
        return self.binder.compute(options.compute, Scope(source, self.it)).computed

    # --- members --------------------------------------------------------------------------------------------------

    def _annotations(self, source: Source) -> list[str]:
        repository, code = source.repository, self.code
        if self.metadata == "none":
            return []
        pairs = []
        key = code.column(self.compiler.block.key(source), column(source, repository.id).type)
        pairs.append(f'"@odata.id": {f"{repository.set_name}("!r} + r[{key}] + ")"')
        if repository.is_root:
            version = column(source, repository.attributes["ObjectVersion"])
            position = code.column(self.compiler.value(version), version.type)
            pairs.append(f'"@odata.etag": f\'W/"{{r[{position}]}}"\'')
        full = self.metadata == "full"
        own = {"@odata.type": f"#Erp.{repository.entity_type}"}
        if repository.is_polymorphic and repository.subtypes:
            concrete = ConcreteType(STRING, False, source)
            position = code.column(self.compiler.value(concrete), STRING)
            types: dict[str, Any] = {
                subtype.name: {"@odata.type": f"#Erp.{subtype.entity_type}"} for subtype in repository.subtypes
            }
            pairs.append(f"**{code.constant(types)}.get(r[{position}], {code.constant(own) if full else 'E'})")
        elif full:
            pairs.append(f'"@odata.type": {own["@odata.type"]!r}')
        if full:
            pairs.append(f'"@odata.editLink": {f"{repository.set_name}("!r} + r[{key}] + ")"')
        return pairs

    def _member(
        self,
        source: Source,
        name: str,
        members: tuple[str, ...],
        selected: SelectedMembers,
        computed: Mapping[str, Bound],
        depth: int,
    ) -> list[str]:
        if name in computed:
            return self._computed(name, computed[name])
        if name in selected.expands:
            return self._expanded(source, name, selected.expands[name], depth)
        attribute = source.repository.attributes.get(name)
        if attribute is None:
            definition = definitions(source.repository.name).get(name)
            if definition is None:
                return self._calculated(source, name)
            return [self._pair(name, custom_value(self.binder, source, definition, member=""))]
        typed = self._type_annotation(source, attribute)
        if attribute.is_reference:
            return [*typed, self._link(source, attribute)]
        if attribute.is_measured:
            return [*typed, self._measured(source, attribute, members)]
        bound = member_of(self.binder, source, name)
        assert isinstance(bound, Bound)
        if members and bound.type.sort is Sort.TEXTS:
            return [*typed, self._languages(name, bound, members)]
        return [*typed, self._pair(name, as_scalar(bound) if attribute.name == DISPLAY_TEXT else bound)]

    def _computed(self, name: str, bound: Bound) -> list[str]:
        """A value of $compute, whose type $metadata does not declare."""
        control = type_control(bound)
        pair = self._pair(name, bound)
        if self._ieee754 and is_text_in_ieee754(control, bound):
            value = pair.partition(": ")[2]
            pair = f"{name!r}: (None if {value} is None else str({value}))"
        if not control or self.metadata == "none":
            return [pair]
        return [f"{name + '@odata.type'!r}: {control!r}", pair]

    def _calculated(self, source: Source, name: str) -> list[str]:
        """A calculated attribute, as columns or from a batch."""
        value = self.binder.calculated(source, name)
        if value is None:
            unknown(name, (), source.repository.set_name)
        if python_operator((value.bound, value.failed_row)) is None:
            return calculated_pairs(name, value, self.compiler, self.code)
        key = self.code.column(self.compiler.block.key(source), column(source, source.repository.id).type)
        for batch in self.batches:
            if isinstance(batch, ComputedBatch) and batch.key_column == key:
                batch.names.append(name)
                return []
        self.batches.append(ComputedBatch(key, source.repository, [name]))
        return [f"**g[{len(self.batches) - 1}].get(r[{key}], E)"]

    def _type_annotation(self, source: Source, attribute: Attribute) -> list[str]:
        if self.metadata != "full":
            return []
        if attribute.is_reference:
            return self._links(source, attribute.name)
        name = _EDM_NAMES.get(attribute.kind)
        if name is None and attribute.enum is not None:
            name = f"#Erp.{attribute.enum.edm_name}"
        return [f"{attribute.name + '@odata.type'!r}: {name!r}"] if name else []

    def _links(self, source: Source, name: str) -> list[str]:
        """The navigation link and the association link of a navigation property (OData JSON 4.01, 8.1 and 8.2)."""
        if self.metadata != "full":
            return []
        key = self.code.column(self.compiler.block.key(source), column(source, source.repository.id).type)
        entity = f"{f'{source.repository.set_name}('!r} + r[{key}]"
        return [
            f"{f'{name}@odata.associationLink'!r}: {entity} + {f')/{name}/$ref'!r}",
            f"{f'{name}@odata.navigationLink'!r}: {entity} + {f')/{name}'!r}",
        ]

    def _pair(self, name: str, bound: Bound) -> str:
        value = self.compiler.value(bound)
        if bound.type.sort is Sort.NULL:
            return f"{name!r}: None"
        target_set = repositories[bound.type.target].set_name if bound.type.sort is Sort.REFERENCE else ""
        return f"{name!r}: {self.code.value(self.code.column(value, bound.type), bound.type, target_set=target_set)}"

    def _link(self, source: Source, attribute: Attribute) -> str:
        bound = reference_column(self.binder, source, attribute)
        position = self.code.column(self.compiler.value(bound), bound.type)
        target_set = repositories[attribute.target].set_name
        return f"{attribute.name!r}: {self.code.value(position, bound.type, target_set=target_set)}"

    def _measured(self, source: Source, attribute: Attribute, members: tuple[str, ...]) -> str:
        bound = column(source, attribute)
        position = self.code.column(self.compiler.value(bound), bound.type)
        lowered = {member.lower() for member in members}
        parts = []
        if not lowered or "value" in lowered:
            if self.metadata == "full":
                parts.append('"Value@odata.type": "#Decimal"')
            parts.append(f'"Value": {self.code.value(position, bound.type)}')
        measure_name = "Currency" if attribute.kind is Kind.AMOUNT else "Unit"
        if not lowered or measure_name.lower() in lowered:
            measure = measure_text(self.binder, source, attribute)
            if measure is None:
                parts.append(f"{measure_name!r}: None")
            else:
                scalar = as_scalar(measure)
                unit = self.code.column(self.compiler.value(scalar), scalar.type)
                parts.append(f"{measure_name!r}: r[{unit}]")
        return f"{attribute.name!r}: (None if r[{position}] is None else {{{', '.join(parts)}}})"

    def _languages(self, name: str, bound: Bound, members: tuple[str, ...]) -> str:
        whole = self.code.column(self.compiler.value(bound), bound.type)
        parts = []
        for language in members:
            text = Call(STRING, True, "text_in", (bound, fixed(language.upper(), STRING)))
            position = self.code.column(self.compiler.value(text), STRING)
            parts.append(f"{language.upper()!r}: r[{position}]")
        return f"{name!r}: (None if r[{whole}] is None else {{{', '.join(parts)}}})"

    def _derived(
        self,
        source: Source,
        type_name: str,
        items: list[ast.SelectItem],
        expands: list[ast.ExpandItem],
        depth: int,
    ) -> str:
        """Members of a derived type, for the rows of that type."""
        repository = self._derived_type(ast.NameStep(type_name), source.repository)
        derived = cast_source(source, repository)
        selected = SelectedMembers()
        for item in items:
            selected.select(repository, item, ())
        for expand in expands:
            selected.expand(repository, expand)
        pairs: list[str] = []
        for name, members in selected.names.items():
            pairs += self._member(derived, name, members, selected, {}, depth)
        for name, expand in selected.expands.items():
            if name not in selected.names:
                pairs += self._expanded(derived, name, expand, depth)
        key = self.code.column(self.compiler.block.key(derived), column(derived, repository.id).type)
        return f"**({{{', '.join(pairs)}}} if r[{key}] is not None else E)"

    @staticmethod
    def _derived_type(step: ast.Step, base: Repository[Any]) -> Repository[Any]:
        name = step.name if isinstance(step, ast.NameStep) else ""
        repository = repositories.for_type(name)
        if repository is None or not issubclass(repository.model, base.model):
            unknown(name, (), base.set_name)
        return repository

    # --- expansion ------------------------------------------------------------------------------------------------

    def _expanded(self, source: Source, name: str, item: ast.ExpandItem, depth: int) -> list[str]:
        is_count = name.endswith("/$count")
        name = name.removesuffix("/$count")
        attribute = source.repository.references.get(name)
        if attribute is None:
            child = source.repository.collections[name]
            links = [] if is_count else self._links(source, name)
            return [*links, *self._collection(source, child, item, depth)]
        return [*self._links(source, name), *self._expanded_reference(source, attribute, item, depth)]

    def _expanded_reference(self, source: Source, attribute: Attribute, item: ast.ExpandItem, depth: int) -> list[str]:
        name = attribute.name
        options = _next_level(item, repositories[attribute.target])
        if options.filter is not None or options.search is not None or options.orderby or options.top or options.skip:
            raise errors.BadRequest(
                errors.BAD_QUERY_OPTION,
                "$expand",
                Message("{0} is a single entity; $filter, $orderby … do not fit", name),
            )
        if item.kind is ast.ExpandKind.REF:
            return [self._link(source, attribute)]
        if item.kind is not ast.ExpandKind.ENTITIES:
            raise errors.BadRequest(errors.BAD_QUERY_OPTION, "$expand", Message("{0} is a single entity", name))
        target = follow(self.binder, source, attribute)
        if len(item.path) > 1:
            target = cast_source(target, self._derived_type(item.path[1], target.repository))
        elif self._joined >= MAX_EXPANDED_JOINS:
            return [self._batched_reference(source, attribute, options, depth)]
        self._joined += 1
        key = self.code.column(self.compiler.block.key(target), column(target, target.repository.id).type)
        with self.binder.with_aliases(*options.aliases):
            inner = self.entity(target, options, depth + 1)
        return [f"{name!r}: (None if r[{key}] is None else {inner})"]

    def _batched_reference(self, source: Source, attribute: Attribute, options: ast.QueryOptions, depth: int) -> str:
        bound = reference_column(self.binder, source, attribute)
        key = self.code.column(self.compiler.value(bound), bound.type)
        target = repositories[attribute.target]
        position = self._add(key, target, target.id, ast.ExpandKind.ENTITIES, options, depth, single=True)
        return f"{attribute.name!r}: g[{position}].get(r[{key}])"

    def _collection(self, source: Source, child: Child, item: ast.ExpandItem, depth: int) -> list[str]:
        key = self.code.column(self.compiler.block.key(source), column(source, source.repository.id).type)
        repository = repositories[child.repository]
        back = repository.references[child.back_reference]
        options = _next_level(item, repository)
        it = self._path_to_it(source, back)
        pairs = []
        if item.kind is ast.ExpandKind.COUNT or options.count:
            counted = replace(options, select=(), expand=(), orderby=(), top=None, skip=None)
            position = self._add(key, repository, back, ast.ExpandKind.COUNT, counted, depth, it=it)
            number = f"g[{position}].get(r[{key}], 0)"
            pairs.append(f"{child.name + '@odata.count'!r}: {f'str({number})' if self._ieee754 else number}")
        if item.kind is not ast.ExpandKind.COUNT:
            position = self._add(key, repository, back, item.kind, options, depth, it=it)
            # `[]` is a new list for each row, as callers may change the rows.
            pairs.append(f"{child.name!r}: g[{position}].get(r[{key}]) or []")
        return pairs

    def _add(
        self,
        key: int,
        repository: Repository[Any],
        back: Attribute,
        kind: ast.ExpandKind,
        options: ast.QueryOptions,
        depth: int,
        *,
        single: bool = False,
        it: PathToIt | None = None,
    ) -> int:
        position = len(self.batches)
        # The batch is planned outside of the options around it, whose aliases it may use.
        own = {alias.name for alias in options.aliases}
        outer = (ast.AliasValue(name, value) for name, value in self.binder.aliases.items() if name not in own)
        options = replace(options, aliases=(*options.aliases, *outer))
        self.batches.append(Batch(position, key, repository, back, kind, options, depth + 1, single, it=it))
        return position

    def _path_to_it(self, owner: Source, back: Attribute) -> PathToIt | None:
        """The path from the rows of an owned collection to `$it`; None if their owner is not the row of the SELECT."""
        while owner.parent is not None and owner.reference is None:
            owner = owner.parent
        at = self.it
        if owner.parent is not None or at is None:
            return None
        repository, behind = at.repository, list[Attribute]()
        while at.parent is not None:
            if at.reference is not None:
                behind.insert(0, at.reference)
            at = at.parent
        return PathToIt((back, *behind), repository)


def _next_level(item: ast.ExpandItem, target: Repository[Any]) -> ast.QueryOptions:
    """The nested options with those that $levels adds (5.1.3.1)."""
    options = item.options
    if options.apply:
        raise errors.NotSupported(Message("$apply inside $expand"))
    if options.levels is None:
        return options
    levels = MAX_LEVELS if options.levels == ast.LEVELS_MAX else int(options.levels)
    bare = replace(options, levels=None)
    step = item.path[0]
    name = step.name if isinstance(step, ast.NameStep) else ""
    if levels <= 1 or (name not in target.references and name not in target.collections):
        return bare
    again = replace(item, options=replace(options, levels=min(levels, MAX_LEVELS) - 1))
    return replace(bare, expand=(*bare.expand, again))
