"""URLs of the pages under /api/."""

from __future__ import annotations

from django.urls import path
from django.views.generic import RedirectView

from domain.api_site.import_page import ImportPart
from domain.api_site.model_pages import BuilderPart, ChartPart, SetPart, SetsPart
from domain.api_site.saved_queries import SavedQueriesView, SavedQueryView
from domain.api_site.views import BuilderPage, ExplorerPage, ImportPage, Page, SessionView
from foundation.browser_pages import BrowserPage


class MovedPage(RedirectView, BrowserPage):
    """Redirects a page's URL of the reference platform; keeps the query: ?GET+~/Crm_Sales_Customers."""

    query_string = True
    http_method_names = ["get", "head", "options"]


urlpatterns = [
    path("", Page.as_view(template="home"), name="api-index"),
    path("query", Page.as_view(template="query"), name="api-query"),
    path("builder", BuilderPage.as_view(), name="api-builder"),
    path("domain/import", ImportPage.as_view(), name="api-import"),
    path("model", Page.as_view(template="model"), name="api-model"),
    path("model/sets", SetsPart.as_view(), name="api-sets"),
    path("model/query", BuilderPart.as_view(), name="api-builder-form"),
    path("model/set", SetPart.as_view(), name="api-set"),
    path("explorer", ExplorerPage.as_view(), name="api-explorer"),
    path("domain/query", MovedPage.as_view(pattern_name="api-query")),
    path("domain/querybuilder", MovedPage.as_view(pattern_name="api-builder")),
    path("domain/docs", MovedPage.as_view(pattern_name="api-explorer")),
    path("queries", SavedQueriesView.as_view(), name="api-queries"),
    path("queries/<uuid:query_id>", SavedQueryView.as_view()),
    path("chart", ChartPart.as_view(), name="api-chart"),
    path("import/sheets", ImportPart.as_view(), name="api-import-sheets"),
    path("session", SessionView.as_view(), name="api-session"),
]
