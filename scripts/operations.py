"""The operations ExecuteScript and Execute (spec 04, 4.3 and 4.4). Neither commits by itself."""

from __future__ import annotations

from domain.dataset.dataset import Dataset
from domain.dataset.transactions.domain_transactions import TransactionDataset
from domain.odata.operations.catalogue import Operation, OperationCall, Parameter, Result, operations
from foundation import errors
from foundation.messages import TranslatableMessage as Message
from foundation.messages import json_text
from identity.licences import ADVANCED_BPM, require_feature
from scripts import managed
from scripts.bridge.calls.changing import NestedCall
from scripts.services import FailedRun, script_outcome

_UTF8 = ("utf-8", "utf8", "us-ascii")


@operations.register
class ExecuteScript(Operation):
    """Run the body as a script (spec 04, 4.3)."""

    name = "ExecuteScript"
    scope = "exec"
    raw_body = True
    commits = False
    returns = "Erp.ExecuteScriptResult"
    members = (
        Parameter("ok", "Edm.Boolean"),
        Parameter("sessionId", optional=True),
        Parameter("transactionId", optional=True),
        Parameter("durationMs", "Edm.Int32"),
        Parameter("console"),
    )
    description = "Runs the text/plain body as JavaScript."

    def run(self, call: OperationCall) -> Result:
        """{"ok", "sessionId", "transactionId", "durationMs" (an integer), "console"}."""
        require_feature(ADVANCED_BPM)
        source = _source(call)
        outcome = script_outcome(source, _dataset_of(call), kind="ExecuteScript")
        if isinstance(outcome, FailedRun):
            return _failed(call, outcome)
        return Result(
            {
                "ok": True,
                "sessionId": call.context.session_id,
                "transactionId": call.transaction_id,
                "durationMs": round(outcome.duration_ms),
                "console": outcome.console,
            },
            bare=True,
        )


@operations.register
class Execute(Operation):
    """Run a managed script (spec 04, 4.4)."""

    name = "Execute"
    bound_to = "Systems.Core.Scripts"
    scope = "exec"
    commits = False
    needs = "read"
    returns = "Erp.OpenObject"
    parameters = (Parameter("arguments", "json", optional=True),)
    description = "Runs the managed script with arguments and gives its outputs and its return value."

    def run(self, call: OperationCall) -> Result:
        """{"parameters": outputs, "returnValue": JSON}."""
        require_feature(ADVANCED_BPM)
        assert call.record is not None
        given = call.arguments["arguments"]
        if given is not None and not isinstance(given, dict):
            raise errors.BadRequest(
                errors.INVALID_LITERAL, json_text(given), Message("JSON object"), "arguments", target="arguments"
            )
        depth = call.depth if isinstance(call, NestedCall) else 0
        outcome = managed.execute(call.record, given or {}, _dataset_of(call), depth=depth)
        if isinstance(outcome, FailedRun):
            return _failed(call, outcome)
        return Result({"parameters": outcome.outputs, "returnValue": outcome.return_value}, is_object=True)


def _dataset_of(call: OperationCall) -> Dataset:
    """The dataset of the transaction or the calling script, or a new one that only the script commits."""
    if isinstance(call.dataset, TransactionDataset) or isinstance(call, NestedCall):
        return call.dataset
    own = Dataset(call.context)
    # Warnings of the script's dataset belong to the response, too.
    own.warnings, own.traces = call.dataset.warnings, call.dataset.traces
    return own


def _failed(call: OperationCall, outcome: FailedRun) -> Result:
    """The error response of a run; keeps what it has committed or rolled back of a Domain transaction, and no more."""
    if outcome.restarted and isinstance(call.dataset, TransactionDataset) and not isinstance(call, NestedCall):
        call.dataset.rollback_and_continue()
        return Result(failure=outcome.error)
    raise outcome.error


def _source(call: OperationCall) -> str:
    media_type, _, rest = call.headers.get("content-type", "").partition(";")
    if media_type.strip().lower() not in ("text/plain", ""):
        raise errors.UnsupportedMediaType(errors.UNSUPPORTED_MEDIA_TYPE, "text/plain", media_type.strip())
    charset = rest.lower().partition("charset=")[2].partition(";")[0].strip(' "')
    if charset and charset not in _UTF8:
        raise errors.UnsupportedMediaType(errors.UNSUPPORTED_MEDIA_TYPE, "text/plain;charset=utf-8", charset)
    try:
        source = call.body.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise errors.BadRequest(errors.SCRIPT_ENCODING) from exc
    if not source.strip():
        raise errors.BadRequest(errors.SCRIPT_EMPTY)
    return source
