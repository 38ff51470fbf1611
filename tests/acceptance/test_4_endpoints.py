"""4 Endpoints"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.acceptance.caller import Caller, answered, error_of, id_of
from tests.acceptance.objects import GROUPS, ORDERS, PRODUCTS, Maker, order
from tests.acceptance.people import (
    DUAL,
    RETURN_TO,
    SIGNED_OUT,
    WEB,
    Browser,
    Person,
    claims_of,
    parameters_of,
    redeem,
    token_request,
)
from tests.acceptance.statements import statement

EVENTS = "GetRepositoryEvents(repositoryName='{}')"


class TestDiscovery:
    @statement("4.1", "GET sys/auto-discovery answers JSON to anybody, without a request body or token")
    def test_anonymous(self, anyone: Caller) -> None:
        answer = answered(anyone.get("/sys/auto-discovery"), 200)
        assert answer.headers["Content-Type"].partition(";")[0] == "application/json"
        assert answer.json()["WebSites"]

    @statement("4", "Domain API calls carry Authorization: Bearer and the access token; without it they are refused")
    def test_bearer(self, anyone: Caller, service: Caller) -> None:
        assert service.headers["Authorization"].startswith("Bearer ")
        answered(service.get(f"{ORDERS}?$top=1"), 200)
        error_of(anyone.get(f"{ORDERS}?$top=1"), 401)


class TestIdentityProvider:
    @statement("4.2", "GET .well-known/openid-configuration answers the provider's metadata: issuer, keys, scopes")
    def test_metadata(self, anyone: Caller) -> None:
        found = anyone.read("/id/.well-known/openid-configuration")
        assert found["issuer"] == f"{anyone.base_url}/id"
        assert {"openid", "profile", "offline_access"} <= set(found["scopes_supported"])
        keys = anyone.http.get(found["jwks_uri"], timeout=60).json()["keys"]
        assert keys[0]["kty"] == "RSA"

    @pytest.mark.parametrize(
        "endpoint, path",
        [
            ("authorization_endpoint", "connect/authorize"),
            ("token_endpoint", "connect/token"),
            ("end_session_endpoint", "connect/endsession"),
        ],
    )
    @statement("4.2", "The metadata names {endpoint} at id/{path}")
    def test_endpoints(self, anyone: Caller, endpoint: str, path: str) -> None:
        found = anyone.read("/id/.well-known/openid-configuration")
        assert found[endpoint] == f"{anyone.base_url}/id/{path}"

    @statement("4.2", "connect/authorize shows a browser the login page")
    def test_login_page(self, anyone: Caller) -> None:
        browser = Browser(anyone)
        answer = answered(browser.authorize(), 302)
        page = answered(browser.get(answer.headers["Location"]), 200)
        assert page.headers["Content-Type"].startswith("text/html")
        assert 'type="password"' in page.text

    @statement("4.2", "After login the browser is redirected to redirect_uri with the code and the state as parameters")
    def test_code(self, anyone: Caller) -> None:
        target = Browser(anyone).sign_in("demo", state="my state")
        assert target.partition("?")[0] == RETURN_TO
        assert {"code", "state"} <= set(parse_qs(urlsplit(target).query))
        assert parameters_of(target)["state"] == "my state"

    @statement("4.2", "response_type 'code id_token' answers both, the id_token with the nonce of the request")
    def test_hybrid(self, anyone: Caller) -> None:
        answer = parameters_of(Browser(anyone).sign_in("demo", response_type="code id_token", nonce="n-17"))
        assert claims_of(answer["id_token"])["nonce"] == "n-17"
        assert answer["code"]

    @statement("4.2", "nonce comes back in the id_token of the code flow")
    def test_nonce(self, anyone: Caller) -> None:
        with Person.signed_in(anyone, "demo", nonce="n-18") as person:
            assert claims_of(person.tokens["id_token"])["nonce"] == "n-18"

    @statement("4.2", "scope takes openid, profile and offline_access separated by spaces")
    def test_scopes(self, anyone: Caller) -> None:
        with Person.signed_in(anyone, "demo", scope="openid profile offline_access") as person:
            assert {"openid", "profile", "offline_access"} <= set(person.tokens["scope"].split())
            assert person.tokens["refresh_token"]

    @statement("1", "An access token of these scopes grants API access")
    def test_scopes_give_access(self, anyone: Caller) -> None:
        with Person.signed_in(anyone, "demo", scope="openid profile offline_access") as person:
            assert person.api.rows("General_Products_Products?$top=1")

    @statement("4.2", "connect/token takes a form and answers JSON")
    def test_token(self, anyone: Caller) -> None:
        answer = token_request(anyone, grant_type="client_credentials", client_id="ServiceDemoClient")
        assert answer.request.headers["Content-Type"] == "application/x-www-form-urlencoded"
        assert answered(answer, 200).headers["Content-Type"].startswith("application/json")

    @statement("4.2", "connect/token refuses a body that is no form")
    def test_token_json(self, anyone: Caller) -> None:
        body = {"grant_type": "client_credentials", "client_id": "ServiceDemoClient", "client_secret": "DEMO"}
        assert anyone.post("/id/connect/token", body).status_code == 400

    @statement("4.2", "connect/endsession signs out and redirects to post_logout_redirect_uri")
    def test_end_session(self, anyone: Caller) -> None:
        with Person.signed_in(anyone, "demo") as person:
            answer = answered(person.sign_out(post_logout_redirect_uri=SIGNED_OUT), 302)
            assert answer.headers["Location"].partition("?")[0] == SIGNED_OUT
            again = person.browser.authorize()
            assert "/id/account/login" in again.headers["Location"]

    @statement("4.2", "Single sign-out ends every application that the user logged into in the session")
    def test_single_sign_out(self, anyone: Caller) -> None:
        with Person.signed_in(anyone, "demo") as person:
            code = parameters_of(person.browser.sign_in("demo", client_id=DUAL))["code"]
            second = anyone.with_token(redeem(anyone, code, client_id=DUAL).json()["access_token"])
            answered(second.get(f"{ORDERS}?$top=1"), 200)
            person.sign_out()
            assert second.is_refused()


class TestGrants:
    @statement("4.3", "authorization_code takes client_id, client_secret, code and redirect_uri; answers three tokens")
    def test_code(self, demo: Person) -> None:
        assert {"access_token", "id_token", "refresh_token"} <= set(demo.tokens)

    @pytest.mark.parametrize("field", ["client_secret", "code", "redirect_uri"])
    @statement("4.3", "authorization_code without {field} is refused")
    def test_code_incomplete(self, anyone: Caller, field: str) -> None:
        answer = redeem(anyone, Browser(anyone).code("demo"), **{field: ""})
        assert answer.status_code in {400, 401}
        assert isinstance(answer.json()["error"], str)

    @statement("4.3", "client_credentials takes client_id and client_secret; answers an access_token for the service")
    def test_client_credentials(self, anyone: Caller) -> None:
        answer = token_request(anyone, grant_type="client_credentials", client_id="ServiceDemoClient")
        assert claims_of(answered(answer, 200).json()["access_token"])["client_system_user"] == "service"

    @statement("4.3", "client_credentials with a wrong secret is refused as invalid_client")
    def test_wrong_secret(self, anyone: Caller) -> None:
        form = {"grant_type": "client_credentials", "client_id": "ServiceDemoClient", "client_secret": "wrong"}
        assert answered(token_request(anyone, **form), 401).json()["error"] == "invalid_client"

    @statement("4.3", "refresh_token takes client_id, client_secret and refresh_token; answers both tokens anew")
    def test_refresh(self, anyone: Caller) -> None:
        with Person.signed_in(anyone, "demo") as person:
            form = {"grant_type": "refresh_token", "refresh_token": person.tokens["refresh_token"]}
            fresh = answered(token_request(anyone, **form), 200).json()
            assert fresh["refresh_token"] != person.tokens["refresh_token"]
            assert fresh["access_token"] != person.tokens["access_token"]

    @statement("4.3", "A dual-mode client uses <ApplicationUri>-service for client_credentials")
    def test_dual(self, anyone: Caller) -> None:
        form = {"grant_type": "client_credentials", "client_id": f"{DUAL}-service"}
        assert "id_token" not in answered(token_request(anyone, **form), 200).json()

    @statement("4.3", "A dual-mode client's plain ApplicationUri gets no service token; the answer names the suffix")
    def test_dual_plain(self, anyone: Caller) -> None:
        refused = answered(token_request(anyone, grant_type="client_credentials", client_id=DUAL), 400).json()
        assert refused["error"] == "unauthorized_client"
        assert "-service" in refused["error_description"]

    @statement("4.3", "A dual-mode client's authorization_code requests use the plain ApplicationUri")
    def test_dual_interactive(self, anyone: Caller) -> None:
        browser = Browser(anyone)
        tokens = answered(redeem(anyone, browser.code("demo", client_id=DUAL), client_id=DUAL), 200).json()
        assert tokens["access_token"]
        suffixed = browser.authorize(client_id=f"{DUAL}-service")
        assert "Location" not in suffixed.headers

    @pytest.mark.parametrize("missing", ["SystemUserAllowed", "ImpersonateLoginUrl", "ImpersonateLogoutUrl"])
    @statement("4.3", "The suffix -service needs SystemUserAllowed and both URLs; without {missing} it is refused")
    def test_dual_precondition(self, make: Maker, anyone: Caller, missing: str) -> None:
        uri = f"dual-{make.mark}"
        (known,) = make.caller.rows(f"Systems_Security_TrustedApplications?$filter=ApplicationUri eq '{DUAL}'")
        values = {
            "ApplicationUri": uri,
            "Name": uri,
            "ClientType": "Confidential",
            "ApplicationSecretHash": "T/AGymuI51LwjLeIFxRQXOs9IHnupDKs/ajhWODR2C4=",
            "SystemUserAllowed": True,
            "SystemUser": known["SystemUser"],
            "ImpersonateLoginUrl": RETURN_TO,
            "ImpersonateLogoutUrl": SIGNED_OUT,
        }
        entry = make.new("Systems_Security_TrustedApplications", values)
        form = {"grant_type": "client_credentials", "client_id": f"{uri}-service"}
        assert token_request(anyone, **form).status_code == 200
        answered(make.caller.patch(entry["@odata.id"], {missing: False if missing == "SystemUserAllowed" else ""}), 204)
        refused = token_request(anyone, **form)
        assert refused.status_code in {400, 401}
        assert "access_token" not in refused.json()


class TestGetRepositoryEvents:
    @statement("4.4", "GetRepositoryEvents is called by GET with repositoryName in quotes, and answers JSON")
    def test_get(self, service: Caller) -> None:
        answer = answered(service.get(EVENTS.format("Crm.Sales.SalesOrders")), 200)
        assert answer.headers["Content-Type"].startswith("application/json")
        assert answer.json()["repositoryName"] == "Crm.Sales.SalesOrders"

    @statement("4.4", "repositoryName is required")
    def test_required(self, service: Caller) -> None:
        error_of(service.get("GetRepositoryEvents()"), 400)
        error_of(service.get("GetRepositoryEvents"), 400)

    @pytest.mark.parametrize("name", ["Crm.Sales.Nothing", "SalesOrders", ""])
    @statement("4.4", "repositoryName is an exact repository name; '{name}' is refused")
    def test_exact(self, service: Caller, name: str) -> None:
        error_of(service.get(EVENTS.format(name)), 400, 404, 500)

    @statement("4.4", "A function is not called by POST")
    def test_post(self, service: Caller) -> None:
        error_of(service.post(EVENTS.format("Crm.Sales.SalesOrders"), {}), 405)


class TestExecuteScript:
    @pytest.fixture(scope="class")
    @classmethod
    def answer(cls, service: Caller) -> dict[str, Any]:
        return service.run("console.log('первый', 1);\nconsole.info('second');")

    @statement("4.4", "ExecuteScript takes the script as text/plain in UTF-8 and answers 200 with JSON")
    def test_answer(self, service: Caller) -> None:
        answer = answered(service.script("1"), 200)
        assert answer.headers["Content-Type"].startswith("application/json")

    @statement("4.4", "ok is true")
    def test_ok(self, answer: dict[str, Any]) -> None:
        assert answer["ok"] is True

    @statement("4.4", "sessionId is a string and the same for the requests of a session")
    def test_session(self, answer: dict[str, Any], service: Caller) -> None:
        assert isinstance(answer["sessionId"], str)
        assert answer["sessionId"] == service.run("1")["sessionId"]

    @statement("4.4", "transactionId is the transaction's identifier, and null where there is none")
    def test_transaction(self, answer: dict[str, Any], service: Caller) -> None:
        assert answer["transactionId"] is None
        inside = service.begin()
        assert inside.run("1")["transactionId"] == inside.headers["TransactionId"]
        inside.end(commit=False)

    @statement("4.4", "durationMs is an integer, the execution time in milliseconds")
    def test_duration(self, answer: dict[str, Any]) -> None:
        assert type(answer["durationMs"]) is int
        assert 0 <= answer["durationMs"] < 60_000

    @statement("4.4", "console is a string, its lines joined by a newline")
    def test_console(self, answer: dict[str, Any]) -> None:
        assert answer["console"] == "первый 1\nsecond"

    @statement("4.4", "console is the empty string where the script wrote nothing")
    def test_silent(self, service: Caller) -> None:
        assert service.run("1")["console"] == ""

    @statement("4.4", "The answer has the five properties and no others of its own")
    def test_properties(self, answer: dict[str, Any]) -> None:
        named = {name for name in answer if not name.startswith("@")}
        assert named == {"ok", "sessionId", "transactionId", "durationMs", "console"}

    @statement("4.4", "The body is script, not JSON: a JSON body is refused")
    def test_json(self, service: Caller) -> None:
        error_of(service.post("ExecuteScript", {"script": "1"}), 400, 415)

    @statement("4.4", "The whole body is run as script")
    def test_whole_body(self, service: Caller) -> None:
        assert service.run('{"a": 1}; console.log("run")'.replace('{"a": 1};', "({a: 1});"))["console"] == "run"

    @pytest.mark.parametrize("method", ["query", "getById"])
    @statement("4.4", "A script has the repositories of Domain with {method}")
    def test_domain(self, service: Caller, method: str) -> None:
        (row,) = service.rows(f"{PRODUCTS}?$top=1&$orderby=PartNumber&$select=PartNumber")
        found = {"query": f"query({{PartNumber: '{row['PartNumber']}'}})[0]", "getById": f"getById('{id_of(row)}')"}
        script = f"console.log(Domain.General.Products.ProductsRepository.{found[method]}.PartNumber)"
        assert service.run(script)["console"] == row["PartNumber"]

    @pytest.mark.parametrize("call", ["begin", "commit", "rollback"])
    @statement("4.4", "A script has the global Transaction with {call}")
    def test_transaction_object(self, service: Caller, call: str) -> None:
        assert service.run(f"console.log(typeof Transaction.{call})")["console"] == "function"

    @statement("4.4", "A script's data access respects the caller's permissions")
    def test_permissions(self, make: Maker, anyone: Caller) -> None:
        group = make.group()
        change = f"Domain.General.Products.ProductGroupsRepository.getById('{group[-37:-1]}').Notes = 'x';"
        with Person.signed_in(anyone, "demo", client_id=DUAL, scope="openid read update exec") as person:
            error_of(person.api.patch(group, {"Notes": "x"}), 403)
            error_of(person.api.script(f"{change} Transaction.commit();"), 403, 500)
        assert make.caller.read(group)["Notes"] is None

    @statement("4.4", "In a transaction a script changes the pending data and does not commit; EndTransaction decides")
    @pytest.mark.parametrize("commit", [True, False])
    def test_in_transaction(self, make: Maker, commit: bool) -> None:
        group = make.group()
        inside = make.caller.begin()
        inside.run(f"Domain.General.Products.ProductGroupsRepository.getById('{group[-37:-1]}').Notes = 'x';")
        assert inside.read(group)["Notes"] == "x"
        assert make.caller.read(group)["Notes"] is None
        inside.end(commit=commit)
        assert make.caller.read(group)["Notes"] == ("x" if commit else None)

    @statement("4.4", "Transaction.rollback() in an open transaction acts on that transaction")
    def test_external_rollback(self, make: Maker) -> None:
        group = make.group()
        inside = make.caller.begin()
        inside.change(group, {"Notes": "x"})
        inside.run("Transaction.rollback();")
        assert inside.read(group)["Notes"] is None
        inside.end(commit=True)
        assert make.caller.read(group)["Notes"] is None

    @pytest.mark.parametrize(
        "what, source",
        [
            ("an empty body", ""),
            ("a body of white space", " \n\t "),
            ("a runtime error", "Domain.Nothing.x.y();"),
            ("an exceeded time limit", "for (;;) {}"),
        ],
    )
    @statement("4.4", "ExecuteScript with {what} answers an OData error")
    def test_failures(self, service: Caller, what: str, source: str) -> None:
        error_of(service.script(source), 400, 500)


class TestExecute:
    SCHEMA = {
        "needed": {"type": "integer", "direction": "Input", "required": True},
        "out": {"type": "integer", "direction": "Output"},
        "both": {"type": "string", "direction": "InputOutput", "default": "b"},
    }

    @pytest.fixture
    def script(self, make: Maker) -> str:
        return make.script("parameters.out = parameters.needed + 1;", self.SCHEMA)

    @pytest.fixture
    def free(self, make: Maker) -> str:
        schema = {"a": {"type": "integer", "direction": "Input", "default": 5}}
        return make.script("return parameters.a;", schema, suffix="F")

    @statement("4.4", "Execute takes JSON with an object arguments and answers parameters and returnValue")
    def test_answer(self, make: Maker, script: str) -> None:
        answer = answered(make.caller.post(f"{script}/Execute", {"arguments": {"needed": 1}}), 200).json()
        assert {name for name in answer if not name.startswith("@")} == {"parameters", "returnValue"}

    @statement("4.4", "parameters holds the declared Output and InputOutput values only")
    def test_parameters(self, make: Maker, script: str) -> None:
        answer = answered(make.caller.post(f"{script}/Execute", {"arguments": {"needed": 1}}), 200).json()
        assert answer["parameters"] == {"out": 2, "both": "b"}

    @pytest.mark.parametrize(
        "source, value",
        [("return {a: [1, 'x', null]};", {"a": [1, "x", None]}), ("return 'x';", "x"), ("1;", None), ("return;", None)],
    )
    @statement("4.4", "returnValue is the script's return value as JSON, and null when there is none")
    def test_return_value(self, make: Maker, source: str, value: Any) -> None:
        answer = answered(make.caller.post(f"{make.script(source)}/Execute", {}), 200).json()
        assert "returnValue" in answer
        assert answer["returnValue"] == value

    @pytest.mark.parametrize("body", ["{}", '{"arguments": null}'])
    @statement("4.4", "The body {body} means no arguments and succeeds when every input has a default")
    def test_no_arguments(self, make: Maker, free: str, body: str) -> None:
        answer = make.caller.post(f"{free}/Execute", body, Content_Type="application/json")
        assert answered(answer, 200).json()["returnValue"] == 5

    @pytest.mark.parametrize("body", ["{}", '{"arguments": null}', '{"arguments": {}}'])
    @statement("4.4", "A required input without a default fails validation, with the body {body} too")
    def test_required(self, make: Maker, script: str, body: str) -> None:
        refused = make.caller.post(f"{script}/Execute", body, Content_Type="application/json")
        assert "needed" in error_of(refused, 500)["message"]

    @statement("4.4", "A property argumentsJson must not be sent")
    def test_arguments_json(self, make: Maker, free: str) -> None:
        error_of(make.caller.post(f"{free}/Execute", {"argumentsJson": "{}"}), 400)

    @statement("4.4", "arguments is an object, not an escaped string")
    def test_escaped(self, make: Maker, free: str) -> None:
        error_of(make.caller.post(f"{free}/Execute", {"arguments": json.dumps({"a": 1})}), 400)

    @pytest.mark.parametrize("arguments", [{"needed": "one"}, {"needed": 1, "other": 2}])
    @statement("4.4", "Arguments whose names or values do not match the schema are refused")
    def test_invalid_arguments(self, make: Maker, script: str, arguments: dict[str, Any]) -> None:
        error_of(make.caller.post(f"{script}/Execute", {"arguments": arguments}), 500)

    @statement("4.4", "Invalid outputs fail the run")
    def test_invalid_outputs(self, make: Maker) -> None:
        script = make.script("parameters.out = 'text';", {"out": {"type": "integer", "direction": "Output"}})
        assert "out" in error_of(make.caller.post(f"{script}/Execute", {}), 500)["message"]

    @statement("4.4", "Exceeded limits fail the run")
    def test_limits(self, make: Maker) -> None:
        error_of(make.caller.post(f"{make.script('for (;;) {}')}/Execute", {}), 500)

    @pytest.mark.parametrize("commit", [True, False])
    @statement("4.4", "Execute in a transaction does not commit; the changes persist only with commit true")
    def test_transaction(self, make: Maker, commit: bool) -> None:
        group = make.group()
        script = make.script(f"Domain.General.Products.ProductGroupsRepository.getById('{group[-37:-1]}').Notes = 'x';")
        inside = make.caller.begin()
        answered(inside.post(f"{script}/Execute", {}), 200)
        inside.end(commit=commit)
        assert make.caller.read(group)["Notes"] == ("x" if commit else None)

    @statement("4.4", "Execute does not alter the script's definition")
    def test_definition(self, make: Maker, script: str) -> None:
        before = make.caller.read(script)
        answered(make.caller.post(f"{script}/Execute", {"arguments": {"needed": 1}}), 200)
        assert make.caller.read(script) == before

    @statement("4.4", "Execute takes the script's id and answers 404 for one that is not there")
    def test_unknown(self, service: Caller) -> None:
        error_of(service.post("Systems_Core_Scripts(00000000-0000-0000-0000-000000000001)/Execute", {}), 404)


class TestTransactions:
    @statement("4.4", "BeginTransaction yields a TransactionId; the header TransactionId carries it")
    def test_begin(self, service: Caller) -> None:
        answer = answered(service.post("BeginTransaction", {}), 200)
        assert answer.headers["Content-Type"].startswith("text/plain")
        inside = service.with_headers(TransactionId=answer.text)
        answered(inside.get(f"{ORDERS}?$top=1"), 200)
        inside.end(commit=False)

    @statement("4.4", "EndTransaction takes commit, a boolean")
    def test_end(self, service: Caller) -> None:
        inside = service.begin()
        error_of(inside.post("EndTransaction", {"commit": "yes"}), 400)
        inside.end(commit=False)


class TestCreating:
    @statement("4.4", "POST to the set of a repository, underscores for dots, creates a record from JSON")
    def test_create(self, make: Maker) -> None:
        made = make.new("General_Products_ProductGroups", {"Code": f"G-{make.mark}", "Name": {"EN": "x"}})
        assert made["Code"] == f"G-{make.mark}"

    @statement("4.4", "Children are created in the same POST")
    def test_deep(self, make: Maker) -> None:
        made = make.new(ORDERS, order(lines=2))
        assert make.caller.count(f"{made['@odata.id']}/Lines") == 2

    @statement("4.4", "A reference is set by the annotation @odata.bind with Set(guid)")
    def test_bind(self, make: Maker) -> None:
        (unit,) = make.caller.rows("General_Products_MeasurementUnits?$top=1&$filter=Code eq 'pcs'")
        (group,) = make.caller.rows(f"{GROUPS}?$top=1")
        product = make.product(**{"ProductGroup@odata.bind": group["@odata.id"]})
        stored = make.caller.read(product)
        assert stored["MeasurementUnit"] == {"@odata.id": unit["@odata.id"]}
        assert stored["ProductGroup"] == {"@odata.id": group["@odata.id"]}

    @statement("4.4", "A product is created of PartNumber, Name and MeasurementUnit@odata.bind alone")
    def test_product(self, make: Maker) -> None:
        (unit,) = make.caller.rows("General_Products_MeasurementUnits?$top=1&$filter=Code eq 'pcs'")
        body = {"PartNumber": f"P-{make.mark}", "Name": {"EN": "Three"}}
        made = make.new(PRODUCTS, {**body, "MeasurementUnit@odata.bind": unit["@odata.id"]})
        assert (made["PartNumber"], made["Name"]) == (f"P-{make.mark}", {"EN": "Three"})

    @statement("4.4", "A set that does not exist is refused with an OData error")
    def test_unknown_set(self, service: Caller) -> None:
        error_of(service.post("General_Products_Nothing", {"Code": "x"}), 400, 404)


@statement("4.2", "An application's client_id is its ApplicationUri")
def test_client_id(demo: Person) -> None:
    assert claims_of(demo.tokens["access_token"])["client_id"] == WEB
