"""The signed head of the audit chain, to be archived outside of the instance (spec 12.4)."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from audit.chain import head_latest
from audit.hashing import moment
from foundation import errors
from platform_site.tools import ToolView

#: Seconds for which a response may be cached.
FRESH_SECONDS = 5


class AuditHeadView(ToolView):
    """{position, hash, at, kid, jws} of the last signed head. Public, since it reveals no entry."""

    def get(self, request: Request) -> Response:
        """Return the head; 404 until the first one is signed, within a minute after the start of a worker."""
        head = head_latest()
        if head is None:
            raise errors.NotFound(errors.RESOURCE_NOT_FOUND, "/sys/audit/head")
        return Response(
            {"position": head.position, "hash": head.hash, "at": moment(head.at), "kid": head.kid, "jws": head.token},
            headers={"Cache-Control": f"public, max-age={FRESH_SECONDS}"},
        )
