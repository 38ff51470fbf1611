"""Resolves $select and $expand of one entity to the members of its JSON object (Part 2, 5.1.3 and 5.1.4)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from domain.model import calculated_attributes
from domain.model.attributes import Attribute, Child
from domain.model.custom_properties import definitions, named
from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.query.base.representation import NAMESPACES, is_operation
from domain.query.bind.sources import unknown
from domain.syntax import ast
from foundation import errors
from foundation.kinds import Kind
from foundation.messages import TranslatableMessage as Message

_CUSTOM_MEMBERS = ("Value", "Description", "ValueId")


def _members(attribute: Attribute, item: ast.SelectItem) -> tuple[str, ...]:
    """The selected members of a complex value; none for all of them. Raises BadRequest for an unknown one."""
    paths = [item.path[1:], *(inner.path for inner in item.options.select)]
    if attribute.is_measured:
        known = ("Value", "Currency" if attribute.kind is Kind.AMOUNT else "Unit")
        for path in paths:
            _check_members(path, known, attribute.kind.value)
    elif attribute.kind is Kind.MULTILANGUAGE:
        for path in paths:
            _check_members(path[1:], (), attribute.kind.value)
    return tuple(path[0].name for path in paths if path and isinstance(path[0], ast.NameStep))


def _check_members(path: Sequence[ast.Step], known: Sequence[str], where: str) -> None:
    """Raise BadRequest unless the path is empty or one of the known members, which have no members themselves."""
    names = [step.name for step in path if isinstance(step, ast.NameStep)]
    for name in names[1:] if names and names[0].lower() in map(str.lower, known) else names:
        unknown(name, known, where)


@dataclass(slots=True)
class SelectedMembers:
    """The members of one entity.

    names          member → members of its complex value; () for all of them
    casts          derived type → items of $select after it
    expands        navigation property → item of $expand
    cast_expands   derived type → items of $expand after it
    _named         navigation properties that $expand names, apart from `*`
    """

    names: dict[str, tuple[str, ...]] = field(default_factory=dict)
    casts: dict[str, list[ast.SelectItem]] = field(default_factory=dict)
    expands: dict[str, ast.ExpandItem] = field(default_factory=dict)
    cast_expands: dict[str, list[ast.ExpandItem]] = field(default_factory=dict)
    _named: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, repository: Repository[Any], options: ast.QueryOptions, computed: Iterable[str]) -> SelectedMembers:
        """The selected members; without $select the default ones and those of $compute."""
        result = cls()
        if not options.select:
            result._add_defaults(repository, computed)
        for item in options.select:
            result.select(repository, item, computed)
        for expand in options.expand:
            result.expand(repository, expand)
        return result

    def _add_defaults(self, repository: Repository[Any], computed: Iterable[str]) -> None:
        self.names.update(dict.fromkeys((each.name for each in repository.default_members), ()))
        self.names.update(dict.fromkeys(computed, ()))

    def select(self, repository: Repository[Any], item: ast.SelectItem, computed: Iterable[str]) -> None:
        """Add an item of $select. Raises BadRequest for an unknown name."""
        step = item.path[0]
        if isinstance(step, ast.StarStep):
            self.names.update(dict.fromkeys((*repository.attributes, *definitions(repository.name), *computed), ()))
            return
        if isinstance(step, ast.AllOperationsStep) and step.namespace.lower() not in NAMESPACES:
            unknown(f"{step.namespace}.*", (), repository.set_name)
        if not isinstance(step, ast.NameStep):
            return  # annotations and operations have no values here
        name = step.name
        if item.parameters and not is_operation(name):
            raise errors.BadRequest(
                errors.BAD_QUERY_OPTION, "$select", Message("{0} is no operation with parameters", name), target=name
            )
        if name in computed:
            self.names[name] = ()
            return
        attribute = repository.attribute(name)
        if attribute is not None:
            if attribute.is_reference and len(item.path) > 1:
                self._select_behind(attribute, item)
                return
            members = _members(attribute, item)
            if replace(item.options, select=()) != ast.NO_OPTIONS:
                raise errors.NotSupported(Message("options other than $select behind {0} in $select", name))
            if members and attribute.is_reference:
                raise errors.NotSupported(Message("$select of {0}/{1}; expand {2} instead", name, members[0], name))
            if members and attribute.kind not in (Kind.AMOUNT, Kind.QUANTITY, Kind.MULTILANGUAGE):
                unknown(members[0], (), attribute.kind.value)
            known = self.names.get(attribute.name)
            # The whole value contains its members.
            self.names[attribute.name] = () if not members or known == () else (*(known or ()), *members)
            return
        child = repository.collection(name)
        if child is not None and len(item.path) > 1:
            self._select_behind(child, item)
            return
        if child is not None:
            self.expands.setdefault(child.name, ast.ExpandItem((step,), options=item.options))
            return
        custom = named(repository.name, name)
        if custom is not None:
            _check_members(item.path[1:], _CUSTOM_MEMBERS, "Erp.CustomPropertyValue")
            self.names[custom.api_name] = ()
        elif name.lower() == "default":
            self._add_defaults(repository, computed)
        elif (calculated := calculated_attributes.definition(repository, name)) is not None:
            _check_members(item.path[1:], (), calculated.api_name)
            self.names[calculated.api_name] = ()
        elif repositories.for_type(name) is not None and len(item.path) > 1:
            self.casts.setdefault(name, []).append(replace(item, path=item.path[1:]))
        elif not is_operation(name):
            unknown(name, [*repository.attributes, *repository.collections, *computed], repository.set_name)

    def _select_behind(self, navigation: Attribute | Child, item: ast.SelectItem) -> None:
        """`$select=Customer/Number`, `Lines/Quantity`: the navigation property is expanded with the selected member."""
        inner = replace(item, path=item.path[1:])
        known = self.expands.get(navigation.name)
        options = known.options if known is not None else ast.NO_OPTIONS
        step = ast.NameStep(navigation.name)
        self.expands[navigation.name] = ast.ExpandItem(
            (step,), options=replace(options, select=(*options.select, inner))
        )

    def expand(self, repository: Repository[Any], item: ast.ExpandItem) -> None:
        """Add an item of $expand. Raises BadRequest for an unknown name, NotSupported for other paths."""
        step = item.path[0]
        if isinstance(step, ast.StarStep):
            for name in (*repository.references, *repository.collections):
                star = replace(item, path=(ast.NameStep(name),))
                self.expands.setdefault(name, star)
            return
        if not isinstance(step, ast.NameStep):
            raise errors.NotSupported(Message("annotations in $expand"))
        attribute, child = repository.attribute(step.name), repository.collection(step.name)
        if attribute is None and child is None and repositories.for_type(step.name) is not None and len(item.path) > 1:
            self.cast_expands.setdefault(step.name, []).append(replace(item, path=item.path[1:]))
            return
        if (attribute is None or not attribute.is_reference) and child is None:
            known = [*repository.references, *repository.collections]
            if attribute is not None:
                raise errors.BadRequest(
                    errors.BAD_QUERY_OPTION, "$expand", Message("{0} is not a navigation property", attribute.name)
                )
            unknown(step.name, known, repository.set_name)
        name = child.name if child is not None else attribute.name if attribute is not None else ""
        if len(item.path) > 1:
            behind = item.path[1]
            is_cast = isinstance(behind, ast.NameStep) and repositories.for_type(behind.name) is not None
            if not is_cast or len(item.path) > 2:
                raise errors.NotSupported(Message("a path behind {0} in $expand; nest it in parentheses", name))
            if child is not None:
                raise errors.NotSupported(
                    Message("a type behind the collection {0} in $expand; filter it with isof", name)
                )
        # A count may be requested beside the entities.
        member = f"{name}/$count" if item.kind is ast.ExpandKind.COUNT else name
        if member in self._named:
            raise errors.BadRequest(errors.BAD_QUERY_OPTION, "$expand", Message("{0} stands in it twice", member))
        self._named.add(member)
        self.expands[member] = item
