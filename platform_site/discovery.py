"""Site discovery: the sites of this instance and their status (spec 01, 1.1)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from django.http import HttpRequest
from django.urls import Resolver404, resolve
from rest_framework.request import Request
from rest_framework.response import Response

from identity.instance import base_url
from identity.oauth import keys
from platform_site import health
from platform_site.tools import ToolView

WORKING = "Working"
NOT_WORKING = "NotWorking"


@dataclass(frozen=True, slots=True)
class Site:
    """A site. It is served if the URL path `probe` resolves, and works if the health checks in `needs` pass."""

    type: str
    path: str
    probe: str
    needs: tuple[str, ...] = ("database",)
    properties: dict[str, str] = field(default_factory=dict)  # name → path, made absolute


ODATA_PATH = "/api/domain/odata/"
TABLES_PATH = "/tableapi/odata/"
SITES = (
    Site("ID", "/id", "/id/.well-known/openid-configuration", ("database", "keys")),
    Site("API", "/api", ODATA_PATH, properties={"ODataServiceRoot": ODATA_PATH}),
    # The same site by the name that newer clients use.
    Site("DomainAPI", "/api", ODATA_PATH, properties={"ODataServiceRoot": ODATA_PATH}),
    Site("TableAPI", "/tableapi", TABLES_PATH, properties={"ODataServiceRoot": TABLES_PATH}),
    Site("UserProfile", "/profile/", "/profile/me"),
    Site("InstanceManager", "/admin/", "/admin/"),
)


class DiscoveryView(ToolView):
    """{"WebSites": [{Type, Status, Url, AdditionalProperties}], "Host"}, without authentication."""

    def get(self, request: Request) -> Response:
        host = urlsplit(base_url(request._request)).netloc
        return Response({"WebSites": described_sites(request._request), "Host": host})


def described_sites(request: HttpRequest) -> list[dict[str, Any]]:
    """The served sites with their status, as the discovery document lists them."""
    base = base_url(request)
    return [_described(site, base) for site in SITES if _exists(site.probe)]


def _exists(path: str) -> bool:
    try:
        resolve(path)
    except Resolver404:
        return False
    return True


def _described(site: Site, base: str) -> dict[str, Any]:
    problems = [finding for finding in map(health.examine, site.needs) if finding.problem]
    return {
        "Type": site.type,
        "Status": NOT_WORKING if problems else WORKING,
        "StatusDescription": ", ".join(f"{finding.name}: {finding.problem}" for finding in problems),
        "Url": base + site.path,
        "AdditionalProperties": {name: base + path for name, path in site.properties.items()} or None,
        "System": site.type == "InstanceManager",
    }


def _keys() -> str | None:
    keys.key_set()  # raises if there is no signing key and none can be generated
    return None


health.register("keys", _keys)
