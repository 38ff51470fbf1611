"""Routes of the Table API, below each of its two roots."""

from __future__ import annotations

from typing import Any

from django.urls import URLPattern, path, re_path

from domain.odata.http.cors_and_compression import api_view
from domain.table_api.views import CountView, MetadataView, NothingView, RowsView, ServiceDocumentView, TableView

#: The roots; `data` is an alias for older clients.
ROOTS = ("odata", "data")


def _routes(name: str) -> list[URLPattern]:
    root = {"root": f"/tableapi/{name}/"}

    def route(pattern: str, view: type[TableView]) -> URLPattern:
        return path(f"{name}{pattern}", api_view(view.as_view()), root)

    return [
        route("", ServiceDocumentView),
        route("/", ServiceDocumentView),
        route("/$metadata", MetadataView),
        route("/<str:table>/$count", CountView),
        route("/<str:table>", RowsView),
        re_path(rf"^{name}/(?P<rest>.+)$", api_view(NothingView.as_view()), root),
    ]


urlpatterns: list[Any] = [each for name in ROOTS for each in _routes(name)]
