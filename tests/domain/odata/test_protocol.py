"""Protocol manners (spec 02, 2.6) and the forms that answers take (2.2, representation)."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from foundation import errors
from foundation.guids import new_guid
from identity.changes import access_changed
from identity.models import TrustedApplication
from tests.domain.odata.test_writing import GROUPS, order_body
from tests.rules.cast import World
from tests.support.api import Api, error_of, id_of

CURRENCIES = "General_Currencies_Currencies"
PRODUCTS = "General_Products_Products"
ORDERS = "Crm_Sales_SalesOrders"
PARTIES = "General_Contacts_Parties"
TYPES = "Systems_Documents_DocumentTypes"
OLD_TYPES = "General_DocumentTypes"
ORIGIN = "https://app.example"


@pytest.fixture
def currency(api: Api) -> dict[str, Any]:
    """One currency."""
    made: dict[str, Any] = api.create(CURRENCIES, {"CurrencySign": "USD", "Name": "Dollar"})
    return made


# --- formats ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", ["none", "minimal", "full"])
def test_metadata_levels(api: Api, currency: dict[str, Any], level: str) -> None:
    response = api.get(currency["@odata.id"], Accept=f"application/json;odata.metadata={level}")
    assert f"odata.metadata={level}" in response["Content-Type"]
    names = {name for name in response.json() if name.startswith("@")}
    if level == "none":
        assert names == set()
    else:
        assert {"@odata.context", "@odata.id", "@odata.etag"} <= names
    assert ("@odata.type" in names) == (level == "full")


def test_the_format_option_wins_over_accept(api: Api, currency: dict[str, Any]) -> None:
    path = f"{currency['@odata.id']}?$format=application/json;odata.metadata=none"
    assert "@odata.id" not in api.read(path, Accept="application/xml")
    assert api.get(f"{CURRENCIES}?$format=json", Accept="text/csv").status_code == 200
    assert api.get(f"{CURRENCIES}?$format=atom").status_code == 406
    assert api.get(CURRENCIES, Accept="application/xml").status_code == 406
    assert api.get(CURRENCIES, Accept="application/xml, application/json;q=0.1").status_code == 200


def test_decimals_are_strings_where_the_caller_cannot_hold_them(api: Api, world: World) -> None:
    made = api.create(ORDERS, order_body(world, {"Quantity": {"Value": 3, "Unit": "pcs"}, "UnitPrice": 2}))
    path = f"{made['@odata.id']}/Lines?$count=true"
    plain = api.read(path)["value"][0]
    strings = api.read(path, Accept="application/json;IEEE754Compatible=true")
    assert plain["Quantity"]["Value"] == 3
    assert isinstance(strings["value"][0]["Quantity"]["Value"], str)
    assert strings["@odata.count"] == "1"


def test_nulls_are_left_out_on_request(api: Api, currency: dict[str, Any]) -> None:
    path = f"{currency['@odata.id']}?$select=default,ExternalId"
    whole, skipped = api.read(path), api.read(f"{path}&options=skipnulls")
    assert None in whole.values()
    assert skipped == {name: value for name, value in whole.items() if value is not None}
    preferred = api.get(path, Prefer="omit-values=nulls")
    assert (preferred.json(), preferred["Preference-Applied"]) == (skipped, "omit-values=nulls")
    rows = api.get(f"{CURRENCIES}?$filter=CurrencySign eq 'USD'", Prefer="omit-values=nulls, maxpagesize=5")
    assert rows["Preference-Applied"] == "odata.maxpagesize=5, omit-values=nulls"
    assert None not in rows.json()["value"][0].values()


def test_an_entity_has_a_reference_that_can_be_read(api: Api, world: World) -> None:
    """OData URL Conventions 4.01, 4.8."""
    order = api.create(f"{ORDERS}?$expand=Lines", order_body(world, {"UnitPrice": 2}))
    line = order["Lines"][0]["@odata.id"]
    owned = f"{order['@odata.id']}/Lines({id_of(order['Lines'][0])})/$ref"
    for path, id in ((f"{order['@odata.id']}/$ref", order["@odata.id"]), (f"{line}/$ref", line), (owned, line)):
        body = api.read(path)
        assert (body.pop("@odata.context").rpartition("/")[2], body) == ("$metadata#$ref", {"@odata.id": id})
        refused = api.delete(path)
        assert (refused.status_code, refused["Allow"]) == (405, "GET, HEAD, OPTIONS")
    assert api.get(f"{CURRENCIES}({world.product})/$ref").status_code == 404
    assert api.get(f"{order['@odata.id']}/$ref?$select=Id").status_code == 501


@pytest.mark.parametrize("header", ["Isolation", "OData-Isolation"])
def test_a_request_does_not_run_without_the_isolation_that_it_demands(
    api: Api, currency: dict[str, Any], header: str
) -> None:
    """OData Protocol 4.01, 8.2.6."""
    path, isolated = currency["@odata.id"], {header: "snapshot"}
    part = {"id": "1", "method": "PATCH", "url": path, "body": {"CurrencySign": "XXX"}}
    for response in (
        api.get(CURRENCIES, **isolated),
        api.patch(path, {"CurrencySign": "XXX"}, **isolated),
        api.post("$batch", {"requests": [part]}, **isolated),
    ):
        assert (response.status_code, error_of(response)["type"]) == (412, "IsolationNotSupported")
    isolated_part = {**part, "headers": isolated}
    assert api.post("$batch", {"requests": [isolated_part]}).json()["responses"][0]["status"] == 412
    assert api.read(path)["CurrencySign"] == "USD"


@pytest.mark.parametrize(
    "asked, applied",
    [("2", "2"), ("5000", "1000"), ("9" * 5000, "1000"), ("0", None), ("-1", None), ("\xb2", None), ("x", None)],
)
def test_a_page_is_as_large_as_preferred_up_to_the_largest(
    api: Api, currency: dict[str, Any], asked: str, applied: str | None
) -> None:
    answered = api.get(CURRENCIES, Prefer=f"odata.maxpagesize={asked}")
    assert answered.status_code == 200, answered.content
    assert answered.headers.get("Preference-Applied") == (applied and f"odata.maxpagesize={applied}")


def test_the_default_members_and_what_is_named(api: Api, world: World) -> None:
    path = f"{PRODUCTS}({world.product})"
    default = api.read(path)
    assert "PartNumber" in default
    assert default["ProductGroup"] == {"@odata.id": f"General_Products_ProductGroups({world.group})"}
    assert not {"Id", "DisplayText", "Codes"} & set(default)
    more = api.read(f"{path}?$select=DEFAULT, Id")
    assert more["Id"] == world.product
    assert set(default) - {"@odata.context"} <= set(more)
    assert "PartNumber" not in api.read(f"{path}?$select=Id")


# --- methods and bodies -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "method, path, allowed",
    [
        ("PATCH", CURRENCIES, "GET, HEAD, POST, OPTIONS"),
        ("POST", "{entity}", "GET, HEAD, PATCH, PUT, MERGE, DELETE, OPTIONS"),
        ("POST", f"{CURRENCIES}/$count", "GET, HEAD, OPTIONS"), ("POST", "GetVersion()", "GET, HEAD, OPTIONS"),
        ("GET", "BeginTransaction", "POST, OPTIONS"), ("DELETE", "$metadata", "GET, HEAD, OPTIONS"),
        ("POST", "", "GET, HEAD, OPTIONS"),
        ("GET", "$batch", "POST, OPTIONS"), ("GET", f"{CURRENCIES}/$query", "POST, OPTIONS"),
    ],
)  # fmt: skip
def test_a_wrong_method_is_405_and_says_which_are_right(
    api: Api, currency: dict[str, Any], method: str, path: str, allowed: str
) -> None:
    refused = api.request(method, path.format(entity=currency["@odata.id"]), {} if method != "GET" else None)
    assert (refused.status_code, refused["Allow"]) == (405, allowed)
    assert error_of(refused)["code"] == errors.METHOD_NOT_ALLOWED.number


def test_an_unknown_method_is_405(api: Api) -> None:
    assert api.request("BREW", CURRENCIES).status_code == 405


def test_options_says_what_is_allowed(api: Api, currency: dict[str, Any]) -> None:
    assert api.request("OPTIONS", CURRENCIES)["Allow"] == "GET, HEAD, POST, OPTIONS"
    assert api.request("OPTIONS", currency["@odata.id"])["Allow"] == "GET, HEAD, PATCH, PUT, MERGE, DELETE, OPTIONS"
    assert api.request("OPTIONS", "BeginTransaction")["Allow"] == "POST, OPTIONS"


def test_head_is_get_without_a_body(api: Api, currency: dict[str, Any]) -> None:
    got, head = api.get(currency["@odata.id"]), api.request("HEAD", currency["@odata.id"])
    assert (head.status_code, head.content) == (200, b"")
    assert head["ETag"] == got["ETag"]
    assert head["Content-Type"] == got["Content-Type"]
    assert head["Content-Length"] == str(len(got.content))


@pytest.mark.parametrize("sent", ["text/plain", "application/xml", "multipart/form-data; boundary=x"])
def test_a_body_that_is_not_json_is_415(api: Api, sent: str) -> None:
    refused = api.post(CURRENCIES, '{"CurrencySign": "USD"}', Content_Type=sent)
    assert (refused.status_code, error_of(refused)["type"]) == (415, "UnsupportedMediaType")


def test_a_query_may_stand_in_the_body(api: Api, currency: dict[str, Any]) -> None:
    asked = "$filter=" + " or ".join(f"CurrencySign eq 'X{n}'" for n in range(700)) + " or CurrencySign eq 'USD'"
    assert len(asked) > 8192
    answered = api.post(f"{CURRENCIES}/$query?$count=true", asked, Content_Type="text/plain")
    assert answered.status_code == 200
    assert [row["CurrencySign"] for row in answered.json()["value"]] == ["USD"]
    assert answered.json()["@odata.count"] == 1
    wrong = api.post(f"{CURRENCIES}/$query", asked, Content_Type="application/json")
    assert wrong.status_code == 415


def test_urls_of_8_kb_are_read(api: Api, currency: dict[str, Any]) -> None:
    asked = "$filter=CurrencySign in (" + ",".join(f"'{n:05}'" for n in range(980)) + ",'USD')"
    assert 7800 < len(asked) < 8192
    assert len(api.read(f"{CURRENCIES}?{asked}")["value"]) == 1


@pytest.mark.parametrize(
    "path", ["{0}?$filter=CurrencySign eq null", "{0}?$top=1", "{0}?$count=true", "{0}/Name?$orderby=Name", "?$top=1",
             "$metadata?$filter=true", "$metadata?$select=Id", "{0}?$skiptoken=x",
             "{0}/Name?$from=garbage", "{0}/$ref?$to=2026-01-01"],
)  # fmt: skip
def test_options_that_choose_among_many_are_refused_where_there_is_one(
    api: Api, currency: dict[str, Any], path: str
) -> None:
    refused = api.get(path.format(currency["@odata.id"]))
    assert (refused.status_code, error_of(refused)["type"]) == (400, "BadQueryOption")
    assert error_of(refused)["target"] == path.partition("?")[2].partition("=")[0]


@pytest.mark.parametrize(
    "expand, found",
    [
        ("Lines($filter=Notes eq @n;@n='a')", ["a"]),
        ('Lines($filter=Notes in @n;@n=["a","b"])&@n=\'c\'', ["a", "b"]),
        ("Lines($filter=Notes eq @n;$orderby=@o desc;@o=Notes)&@n='b'", ["b"]),
        ("Lines($compute=@n as X;$select=X;$filter=X eq Notes;@n='b')", ["b"]),
        ("Lines($select=Notes;$filter=Notes eq @m;@m=@n;$expand=Product)&@n='b'", ["b"]),
    ],
)
def test_parameter_aliases_may_be_nested_in_expand(api: Api, world: World, expand: str, found: list[str]) -> None:
    """OData Protocol 4.01, 12.2.3."""
    made = api.create(ORDERS, order_body(world, {"Quantity": 1, "Notes": "a"}, {"Quantity": 1, "Notes": "b"}))
    (order,) = api.read(f"{ORDERS}?$expand={expand}")["value"]
    assert sorted(line.get("Notes", line.get("X")) for line in order["Lines"]) == found
    assert [
        line.get("Notes", line.get("X")) for line in api.read(f"{made['@odata.id']}?$expand={expand}")["Lines"]
    ] == found


def test_aliases_of_nested_options_reach_the_options_inside(api: Api, world: World) -> None:
    made = api.create(ORDERS, order_body(world, {"Quantity": 1}))
    inner = "$expand=Lines($filter=Quantity/Value eq @n);@n=1"
    deal = api.read(f"{made['@odata.id']}?$expand=Lines($expand=SalesOrder({inner});@n=2)")
    (line,) = deal["Lines"]
    assert len(line["SalesOrder"]["Lines"]) == 1
    outer = "$expand=Lines($filter=Quantity/Value eq @n)"
    deal = api.read(f"{made['@odata.id']}?$expand=Lines($expand=SalesOrder({outer});@n=1)")
    assert len(deal["Lines"][0]["SalesOrder"]["Lines"]) == 1


@pytest.mark.parametrize("method, path, option", [
    ("DELETE", "{0}", "$filter=CurrencySign eq 'none'"), ("PATCH", "{0}", "$filter=CurrencySign eq 'none'"),
    ("PATCH", "{0}", "$top=3"), ("PATCH", "{0}", "$from=2026-01-01"), ("PUT", "{0}/Name", "$orderby=Name"),
    ("POST", CURRENCIES, "$filter=CurrencySign eq 'none'"), ("POST", CURRENCIES, "$count=true"),
    ("DELETE", "{0}", "$select=Name"), ("DELETE", "{0}/Name", "$expand=*"), ("POST", "$batch", "$filter=true"),
])  # fmt: skip
def test_options_that_would_change_nothing_about_a_write_are_refused(
    api: Api, currency: dict[str, Any], method: str, path: str, option: str
) -> None:
    before = api.read(currency["@odata.id"])
    address = f"{path.format(currency['@odata.id'])}?{option}"
    refused = api.request(
        method, address, None if method == "DELETE" else {"CurrencySign": "EUR", "value": {"EN": "x"}}
    )
    assert (refused.status_code, error_of(refused)["type"]) == (400, "BadQueryOption"), refused.content
    assert error_of(refused)["target"] == option.partition("=")[0]
    assert api.read(currency["@odata.id"]) == before
    assert len(api.read(CURRENCIES)["value"]) == 2


def test_shaping_a_property_is_named_as_not_offered(api: Api, currency: dict[str, Any]) -> None:
    refused = api.get(f"{currency['@odata.id']}/Name?$select=EN")
    assert (refused.status_code, error_of(refused)["type"]) == (501, "NotSupported")


def test_documents_take_their_own_options_and_those_of_callers(api: Api) -> None:
    assert api.get("$metadata?$format=json&$schemaversion=*&mine=1").status_code == 200
    assert api.get("?$format=json&mine=1").status_code == 200


def test_an_entity_can_be_named_by_its_id(api: Api, currency: dict[str, Any]) -> None:
    id = currency["@odata.id"]
    for named in (id, f"http://testserver/api/domain/odata/{id}"):
        assert api.read(f"$entity?$id={named}&$select=CurrencySign")["CurrencySign"] == "USD"
    for wrong in ("$entity", f"$entity?$id={CURRENCIES}", "$entity?$id=$metadata"):
        assert api.get(wrong).status_code == 400
    assert api.get(f"$entity?$id={CURRENCIES}(00000000-0000-7000-8000-999999999999)").status_code == 404


@pytest.mark.parametrize(
    "path, type",
    [
        ("Nothing", "UnknownEntitySet"), (f"{CURRENCIES}?$filter=$root/Nothing(1)/A eq 1", "UnknownEntitySet"),
        ("{0}/Nothing", "UnknownOperation"), (f"{CURRENCIES}/Nothing", "UnknownOperation"),
        (f"{CURRENCIES}?$filter=Nothing", "UnknownProperty"), (f"{CURRENCIES}?$orderby=Nothing", "UnknownProperty"),
        ("{0}?$select=Nothing", "UnknownProperty"), (f"{CURRENCIES}?$nothing=1", "BadUrl"),
        ("{0}/CustomProperty_nothing", "UnknownProperty"), ("{0}/Name?$expand=Nothing", None),
        (f"{CURRENCIES}?$select=Name/Nothing", "UnknownProperty"),
    ],
)  # fmt: skip
def test_unknown_names_are_400_wherever_they_stand(
    api: Api, currency: dict[str, Any], path: str, type: str | None
) -> None:
    refused = api.get(path.format(currency["@odata.id"]))
    assert refused.status_code == (400 if type else 501), refused.content
    assert type is None or error_of(refused)["type"] == type
    assert "Nothing".lower() in error_of(refused)["message"].lower() or type is None


def test_behind_a_null_reference_everything_is_null(api: Api, world: World) -> None:
    product = f"{PRODUCTS}({world.product})"
    for path in ("PurchaseMeasurementUnit", "PurchaseMeasurementUnit/$ref", "PurchaseMeasurementUnit/Code",
                 "PurchaseMeasurementUnit/Code/$value", "Description", "Description/$value"):  # fmt: skip
        answered = api.get(f"{product}/{path}")
        assert (answered.status_code, answered.content) == (204, b""), path
    assert api.get(f"{product}/PurchaseMeasurementUnit/Nothing").status_code == 400


NOT_OFFERED = (
    (f"{ORDERS}?$expand=Lines($apply=aggregate($count as n))", "$apply"),
    (f"{ORDERS}?$apply=join(Lines as L)", "join"),
    (f"{ORDERS}?$apply=outerjoin(Lines as L)", "outerjoin"),
    (f"{ORDERS}?$apply=nest(groupby((State)) as G)", "nest"),
    (f"{ORDERS}?$apply=addnested(Lines,aggregate($count as n) as G)", "addnested"),
    (f"{ORDERS}?$apply=ancestors($root/{ORDERS},H,Id,filter(Void))", "ancestors"),
    (f"{ORDERS}?$apply=descendants($root/{ORDERS},H,Id,filter(Void))", "descendants"),
    (f"{ORDERS}?$apply=traverse($root/{ORDERS},H,Id,preorder)", "traverse"),
    (f"{ORDERS}?$apply=aggregate(Forecast)", "custom aggregates"),
    (f"{ORDERS}?$apply=aggregate(TotalLineAmountValue with Mine.median as M)", "Mine.median"),
    (f"{ORDERS}?$apply=aggregate(Lines/Quantity with average as A)", "average"),
    (f"{ORDERS}?$filter=hassubset([1,2],[1])", "hassubset"),
    (f"{ORDERS}?$filter=hassubsequence([1,2],[1])", "hassubsequence"),
    (f"{ORDERS}?$index=1", "$index"),
    ("$all", "$all"),
    (f"$crossjoin({ORDERS},{PRODUCTS})", "crossjoin"),
    (f"{ORDERS}/$each", "$each"),
    (f"{ORDERS}?$filter=geo.length(DocumentNo) eq 1", "Spatial functions"),
    (f"{ORDERS}?$filter=DocumentNo eq geography'SRID=0;Point(1 2)'", "Spatial values"),
)


@pytest.mark.parametrize("path, named", NOT_OFFERED, ids=[named for _, named in NOT_OFFERED])
def test_what_is_not_offered_is_501_and_named(api: Api, path: str, named: str) -> None:
    refused = api.get(path)
    assert (refused.status_code, error_of(refused)["type"]) == (501, "NotSupported")
    assert named in error_of(refused)["message"]


@pytest.mark.parametrize("header", ["OData-MaxVersion", "OData-Version"])
def test_a_version_that_is_not_served_is_refused_with_those_that_are(api: Api, header: str) -> None:
    refused = api.get(CURRENCIES, **{header.replace("-", "_"): "1.0"})
    assert refused.status_code == 400
    assert "'1.0' is not one of 4.0, 4.01" in error_of(refused)["message"]


def test_links_write_a_space_as_every_reader_understands_it(api: Api, currency: dict[str, Any]) -> None:
    api.create(CURRENCIES, {"CurrencySign": "GBP", "Name": "Pound"})
    link = api.read(f"{CURRENCIES}?$orderby=CurrencySign desc", Prefer="maxpagesize=1")["@odata.nextLink"]
    assert "$orderby=CurrencySign%20desc" in link


def test_a_plus_is_a_space_or_the_sign_of_a_time_zone_in_links_too(api: Api, currency: dict[str, Any]) -> None:
    """Clients that encode like forms send it for spaces; others leave it in a date-time as it is."""
    api.create(CURRENCIES, {"CurrencySign": "GBP", "Name": "Pound"})
    asked = f"{CURRENCIES}?$filter=now()+ge+2020-01-31T00:00:00.5+02:00+and+Name+ne+'a%2Bb'"
    first = api.read(asked, Prefer="maxpagesize=1")
    link = first["@odata.nextLink"].partition("/odata/")[2]
    assert "now()%20ge%202020-01-31T00:00:00.5%2B02:00%20and%20" in link
    assert first["value"][0] not in api.read(link)["value"] != []


def test_links_keep_what_is_encoded_in_a_nested_search(api: Api, world: World) -> None:
    for number in range(2):
        api.create(ORDERS, order_body(world, {"Quantity": 1 + number}))
    asked = f"{ORDERS}?%24top=2&$skip=0&$expand=Lines($search=a%3Bb)"
    first = api.read(asked, Prefer="maxpagesize=1")
    second = api.read(first["@odata.nextLink"].partition("/odata/")[2])
    assert [len(page["value"]) for page in (first, second)] == [1, 1]
    assert "$skip=0" not in first["@odata.nextLink"]


def test_a_longer_url_is_414_and_says_what_to_send_instead(api: Api, currency: dict[str, Any]) -> None:
    asked = "$filter=CurrencySign in (" + ",".join(f"'{n:05}'" for n in range(1100)) + ",'USD')"
    refused = api.get(f"{CURRENCIES}?{asked}")
    assert (refused.status_code, error_of(refused)["type"]) == (414, "UrlTooLong")
    assert f"POST {CURRENCIES}/$query" in error_of(refused)["message"]
    assert len(api.post(f"{CURRENCIES}/$query", asked, Content_Type="text/plain").json()["value"]) == 1


def test_links_of_a_long_query_can_be_followed(api: Api, currency: dict[str, Any]) -> None:
    api.create(CURRENCIES, {"CurrencySign": "GBP", "Name": "Pound"})
    asked = (
        "$filter=CurrencySign in (" + ",".join(f"'{n:05}'" for n in range(1100)) + ",'USD','GBP')&$select=CurrencySign"
    )
    first = api.post(f"{CURRENCIES}/$query", asked, Content_Type="text/plain", Prefer="maxpagesize=1").json()
    second = api.read(first["@odata.nextLink"].partition("/odata/")[2])
    assert {row["CurrencySign"] for row in first["value"] + second["value"]} == {"USD", "GBP"}
    assert "@odata.nextLink" not in second


def test_the_root_with_and_without_a_slash(api: Api) -> None:
    for path in ("/api/domain/odata", "/api/domain/odata/"):
        body = api.client.get(path, headers={"Authorization": f"Bearer {api.token}"}).json()
        assert body["@odata.context"] == "http://testserver/api/domain/odata/$metadata"
        assert {entry["kind"] for entry in body["value"]} == {"EntitySet", "FunctionImport"}
    assert "@odata.context" not in api.read("", Accept="application/json;odata.metadata=none")


# --- headers ------------------------------------------------------------------------------------------------------


def test_data_is_not_stored_and_varies(api: Api, currency: dict[str, Any]) -> None:
    for path in (CURRENCIES, currency["@odata.id"], f"{CURRENCIES}/$count", f"{currency['@odata.id']}/Name"):
        response = api.get(path)
        assert response["Cache-Control"] == "no-store"
        assert {"Accept", "Accept-Encoding", "Origin"} <= {part.strip() for part in response["Vary"].split(",")}


@pytest.mark.parametrize(
    "query, cookie, header, language",
    [
        ("", "", "", "en"), ("", "", "bg-BG,en;q=0.5", "bg"), ("", "c=de|uic=de", "bg", "de"),
        ("?culture=bg", "c=de|uic=de", "fr", "bg"),
    ],
)  # fmt: skip
def test_the_language_comes_from_query_cookie_header(
    api: Api, world: World, query: str, cookie: str, header: str, language: str
) -> None:
    sent = {"Accept_Language": header, "Cookie": f".AspNetCore.Culture={cookie}"}
    path = f"{PRODUCTS}({world.product})?$select=DisplayText"
    response = api.get(f"{path}{query.replace('?', '&')}", **{name: value for name, value in sent.items() if value})
    assert response["Content-Language"] == language
    assert response.json()["DisplayText"] == {"bg": "Стол"}.get(language, "Chair")


@pytest.mark.parametrize(
    "query, header, language",
    [("", "fr, bg;q=0.5", "bg"), ("", "fr, de;q=0.3, bg;q=0.5", "bg"), ("", "fr", "en"), ("", "fr, en, bg", "en"),
     ("", "fr, bg;q=0", "en"), ("?culture=fr", "bg", "en")],
)  # fmt: skip
def test_messages_are_in_the_first_accepted_language_that_has_them(
    api: Api, world: World, query: str, header: str, language: str
) -> None:
    """Texts are in the first one, which the instance may have them in."""
    assert api.patch(f"{PRODUCTS}({world.product})", {"Name": {"FR": "Chaise"}}).status_code == 204
    shown = api.get(f"{PRODUCTS}({world.product}){query or '?'}&$select=DisplayText", Accept_Language=header)
    assert (shown["Content-Language"], shown.json()["DisplayText"]) == (language, "Chaise")
    for path in (f"{CURRENCIES}(11111111-1111-1111-1111-111111111111)", f"{CURRENCIES}?$filter="):
        refused = api.get(path + (query if "?" not in path else query.replace("?", "&")), Accept_Language=header)
        plain = api.get(path, Accept_Language=language)
        assert refused["Content-Language"] == language
        assert error_of(refused)["message"] == error_of(plain)["message"]


def test_large_answers_are_compressed_for_who_wants_it(api: Api) -> None:
    plain = api.get("$metadata")
    packed = api.get("$metadata", Accept_Encoding="br, gzip;q=0.5")
    assert packed["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.content) == plain.content
    assert packed["ETag"] == plain["ETag"]
    services = api.get("", Accept_Encoding="gzip")
    assert services["Content-Encoding"] == "gzip"
    assert json.loads(gzip.decompress(services.content)) == api.read("")
    assert "Content-Encoding" not in api.get("", Accept_Encoding="gzip;q=0")
    assert "Content-Encoding" not in api.get(f"{CURRENCIES}/$count", Accept_Encoding="gzip")


# --- CORS ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def app_with_origin(api: Api) -> TrustedApplication:
    """The calling application has a login URL at ORIGIN; another one has another."""
    application = TrustedApplication.objects.get(application_uri="ServiceDemoClient")
    application.impersonate_login_url = f"{ORIGIN}/signed-in"
    application.save()
    access_changed(TrustedApplication)
    return application


def test_a_preflight_needs_no_token(api: Api, app_with_origin: TrustedApplication) -> None:
    sent = {"Origin": ORIGIN, "Access-Control-Request-Method": "PATCH"}
    answered: Any = api.client.options(f"/api/domain/odata/{CURRENCIES}", headers=sent)
    assert answered.status_code == 204
    assert answered["Access-Control-Allow-Origin"] == ORIGIN
    assert "PATCH" in answered["Access-Control-Allow-Methods"]
    assert "Authorization" in answered["Access-Control-Allow-Headers"]
    for asked, allowed in (("x-sap-security-session,authorization", True), ("a b", False), ("x," * 2000, False)):
        own: Any = api.client.options("/api/domain/odata/", headers={**sent, "Access-Control-Request-Headers": asked})
        assert (own["Access-Control-Allow-Headers"] == asked) == allowed
    foreign: Any = api.client.options(
        f"/api/domain/odata/{CURRENCIES}", headers={**sent, "Origin": "https://evil.example"}
    )
    assert "Access-Control-Allow-Origin" not in foreign


def test_scripts_of_the_applications_origin_may_read_answers_and_failures(
    api: Api, app_with_origin: TrustedApplication
) -> None:
    for path in (CURRENCIES, "Nothing"):
        answered = api.get(path, Origin=ORIGIN)
        assert answered["Access-Control-Allow-Origin"] == ORIGIN
        assert "ETag" in answered["Access-Control-Expose-Headers"]
    assert "Access-Control-Allow-Origin" not in api.get(CURRENCIES, Origin="https://evil.example")
    other = TrustedApplication.objects.exclude(pk=app_with_origin.pk).first()
    assert other is not None
    other.impersonate_login_url = "https://other.example/in"
    other.save()
    access_changed(TrustedApplication)
    assert "Access-Control-Allow-Origin" not in api.get(CURRENCIES, Origin="https://other.example")


# --- former names -------------------------------------------------------------------------------------------------


def _ways_to_name_a_set(api: Api, world: World) -> list[tuple[str, Any]]:
    """What the answers say where a former name stands in a path, a filter, a reference, and as a type."""
    type_id = world.document_type
    made = api.post(ORDERS, {**order_body(world), "DocumentType@odata.bind": f"{OLD_TYPES}({type_id})"})
    return [
        ("path", api.get(f"{OLD_TYPES}({type_id})")),
        ("filter", api.get(f"{ORDERS}?$filter=DocumentType eq '{OLD_TYPES}({type_id})'")),
        ("escaped", api.get(f"{ORDERS}?$filter=DocumentType%20eq%20%27{OLD_TYPES}%28{type_id}%29%27")),
        ("reference", made),
        (
            "type",
            api.patch(f"{TYPES}({type_id})", {"@odata.type": "#Erp.General_DocumentType", "Code": "SO2"}),
        ),
    ]


def test_former_names_are_understood_and_warned_of(api: Api, world: World) -> None:
    for where, answered in _ways_to_name_a_set(api, world):
        assert answered.status_code < 300, (where, answered.content)
        assert answered["Warning"].startswith("299 - "), where
        assert "is now called Systems_Documents_DocumentType" in answered["Warning"]
    assert "Warning" not in api.get(f"{TYPES}({world.document_type})")


def test_former_names_can_be_refused(api: Api, world: World, settings: Any) -> None:
    settings.REFUSE_RENAMED_SETS = True
    for where, answered in _ways_to_name_a_set(api, world):
        assert answered.status_code == 400, where
        assert error_of(answered)["type"] == "RenamedEntitySet"
    assert api.get(f"{TYPES}({world.document_type})").status_code == 200


# --- conditions ---------------------------------------------------------------------------------------------------


def test_an_entity_that_the_caller_has_is_304(api: Api, currency: dict[str, Any]) -> None:
    path, etag = currency["@odata.id"], currency["@odata.etag"]
    for given in (etag, f'"0", {etag}', etag.removeprefix("W/"), "*"):
        unchanged = api.get(path, If_None_Match=given)
        assert (unchanged.status_code, unchanged.content, unchanged["ETag"]) == (304, b"", etag)
    api.patch(path, {"Name": "US dollar"})
    assert api.get(path, If_None_Match=etag).status_code == 200


def test_what_is_expanded_changes_without_its_entity(api: Api, world: World) -> None:
    product = f"{PRODUCTS}({world.product})"
    shaped = [f"{product}?{shape}" for shape in (
        "$expand=ProductGroup($select=Code)", "$select=ProductGroup/Code", "$compute=ProductGroup/Code as X&$select=X",
    )]  # fmt: skip
    plain = f"{product}?$select=PartNumber,ProductGroup"
    etag = api.get(plain)["ETag"]
    assert [api.get(path)["ETag"] for path in shaped] == [etag] * 3
    assert api.patch(f"{GROUPS}({world.group})", {"Code": "other"}).status_code == 204
    for path in shaped:
        answered = api.get(path, If_None_Match=etag)
        assert (answered.status_code, b"other" in answered.content) == (200, True)
    assert api.get(plain, If_None_Match=etag).status_code == 304
    assert api.request("HEAD", plain, If_None_Match=etag).status_code == 304


@pytest.mark.parametrize("path", [
    "/StandardLotSizeBase/Foo", "/StandardLotSizeBase/Value/Foo/Bar", "/Name/EN/Foo",
    "?$select=StandardLotSizeBase/Foo",
    "?$select=StandardLotSizeBase($select=Foo)", "?$select=StandardLotSizeBase/Currency", "/Active/Foo",
])  # fmt: skip
def test_values_have_no_other_members(api: Api, world: World, path: str) -> None:
    refused = api.get(f"{PRODUCTS}({world.product}){path}")
    assert (refused.status_code, error_of(refused)["type"]) == (400, "UnknownProperty"), refused.content


def test_members_beside_the_whole_value_do_not_narrow_it(api: Api, world: World) -> None:
    path = f"{PRODUCTS}({world.product})"
    whole = api.read(f"{path}?$select=StandardLotSizeBase")["StandardLotSizeBase"]
    assert set(whole) == {"Value", "Unit"}
    for asked in ("StandardLotSizeBase/Value,StandardLotSizeBase", "StandardLotSizeBase,StandardLotSizeBase/Unit"):
        assert api.read(f"{path}?$select={asked}")["StandardLotSizeBase"] == whole
    assert set(api.read(f"{path}?$select=StandardLotSizeBase/unit")["StandardLotSizeBase"]) == {"Unit"}
    assert api.get(f"{path}/StandardLotSizeBase/Value/$value").status_code == 200
    assert api.get(f"{path}/StandardLotSizeBase/$value").status_code == 501


def test_a_computed_reference_is_a_link(api: Api, world: World) -> None:
    link = {"@odata.id": f"{GROUPS}({world.group})"}
    computed = "compute(ProductGroup as x)/groupby((x),aggregate($count as n))/compute(x as y)"
    for asked in ("$compute=ProductGroup as x&$select=x", "$apply=compute(ProductGroup as x)&$select=x"):
        assert [row["x"] for row in api.read(f"{PRODUCTS}?{asked}")["value"]] == [link]
    (row,) = api.read(f"{PRODUCTS}?$apply={computed}")["value"]
    assert row["y"] == link


@pytest.mark.parametrize("apply", [
    "topsum(10,PartNumber)", "toppercent('a',GuaranteePeriodDays)", "bottomsum(true,GuaranteePeriodDays)",
    "bottompercent(10,Active)", "groupby((PartNumber,Active))/topsum(10,Active)",
])  # fmt: skip
def test_ranks_of_sums_need_numbers(api: Api, world: World, apply: str) -> None:
    refused = api.get(f"{PRODUCTS}?$apply={apply}")
    assert (refused.status_code, error_of(refused)["type"]) == (400, "TypeMismatch"), refused.content


@pytest.mark.parametrize(
    "method, body", [("PATCH", {"Name": "x"}), ("PUT", {"CurrencySign": "USD", "Name": "x"}), ("DELETE", None)]
)
def test_what_somebody_else_has_changed_is_412(
    api: Api, currency: dict[str, Any], method: str, body: dict[str, str] | None
) -> None:
    path, etag = currency["@odata.id"], currency["@odata.etag"]
    api.patch(path, {"Name": "US dollar"})
    refused = api.request(method, path, body, If_Match=etag)
    assert (refused.status_code, error_of(refused)["type"]) == (412, "PreconditionFailed")
    assert api.read(path)["Name"] == "US dollar"
    assert api.request(method, path, body, If_Match=api.get(path)["ETag"]).status_code == 204


@pytest.mark.parametrize("name", ["If-Match", "If-None-Match"])
@pytest.mark.parametrize("value", ["", "  "])
def test_a_condition_without_an_etag_is_refused(api: Api, currency: dict[str, Any], name: str, value: str) -> None:
    path = currency["@odata.id"]
    for method, body in (("PATCH", {"Name": "x"}), ("DELETE", None), ("GET", None)):
        refused = api.request(method, path, body, **{name: value})
        assert (refused.status_code, error_of(refused)["type"]) == (400, "InvalidHeader"), method
    assert api.post(CURRENCIES, {"CurrencySign": "GBP", "Name": "Pound"}, **{name: value}).status_code == 400
    part = {"id": "1", "method": "PATCH", "url": path, "body": {"Name": "x"}, "headers": {name: value}}
    assert api.post("$batch", {"requests": [part]}).json()["responses"][0]["status"] == 400
    assert api.read(path)["Name"] == "Dollar"


def test_the_version_in_the_body_does_the_same(api: Api, currency: dict[str, Any]) -> None:
    path = currency["@odata.id"]
    api.patch(path, {"Name": "US dollar"})
    assert api.patch(path, {"Name": "x", "ObjectVersion": 1}).status_code == 412
    assert api.patch(path, {"Name": "x", "ObjectVersion": 2}).status_code == 204


STALE_BODIES: list[dict[str, Any]] = [
    {"@odata.etag": 'W/"99"', "Notes": "stale"},
    {"@etag": 'W/"99"', "Notes": "stale"},
    {"@odata.etag": 'W/"99"', "@erpnet.action": "delete"},
    {"ParentGroup": {"@odata.id": "{parent}", "@odata.etag": 'W/"99"', "Notes": "stale"}},
    {"ParentGroup": {"@odata.id": "{parent}", "@odata.etag": 'W/"99"', "@erpnet.action": "update", "Code": "OTHER"}},
]


@pytest.mark.parametrize("version", [{"OData_Version": "4.01"}, {"OData_MaxVersion": "4.01"}], ids=str)
@pytest.mark.parametrize("body", STALE_BODIES, ids=str)
def test_a_stale_etag_in_a_body_of_401_is_412(
    api: Api, world: World, version: dict[str, str], body: dict[str, Any]
) -> None:
    parent = api.create(GROUPS, {"Code": "PARENT", "Name": "Parent"})
    group = api.create(GROUPS, {"Code": "CHILD", "Name": "Child", "ParentGroup": {"@odata.id": parent["@odata.id"]}})
    body = json.loads(json.dumps(body).replace("{parent}", parent["@odata.id"]))
    refused = api.patch(group["@odata.id"], body, **version)
    assert (refused.status_code, error_of(refused)["type"]) == (412, "PreconditionFailed")
    fresh = json.loads(json.dumps(body).replace(json.dumps('W/"99"'), json.dumps('W/"1"')))
    assert api.patch(group["@odata.id"], fresh, **version).status_code == 204


def test_an_etag_in_a_body_of_401_means_an_entity_that_exists(api: Api) -> None:
    body = {"@odata.etag": 'W/"1"', "Code": "GONE", "Name": "Gone"}
    assert api.patch(f"{GROUPS}({new_guid()})", body, OData_Version="4.01").status_code == 404
    assert api.patch(f"{GROUPS}({new_guid()})", body, OData_Version="4.0").status_code == 201


@pytest.mark.parametrize(
    "version", [{}, {"OData_Version": "4.0"}, {"OData_Version": "4.0", "OData_MaxVersion": "4.01"}]
)
def test_an_etag_in_a_body_of_40_is_what_the_client_has_read(api: Api, world: World, version: dict[str, str]) -> None:
    body = {"@odata.etag": 'W/"99"', "Notes": "sent back"}
    assert api.patch(f"{GROUPS}({world.group})", body, **version).status_code == 204


def test_bound_actions_heed_if_match(api: Api, world: World) -> None:
    order = api.create(ORDERS, order_body(world, {"Quantity": 1, "UnitPrice": 2}))
    stale = order["@odata.etag"]
    api.patch(order["@odata.id"], {"DocumentNotes": "changed"})
    action = f"{order['@odata.id']}/Recalculate"
    refused = api.post(action, {}, If_Match=stale)
    assert (refused.status_code, error_of(refused)["type"]) == (412, "PreconditionFailed")
    assert api.post(action, {}, If_Match=api.get(order["@odata.id"])["ETag"]).status_code == 204
    assert api.post(action, {}, If_Match="*").status_code == 204


def test_a_line_is_guarded_by_its_orders_version(api: Api, world: World) -> None:
    order = api.create(f"{ORDERS}?$expand=Lines", order_body(world, {"Quantity": 1, "UnitPrice": 2}))
    line = order["Lines"][0]["@odata.id"]
    api.patch(order["@odata.id"], {"DocumentNotes": "changed"})
    assert api.patch(line, {"Notes": "x"}, If_Match=order["@odata.etag"]).status_code == 412
    assert id_of(order)


# --- names in URLs ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("namespace", ["Erp.", "Self.", ""])
def test_types_and_operations_need_no_namespace(api: Api, world: World, namespace: str) -> None:
    """Core.DefaultNamespace: also in casts, enumeration members and $select."""
    company = f"{namespace}General_Contacts_Company"
    assert api.read(f"{PARTIES}/{company}?$select=Id")["value"]
    for options in (
        f"$filter={company}/RegistrationNumber eq null",
        f"$orderby={company}/RegistrationNumber",
        f"$select={company}/RegistrationNumber",
        f"$expand={company}/ParentParty",
        f"$filter=isof({company})",
        f"$filter=PartyType eq {namespace}General_Contacts_Parties_PartyType'Company'",
    ):
        assert len(api.read(f"{PARTIES}?{options}")["value"]) >= 1, options
    made = api.create(ORDERS, order_body(world))
    selected = api.read(f"{made['@odata.id']}?$select=DocumentNo,{namespace}ChangeState")
    assert {name for name in selected if not name.startswith("@")} == {"DocumentNo"}
    assert '<Annotation Term="Core.DefaultNamespace" Bool="true"' in api.get("$metadata").content.decode()


@pytest.mark.parametrize(
    "item, named",
    [
        ("Erp.Nonsense", "Erp.Nonsense"),
        ("Foo.ChangeState", "Foo.ChangeState"),
        ("Foo.*", "Foo.*"),
        ("Erp.Crm_Sales_SalesOrder", "Erp.Crm_Sales_SalesOrder"),
        ("Id(A,B)", "Id"),
        ("Lines/Nonsense", "Nonsense"),
        ("Lines/Product/Nonsense", "Nonsense"),
    ],
)
def test_a_name_that_select_cannot_mean(api: Api, world: World, item: str, named: str) -> None:
    api.create(ORDERS, order_body(world, {"Quantity": 1}))
    refused = api.get(f"{ORDERS}?$select={item}")
    assert (refused.status_code, error_of(refused)["target"]) == (400, named)


def test_a_path_behind_a_collection_selects_of_its_rows(api: Api, world: World) -> None:
    made = api.create(ORDERS, order_body(world, {"Quantity": 1}))
    (line,) = api.read(f"{made['@odata.id']}?$select=Lines/LineNo,Lines/Product/PartNumber")["Lines"]
    assert {name for name in line if "@" not in name} == {"LineNo", "Product"}
    assert {name for name in line["Product"] if "@" not in name} == {"PartNumber"}


@pytest.mark.parametrize(
    "wrong",
    ["Erp.General_Contacts_Parties_PartyType'Released'", "x.General_DocumentState'Released'", "Nonsense'Released'"],
)
def test_the_type_of_an_enumeration_member_must_hold(api: Api, wrong: str) -> None:
    for operator, value in (("eq", wrong), ("has", wrong), ("in", f"({wrong})")):
        assert api.get(f"{ORDERS}?$filter=State {operator} {value}").status_code == 400, operator


@pytest.mark.parametrize(
    "options, name",
    [
        ("$apply=aggregate($count as A,DocumentDate with max as A)", "A"),
        ("$apply=groupby((State),aggregate($count as State))", "State"),
        ("$apply=groupby((State,State))", "State"),
        ("$apply=groupby((Customer/Number),aggregate($count as Customer))", "Customer/Number"),
        ("$apply=groupby((year(DocumentDate) as Y,month(DocumentDate) as Y))", "Y"),
        ("$apply=groupby((State))/compute(1 as State)", "State"),
        ("$apply=compute(1 as A,2 as A)", "A"),
        ("$apply=compute(1 as State)", "State"),
        ("$compute=1 as A,2 as A", "A"),
        ("$compute=1 as State", "State"),
    ],
)
def test_two_results_of_one_name(api: Api, options: str, name: str) -> None:
    refused = api.get(f"{ORDERS}?{options}")
    assert refused.status_code == 400
    assert name in error_of(refused)["message"]


def test_properties_stand_beside_the_reference_that_they_are_behind_of(api: Api, world: World) -> None:
    api.create(ORDERS, order_body(world))
    (group,) = api.read(f"{ORDERS}?$apply=groupby((Customer,Customer/Number),aggregate($count as N))")["value"]
    assert {"Id", "Number"} <= group["Customer"].keys()


@pytest.mark.parametrize("key", ["({})", "/{}"])
def test_a_key_behind_a_filter_selects_among_what_it_matches(api: Api, world: World, key: str) -> None:
    made = api.create(ORDERS, order_body(world, {"Quantity": 1}))
    of_order = key.format(id_of(made))
    assert id_of(api.read(f"{ORDERS}/$filter(State eq 'New'){of_order}")) == id_of(made)
    assert api.read(f"{ORDERS}/$filter(@f){of_order}/DocumentNo?@f=State eq 'New'")["value"] == made["DocumentNo"]
    none = f"{ORDERS}/$filter(State eq 'Released'){of_order}"
    assert api.get(none).status_code == 404
    assert api.get(f"{none}/Lines").status_code == 404
    assert api.delete(none).status_code == 404
    assert api.patch(none, {"DocumentNotes": "x"}).status_code == 404
    (line,) = api.read(f"{made['@odata.id']}/Lines")["value"]
    lines, of_line = f"{made['@odata.id']}/Lines", key.format(id_of(line))
    assert api.get(f"{lines}/$filter(LineNo gt 0){of_line}").status_code == 200
    assert api.get(f"{lines}/$filter(LineNo lt 0){of_line}").status_code == 404


def test_operations_of_other_namespaces_are_unknown(api: Api, currency: dict[str, Any]) -> None:
    assert api.get("Self.GetVersion()").status_code == 200
    assert api.get("Foo.GetVersion()").status_code == 400
    path = f"{currency['@odata.id']}/{{}}CreateCopy"
    assert api.post(path.format("Foo."), {}).status_code == 400
