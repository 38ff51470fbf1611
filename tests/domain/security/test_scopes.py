"""Scopes on everything that a token may be shown to (spec 01, 1.7), and the feature that scripts need (1.8).

The tables are complete by construction: operations come from their registry, methods from what each kind of address
allows, and an address that no table names fails the test that counts them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from django.test import Client

from domain.dataset.dataset import Dataset
from domain.model.registry import repositories
from domain.odata.http.urls import urlpatterns
from domain.odata.operations.catalogue import DOCUMENTS, EVERY_ENTITY, Operation, operations
from domain.odata.resources import targets
from foundation import cache_versions
from identity.models import Licence
from tests.domain.security.conftest import Library, caller, person
from tests.support.api import Answer, Api, error_of

BOOKS = "Library_Books"
NOBODY = "00000000-0000-4000-8000-000000000001"
SCOPES = ("read", "update", "exec")


class Route(NamedTuple):
    """An address of data, by the kind of target that it leads to; {A1} is a book, {chapter} a chapter of it."""

    kind: type[targets.Target]
    path: str
    writes: tuple[str, ...] = ()


ROUTES = (
    Route(targets.Collection, BOOKS, ("POST",)),
    Route(targets.Collection, f"{BOOKS}?$deltatoken=x"),
    Route(targets.Collection, f"{BOOKS}?$apply=aggregate($count as N)"),
    Route(targets.Collection, f"{BOOKS}({{A1}})/Chapters", ("POST",)),
    Route(targets.Entity, f"{BOOKS}({{A1}})", ("PATCH", "PUT", "MERGE", "DELETE")),
    Route(targets.Entity, f"{BOOKS}({{A1}})/Chapters({{chapter}})", ("PATCH", "PUT", "DELETE")),
    Route(targets.Entity, f"{BOOKS}({{A1}})/Publisher", ("PATCH", "PUT", "DELETE")),
    Route(targets.Property, f"{BOOKS}({{A1}})/Pages", ("PATCH", "PUT", "DELETE")),
    Route(targets.Property, f"{BOOKS}({{A1}})/Pages/$value", ("DELETE",)),
    Route(targets.EntityLink, f"{BOOKS}({{A1}})/$ref"),
    Route(targets.ReferenceLink, f"{BOOKS}({{A1}})/Publisher/$ref", ("PUT", "DELETE")),
    Route(targets.CollectionLinks, f"{BOOKS}({{A1}})/Chapters/$ref", ("POST",)),
    Route(targets.Count, f"{BOOKS}/$count"),
    Route(targets.Count, f"{BOOKS}({{A1}})/Chapters/$count"),
)
#: What a token of any scope may ask, or nobody need show one for: it tells of the model and not of data.
OPEN = {
    targets.ServiceDocument: ("GET", ""),
    targets.Metadata: ("GET", "$metadata"),
    targets.Batch: ("POST", "$batch"),  # each of its parts is asked for its own
}
#: Targets with tables of their own.
ELSEWHERE = {targets.Call, targets.Query}


@pytest.fixture
def admin(library: Library) -> dict[str, Api]:
    """An administrator's callers without one scope each, and with that alone ("only read")."""
    alice = person("alice", is_admin=True)
    callers = {scope: caller(alice, scopes=" ".join(each for each in SCOPES if each != scope)) for scope in SCOPES}
    return callers | {f"only {scope}": caller(alice, scopes=scope) for scope in SCOPES}


def lacks(answer: Answer) -> str | None:
    """The scope that the answer says is missing."""
    if answer.status_code != 403 or error_of(answer)["type"] != "ScopeMissing":
        return None
    (scope,) = error_of(answer)["parameters"]
    assert scope in error_of(answer)["message"]
    return str(scope)


def lacks_in_batch(api: Api, method: str, url: str, **more: Any) -> str | None:
    """The same of the only part of a batch."""
    part = {"id": "1", "method": method, "url": url, "headers": {"Content-Type": "application/json"}, **more}
    if method not in ("GET", "HEAD"):
        part["body"] = {}
    (answered,) = api.post("$batch", {"requests": [part]}).json()["responses"]
    error = answered.get("body", {}).get("error", {}) if answered["status"] == 403 else {}
    return str(error["parameters"][0]) if error.get("type") == "ScopeMissing" else None


def test_every_address_of_data_asks_for_its_scope(library: Library, admin: dict[str, Api]) -> None:
    wrong = []
    known = {**library.books, "chapter": library.chapters["A1"][0]}
    for route in ROUTES:
        path = route.path
        for name, guid in known.items():
            path = path.replace(f"{{{name}}}", guid)
        asked = [("GET", "read"), *((method, "update") for method in route.writes)]
        for method, scope in asked:
            body: Any = None if method in ("GET", "DELETE") else {}
            ways = {
                "alone": lacks(admin[scope].request(method, path, body)),
                "in a batch": lacks_in_batch(admin[scope], method, path),
            }
            if method != "GET":
                ways["in a changeset"] = lacks_in_batch(admin[scope], method, path, atomicityGroup="g")
            wrong += [(method, path, way, said) for way, said in ways.items() if said != scope]
            # The version is wrong, so that nothing is changed by who may.
            right = admin[f"only {scope}"].request(method, path, body, If_Match='"99"')
            if (said := lacks(right)) is not None:
                wrong.append((method, path, "with that scope alone", said))
        assert admin["read"].request("HEAD", path).status_code == 403
    assert wrong == []


def test_the_tables_name_every_kind_of_address() -> None:
    # With slots, dataclasses are made twice.
    known = {each for each in targets.Target.__subclasses__() if getattr(targets, each.__name__) is each}
    assert known == {route.kind for route in ROUTES} | set(OPEN) | ELSEWHERE


