"""Input of odd types, lengths and characters.

Who: any caller of the API, and whoever may open an admin page. What: an internal error, which hides what was wrong,
fills the log and may leave something half done. What prevents it: each body, address and form is checked, and a
database's refusal is told as what the caller did.
"""

from __future__ import annotations

import json
import uuid
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

import pytest
from django.test import Client

from identity.models import TrustedApplication, User
from tests.support.api import Api, error_of

COMPANIES = "General_Contacts_Companies"
MECHANISMS = "General_Contacts_ContactMechanisms"
PERSONS = "General_Contacts_Persons"
PRODUCTS = "General_Products_Products"
STORES = "Logistics_Inventory_Stores"
#: Characters with a meaning in SQL, URLs, XML, JSON, templates of texts and the % of database drivers.
CODES = ["a'b", 'a"b', "a\\b", "a{b}", "a%b", "a%sb", "%(x)s", "a\nb", "<a>&b", "]]>", "@a", "a/b", "a)b", "--", "🏳"]


def test_the_key_of_another_entity_is_refused_by_its_code(administrator: Api) -> None:
    """Also where several attributes are stored in the key's column, and where the base's table has the key."""
    key = str(uuid.uuid4())
    mechanism = {"Id": key, "Name": "x"}
    administrator.create(MECHANISMS, mechanism)
    store = {"Id": str(uuid.uuid4()), "Name": {"EN": "x"}}
    administrator.create(STORES, store)
    for path, body in ((MECHANISMS, mechanism), (STORES, store)):
        error = error_of(administrator.post(path, body))
        assert (error["code"], error["target"], error["parameters"][1]) == (2129, "Id", "Id"), error


@pytest.mark.parametrize(
    "path, body",
    [
        (COMPANIES, {"Name": {"EN": "x"}, "RegistrationNumber": "7"}),
        (PERSONS, {"FirstName": {"EN": "x"}, "LastName": {"EN": "y"}}),
        (STORES, {"Name": {"EN": "x"}}),
    ],
)
def test_a_key_is_one_entity_s_in_all_repositories_of_a_base(
    administrator: Api, path: str, body: dict[str, Any]
) -> None:
    store = {"Id": str(uuid.uuid4()), "Name": {"EN": "x"}}
    administrator.create(STORES, store)
    given = {**body, "Id": store["Id"]}
    assert error_of(administrator.post(path, given))["code"] == 2129
    post = {"method": "POST", "url": path, "body": given, "headers": {"Content-Type": "application/json"}}
    batch = {"requests": [{"id": "1", **post}, {"id": "2", **post}]}
    answers = administrator.post("$batch", batch).json()["responses"]
    assert [answer["body"]["error"]["code"] for answer in answers] == [2129, 2129]
    objects = {"objects": [{"@odata.type": f"#Erp.{path}", **given}]}
    (imported,) = administrator.post("Import", objects).json()["objects"]
    assert '"code": 1,' not in json.dumps(imported)


def test_an_import_with_a_number_of_thousands_of_digits_is_400(administrator: Api) -> None:
    body = '{"objects":[{"Name":' + "9" * 100_000 + "}]}"
    answer = administrator.post("Import", body)
    assert (answer.status_code, error_of(answer)["type"]) == (400, "InvalidJson"), answer.content


