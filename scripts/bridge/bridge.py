"""Answers the prelude's calls against one dataset, with the rights of its caller."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import orjson
from django.utils.translation import gettext

from domain.dataset.dataset import Dataset
from domain.dataset.records.record import Record
from domain.odata.message.failures import known_error
from foundation import errors
from foundation.messages import TranslatableMessage as Message
from foundation.messages import translated
from scripts.bridge.frames import Frames
from scripts.bridge.handles import Handles
from scripts.bridge.messages import Messages
from scripts.bridge.registry import MAX_ERROR_CHARACTERS, host_calls
from scripts.bridge.writing import Writer
from scripts.sandbox.errors import HostCallError

PRELUDE: Final = (Path(__file__).parent.parent / "preludes" / "bridge.js").read_text(encoding="utf-8")
#: Maximum depth of nested scripts.
MAX_DEPTH: Final = 4


_ONLY_READS = Message("the script of a calculated attribute only reads: it changes, sends and commits nothing")


@dataclass(frozen=True, slots=True)
class RowsOfRun:
    """Entities for each of which a function body is called, and the type of its result."""

    records: Sequence[Record]
    value_type: str


class Refusal(HostCallError):
    """A platform error thrown into the script; `original` is raised if the script does not catch it."""

    def __init__(self, original: errors.PlatformError) -> None:
        data: dict[str, Any] = {"type": original.code.type}
        if original.target is not None:
            data["target"] = original.target
        super().__init__(original.message, original.code.number, original.code.type, data)
        self.original = original


class Bridge:
    """Access of one run to a dataset.

    transactions       False if the dataset belongs to an operation in progress (rules)
    read_only          only reading calls are allowed (calculated attributes)
    depth              number of enclosing scripts
    messages           of Action.log and Action.error
    cancelled          the message of Action.cancel(), or None
    """

    def __init__(
        self,
        dataset: Dataset,
        *,
        deadline: float,
        transactions: bool = True,
        read_only: bool = False,
        subject: Record | None = None,
        depth: int = 0,
    ) -> None:
        self.dataset = dataset
        self.messages = Messages()
        self.cancelled: str | None = None
        self.deadline = deadline
        self.transactions = transactions
        self.read_only = read_only
        self.depth = depth
        self.subject = subject
        self.handles = Handles(dataset)
        self.frames = Frames(self.handles)
        self.writer = Writer(dataset, self.handles, free=subject)
        self.follows = dataset.model == "frontend"

    def globals_json(
        self, *, event: Mapping[str, Any] | None = None, files: bool = False, rows: RowsOfRun | None = None
    ) -> bytes:
        """Arguments of the prelude's `start`."""
        subject: dict[str, Any] | None = None
        if self.subject is not None:
            subject = {**self.frames.of([self.subject]), "r": self.handles.show(self.subject)}
        given = {
            "language": self.dataset.context.language.upper(),
            "subject": subject,
            "event": None if event is None else event_values(event),
            "rows": None if rows is None else {**self.listed(rows.records), "type": rows.value_type},
            "files": files,
            "members": {result.member: name for name in host_calls.names() if (result := host_calls[name]).member},
        }
        return orjson.dumps(given, default=_plain, option=orjson.OPT_UTC_Z)

    def call(self, method: str, arguments: list[Any]) -> Any:
        """Answer one call. Raises Refusal for errors that the script may catch."""
        result = host_calls.get(method)
        if result is None:
            raise HostCallError(f"There is no host call '{method}'.")
        if self.cancelled is not None:
            raise HostCallError(self.cancelled)
        if self.read_only and not result.reads:
            raise Refusal(errors.Refused(errors.VALIDATION_FAILED, _ONLY_READS))
        if not result.takes(arguments):
            raise HostCallError(f"The host call '{method}' does not take these arguments.", type_name="TypeError")
        try:
            if not result.undone:
                return result.answer(self, *arguments)
            with self.dataset.undoing():
                return result.answer(self, *arguments)
        except errors.PlatformError as exc:
            raise Refusal(_shortened(exc)) from exc
        except HostCallError:
            raise
        except RecursionError as exc:
            raise HostCallError("The arguments are nested too deeply.", type_name="RangeError") from exc
        except Exception as exc:
            known = known_error(exc)
            if known is exc or not isinstance(known, errors.PlatformError):
                raise
            raise Refusal(_shortened(known)) from exc

    def listed(self, records: Sequence[Record]) -> dict[str, Any]:
        """Entities in order."""
        return {**self.frames.of(records), "r": [self.handles.show(record) for record in records]}

    def changed(self) -> dict[str, Any]:
        """Changes of the last call to entities that the script has received."""
        result = self.handles.changes()
        return {**self.frames.of(result.changed), "gone": result.gone, "stale": result.stale}

    def with_record(self, answer: Mapping[str, Any], record: Record) -> dict[str, Any]:
        """Add an entity to the answer."""
        return {**self.with_records(answer, [record]), "r": self.handles.show(record)}

    def with_records(self, answer: Mapping[str, Any], records: Sequence[Record]) -> dict[str, Any]:
        """Add entities to the answer, in order."""
        result = self.listed(records)
        return {
            **answer,
            "t": [*answer.get("t", ()), *result.get("t", ())],
            "f": [*answer.get("f", ()), *result["f"]],
            "r": result["r"],
        }


def event_values(event: Mapping[str, Any]) -> dict[str, Any]:
    """Event attributes, by name with and without the leading `$`."""
    result: dict[str, Any] = {}
    for name, value in event.items():
        result[name] = value
        result[name.removeprefix("$")] = value
    return result


def _shortened(error: errors.PlatformError) -> errors.PlatformError:
    error.parameters = tuple(translated(parameter, gettext)[:MAX_ERROR_CHARACTERS] for parameter in error.parameters)
    error.target = None if error.target is None else error.target[:MAX_ERROR_CHARACTERS]
    return error


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return float(value)
