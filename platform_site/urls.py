"""URL configuration of the instance, by site."""

from __future__ import annotations

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path
from django.views.generic import RedirectView

from platform_site import discovery, landing, metrics, tools
from platform_site.app_links import views as app_links
from platform_site.resource_monitor import ResourceMonitorView

urlpatterns: list[URLPattern | URLResolver] = [
    path("", landing.landing, name="landing"),
    path("id/", include("identity.oauth.urls")),
    path("", include("identity.urls")),
    path("sys/auto-discovery", discovery.DiscoveryView.as_view(), name="discovery"),
    path("tools/auto-discovery", discovery.DiscoveryView.as_view()),
    path("sys/tools/sha256", tools.Sha256View.as_view()),
    path("sys/ver", tools.VersionView.as_view()),
    path("sys/server-info", tools.ServerInfoView.as_view()),
    path("sys/resource-monitor", ResourceMonitorView.as_view()),
    path("tools/sha256", tools.Sha256View.as_view()),
    path("tools/ver", tools.VersionTextView.as_view()),
    path("tools/server-info", tools.ServerInfoView.as_view()),
    path("tools/resource-monitor", ResourceMonitorView.as_view()),
    path("manage/apps/install", app_links.install_page, name="app_install"),
    path("manage/apps/uninstall", app_links.uninstall_page, name="app_uninstall"),
    path("scim/v2/", include("domain.scim.urls")),
    path("api/", include("domain.odata.http.urls")),
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
