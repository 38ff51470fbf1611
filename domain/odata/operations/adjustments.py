"""CreateAdjustmentDocuments: turns a transaction's corrections of released documents into adjustments (spec 14.6)."""

from __future__ import annotations

from decimal import Decimal

from domain.dataset.commit.conflicts import check_stored_versions
from domain.dataset.dataset import Dataset
from domain.dataset.records.record import Record
from domain.entities.document_adjustments import CORRECTED, adjustment_create, check_adjustable
from domain.entities.document_editing import LIFECYCLE, check_line_editable
from domain.model.registry import repositories
from domain.odata.operations.catalogue import DOCUMENTS, Operation, OperationCall, Result, operations
from foundation import errors


@operations.register
class CreateAdjustmentDocuments(Operation):
    """Adjustments for the released documents whose quantities or unit prices the transaction changes."""

    name = "CreateAdjustmentDocuments"
    scope = "update"
    returns = "Edm.String"

    def run(self, call: OperationCall) -> Result:
        """The references of the new documents, as in @odata.id, with commas between them.

        They are saved at once, and the corrections are withdrawn from the transaction, which clients of the reference
        platform roll back.
        """
        dataset = call.dataset
        if dataset.pending_source is None:
            raise errors.BadRequest(errors.TRANSACTION_REQUIRED, self.name, target="TransactionId")
        if call.record is not None:
            check_adjustable(call.record)
        corrections = _pending_corrections(dataset)
        if call.record is not None:
            corrections = {key: lines for key, lines in corrections.items() if key == call.record.key}
        if not corrections:
            raise errors.Refused(errors.NOTHING_TO_ADJUST)
        apart = Dataset(call.context)
        with apart.operating():
            adjustments = [_adjust(dataset, apart, lines) for lines in corrections.values()]
        apart.commit()
        for lines in corrections.values():
            for line in lines:
                dataset.withdraw(line)
            # The changed lines have also changed the totals of the document.
            dataset.withdraw(lines[0].root, kept=LIFECYCLE)
        return Result(", ".join(f"{each.repository.set_name}({each.id})" for each in adjustments))


@operations.register
class CreateAdjustmentDocumentsOfDocument(CreateAdjustmentDocuments):
    """An adjustment of the released document, if the transaction changes its quantities or unit prices."""

    bound_to = DOCUMENTS


def _pending_corrections(dataset: Dataset) -> dict[tuple[str, str], list[Record]]:
    """Identity of a released document → its lines that the caller has corrected."""
    assert dataset.pending_source is not None
    corrected = {r.name for r in repositories if check_line_editable in r.validations}
    dataset.pending_source.load_repositories(sorted(corrected))
    result: dict[tuple[str, str], list[Record]] = {}
    for line in dataset.changed():
        is_edited = line.repository.name in corrected and line.by_client and line.state == "Modified"
        if is_edited and not line.original_values.keys().isdisjoint(CORRECTED):
            root = line.root
            if root.original("state") == "Released":
                result.setdefault(root.key, []).append(line)
    return result


def _adjust(dataset: Dataset, apart: Dataset, lines: list[Record]) -> Record:
    pending = lines[0].root
    # The pending document, because the transaction may have made it void.
    check_adjustable(pending)
    # Takes locks in the order of a commit, so that releasing another adjustment meanwhile cannot deadlock with this.
    check_stored_versions(dataset, [pending, *lines])
    document = apart.open(pending.repository, pending.id, "update")
    differences = {line.id: {name: _difference(line, name) for name in CORRECTED} for line in lines}
    return adjustment_create(document, differences)


def _difference(line: Record, name: str) -> Decimal:
    after: Decimal = line.values[name] or Decimal(0)
    before: Decimal = line.original_values.get(name, after) or Decimal(0)
    return after - before
