"""Parts of pages that show the model: list of sets, search results, details of a set, the query builder.

Without a token they show the standard model; with one the model that the caller may read, with custom properties.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, cast

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.utils.formats import number_format
from django.utils.translation import get_language, gettext
from rest_framework import serializers
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from domain.admin.diagram import Diagram, diagram
from domain.api_site.builder import query_of
from domain.api_site.query_charts import ChartChoice, chart_of_rows
from domain.api_site.saved_queries import ChartSerializer
from domain.events.types import EventType, event_types
from domain.model.registry import repositories
from domain.odata.metadata import model_json
from domain.odata.metadata.discovery import Node, set_named, sets_shown
from domain.odata.operations.catalogue import operations
from foundation import errors
from foundation.browser_pages import BrowserPage
from identity.context import CallContext
from identity.rest import context_of, has_credential
from identity.rest_views import PlatformView

#: Maximum digits of a number in a chart.
_MOST_DIGITS = 30
_MOST_HITS, _LONGEST_SEARCH, _LONGEST_NAME = 80, 200, 200


class ModelQuerySerializer(serializers.Serializer[None]):
    """q: words to search for; name: the shown set, by its name or a former one."""

    q = serializers.CharField(max_length=_LONGEST_SEARCH, allow_blank=True, default="")
    name = serializers.CharField(max_length=_LONGEST_NAME, allow_blank=True, default="")


@dataclass(frozen=True, slots=True)
class Hit:
    """A search result: a set, or a member of it."""

    label: str
    detail: str
    set_name: str
    member: str = ""


class ModelPart(PlatformView, BrowserPage):
    """A part of the page, as HTML."""

    permission_classes = ()

    def get_authenticators(self) -> list[BaseAuthentication]:
        """No authenticators without a token: the standard model is public."""
        return super().get_authenticators() if has_credential(self.request) else []

    def get(self, request: Request) -> HttpResponse:
        """Raises BadRequest for an unknown set."""
        query = ModelQuerySerializer(data=request.query_params)
        query.is_valid(raise_exception=True)
        return self.part(request._request, _model_of(request), **query.validated_data)

    def part(self, request: HttpRequest, context: CallContext | None, q: str, name: str) -> HttpResponse:
        """The HTML. context None: of the standard model."""
        raise NotImplementedError


class SetsPart(ModelPart):
    """Sets by namespace, with that of `name` open; or the search results of the words in `q`."""

    def part(self, request: HttpRequest, context: CallContext | None, q: str, name: str) -> HttpResponse:
        words = q.lower().split()
        if words:
            hits = sorted(
                (hit for hit in _index(context) if _matches(hit, words)), key=lambda hit: _rank(hit, words[0])
            )
            status = gettext("{count} found").format(count=number_format(len(hits)))
            found = {"hits": hits[:_MOST_HITS], "is_search": True}
            return render(request, "domain/api_site/_sets.html", {**found, "status": status})
        shown = sets_shown(context)
        namespaces: dict[str, list[tuple[str, str]]] = {}
        for each in shown:
            namespace, _, last = each.name.rpartition(".")
            namespaces.setdefault(namespace, []).append((each.set_name, last))
        status = gettext("{count} sets in {namespaces} namespaces").format(
            count=number_format(len(shown)), namespaces=number_format(len(namespaces))
        )
        known = repositories.for_set(name)
        now = known[0].set_name if known is not None else ""
        return render(request, "domain/api_site/_sets.html", {"namespaces": namespaces, "now": now, "status": status})


class SetPart(ModelPart):
    """A set: its facts, neighbours, members, operations and events; without a name the operations of the service."""

    def part(self, request: HttpRequest, context: CallContext | None, q: str, name: str) -> HttpResponse:
        if not name:
            unbound = [_operation(model_json.operation_node(each)) for each in operations.all() if not each.bound_to]
            return render(request, "domain/api_site/_set.html", {"unbound": unbound})
        repository = set_named(name, context)
        shown = {each.set_name: each for each in sets_shown(context)}
        node = model_json.set_node(repository, custom=context is not None)
        values = {
            "set": node,
            "base": repository.base.set_name if repository.base is not None else "",
            "derived": [each.set_name for each in shown.values() if each.base is repository],
            "diagram": _among(diagram(repository), shown.keys()),
            "link": "#",
            "attributes": [_attribute(each) for each in node["attributes"]],
            "operations": [_operation(model_json.operation_node(each)) for each in operations.of(repository)],
            "events": [_event(each) for each in event_types.of(repository)],
            "used_by": [
                (each.set_name, reference.name, reference.owner)
                for each in shown.values()
                for reference in each.references.values()
                if reference.target == repository.name
            ],
        }
        return render(request, "domain/api_site/_set.html", values)


class BuilderPart(ModelPart):
    """The form of the query builder after its actions, with the request URL of the choices."""

    http_method_names = ["post"]

    def post(self, request: Request) -> HttpResponse:
        """The updated form."""
        form = QueryDict("", mutable=True)
        form.update(request.data)
        query = query_of(form, _model_of(request))
        values = {"query": query, "unknown": query is None and bool(form.get("set", "").strip())}
        return render(request._request, "domain/api_site/_builder.html", values)


class ChartPart(ModelPart):
    """The chart of rows that the page sends: fields `rows` and `chart`, both JSON."""

    http_method_names = ["post"]

    def post(self, request: Request) -> HttpResponse:
        """The chart, with its figures as a table. Raises BadRequest for invalid rows or an invalid chart."""
        wanted = ChartSerializer(data=_json(request, "chart"))
        wanted.is_valid(raise_exception=True)
        rows = _json(request, "rows")
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise errors.BadRequest(errors.INVALID_BODY, "rows", target="rows")
        choice = cast(ChartChoice, wanted.validated_data)
        try:
            chart = chart_of_rows(rows, choice, get_language() or "")
        except LookupError as missing:
            raise errors.BadRequest(errors.UNKNOWN_PROPERTY, str(missing.args[0]), "rows", "") from missing
        return render(request._request, "foundation/chart.html", {"chart": chart})


def _json(request: Request, name: str) -> Any:
    """The field's value; numbers stay exact."""
    try:
        return json.loads(str(cast(QueryDict, request.data).get(name, "")), parse_float=_number, parse_int=_number)
    except (ValueError, ArithmeticError, RecursionError) as exc:
        raise errors.BadRequest(errors.INVALID_JSON, str(exc), target=name) from exc


