"""Sends requests to the WSGI application in this process, without a server, so that its processor time is theirs."""

from __future__ import annotations

import io
import itertools
import json
import urllib.parse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from wsgiref.util import setup_testing_defaults

from bench.load import Request

if TYPE_CHECKING:
    from tests.rules.cast import World

#: Set of the references that a new product needs → attribute.
_PRODUCT_REFERENCES = {
    "ProductGroup": "ProductGroups",
    "ProductType": "ProductTypes",
    "MeasurementUnit": "MeasurementUnits",
    "BaseMeasurementCategory": "MeasurementCategories",
}
_numbers = itertools.count()


def send(application: Any, request: Request) -> None:
    """Send the request to the WSGI application. Raises RuntimeError for a response that is not 2xx."""
    parts = urllib.parse.urlsplit(request.url)
    body = request.body(next(_numbers)) if request.body is not None else b""
    headers = {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in request.headers.items()}
    environ = {
        "REQUEST_METHOD": request.method, "PATH_INFO": urllib.parse.unquote(parts.path), "QUERY_STRING": parts.query,
        "SERVER_PROTOCOL": "HTTP/1.1", "REMOTE_ADDR": "127.0.0.1", "HTTP_HOST": parts.netloc,
        "CONTENT_LENGTH": str(len(body)), "CONTENT_TYPE": request.headers.get("Content-Type", ""),
        "wsgi.input": io.BytesIO(body), **headers,
    }  # fmt: skip
    setup_testing_defaults(environ)
    statuses: list[str] = []
    response = application(environ, lambda status, headers, error=None: statuses.append(status))
    try:
        content = b"".join(response)
    finally:
        if hasattr(response, "close"):
            response.close()
    if not statuses[0].startswith("2"):
        raise RuntimeError(f"{request.method} {request.url}: {statuses[0]} {content[:1000].decode()}")


def service_sender() -> Callable[[str, str, Any], None]:
    """A function of method, URL below the service root, and JSON body (None: no body), for a service application.

    Call after django.setup(), with an empty migrated database.
    """
    from django.test import Client

    from identity.demo import seed_identity
    from platform_site.wsgi import application
    from tests.support.api import ROOT, service_api

    seed_identity()
    token = service_api(Client(headers={"Host": "localhost"})).token
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def send_json(method: str, path: str, body: Any) -> None:
        content = None if body is None else json.dumps(body).encode()
        request = Request(method, f"http://localhost{ROOT}{path}", headers, None if body is None else lambda _: content)
        send(application, request)

    return send_json


def product_references(world: World) -> dict[str, Any]:
    """The references of a new product, those of the world's product."""
    from domain.dataset.dataset import Dataset
    from tests.rules.cast import PRODUCTS

    product = Dataset(world.context).load(PRODUCTS, world.product)
    assert product is not None
    return {
        name: {"@odata.id": f"General_Products_{entity_set}({product.values[name]})"}
        for name, entity_set in _PRODUCT_REFERENCES.items()
    }
