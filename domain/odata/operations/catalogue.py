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
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, Literal

from domain.model.naming import near
from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.model.values import check_characters
from domain.odata.message.message import JSON, TEXT
from foundation import errors
from foundation.long_polls import LongPoll
from identity.context import CallContext

if TYPE_CHECKING:
    from domain.dataset.dataset import Dataset
    from domain.dataset.records.record import Record

Scope = Literal["read", "update", "exec"]
#: `bound_to` of operations that every entity has.
EVERY_ENTITY = "*"
#: `bound_to` of operations that documents have.
DOCUMENTS = "documents"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter.

    type       an Edm or Erp type name; "Erp.<entity type>" takes a reference and gives the guid; "json" any JSON value
    optional   may be left out, then `default` applies
    """

    name: str
    type: str = "Edm.String"
    optional: bool = False
    default: Any = None


@dataclass(frozen=True, slots=True)
class OperationCall:
    """One call.

    context     who calls
    dataset     the Domain transaction's dataset, or one of its own for this request
    arguments   parameter name → JSON value as it came (references: guid), optional ones filled in
    record      the entity it is bound to; None for unbound ones
    transaction_id   of the Domain transaction it runs in, or None
    body        raw bytes for operations that take no JSON (`raw_body`)
    headers     request headers, lower-case names
    body_file   the body, where it was too large for memory; then `body` is empty
    """

    context: CallContext
    dataset: Dataset
    arguments: Mapping[str, Any]
    record: Record | None = None
    transaction_id: str | None = None
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    body_file: BinaryIO | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """What an operation answers.

    value      JSON value: wrapped as {"@odata.context", "value"}; a dict with `is_object` is merged beside the context
    bare       the value is the whole answer, without a context
    failure    the answer is this error, yet what was written before stays (a script that commits, then throws)
    record     an entity, shaped by the read engine
    no_content answer 204
    text       answer text/plain instead (BeginTransaction) unless the caller accepts JSON only
    poll       the answer comes later, with what this waits for; in a batch, which has one answer for all, `value` is it
    """

    value: Any = None
    is_object: bool = False
    bare: bool = False
    failure: errors.PlatformError | None = None
    record: Record | None = None
    no_content: bool = False
    text: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    poll: LongPoll | None = None


class Operation:
    """Base of every operation.

    bound_to        "" unbound; a repository's dotted name; EVERY_ENTITY; DOCUMENTS
    is_function     GET without side effects; else POST
    members         the properties of a complex result type that only this operation has; `returns` names the type
    scope           what the token must hold
    commits         the request commits the dataset when the operation succeeds outside a Domain transaction
    needs_dataset   False where no entity is read or written (no transaction is opened for it)
    raw_body        the body is not JSON
    takes_text      clients call its JSON text/plain, as the answer is
    needs           what the caller must be allowed to do with the entity that an action is bound to
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
    description: ClassVar[str] = ""

    def run(self, call: OperationCall) -> Result:
        """Do it. Raises PlatformError."""
        raise NotImplementedError

    def perform(self, call: OperationCall) -> Result:
        """`run` for a caller: what an action changes, its caller has caused (spec 05, 5.1). Raises PlatformError.

        Actions that leave the commit to others (transactions, scripts) change nothing by themselves.
        """
        if self.is_function or not self.commits:
            return self.run(call)
        with call.dataset.operating():
            return self.run(call)

    @property
    def is_listed(self) -> bool:
        """Whether the service document names it: a function that can be called as its address stands there."""
        return self.is_function and not self.bound_to and not self.parameters

    @property
    def served(self) -> tuple[str, ...]:
        """The media types that the answer can have, the usual one first; none where there is no content."""
        if self.returns is None:
            return ()
        return (TEXT, JSON) if self.takes_text else (JSON,)

    def applies_to(self, repository: Repository[Any]) -> bool:
        """Whether it is bound to the repository's entities."""
        if self.bound_to == EVERY_ENTITY:
            return True
        if self.bound_to == DOCUMENTS:
            return repository.is_document
        return bool(self.bound_to) and issubclass(repository.model, repositories[self.bound_to].model)


