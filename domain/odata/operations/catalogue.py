"""The catalogue of operations: functions and actions, unbound and bound (spec 02, 2.4).

One operation is one class with typed parameters; $metadata, OpenAPI, routing and the script bridge read it.

    @operations.register
    class GetVersion(Operation):
        name = "GetVersion"
        is_function = True
        returns = "Erp.OpenObject"

        def run(self, call: OperationCall) -> Result:
            return Result({"version": "1.0"}, is_object=True)
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, Literal

from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.model.values import check_characters
from domain.odata.message.message import JSON, TEXT
from domain.query.base.representation import OPERATION_NAMES, is_operation
from foundation import errors
from foundation.catalogue import Catalogue
from foundation.enums import EnumType
from foundation.error_summaries import ErrorSummary
from foundation.streamed_responses import Push
from identity.context import CallContext

if TYPE_CHECKING:
    from domain.dataset.dataset import Dataset
    from domain.dataset.records.record import Record

Scope = Literal["read", "update", "exec"]
#: `bound_to` of operations of every entity.
EVERY_ENTITY = "*"
#: `bound_to` of operations of documents.
DOCUMENTS = "documents"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter.

    type       an Edm or Erp type name; "Erp.<entity type>" takes a reference and gives the guid; "json" any JSON value
    optional   may be omitted or null, then `default` applies
    """

    name: str
    type: str = "Edm.String"
    optional: bool = False
    default: Any = None


@dataclass(frozen=True, slots=True)
class OperationCall:
    """One call.

    context     the caller
    dataset     the Domain transaction's dataset, or a new one for this request
    arguments   parameter name → JSON value (references: guid), with defaults of optional ones
    record      the bound entity; None for unbound operations
    transaction_id   of the Domain transaction, or None
    body        raw bytes for operations that take no JSON (`raw_body`)
    headers     request headers, lower-case names
    body_file   a body that may be too large for memory; then `body` is empty
    query       the query string, for operations that take no JSON
    """

    context: CallContext
    dataset: Dataset
    arguments: Mapping[str, Any]
    record: Record | None = None
    transaction_id: str | None = None
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    body_file: BinaryIO | None = None
    query: str = ""

    @property
    def bound(self) -> Record:
        """The bound entity, of a bound operation."""
        assert self.record is not None
        return self.record


@dataclass(frozen=True, slots=True)
class Result:
    """The result of an operation.

    value      JSON value: wrapped as {"@odata.context", "value"}; a dict with `is_object` is merged beside the context
    bare       the value is the whole response, without a context
    failure    the response is this error, but earlier commits stay (a script that commits, then throws)
    record     an entity, rendered by the read engine
    records    entities in this order, as `returns` says, rendered by the read engine with the caller's query options
    no_content respond with 204
    text       respond with text/plain (BeginTransaction) unless the caller accepts only JSON
    push       sends the response later; in a batch, which has one response for all, `value` is the response
    error      of the first object that an import refused; failed_parts: their number
    """

    value: Any = None
    is_object: bool = False
    bare: bool = False
    failure: errors.PlatformError | None = None
    record: Record | None = None
    records: Sequence[Record] | None = None
    no_content: bool = False
    text: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    push: Push | None = None
    error: ErrorSummary | None = None
    failed_parts: int = 0


class Operation:
    """Base of every operation.

    bound_to        "" unbound; a repository's dotted name; EVERY_ENTITY; DOCUMENTS
    is_function     GET without side effects; else POST
    members         the properties of the operation's own complex result type; `returns` names the type
    scope           required scope of the token
    commits         the request commits the dataset if the operation succeeds outside a Domain transaction
    raw_body        the body is not JSON
    takes_text      the response is text/plain, and clients send its JSON arguments with that type, too
    needs           required permission on the entity that an action is bound to
    creates         an action whose result is the entity that it creates
    """

    name: ClassVar[str] = ""
    bound_to: ClassVar[str] = ""
    is_function: ClassVar[bool] = False
    parameters: ClassVar[tuple[Parameter, ...]] = ()
    returns: ClassVar[str | None] = None
    members: ClassVar[tuple[Parameter, ...]] = ()
    scope: ClassVar[Scope] = "read"
    commits: ClassVar[bool] = True
    raw_body: ClassVar[bool] = False
    takes_text: ClassVar[bool] = False
    needs: ClassVar[Literal["read", "update"]] = "update"
    creates: ClassVar[bool] = False
    description: ClassVar[str] = ""

    def run(self, call: OperationCall) -> Result:
        """Run the operation. Raises PlatformError."""
        raise NotImplementedError

    def perform(self, call: OperationCall) -> Result:
        """Run the operation; events treat an action's changes as the caller's (spec 05, 5.1). Raises PlatformError.

        A writing operation gets a complete bound entity, so that rules judge what the commit would store. Actions that
        do not commit (transactions, scripts) change nothing themselves.
        """
        if self.writes and call.record is not None:
            call.dataset.complete(call.record)
        if self.is_function or not self.commits:
            return self.run(call)
        with call.dataset.operating():
            return self.run(call)

    @property
    def is_listed(self) -> bool:
        """Whether the service document lists it: a function without parameters, callable by its URL alone."""
        return self.is_function and not self.bound_to and not self.parameters

    @property
    def entities(self) -> Repository[Any] | None:
        """The repository of the entities in a result that is a collection of entities; None for other results."""
        element = (self.returns or "").removeprefix("Collection(")
        return repositories.for_type(element[:-1]) if element != self.returns else None

    @property
    def entity(self) -> Repository[Any] | None:
        """The repository of a result that is one entity; None for other results."""
        returns = self.returns or ""
        return repositories.for_type(returns) if returns.startswith("Erp.") else None

    @property
    def writes(self) -> bool:
        """Whether a call changes data: an action that commits, or a function that creates what it returns."""
        return self.commits and (not self.is_function or self.scope == "update")

    @property
    def served(self) -> tuple[str, ...]:
        """The media types of the response, the default first; none without content."""
        if self.returns is None:
            return ()
        return (TEXT, JSON) if self.takes_text else (JSON,)

    def applies_to(self, repository: Repository[Any]) -> bool:
        """Whether the operation is bound to the repository's entities."""
        if self.bound_to == EVERY_ENTITY:
            return True
        if self.bound_to == DOCUMENTS:
            return repository.is_document
        return bool(self.bound_to) and issubclass(repository.model, repositories[self.bound_to].model)


