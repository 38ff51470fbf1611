"""What an attacker tried once: each is the caller's fault or a refusal, never InternalError (spec 07)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from domain.query.plan import rows_plan
from tests.domain.odata.test_writing import CURRENCIES, ORDERS, PRODUCTS, order_body
from tests.rules.cast import World
from tests.support.api import Api, error_of


@pytest.mark.parametrize(
    "body",
    [
        b'{"ExternalId":"\\ud800"}',
        b'{"Name":"\\udfff"}',
        b'{"ShowOrder":"\\ud800"}',
        b'{"\\ud800":1}',
        b'{"ShowOrder":1000000000000000000000000000000}',
        b'{"Name":{"EN":1000000000000000000000000000000}}',
        b'{"IsActive":1000000000000000000000000000000}',
    ],
)
def test_what_no_encoding_or_number_can_hold_is_400(api: Api, world: World, body: bytes) -> None:
    response = api.patch(f"{CURRENCIES}({world.currency})", body)
    assert response.status_code == 400, response.content


def test_half_a_character_fails_its_part_of_a_batch_only(api: Api) -> None:
    requests = [
        {"id": "1", "method": "GET", "url": "GetVersion()"},
        {"id": "2", "method": "GET", "url": "GetVersion()"},
    ]
    broken = json.dumps({"requests": requests}).replace('"2"', '"\\ud800"')
    assert api.post("$batch", broken).status_code == 400
    assert api.post("Import", b'{"objects":[{"@odata.type":"\\ud800"}]}').status_code == 400
    assert api.post("BeginTransaction", b'{"model":"\\ud800"}').status_code == 400


def test_the_last_day_of_time_has_no_days_after_it(api: Api, world: World) -> None:
    made = api.create(ORDERS, order_body(world))
    response = api.patch(made["@odata.id"], {"DocumentDate": "9999-12-31"})
    assert response.status_code == 204, response.content


@pytest.mark.parametrize(
    "path",
    [
        f"{ORDERS}?$apply=aggregate(Lines with max as X)",
        f"{ORDERS}?$apply=top(9223372036854775808)",
        f"{ORDERS}/$count?$apply=skip(9223372036854775808)",
        f"{ORDERS}?$top=9223372036854775808",
    ],
)
def test_odd_queries_are_refused_or_answered(api: Api, path: str) -> None:
    response = api.get(path)
    assert response.status_code in (200, 400, 501), response.content


@pytest.mark.parametrize(
    "path",
    [
        f"{PRODUCTS}?$filter=cast('9999-12-31T23:59:59-14:00',Edm.DateTimeOffset) gt now()",
        f"{PRODUCTS}?$filter=CreationTime ge '0001-01-01T00:00:00%2B14:00'",
        f"{PRODUCTS}?$filter=totalseconds(duration'P106751992D') gt 1",
        f"{PRODUCTS}?$filter=CreationTime add duration'-P106751992D' gt now()",
        f"{PRODUCTS}(@k)?@k=-'a'",
        f"{PRODUCTS}(@k)?@k=-null",
        "GetRepositoryEvents?@repositoryName=-'a'",
        "GetRepositoryEvents?@repositoryName=@a0&" + "&".join(f"@a{n}=[@a{n + 1}]" for n in range(550)),
        f"{PRODUCTS}?$filter=@a0&" + "&".join(f"@a{n}=@a{n + 1}" for n in range(300)) + "&@a300=Active",
        f"{PRODUCTS}?$filter=ABCClass ge PartNumber",
        f"{PRODUCTS}?$filter=PartNumber lt ABCClass",
        f"{PRODUCTS}?$filter=lessequalnull(ABCClass,PartNumber)",
    ],
    ids=lambda path: path[:80],
)
def test_what_has_no_meaning_is_the_callers_fault(api: Api, path: str) -> None:
    response = api.get(path)
    assert response.status_code == 400, response.content


def test_dates_beside_date_times_are_date_times(api: Api, world: World) -> None:
    computed = "case(false:2026-01-01,true:now()) as X,case(true:2026-01-01,true:now()) as Y"
    (product,) = api.read(f"{PRODUCTS}?$compute={computed}&$select=X,Y")["value"]
    assert (product["X@odata.type"], product["Y@odata.type"]) == ("#DateTimeOffset", "#DateTimeOffset")
    assert product["X"].endswith("Z"), product["X"]
    assert product["Y"] == "2026-01-01T00:00:00Z"
    asked = "case(null:2026-01-01,true:now()) add duration'PT1S' gt 2026-01-01"
    assert len(api.read(f"{PRODUCTS}?$filter={asked}")["value"]) == 1


@pytest.mark.parametrize(
    "option", ["$compute=DisplayText/EN as Z", "$filter=DisplayText/EN eq 'x'", "$orderby=DisplayText/EN"]
)
def test_a_display_text_has_no_members(api: Api, world: World, option: str) -> None:
    api.create(ORDERS, order_body(world))
    refused = api.get(f"{ORDERS}?{option}")
    assert (refused.status_code, error_of(refused)["type"]) == (400, "UnknownProperty")


def _chain(first: str, step: str, length: int) -> str:
    """C0, C1 … each of which names the one before it twice."""
    return ",".join([f"{first} as C0", *(step.format(n - 1) + f" as C{n}" for n in range(1, length))])


DOUBLING = {
    "texts": "$select=Z&$compute=" + _chain("'x'", "concat(C{0},C{0})", 40) + ",length(C39) as Z",
    "numbers": "$select=Z&$compute=" + _chain("1", "C{0} add C{0}", 40) + ",C39 as Z",
    "in $apply": "$apply=compute(" + _chain("1", "C{0} add C{0}", 40) + ")/aggregate(C39 with sum as S)",
    "in $expand": "$expand=ProductGroup($compute=" + _chain("1", "C{0} add C{0}", 40) + ")",
    "aliases": "$filter=@a0&" + "&".join(f"@a{n}=@a{n + 1} and @a{n + 1}" for n in range(40)) + "&@a40=Active",
    "columns": "$compute=" + ",".join(f"GuaranteePeriodDays add {n} as C{n}" for n in range(3000)),
}


@pytest.mark.parametrize("asked", DOUBLING.values(), ids=list(DOUBLING))
def test_what_grows_beyond_measure_is_refused(api: Api, world: World, asked: str) -> None:
    refused = api.post(f"{PRODUCTS}/$query", asked, Content_Type="text/plain")
    assert (refused.status_code, error_of(refused)["type"]) == (400, "QueryTooLarge"), refused.content


def test_a_long_text_that_names_double_is_refused(api: Api) -> None:
    """Each of ten names has the last one twice: of 100 KB the database would make 100 MB."""
    names = [f"concat('{'a' * 100_000}','x') as V0", *(f"concat(V{at},V{at}) as V{at + 1}" for at in range(10))]
    query = f"$compute={','.join(names)}&$filter=length(V10) gt 1&$select=Id"
    refused = api.post("General_Currencies_Currencies/$query", query, Content_Type="text/plain")
    assert (refused.status_code, error_of(refused)["type"]) == (400, "QueryTooLarge"), refused.content
    # A long text alone is none too many.
    query = f"$filter=CurrencySign eq '{'a' * 900_000}'&$select=Id"
    answer = api.post("General_Currencies_Currencies/$query", query, Content_Type="text/plain")
    assert (answer.status_code, answer.json()["value"]) == (200, [])
    assert "query option" not in error_of(refused)["message"], "any of them may be the large one"


def test_too_many_expanded_rows_are_refused_by_their_number(
    api: Api, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = api.create(ORDERS, order_body(world, {"Quantity": 1}))
    monkeypatch.setattr(rows_plan, "MAX_EXPANDED_ROWS", 0)
    refused = api.get(f"{made['@odata.id']}?$expand=Lines")
    assert (refused.status_code, error_of(refused)["type"]) == (413, "AnswerTooLarge"), refused.content
    assert "more than 0 expanded rows" in error_of(refused)["message"]


def test_a_search_has_a_hundred_words_at_most(api: Api, world: World) -> None:
    words = [f"NOT w{n}" for n in range(100)]
    assert len(api.read(f"{PRODUCTS}?$search={' '.join(words)}")["value"]) == 1
    for more in (
        f"{PRODUCTS}?$search={' '.join([*words, 'w'])}",
        f"{PRODUCTS}?$apply=search({' OR '.join([*words, 'w'])})",
    ):
        refused = api.get(more)
        assert (refused.status_code, error_of(refused)["target"]) == (400, "$search")


def test_computed_names_may_build_on_each_other(api: Api, world: World) -> None:
    chain = _chain("1", "C{0} add C{0}", 11)
    (row,) = api.read(f"{PRODUCTS}?$compute={chain}&$select=C10&$filter=C10 gt 1")["value"]
    assert row["C10"] == 1024


def test_expanding_everything_everywhere_is_refused_or_answered(api: Api, world: World) -> None:
    made = api.create(ORDERS, order_body(world, {"Quantity": 1}))
    response = api.get(f"{made['@odata.id']}/Lines?$expand=*($levels=max)")
    assert response.status_code in (200, 400, 501), response.content


def test_groups_by_display_text_are_json(api: Api, world: World) -> None:
    api.create(ORDERS, order_body(world))
    (row,) = api.read(f"{ORDERS}?$apply=groupby((DisplayText))")["value"]
    assert row["DisplayText"].startswith("Sales order ")


@pytest.mark.parametrize("method,path", [("POST", ""), ("PATCH", "(11111111-1111-1111-1111-111111111111)")])
def test_what_the_platform_alone_writes_has_no_writing_method(api: Api, method: str, path: str) -> None:
    response: Any = api.request(method, f"Systems_Config_WebHookDeliveries{path}", {"TimeoutSeconds": -5})
    assert (response.status_code, response["Allow"]) == (405, "GET, HEAD, OPTIONS"), response.content


def test_numbers_that_a_column_does_not_hold_are_refused(api: Api, world: World) -> None:
    hook = {
        "Code": "H1",
        "Name": {"EN": "Hook"},
        "RepositoryName": "General.Products.Products",
        "URL": "https://example.com/",
        "TimeoutSeconds": -5,
    }
    response = api.post("Systems_Config_WebHooks", hook)
    assert response.status_code in (400, 500), response.content
    assert error_of(response)["type"] != "InternalError", response.content


def test_members_owned_by_nobody_can_be_made_beside_their_product(api: Api, world: World) -> None:
    response = api.patch(f"{PRODUCTS}({world.product})", {"Prices": [{}]})
    assert error_of(response)["type"] != "InternalError" if response.status_code >= 400 else True


@pytest.mark.parametrize(
    "rows", ["topcount(-1,Name)", "bottomcount(1.5,Name)", "topcount(null,Name)", "topcount('a',Name)"]
)
def test_a_number_of_rows_that_is_none_is_400_and_said_to_be(api: Api, rows: str) -> None:
    for apply in (rows, f"groupby((CurrencySign,Name))/{rows}"):
        refused = api.get(f"General_Currencies_Currencies?$apply={apply}")
        assert refused.status_code == 400, refused.content
        assert "number of rows" in error_of(refused)["message"]


@pytest.mark.parametrize("rows", ["top(99999999999999999999)", "topcount(99999999999999999999,Name)", "skip(0)"])
def test_more_rows_than_there_are_may_be_asked_for(api: Api, rows: str) -> None:
    everything = len(api.read("General_Currencies_Currencies")["value"])
    assert len(api.read(f"General_Currencies_Currencies?$apply={rows}")["value"]) == everything