def test_codes_of_custom_properties_may_have_any_character(administrator: Api) -> None:
    for code in CODES:
        administrator.create(
            "Systems_Bpm_CustomProperties",
            {"Code": code, "Name": {"EN": "x"}, "EntityName": "Systems_Security_Users", "PropertyType": "Text"},
        )
    ElementTree.fromstring(administrator.get("$metadata", Accept="application/xml").content)
    metadata = administrator.read("$metadata", Accept="application/json")
    names = [name for name in metadata["Erp"]["Systems_Security_User"] if name.startswith("CustomProperty_")]
    assert len(names) == len(CODES)
    user = administrator.read("Systems_Security_Users?$top=1&$select=Id")["value"][0]["@odata.id"]
    for name in names:
        assert administrator.patch(user, {name: {"Value": name}}).status_code == 204
    asked = ",".join(map(quote, names))
    values = administrator.read(f"{user}?$select={asked}")
    assert {name: (values[name] or {}).get("Value") for name in names} == {name: name for name in names}
    for name in map(quote, names):
        for query in (f"$filter={name} eq '{name}'", f"$filter=contains({name},'{name}')", f"$orderby={name}"):
            found = administrator.read(f"Systems_Security_Users?$select=Id&{query}")["value"]
            assert user in {row["@odata.id"] for row in found}, (query, found)
    for code in CODES:
        rule = {
            "Code": str(uuid.uuid4())[:8],
            "Name": {"EN": "x"},
            "RepositoryName": "Systems.Security.Users",
            "Layer": "BackEnd",
            "Events": [{"EventType": "ATTRIBUTECHANGED", "EventParameter": "Name", "Layer": "BackEnd"}],
            "Conditions": [
                {"ConditionNo": 10, "AttributeName": f"@{code}", "ComparisonType": "Like", "Value": "x%"},
            ],
            "Actions": [{"ActionNo": 10, "ActionType": "FAIL", "Parameter1Type": "Constant", "Parameter1Value": "x"}],
        }
        assert administrator.post("Systems_Bpm_UserBusinessRules", rule).status_code == 201, code


@pytest.fixture
def browser(demo: None, client: Client) -> Client:
    """An administrator in the admin."""
    client.force_login(User.objects.get(login="admin"))
    return client


@pytest.mark.parametrize("value", ["\0", "'", "x" * 3000, "-1", "2024-99-99", "🏳"], ids=range(6))
def test_a_filter_by_an_unknown_state_is_left_out(browser: Client, value: str) -> None:
    answer = browser.get("/admin/domain/activity/", {"state": value})
    assert answer.status_code == 302
    assert answer.headers["Location"].endswith("?e=1")


@pytest.mark.parametrize("value", ["\0", "x" * 5000, "1"], ids=range(3))
def test_a_reference_that_is_no_guid_is_refused_at_its_field(browser: Client, value: str) -> None:
    url = "/admin/domain/salesorder/add/"
    shown = browser.get(url)
    names = ["document_type", "customer"]
    hidden = {
        f"{each.formset.prefix}-{part}": "0"
        for each in shown.context["inline_admin_formsets"]
        for part in ("TOTAL_FORMS", "INITIAL_FORMS")
    }
    answer = browser.post(url, {**hidden, **dict.fromkeys(names, value)})
    assert answer.status_code == 200
    assert set(names) <= set(answer.context["adminform"].form.errors)


@pytest.mark.parametrize(
    "attribute, wrong, right",
    [
        ("DefaultLanguage", "klingon", "pt-BR"),
        ("DefaultLanguage", "../en", "en"),
        ("TimeZone", "Mars/Olympus", "Europe/Sofia"),
        ("TimeZone", "../../etc/passwd", "UTC"),
        ("TimeZone", "Europe", "America/Argentina/Buenos_Aires"),
        ("Email", "nobody@", "somebody@example.com"),
    ],
)
def test_a_value_that_a_standard_does_not_know_is_refused(
    demo: None, administrator: Api, attribute: str, wrong: str, right: str
) -> None:
    user = f"Systems_Security_Users({User.objects.get(login='demo').pk})"
    answer = administrator.patch(user, {attribute: wrong})
    error = answer.json()["error"]
    assert (answer.status_code, error["type"], error["target"]) == (400, "InvalidValue", attribute)
    assert wrong in error["message"]
    assert administrator.patch(user, {attribute: right}).status_code == 204


def test_a_login_url_without_a_scheme_is_refused(demo: None, administrator: Api) -> None:
    key = TrustedApplication.objects.get(application_uri="WebDemoClient").pk
    application = f"Systems_Security_TrustedApplications({key})"
    answer = administrator.patch(application, {"ImpersonateLoginUrl": "localhost:5080/cb"})
    assert answer.json()["error"]["target"] == "ImpersonateLoginUrl"
    assert "has no scheme" in answer.json()["error"]["message"]
    for fine in ("http://localhost:5080/cb", "com.example.app:/cb", "myapp://callback"):
        assert administrator.patch(application, {"ImpersonateLoginUrl": fine}).status_code == 204