def test_queries_in_a_body_are_reading(library: Library, admin: dict[str, Api]) -> None:
    for path in (f"{BOOKS}/$query", f"{BOOKS}({library.books['A1']})/Chapters/$query"):
        assert lacks(admin["read"].post(path, "$top=1", Content_Type="text/plain")) == "read"
        assert admin["only read"].post(path, "$top=1", Content_Type="text/plain").status_code == 200


def test_what_tells_of_the_model_asks_for_none(library: Library, admin: dict[str, Api]) -> None:
    for method, path in OPEN.values():
        body: Any = {"requests": []} if method == "POST" else None
        assert admin["only exec"].request(method, path, body).status_code in (200, 400), path
    assert admin["only exec"].request("OPTIONS", BOOKS).status_code == 204


#: Addresses beside the service root by name → (a token is needed, path).
BESIDE = {
    "odata-reset": (True, "/api/domain/odata/Reset"),
    "reset": (True, "/api/domain/reset"),
    "standard-model": (False, "/api/domain/standardmodel"),
    "current-model": (True, "/api/domain/currentmodel"),
    "site-standard-model": (False, "/api/model/standard.json"),
    "site-current-model": (True, "/api/model/current.json"),
    "openapi": (False, "/api/openapi.json"),
    "profile": (True, "/profile/me"),
}

#: (path, statuses without a token, for a token without the scope read, and for one with it)
DATA = {
    "export": ("/api/export/General_Currencies.csv", 401, 403, 200),
    "dry-run-report": (f"/api/domain/dry-runs/{NOBODY}", 401, 404, 404),
}


def test_what_lies_beside_the_service_asks_for_a_token_at_most(library: Library, admin: dict[str, Api]) -> None:
    named = {pattern.name for pattern in urlpatterns if pattern.name}
    pages = {name for name in named if name.startswith("api-")}
    assert named - pages - {"odata"} <= {*BESIDE, *DATA}
    for needs_token, path in BESIDE.values():
        assert Client().get(path).status_code == (401 if needs_token else 200), path
        shown = Client().get(path, headers={"Authorization": f"Bearer {admin['only exec'].token}"})
        assert shown.status_code == 200, path
    for path, anonymous, without, reading in DATA.values():
        assert Client().get(path).status_code == anonymous, path
        for token, status in (("only exec", without), ("only read", reading)):
            shown = Client().get(path, headers={"Authorization": f"Bearer {admin[token].token}"})
            assert shown.status_code == status, path


def path_of(operation: Operation) -> str:
    """Where the operation is called; scopes are asked before the entity is looked for."""
    if not operation.bound_to:
        return operation.name
    by_kind = {EVERY_ENTITY: BOOKS, DOCUMENTS: "Crm_Sales_SalesOrders"}
    set_name = by_kind.get(operation.bound_to) or repositories[operation.bound_to].set_name
    return f"{set_name}({NOBODY})/Default.{operation.name}"


def test_every_operation_asks_for_its_scope(library: Library, admin: dict[str, Api]) -> None:
    wrong = []
    for operation in operations.all():
        method = "GET" if operation.is_function else "POST"
        path, scope = path_of(operation), operation.scope
        body: Any = None if operation.is_function else {}
        ways = {
            "alone": lacks(admin[scope].request(method, path, body)),
            "in a batch": lacks_in_batch(admin[scope], method, path),
        }
        if not operation.is_function:
            ways["in a changeset"] = lacks_in_batch(admin[scope], method, path, atomicityGroup="g")
        wrong += [(operation.name, way, said) for way, said in ways.items() if said != scope]
        wrong += [
            (operation.name, "with that scope alone", said)
            for said in [lacks(admin[f"only {scope}"].request(method, path, body))]
            if said is not None
        ]
    assert wrong == []


def test_operations_that_change_data_ask_for_more_than_reading() -> None:
    """Reading is for functions: every action, also one that only opens something, is update or exec."""
    reading = {operation.name for operation in operations.all() if operation.scope == "read"}
    actions = {operation.name for operation in operations.all() if not operation.is_function}
    assert reading & actions == set()


def test_who_may_write_and_not_read_is_answered_without_the_data(library: Library, admin: dict[str, Api]) -> None:
    api, book = admin["only update"], library.books["A1"]
    wanted = {"Prefer": "return=representation"}
    for answer in (
        api.post(f"{BOOKS}?$expand=Publisher", {"Code": "N1", "Title": {"EN": "New"}}, **wanted),
        api.patch(f"{BOOKS}({book})?$expand=Publisher,Chapters", {"Pages": 1}, **wanted),
    ):
        assert answer.status_code == 204, answer.content
        assert answer.content == b""
        assert answer.headers["OData-EntityId"]


# --- AdvancedBpm ----------------------------------------------------------------------------------------------------


def test_scripts_need_the_feature(library: Library, admin: dict[str, Api]) -> None:
    api = admin["update"]
    assert api.post("ExecuteScript", "1", Content_Type="text/plain").status_code == 200
    licence = Licence.objects.get()
    licence.features = []
    licence.save()
    cache_versions.expire()
    script = Dataset(library.world.context)
    managed = script.create("Systems.Core.Scripts", {"Code": "S", "Name": "S", "ScriptText": "1"})
    script.commit()
    for path, headers in (
        ("ExecuteScript", {"Content_Type": "text/plain"}),
        (f"Systems_Core_Scripts({managed.id})/Default.Execute", {}),
    ):
        answer = api.post(path, "1" if headers else {}, **headers)
        assert answer.status_code == 403, answer.content
        assert (error_of(answer)["type"], error_of(answer)["parameters"]) == ("FeatureNotLicensed", ["AdvancedBpm"])
        assert error_of(answer)["code"] != 110
