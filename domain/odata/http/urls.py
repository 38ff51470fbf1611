"""Routes of the Domain API and of its model documents."""

from __future__ import annotations

from django.urls import path, re_path

from domain.odata.http import model_views
from domain.odata.http.cors_and_compression import api_view
from domain.odata.http.dry_run_views import DryRunReport
from domain.odata.http.export_views import Export
from domain.odata.http.views import ODataView
from domain.odata.message.dry_run_report import REPORTS_PATH
from domain.odata.sheets.exporting import KINDS

_reset = api_view(model_views.Reset.as_view())

urlpatterns = [
    re_path(r"^domain/odata/[Rr]eset(?:\(\))?/?$", _reset, name="odata-reset"),
    re_path(r"^domain/odata(?:/.*)?$", api_view(ODataView.as_view()), name="odata"),
    re_path(r"^domain/reset/?$", _reset, name="reset"),
    re_path(r"^domain/standardmodel/?$", api_view(model_views.StandardModel.as_view()), name="standard-model"),
    re_path(r"^domain/standardmodel/(?P<set_name>[\w.]+)/?$", api_view(model_views.StandardModel.as_view())),
    re_path(r"^domain/currentmodel/?$", api_view(model_views.CurrentModel.as_view()), name="current-model"),
    re_path(r"^domain/currentmodel/(?P<set_name>[\w.]+)/?$", api_view(model_views.CurrentModel.as_view())),
    path(f"domain/{REPORTS_PATH}<str:id>", api_view(DryRunReport.as_view()), name="dry-run-report"),
    path("domain/login", api_view(model_views.LegacyLogin.as_view())),
    path("domain/logout", api_view(model_views.LegacyLogin.as_view())),
    path("model/standard.json", api_view(model_views.SiteStandardModel.as_view()), name="site-standard-model"),
    path("model/current.json", api_view(model_views.SiteCurrentModel.as_view()), name="site-current-model"),
    re_path(rf"^export/(?P<set_name>\w+)\.(?P<kind>{'|'.join(KINDS)})$", api_view(Export.as_view()), name="export"),
    path("openapi.json", api_view(model_views.OpenApi.as_view()), name="openapi"),
]
