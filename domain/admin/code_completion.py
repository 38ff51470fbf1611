"""Name completion in the editors of scripts and templates: names of the model that the user may read (spec 04, 4.4).

`completion/` lists the repositories, and `completion/?repository=…` the names of one: attributes, with the target
repositories of references, collections, custom properties, operations and the attributes of its events.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, JsonResponse
from django.urls import URLPattern, path, reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from domain.admin.context import permitted
from domain.dataset.templates.known_values import KNOWN_VALUES
from domain.events.types import custom_names, event_types
from domain.model.attributes import Attribute
from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.odata.operations.catalogue import operations
from foundation.kinds import Kind
from identity.admin_bases import PageAdmin


class CodeCompletion(PageAdmin):
    """Base of pages whose code editors complete names of the model."""

    #: Field → (language of its editor, rows that it shows).
    code_fields: Mapping[str, tuple[str, int]] = {}

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Adds the editor's attributes to fields with code."""
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if field is not None and db_field.name in self.code_fields:
            language, rows = self.code_fields[db_field.name]
            field.widget.attrs.update(self.editor_attributes(language, rows=rows))
        return field

    def get_urls(self) -> list[URLPattern]:
        """Adds the URL of the names."""
        view = self.admin_site.admin_view(never_cache(require_safe(self.completion_view)))
        return [path("completion/", view, name=self._completion), *super().get_urls()]

    @property
    def _completion(self) -> str:
        return f"{self.opts.app_label}_{self.opts.model_name}_completion"

    def editor_attributes(self, language: str, *, rows: int) -> dict[str, Any]:
        """Attributes of a textarea that becomes an editor. language: `javascript`, `json` or `template`."""
        return {
            "data-code": language,
            "data-completion": reverse(f"admin:{self._completion}"),
            "rows": rows,
            "spellcheck": "false",
            "autocapitalize": "off",
        }

    def completion_view(self, request: HttpRequest) -> JsonResponse:
        """GET ?repository= → the names of the repository; without it those of all repositories."""
        if not (self.has_view_permission(request) or self.has_add_permission(request)):
            raise PermissionDenied
        name = request.GET.get("repository", "")
        if not name:
            readable = [each.name for each in repositories if permitted(request, "read", each)]
            return JsonResponse({"repositories": sorted(readable), "known": sorted(KNOWN_VALUES)})
        if name not in repositories or not permitted(request, "read", repositories[name]):
            raise Http404
        return JsonResponse(_names(request, repositories[name]))


def _names(request: HttpRequest, repository: Repository[Any]) -> dict[str, Any]:
    """The JSON of one repository: attributes as [name, kind, repository of a reference]; parts of attributes
    (CustomerId, PriceValue) as [name, kind]; collections as [name, repository]; names of the others.
    """
    members = [each for each in repository.attributes.values() if each.kind is not Kind.BINARY and not each.secret]
    events = {each.name for event in event_types.of(repository) for each in event.attributes}
    collections = {name: child.repository for name, child in repository.collections.items()}
    return {
        "attributes": [[each.name, each.kind.name.lower(), _target(request, each)] for each in members],
        "parts": [[f"{each.name}Id", "guid"] for each in members if each.is_reference]
        + [[f"{each.name}Value", "decimal"] for each in members if each.is_measured],
        "collections": [
            [name, target] for name, target in collections.items() if permitted(request, "read", repositories[target])
        ],
        "properties": custom_names(repository),
        "operations": [each.name for each in operations.of(repository)],
        "events": sorted(events),
    }


def _target(request: HttpRequest, attribute: Attribute) -> str | None:
    """The target repository of a reference, if the user may read it."""
    if not attribute.is_reference or not permitted(request, "read", repositories[attribute.target]):
        return None
    return attribute.target
