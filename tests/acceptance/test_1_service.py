"""1 What the service does

Each capability in its smallest form; the sections after it have the details.
"""

from __future__ import annotations

from tests.acceptance.caller import ODATA, Caller, answered, error_of
from tests.acceptance.objects import GROUPS, Maker, fail
from tests.acceptance.people import WEB, Person, claims_of, token_request
from tests.acceptance.statements import statement


@statement("1", "The identity provider lies at id below the instance's root address, the Domain API at api")
def test_addresses(anyone: Caller) -> None:
    sites = {site["Type"]: site["Url"] for site in anyone.read("/sys/auto-discovery")["WebSites"]}
    assert sites["ID"].rstrip("/") == f"{anyone.base_url}/id"
    assert sites["API"].rstrip("/") == f"{anyone.base_url}/api"


@statement("1", "The Domain API's OData root is domain/odata/ below the API's address, with and without the slash")
def test_odata_root(service: Caller) -> None:
    for path in (ODATA, ODATA.rstrip("/")):
        assert "value" in answered(service.get(path), 200).json()


@statement("1", "The Domain API reads business data over HTTP")
def test_read(service: Caller) -> None:
    assert len(service.rows("Crm_Sales_SalesOrders?$top=2")) == 2


@statement("1", "The Domain API creates, changes and deletes business data over HTTP")
def test_change(service: Caller, mark: str) -> None:
    group = service.create(GROUPS, {"Code": f"G-{mark}", "Name": {"EN": "made"}})["@odata.id"]
    service.change(group, {"Name": {"EN": "changed"}})
    assert service.read(group)["Name"] == {"EN": "changed"}
    answered(service.delete(group), 204)
    error_of(service.get(group), 404)


@statement("1", "The identity provider is an OpenID Connect and OAuth 2.0 provider")
def test_openid_provider(anyone: Caller) -> None:
    found = anyone.read("/id/.well-known/openid-configuration")
    assert {"issuer", "authorization_endpoint", "token_endpoint", "jwks_uri", "scopes_supported"} <= set(found)


@statement("1.1", "Interactive users are authenticated by the authorization code flow")
def test_interactive(demo: Person) -> None:
    assert claims_of(demo.tokens["id_token"])["sub"] == "demo"


@statement("1.1", "Service applications are authenticated by the client credentials flow")
def test_service(service: Caller) -> None:
    assert service.rows("General_Products_Products?$top=1")


@statement("1.2", "The instance reports which web sites it runs")
def test_sites(anyone: Caller) -> None:
    assert {"ID", "API"} <= {site["Type"] for site in anyone.read("/sys/auto-discovery")["WebSites"]}


@statement("1.3", "The instance reports the events of each repository that rules can be registered on")
def test_events(service: Caller) -> None:
    for repository in ("Crm.Sales.SalesOrders", "General.Products.Products", "General.Currencies.Currencies"):
        assert service.read(f"GetRepositoryEvents(repositoryName='{repository}')")["events"]


@statement("1.4", "One-off JavaScript runs inside the Domain transaction")
def test_one_off_script(service: Caller) -> None:
    assert service.run("console.log(6 * 7)")["console"] == "42"


@statement("1.5", "A stored managed script runs with JSON arguments")
def test_managed_script(make: Maker) -> None:
    script = make.script("return parameters.n * 7;", {"n": {"type": "integer", "direction": "Input"}})
    answer = answered(make.caller.post(f"{script}/Execute", {"arguments": {"n": 6}}), 200)
    assert answer.json()["returnValue"] == 42


@statement("1.6", "User business rules react to events and run actions")
def test_rule(make: Maker) -> None:
    group = make.group()
    make.rule("General.Products.ProductGroups", "COMMIT", fail("refused"), conditions=[])
    assert error_of(make.caller.patch(group, {"Notes": "x"}), 500)["message"] == "refused"


@statement("1.7", "Errors are structured JSON")
def test_errors(service: Caller) -> None:
    error_of(service.get("Nonsense"), 400)


@statement("1", "An identity token proves that authentication happened and carries at least the subject claim")
def test_identity_token(demo: Person) -> None:
    claims = claims_of(demo.tokens["id_token"])
    assert claims["sub"] == "demo"
    assert claims["aud"] in (WEB, [WEB])
    assert claims["iss"] == f"{demo.browser.site.base_url}/id"


@statement("1", "An access token grants API access and carries the client and, if there is one, the user")
def test_access_token(service: Caller, demo: Person) -> None:
    assert demo.api.rows("Crm_Sales_SalesOrders?$top=1")
    of_person = claims_of(demo.tokens["access_token"])
    assert (of_person["client_id"], of_person["sub"]) == (WEB, "demo")
    of_service = claims_of(service.headers["Authorization"].split()[1])
    assert of_service["client_id"] == "ServiceDemoClient"
    assert "id" not in of_service, "a service's token names no person"


@statement("1", "A refresh token obtains new access tokens without the user")
def test_refresh_token(anyone: Caller) -> None:
    with Person.signed_in(anyone, "demo") as person:
        answer = token_request(anyone, grant_type="refresh_token", refresh_token=person.tokens["refresh_token"])
        fresh = answered(answer, 200).json()["access_token"]
        assert fresh != person.tokens["access_token"]
        assert anyone.with_token(fresh).rows("Crm_Sales_SalesOrders?$top=1")
