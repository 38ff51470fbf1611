"""Pages of the admin with verbs: `<id>/<verb>/` beside the form of an object."""

from __future__ import annotations

from typing import Any, cast

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.views.decorators.cache import never_cache

from foundation.errors import PlatformError
from foundation.guids import is_guid


class VerbPages(admin.ModelAdmin[Any]):
    """Each of `verbs` answers POST alone, for those who may use verbs on the object, by the method `do_<verb>`.

    The method takes the request and the object. It answers what to show instead of the object's page, to which people
    return otherwise; what it refuses (PlatformError) is told there. The URL's name is `<app>_<model>_<verb>`, with `_`
    where the verb has `-`.
    """

    verbs: tuple[str, ...] = ()

    def get_urls(self) -> list[URLPattern]:
        """The verbs, then Django's."""
        own = [
            path(
                f"<path:object_id>/{verb}/",
                self.admin_site.admin_view(never_cache(self._verb)),
                {"verb": verb},
                self._url_name(verb),
            )
            for verb in self.verbs
        ]
        return [*own, *super().get_urls()]

    def url_of(self, obj: Any, verb: str = "change") -> str:
        """The page of an object, or the address of a verb."""
        return reverse(f"admin:{self._url_name(verb)}", args=[obj.pk])

    def has_verb_permission(self, request: HttpRequest, obj: Any) -> bool:
        """Whether the person may use the verbs on the object: who may change it."""
        return self.has_change_permission(request, obj)

    def _url_name(self, verb: str) -> str:
        return f"{self.opts.app_label}_{self.opts.model_name}_{verb.replace('-', '_')}"

    def _verb(self, request: HttpRequest, object_id: str, verb: str) -> HttpResponse:
        key = unquote(object_id)
        found = self.get_object(request, key) if is_guid(key) else None
        if found is None:
            raise Http404
        if not self.has_verb_permission(request, found):
            raise PermissionDenied
        if request.method != "POST":
            return HttpResponse(status=405, headers={"Allow": "POST"})
        try:
            answer = getattr(self, f"do_{verb.replace('-', '_')}")(request, found)
        except PlatformError as error:
            messages.error(request, error.message)
            answer = None
        return cast(HttpResponse, answer) if answer is not None else HttpResponseRedirect(self.url_of(found))