def _number(text: str) -> Decimal:
    """A number of JSON. Raises ValueError for more than _MOST_DIGITS digits."""
    result = Decimal(text)
    if result and abs(result.adjusted()) > _MOST_DIGITS:
        raise ValueError(text[:_MOST_DIGITS])
    return result


def _model_of(request: Request) -> CallContext | None:
    """The caller whose model is shown; None without a token."""
    return context_of(request) if request.auth is not None else None


def _among(drawn: Diagram, names: Iterable[str]) -> Diagram:
    """The diagram without neighbours that the shown model lacks."""
    known = set(names)
    boxes = tuple(box for box in drawn.boxes if box.neighbour.set_name in known)
    return replace(drawn, boxes=boxes, others=tuple(each for each in drawn.others if each.set_name in known))


def _attribute(node: Node) -> Node:
    """The attribute with its limits in words, and its type without the namespace."""
    limits = []
    if "maxLength" in node:
        limits.append(gettext("up to {most} characters").format(most=node["maxLength"]))
    if "precision" in node:
        limits.append(f"{node['precision']},{node['scale']}")
    if "measure" in node:
        limits.append(gettext("in {path}").format(path=node["measure"]))
    return {**node, "type": _bare(node["type"]), "limits": " · ".join(limits)}


def _operation(node: Node) -> Node:
    parameters = [{**each, "type": _bare(each["type"])} for each in node["parameters"]]
    return {**node, "parameters": parameters, "returns": _bare(node["returns"] or "–")}


def _event(event: EventType) -> tuple[str, str, str, str]:
    """Name, layer, description, and description of the parameter."""
    parameter = gettext(event.parameter.description) if event.parameter is not None else ""
    return event.name, event.layer, gettext(event.description), parameter


def _bare(type_name: str) -> str:
    return type_name.removeprefix("Edm.").removeprefix("Erp.")


# --- search ---------------------------------------------------------------------------------------------------------


def _index(context: CallContext | None) -> Iterator[Hit]:
    for repository in sets_shown(context):
        yield from _hits(model_json.set_node(repository, custom=context is not None))


def _hits(node: Node) -> Iterator[Hit]:
    name = node["name"]
    yield Hit(name, gettext("Set"), name)
    for old in node["oldNames"]:
        yield Hit(old, gettext("former name of {name}").format(name=name), name)
    for each in node["attributes"]:
        yield Hit(each["name"], f"{name} · {each['type']}", name, each["name"])
        for member in each.get("members", ()):
            yield Hit(member, f"{name}/{each['name']}", name, each["name"])
    for each in node["references"]:
        yield Hit(each["name"], f"{name} → {each['entitySet']}", name, each["name"])
    for each in node["collections"]:
        yield Hit(each["name"], f"{name} → {each['entitySet']} [ ]", name, each["name"])
    for each in node["customProperties"]:
        yield Hit(each["name"], f"{name} · {each['propertyType']}", name, each["name"])
    for operation in node["operations"]:
        yield Hit(operation, f"{name} · {gettext('operation')}", name, operation)


def _matches(hit: Hit, words: list[str]) -> bool:
    """Whether each word is in the label or the set's name, and at least one in the label."""
    label, set_name = hit.label.lower(), hit.set_name.lower()
    return all(word in label or word in set_name for word in words) and any(word in label for word in words)


def _rank(hit: Hit, word: str) -> tuple[int, bool]:
    """Sort key: exact names first, then prefixes; a set before a member."""
    label = hit.label.lower()
    return (0 if label == word else 1 if label.startswith(word) else 2, bool(hit.member))
