"""GET /api/domain/dry-runs/{id}: the report of a dry run whose response is not a JSON object."""

from __future__ import annotations

import orjson
from rest_framework.request import Request
from rest_framework.response import Response

from domain.odata.message.dry_run_report import kept_report
from foundation import errors
from identity.rest import context_of
from identity.rest_views import PlatformView


class DryRunReport(PlatformView):
    """A report, for the caller of the dry run only."""

    http_method_names = ["get", "head"]

    def get(self, request: Request, id: str) -> Response:
        """The report. Raises NotFound after ten minutes, and for another caller's report."""
        report = kept_report(id, context_of(request))
        if report is None:
            raise errors.NotFound(errors.RESOURCE_NOT_FOUND, request.path)
        return Response(orjson.Fragment(report))