class Operations:
    """Operations by name, bound and unbound apart."""

    def __init__(self) -> None:
        self._unbound: dict[str, Operation] = {}
        self._bound: dict[str, list[Operation]] = {}

    def register(self, declaration: type[Operation]) -> type[Operation]:
        """Class decorator. A name taken for the same binding fails at start-up."""
        if not declaration.name:
            raise ValueError(f"operation {declaration.__name__} has no name")
        operation = declaration()
        key = operation.name.lower()
        if not operation.bound_to:
            if key in self._unbound:
                raise ValueError(f"operation {operation.name} is registered twice")
            self._unbound[key] = operation
        else:
            overloads = self._bound.setdefault(key, [])
            if any(other.bound_to == operation.bound_to for other in overloads):
                raise ValueError(f"operation {operation.name} on {operation.bound_to} is registered twice")
            overloads.append(operation)
        return declaration

    def unbound(self, name: str) -> Operation | None:
        """The unbound operation of this name, in any case, with or without a namespace."""
        return self._unbound.get(name.rpartition(".")[2].lower())

    def bound(self, repository: Repository[Any], name: str) -> Operation | None:
        """The operation of this name bound to the repository's entities."""
        overloads = self._bound.get(name.rpartition(".")[2].lower(), ())
        return next((operation for operation in overloads if operation.applies_to(repository)), None)

    def all(self) -> list[Operation]:
        """Every operation: unbound ones first, then by name."""
        bound = [operation for overloads in self._bound.values() for operation in overloads]
        return [
            *sorted(self._unbound.values(), key=lambda o: o.name),
            *sorted(bound, key=lambda o: (o.name, o.bound_to)),
        ]

    def of(self, repository: Repository[Any]) -> list[Operation]:
        """The operations bound to the repository's entities, by name."""
        return [operation for operation in self.all() if operation.bound_to and operation.applies_to(repository)]


operations = Operations()


def _typed(operation: Operation, parameter: Parameter, value: Any) -> Any:
    """The value as its declared type has it; references and JSON are read by who knows what they should be.

    Functions are called in addresses, in which anything may be written as a text, or a text without quotes.
    """
    written = str(value) if operation.is_function and not isinstance(value, bool | list | dict) else None
    match parameter.type, value:
        case _, None:
            return None
        case "Edm.String", str():
            check_characters(value, parameter.name)
            return value
        case "Edm.String", _ if written is not None:
            return written
        case "Edm.Boolean", bool():
            return value
        case "Edm.Boolean", _ if written is not None and written.lower() in ("true", "false"):
            return written.lower() == "true"
        case "Edm.Int32", Decimal() if value == value.to_integral_value() and abs(value) < 2**32:
            return _typed(operation, parameter, int(value))
        case "Edm.Int32", int() if not isinstance(value, bool) and -(2**31) <= value < 2**31:
            return value
        case "Edm.Int32", str() if written is not None and re.fullmatch(r"-?[0-9]{1,10}", written):
            return _typed(operation, parameter, int(written))
        case (("Edm.String" | "Edm.Boolean" | "Edm.Int32"), _):
            raise errors.BadRequest(
                errors.INVALID_LITERAL, value, parameter.type, parameter.name, target=parameter.name
            )
    return value


def check_arguments(operation: Operation, given: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments by declared name, in declared order, defaults filled in.

    Raises BadRequest for an unknown name, a required one that is missing or null, and a value of another type.
    """
    declared = {parameter.name.lower(): parameter for parameter in operation.parameters}
    named: dict[str, Any] = {}
    for name, value in given.items():
        parameter = declared.get(name.lower())
        if parameter is None:
            hint = near(name, [p.name for p in operation.parameters])
            raise errors.BadRequest(errors.UNKNOWN_PARAMETER, operation.name, name, hint, target=name)
        named[parameter.name] = _typed(operation, parameter, value)
    arguments: dict[str, Any] = {}
    for parameter in operation.parameters:
        if named.get(parameter.name) is not None or (parameter.name in named and parameter.optional):
            arguments[parameter.name] = named[parameter.name]
        elif parameter.optional:
            arguments[parameter.name] = parameter.default
        else:
            raise errors.BadRequest(errors.MISSING_PARAMETER, operation.name, parameter.name, target=parameter.name)
    return arguments
