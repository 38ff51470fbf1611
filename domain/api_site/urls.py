"""URLs of the pages under /api/."""

from __future__ import annotations

from django.urls import path
from django.views.generic import RedirectView

from domain.api_site.views import DescriptionPage, Page, SessionView, SetPage
from foundation.browser_pages import BrowserPage


class MovedPage(RedirectView, BrowserPage):
    """A page at its address on the reference platform. The query stays: links such as ?GET+~/Crm_Sales_Customers."""

    query_string = True
    http_method_names = ["get", "head", "options"]


urlpatterns = [
    path("", Page.as_view(template="home"), name="api-index"),
    path("query", Page.as_view(template="query"), name="api-query"),
    path("builder", Page.as_view(template="builder"), name="api-builder"),
    path("domain/import", Page.as_view(template="import"), name="api-import"),
    path("model", Page.as_view(template="model"), name="api-model"),
    path("description", DescriptionPage.as_view(), name="api-description"),
    path("sets/<str:set_name>", SetPage.as_view(), name="api-set"),
    path("domain/query", MovedPage.as_view(pattern_name="api-query")),
    path("domain/querybuilder", MovedPage.as_view(pattern_name="api-builder")),
    path("domain/docs", MovedPage.as_view(pattern_name="api-description")),
    path("session", SessionView.as_view(), name="api-session"),
]