class Operations(Catalogue[Operation]):
    """The catalogue of operations. Several may share a name, in any case, if they are bound to different entities."""

    def __init__(self) -> None:
        super().__init__("operation", pattern=r"[a-z]\w*( on [\w.*]+)?")
        self._bound: dict[str, list[Operation]] = {}

    def add(self, name: str, item: Operation) -> None:
        """Add an operation. Raises ValueError for a name that is missing, malformed or taken for the same binding."""
        key = name.lower()
        super().add(f"{key} on {item.bound_to}" if name and item.bound_to else key, item)
        OPERATION_NAMES.add(key)
        if item.bound_to:
            self._bound.setdefault(key, []).append(item)

    def unbound(self, name: str) -> Operation | None:
        """The unbound operation of this name, in any case, with or without a namespace."""
        return self.get(name.rpartition(".")[2].lower())

    def bound(self, repository: Repository[Any], name: str) -> Operation | None:
        """The operation of this name bound to the repository's entities."""
        overloads = self._bound.get(name.rpartition(".")[2].lower(), ()) if is_operation(name) else ()
        return next((operation for operation in overloads if operation.applies_to(repository)), None)

    def all(self) -> list[Operation]:
        """Every operation: unbound ones first, then by name."""
        return sorted(self, key=lambda operation: (bool(operation.bound_to), operation.name, operation.bound_to))

    def of(self, repository: Repository[Any]) -> list[Operation]:
        """The operations bound to the repository's entities, by name."""
        return [operation for operation in self.all() if operation.bound_to and operation.applies_to(repository)]


operations = Operations()


def _typed(operation: Operation, parameter: Parameter, value: Any) -> Any:
    """The value converted to its declared type; references and JSON are left to the operation.

    Arguments of functions are in URLs, where any value may be written as text, and text without quotes.
    """
    in_url = str(value) if operation.is_function and not isinstance(value, bool | list | dict) else None
    match parameter.type, value:
        case _, None:
            return None
        case "Edm.String", str():
            check_characters(value, parameter.name)
            return value
        case "Edm.String", _ if in_url is not None:
            return in_url
        case "Edm.Boolean", bool():
            return value
        case "Edm.Boolean", _ if in_url is not None and in_url.lower() in ("true", "false"):
            return in_url.lower() == "true"
        case "Edm.Int32", Decimal() if value == value.to_integral_value() and abs(value) < 2**32:
            return _typed(operation, parameter, int(value))
        case "Edm.Int32", int() if not isinstance(value, bool) and -(2**31) <= value < 2**31:
            return value
        case "Edm.Int32", str() if in_url is not None and re.fullmatch(r"-?[0-9]{1,10}", in_url):
            return _typed(operation, parameter, int(in_url))
        case (("Edm.String" | "Edm.Boolean" | "Edm.Int32"), _):
            raise errors.BadRequest(
                errors.INVALID_LITERAL, value, parameter.type, parameter.name, target=parameter.name
            )
    return value


def check_arguments(operation: Operation, given: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments by declared name, in declared order, with defaults; null for an optional one is its default.

    Raises BadRequest for an unknown name, one given twice, a missing or null required one, and a value of another type.
    """
    declared = {parameter.name.lower(): parameter for parameter in operation.parameters}
    named: dict[str, Any] = {}
    for name, value in given.items():
        parameter = declared.get(name.lower())
        if parameter is None:
            raise errors.unknown_parameter(operation.name, name, [each.name for each in operation.parameters])
        if parameter.name in named:
            raise errors.repeated_parameter(parameter.name)
        named[parameter.name] = _typed(operation, parameter, value)
    arguments: dict[str, Any] = {}
    for parameter in operation.parameters:
        if named.get(parameter.name) is not None:
            arguments[parameter.name] = named[parameter.name]
        elif parameter.optional:
            arguments[parameter.name] = parameter.default
        else:
            raise errors.BadRequest(errors.MISSING_PARAMETER, operation.name, parameter.name, target=parameter.name)
    return arguments


def enum_argument(call: OperationCall, name: str, enum: EnumType) -> str:
    """The member's exact name. Raises BadRequest(INVALID_LITERAL), which names the members."""
    given = call.arguments[name]
    try:
        return enum.member(str(given))
    except ValueError as exc:
        raise errors.BadRequest(errors.INVALID_LITERAL, given, " | ".join(enum.members), name, target=name) from exc
