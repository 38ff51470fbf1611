"""Site discovery, tools and probes (spec 01, 1.1)."""

from __future__ import annotations

import base64
import hashlib
import re
import tomllib
from typing import Any

import pytest
from rest_framework.test import APIClient

from platform_site import discovery, health
from platform_site.environment import BASE_DIR


@pytest.fixture
def client() -> APIClient:
    """The framework's client."""
    return APIClient()


@pytest.fixture(autouse=True)
def fresh_health() -> None:
    health.forget()


def sites(client: APIClient, path: str = "/sys/auto-discovery") -> dict[str, dict[str, Any]]:
    response = client.get(path)
    assert response.status_code == 200
    assert response.headers["Cache-Control"] == "no-store"
    assert response.headers["Access-Control-Allow-Origin"] == "*"
    return {site["Type"]: site for site in response.json()["WebSites"]}


@pytest.mark.parametrize("path", ["/sys/auto-discovery", "/tools/auto-discovery"])
def test_it_names_the_sites_that_are_served(client: APIClient, db: None, path: str) -> None:
    found = sites(client, path)
    assert found["ID"]["Url"] == "http://testserver/id"
    assert found["ID"]["Status"] == "Working"
    assert found["ID"]["AdditionalProperties"] is None
    tables = "http://testserver/tableapi"
    assert found["TableAPI"]["Url"] == tables
    assert found["TableAPI"]["AdditionalProperties"] == {"ODataServiceRoot": f"{tables}/odata/"}
    assert client.get(found["ID"]["Url"] + "/.well-known/openid-configuration").json()["issuer"] == found["ID"]["Url"]


def test_the_api_is_reported_under_both_names_once_it_is_served(
    client: APIClient, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discovery, "_exists", lambda path: path == discovery.ODATA_PATH)
    found = sites(client)
    assert set(found) == {"API", "DomainAPI"}
    root = "http://testserver/api/domain/odata/"
    assert (
        found["API"]["AdditionalProperties"] == found["DomainAPI"]["AdditionalProperties"] == {"ODataServiceRoot": root}
    )


def test_the_public_base_url_wins_over_the_requests(client: APIClient, db: None, settings: Any) -> None:
    settings.BASE_URL = "https://erp.example.com"
    assert sites(client)["ID"]["Url"] == "https://erp.example.com/id"


def test_a_part_that_stopped_is_seen(client: APIClient, db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> str | None:
        raise OSError("no such directory")

    monkeypatch.setitem(health._checks, "keys", broken)
    found = sites(client)
    assert found["ID"]["Status"] == "NotWorking"
    assert "keys" in found["ID"]["StatusDescription"]
    assert found["UserProfile"]["Status"] == "Working"


def test_a_check_is_not_repeated_for_some_seconds(client: APIClient, db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    monkeypatch.setitem(health._checks, "keys", lambda: calls.append(1))
    for _ in range(3):
        sites(client)
    assert len(calls) == 1


def test_sha256_hashes_as_secrets_are_kept(client: APIClient) -> None:
    expected = {"sha256": base64.b64encode(hashlib.sha256(b"DEMO").digest()).decode()}
    assert client.get("/sys/tools/sha256", {"secret": "DEMO"}).json() == expected
    assert client.post("/sys/tools/sha256", {"secret": "DEMO"}).json() == expected
    assert client.get("/sys/tools/sha256").status_code == 400
    assert client.delete("/sys/tools/sha256").status_code == 405


def test_version_and_server_info(client: APIClient) -> None:
    project = tomllib.loads((BASE_DIR / "pyproject.toml").read_text())["project"]
    assert client.get("/sys/ver").json()["version"] == project["version"]
    newest = re.search(r"^## (\d\S*)", (BASE_DIR / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest
    assert newest[1] == project["version"]
    assert client.get("/sys/server-info").json()["baseUrl"] == "http://testserver"


def test_liveness_needs_nothing(client: APIClient) -> None:
    assert client.get("/healthz").content == b"ok\n"


def test_readiness_needs_every_part(client: APIClient, db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    response = client.get("/readyz")
    assert response.status_code == 200, response.content
    assert set(response.json()["checks"]) >= {"database", "cache", "queue", "sandbox"}
    health.forget()
    monkeypatch.setitem(health._checks, "queue", lambda: "The broker is away.")
    response = client.get("/readyz")
    assert response.status_code == 503
    assert response.json()["checks"]["queue"] == {
        "ok": False,
        "problem": "The broker is away.",
        "ms": response.json()["checks"]["queue"]["ms"],
    }


@pytest.mark.parametrize("engine", ["/nonexistent.so", __file__])
def test_readiness_needs_a_sandbox_that_starts(
    client: APIClient, db: None, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    monkeypatch.setattr("scripts.services._pool", None)
    monkeypatch.setattr("scripts.sandbox.process._engine_path", lambda: engine)
    health.forget()
    response = client.get("/readyz")
    assert response.status_code == 503
    assert response.json()["checks"]["sandbox"]["problem"] == "Script workers do not start; the log says why."
    health.forget()


def test_every_address_that_is_named_answers_a_browser(client: APIClient, db: None) -> None:
    for site in client.get("/sys/auto-discovery").json()["WebSites"]:
        for address in (site["Url"], site["Url"].rstrip("/") + "/"):
            answer = client.get(address, follow=True, headers={"Accept": "text/html"})
            assert answer.status_code < 400, address
    assert client.get("/id").headers["Location"] == "/profile/"


@pytest.mark.parametrize(
    "path", ["/", "/sys/auto-discovery", "/sys/ver", "/healthz", "/readyz", "/id/.well-known/openid-configuration"]
)
@pytest.mark.parametrize("method", ["post", "put", "delete"])
def test_what_is_only_read_names_the_methods_it_has(db: None, path: str, method: str) -> None:
    answer = getattr(APIClient(enforce_csrf_checks=True), method)(path)
    assert answer.status_code == 405
    assert answer.headers["Allow"] == "GET, HEAD"
