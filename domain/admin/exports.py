"""Exports of lists: all rows with the list's filters, search and order; in its columns, or in the import format.

Rows are read in batches and written to a temporary file, which is sent when it is complete: a slow client holds no
database connection, and memory use does not grow with the number of rows.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest
from django.http.response import HttpResponseBase, HttpResponseRedirect
from django.utils import timezone
from django.utils.text import capfirst
from django.utils.translation import gettext, ngettext

from audit.record import record
from domain.admin.cells import export_columns
from domain.admin.context import admin_context
from domain.admin.list_files import CsvListWriter, XlsxListWriter
from domain.odata.sheets.exporting import KINDS, count_export, importable, rows_of, write_export
from domain.odata.sheets.writing import SheetWriter
from foundation.batches import batched
from foundation.errors import PlatformError, TooManyRequests
from foundation.execution_slot import STEP, defer_to_slot
from foundation.streamed_responses import TemporaryFileResponse
from identity.audit_actors import actor_of
from identity.audit_kinds import DataExported


@dataclass(frozen=True, slots=True)
class Format:
    """A file format.

    writer   writes the list's columns; None for the import format (spec 11, 11.2): the values of the attributes that
             callers may set
    """

    ending: str
    writer: Callable[[IO[bytes]], SheetWriter] | None = None


#: Name in the URL → format.
FORMATS = {
    "csv": Format("csv", CsvListWriter),
    "xlsx": Format("xlsx", XlsxListWriter),
    "import-csv": Format("csv"),
    "import-xlsx": Format("xlsx"),
    "json": Format("json"),
}


def exported(page: Any, request: HttpRequest, changelist: Any, name: str) -> HttpResponseBase:
    """The list as a file; a redirect with a message if it is too long or the user has reached the export limit."""
    limit: int = settings.EXPORT_ROWS
    form = FORMATS[name]
    file: IO[bytes] = tempfile.NamedTemporaryFile(prefix="export-")  # noqa: SIM115  (closed when it has been sent)
    refusal = _refusal(request, changelist.result_count, limit)
    if not refusal:
        try:
            title = (_write_list if form.writer else _write_entities)(file, form, page, request, changelist)
        except PlatformError as refused:  # a cell that XLSX cannot contain
            refusal = refused.message
    if refusal:
        messages.error(request, refusal)
        return HttpResponseRedirect(f"../../?{request.GET.urlencode()}")
    rows, query = changelist.result_count, request.GET.urlencode()[:500]
    record(DataExported, by=actor_of(request), subject=str(page.opts.label), rows=rows, format=form.ending, query=query)
    return TemporaryFileResponse(file, filename=f"{title}.{form.ending}", content_type=KINDS[form.ending])


def _write_list(file: IO[bytes], form: Format, page: Any, request: HttpRequest, changelist: Any) -> str:
    """Write the list's columns. Returns the name of the file."""
    title = str(capfirst(page.opts.verbose_name_plural))
    columns = export_columns(page, changelist.list_display)
    entities = _entities(page, request, changelist, settings.EXPORT_ROWS)
    assert form.writer is not None
    writer = form.writer(file)
    writer.begin(title, [column.title for column in columns])
    for entity in entities:
        writer.write([column.cell(entity) for column in columns])
    writer.close()
    return f"{title} {timezone.localdate()}"


def _write_entities(file: IO[bytes], form: Format, page: Any, request: HttpRequest, changelist: Any) -> str:
    """Write the attributes that callers may set. Returns the name of the file, from which the import finds the set."""
    context = admin_context(request)
    names = importable(page.repository, context)
    keys = changelist.queryset.values_list("pk", flat=True)[: settings.EXPORT_ROWS].iterator(chunk_size=STEP)
    write_export(file, form.ending, page.repository, names, rows_of(context, page.repository, names, map(str, keys)))
    return str(page.repository.set_name)


def _refusal(request: HttpRequest, rows: int, limit: int) -> str:
    if rows > limit:
        return gettext(
            "The list has %(rows)s rows, and an export at most %(limit)s. Narrow the list down by filters or a search."
        ) % {"rows": f"{rows:,}", "limit": f"{limit:,}"}
    try:
        count_export(request.user.pk, rows)
    except TooManyRequests as refused:
        seconds = refused.retry_after_seconds or 1
        return ngettext(
            "You have exported as much as is allowed in a minute. Try again in %(seconds)s second.",
            "You have exported as much as is allowed in a minute. Try again in %(seconds)s seconds.",
            seconds,
        ) % {"seconds": seconds}
    return ""


def _entities(page: Any, request: HttpRequest, changelist: Any, limit: int) -> Iterator[Any]:
    """The rows, by a server-side cursor on PostgreSQL. Lets waiting requests run after each batch."""
    found = changelist.queryset[:limit].iterator(chunk_size=STEP)
    for batch in batched(found, STEP):
        page.prepare_rows(request, batch, changelist.list_display)
        yield from batch
        defer_to_slot()
