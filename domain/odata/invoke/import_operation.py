"""The Import action (spec 03, 3.4)."""

from __future__ import annotations

import io

import orjson

from domain.model.registry import repositories
from domain.odata.invoke.importing import ImportSummary, import_objects, read_options
from domain.odata.message.json_body import invalid_body
from domain.odata.message.json_stream import JsonObjectFile
from domain.odata.message.references import reference_path
from domain.odata.operations.catalogue import Operation, OperationCall, Parameter, Result, operations
from foundation import errors
from foundation.messages import TranslatableMessage as Message


@operations.register
class Import(Operation):
    """Create, change and delete many objects."""

    name = "Import"
    scope = "update"
    parameters = (
        Parameter("transaction", optional=True, default="per-object"),
        Parameter("model", optional=True, default="frontend"),
        Parameter("loggingLevel", "Edm.Int32", optional=True, default=2),
        Parameter("objects", "Collection(Edm.Untyped)"),
    )
    returns = "Erp.OpenObject"
    commits = False
    raw_body = True

    def run(self, call: OperationCall) -> Result:
        """{"@erpnet.result", "objects": […], "data-exchange"?} in input order."""
        if call.transaction_id is not None:
            raise invalid_body(Message("Import has transactions of its own; send no TransactionId"))
        media = call.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media not in ("application/json", ""):
            raise errors.UnsupportedMediaType(errors.UNSUPPORTED_MEDIA_TYPE, "application/json", media)
        source = JsonObjectFile(call.body_file or io.BytesIO(call.body), "objects")
        options = read_options(source.members())
        summary = ImportSummary()
        # One buffer: the result precedes the objects in the body, but is known only after them.
        answers = bytearray(b"[")
        for answer in import_objects(call.context, source.elements(), options, summary):
            answers += orjson.dumps(answer)
            answers += b","
        answers[max(1, len(answers) - 1) :] = b"]"
        body = {"@erpnet.result": summary.result, "objects": orjson.Fragment(bytes(answers))}
        if summary.exchange is not None:
            body["data-exchange"] = reference_path(repositories["Systems.Exchange.DataExchanges"], summary.exchange)
        return Result(body, is_object=True)
