"""Adjustments: documents that correct quantities and unit prices of a released document (spec 14.6).

An adjustment is of the same kind as the document that its AdjustedDocument names. Each of its lines corrects the line
with the same number; Quantity, UnitPrice and LineAmount are differences. Its release adds them to the adjusted lines.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING

from domain.dataset.checks import access
from domain.entities.behaviour import find_all, user_login
from domain.entities.copies import copy_custom, values_of_copy
from domain.model.registry import repositories
from foundation import errors
from foundation.enums import DOCUMENT_STATE

if TYPE_CHECKING:
    from domain.dataset.records.record import Record

#: Attributes of lines that an adjustment corrects.
CORRECTED = ("Quantity", "UnitPrice")
_LINES = "Lines"


def adjustment_create(document: Record, differences: Mapping[str, Mapping[str, Decimal]]) -> Record:
    """A new adjustment of the document, for the caller. Nothing is committed.

    differences   guid of a line → corrected attribute → difference. Raises Refused, Forbidden.
    """
    dataset, repository = document.dataset, document.repository
    check_adjustable(document)
    values = {**values_of_copy(document, None), "AdjustedDocument": document.id}
    adjustment = dataset.create(repository, values, by_client=True)
    copy_custom(document, adjustment)
    for line in document.children(_LINES):
        if line.id not in differences:
            continue
        # Other amounts and quantities belong to the corrected line.
        attributes = line.repository.attributes
        copied = {name: v for name, v in values_of_copy(line, adjustment).items() if not attributes[name].is_measured}
        correction = dataset.create(
            line.repository, {**copied, **differences[line.id]}, parent=adjustment, by_client=True
        )
        copy_custom(line, correction)
        _require_match(correction, adjustment, document)
    return adjustment


def adjustment_apply(adjustment: Record) -> None:
    """Add the corrections of a document that is being released to the document that it adjusts, if there is one.

    Raises Refused, and Forbidden unless the caller may change the adjusted document.
    """
    if not is_adjustment(adjustment):
        return
    dataset, adjusted = adjustment.dataset, adjustment.adjusted_document
    if dataset.context.client_initiated:
        _require_update(adjusted)
    check_adjustable(adjusted)
    corrections = adjustment.children(_LINES)
    dataset.calculate_only([adjustment, *corrections])
    for correction in corrections:
        line = _require_match(correction, adjustment, adjusted)
        line.quantity += correction.quantity
        line.unit_price += correction.unit_price
    adjusted.adjustment_time = dataset.now()
    adjusted.adjustment_user = user_login(dataset)


def is_adjustment(document: Record) -> bool:
    """Whether the document corrects another one. Only documents with quantities and prices do."""
    return document.adjusted_document_id is not None and _has_corrected_lines(document)


def is_applied(document: Record) -> bool:
    """Whether the document is an adjustment that was released."""
    return is_adjustment(document) and is_released(document)


def is_released(document: Record) -> bool:
    """Whether the document has been released; it may be completed or closed by now."""
    return DOCUMENT_STATE.members[document.values["State"]] >= DOCUMENT_STATE.members["Released"]


def corrected_line(correction: Record) -> Record | None:
    """The line that a line of an adjustment corrects; None unless exactly one fits."""
    adjustment = correction.parent
    adjusted = adjustment.adjusted_document if adjustment is not None and is_adjustment(adjustment) else None
    if adjusted is None or adjusted.repository is not adjustment.repository:  # type: ignore[union-attr]
        return None
    line: Record | None = None
    for each in adjusted.children(_LINES):
        if each.line_no == correction.line_no:
            if line is not None:
                return None
            line = each
    same = ("product_id", "quantity_unit_id")
    if line is None or any(getattr(line, name) != getattr(correction, name) for name in same):
        return None
    return line


def check_adjustable(document: Record) -> None:
    """Raise Refused unless the document is released, not void, and no adjustment itself."""
    if document.void:
        raise errors.Refused(errors.DOCUMENT_VOID, document.describe())
    if document.values["State"] != "Released":
        raise errors.Refused(errors.ADJUSTED_NOT_RELEASED, document.describe(), document.values["State"])
    if document.adjusted_document_id is not None:
        raise errors.Refused(errors.ADJUSTMENT_OF_ADJUSTMENT, document.describe())


def check_adjusted_document(document: Record) -> None:
    """Validation: a document adjusts a released one of its own kind, one adjustment at a time."""
    if document.is_deleted or not document.is_changed("adjusted_document") or not is_adjustment(document):
        return
    adjusted, repository = document.adjusted_document, document.repository
    if adjusted is None:
        # The check of references reports it.
        return
    if adjusted.repository is not repository:
        raise errors.Refused(
            errors.ADJUSTMENT_KIND, document.describe(), adjusted.describe(), target="AdjustedDocument"
        )
    check_adjustable(adjusted)
    if any(not other.void and not is_released(other) for other in _other_adjustments(document)):
        raise errors.Refused(errors.ADJUSTMENT_PENDING, adjusted.describe(), target="AdjustedDocument")


def adjustment_number(document: Record) -> None:
    """Late default: adjustments of a document are numbered from 1; other documents have 0."""
    if document.is_new and document.adjustment_number == 0 and is_adjustment(document):
        known = (other.adjustment_number for other in _other_adjustments(document))
        document.adjustment_number = 1 + max(known, default=0)


def _other_adjustments(document: Record) -> list[Record]:
    """The other adjustments of the document that this one adjusts, locked against further ones."""
    dataset, repository, adjusted_id = document.dataset, document.repository, document.adjusted_document_id
    dataset.lock_value(repository, f"AdjustedDocument={adjusted_id}")
    found = find_all(dataset, repository.name, adjusted_document_id=adjusted_id)
    return [other for other in found if other is not document]


def _has_corrected_lines(document: Record) -> bool:
    child = document.repository.collections.get(_LINES)
    return child is not None and set(CORRECTED) <= repositories[child.repository].attributes.keys()


def _require_match(correction: Record, adjustment: Record, adjusted: Record) -> Record:
    line = corrected_line(correction)
    if line is None:
        raise errors.Refused(
            errors.ADJUSTMENT_LINE, correction.line_no, adjustment.describe(), adjusted.describe(), target=_LINES
        )
    return line


def _require_update(adjusted: Record) -> None:
    """Raise NotFound or Forbidden unless the caller may change the document and its lines."""
    context, repository = adjusted.dataset.context, adjusted.repository
    if not access.record_visible(adjusted):
        raise errors.NotFound(errors.ENTITY_NOT_FOUND, repository.entity_type, adjusted.id)
    for each in (repository, repositories[repository.collections[_LINES].repository]):
        access.require(context, each, "update")
    access.require_row(context, adjusted, "update")
