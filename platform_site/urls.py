"""URL configuration of the instance, by site."""

from __future__ import annotations

from django.contrib import admin
from django.urls import URLPattern, URLResolver, clear_url_caches, include, path
from django.views.generic import RedirectView

from domain.entities.custom_entities import live
from platform_site import audit_head, branding, demo_receiver, discovery, landing, metrics, tools
from platform_site.app_links import views as app_links
from platform_site.apps import load_admin_pages
from platform_site.resource_monitor import ResourceMonitorView
from webhooks.demo_destination import RECEIVER_PATH

load_admin_pages()
handler400 = landing.bad_request
handler500 = landing.unexpected_error

urlpatterns: list[URLPattern | URLResolver] = [
    path("", landing.landing, name="landing"),
    path("favicon.ico", branding.icon),
    path("brand/logo", branding.logo_file, name="brand_logo"),
    path("brand/style.css", branding.style_sheet, name="brand_style"),
    path("id/", include("identity.oauth.urls")),
    path("", include("identity.urls")),
    path("sys/auto-discovery", discovery.DiscoveryView.as_view(), name="discovery"),
    path("tools/auto-discovery", discovery.DiscoveryView.as_view()),
    path("sys/sha256", tools.Sha256View.as_view()),
    path("sys/tools/sha256", tools.Sha256View.as_view()),
    path("sys/audit/head", audit_head.AuditHeadView.as_view(), name="audit_head"),
    path("sys/ver", tools.VersionView.as_view()),
    path("sys/server-info", tools.ServerInfoView.as_view()),
    path("sys/resource-monitor", ResourceMonitorView.as_view()),
    path("tools/sha256", tools.Sha256View.as_view()),
    path("tools/ver", tools.VersionTextView.as_view()),
    path("tools/server-info", tools.ServerInfoView.as_view()),
    path("tools/resource-monitor", ResourceMonitorView.as_view()),
    path(f"{RECEIVER_PATH}<path:what>", demo_receiver.receive),
    path("manage/apps/install", app_links.install_page, name="app_install"),
    path("manage/apps/uninstall", app_links.uninstall_page, name="app_uninstall"),
    path("scim/v2/", include("domain.scim.urls")),
    path("tableapi/", include("domain.table_api.urls")),
    # The page that describes the APIs, for links of the discovery document opened in a browser.
    path("tableapi/", RedirectView.as_view(pattern_name="api-index")),
    path("tableapi", RedirectView.as_view(pattern_name="api-index")),
    path("api/", include("domain.odata.http.urls")),
    path("api/", include("domain.event_stream.urls")),
    path("api/", include("domain.api_site.urls")),
    path("healthz", tools.HealthView.as_view()),
    path("readyz", tools.ReadyView.as_view()),
    path("metrics", metrics.metrics),
    # The admin site uses the same rate-limited login page, the same logout, which signs out everywhere, and the same
    # password page.
    path("admin/login/", RedirectView.as_view(pattern_name="identity:login", query_string=True)),
    path("admin/logout/", RedirectView.as_view(pattern_name="identity:logout")),
    path("admin/password_change/", RedirectView.as_view(pattern_name="identity:password")),
    path("admin/", admin.site.urls),
]


def follow_model() -> None:
    """Rebuild the URLs of the admin, whose pages have changed with the custom entities."""
    urlpatterns[-1] = path("admin/", admin.site.urls)
    clear_url_caches()


live.listen(follow_model)
