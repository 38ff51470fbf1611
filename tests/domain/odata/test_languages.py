"""Spec 07: what is wrong with a request is said in Bulgarian and German to the last word, whatever is wrong."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.utils import translation

from domain.odata.message.failures import known_error
from domain.syntax import parse_query_options, parse_resource_path
from domain.syntax.errors import ODataUrlError
from foundation import errors
from foundation.messages import TranslatableMessage as Message
from foundation.messages import did_you_mean, one_of, translated
from platform_site.environment import BASE_DIR
from tests.support.api import Api, error_of
from tests.support.languages import english_left, words

CURRENCIES = "General_Currencies_Currencies"
PRODUCTS = "General_Products_Products"
ORDERS = "Crm_Sales_SalesOrders"
LANGUAGES = ["bg", "de"]
APPS = ("foundation", "identity", "domain", "scripts", "rules", "webhooks", "jobs", "event_sinks", "platform_site")

#: Names in these are nonsense, so that no word of a request is one of a message.
WRONG_OPTIONS = [
    # $filter: operators, literals, calls, paths, lambdas, JSON
    "$filter=", "$filter=Xa eq", "$filter=Xa eq )", "$filter=Xa eq 1 2", "$filter=(Xa eq 1", "$filter=Xa eq 'x",
    "$filter=Xa eq#1", "$filter=Xyz(Xa)", "$filter=contai(Xa,'x')", "$filter=length()", "$filter=substring(Xa)",
    "$filter=isdefined(1)", "$filter=Xa eq guid'6ba7b810-9dad-11d1-80b4-00c04fd430c8'", "$filter=Xa eq 2024-02-30",
    "$filter=Xa eq 20240-02-30", "$filter=Xa eq 99999-13-30", "$filter=Xa eq 02024-02-30",
    "$filter=Xa eq 2024-01-01T00:00:00%2B2", "$filter=Xa eq 2024-01-01T00:00:00%2B99:00", "$filter=Xa eq 25:00:00",
    "$filter=Xa eq duration'x'", "$filter=Xa eq binary'*'", "$filter=Xa eq Xn.Xt'*'", "$filter=Xa eq 1e99999",
    f"$filter=Xa eq {'1' * 500}", "$filter=Xl/any(l)", "$filter=Xl/all()", "$filter=Xl/", "$filter=Xl/$cnt",
    "$filter=Xl/$count($top=1)", "$filter=Xl/$count($filter=a;$filter=b)", "$filter=Xa in 1,2", "$filter=Xa in (1,b)",
    "$filter=Xa in not b", "$filter=Xa has 1", "$filter=$all eq 1", "$filter=$root eq 1", "$filter=@ eq 1",
    '$filter=["x]', '$filter={"a" 1}', "$filter={a:1}", '$filter=["%5Cx"]', "$filter=case(a)", "$filter=cast(a,)",
    "$filter=Xf(a=1,2)", f"$filter={'x' * 129}", "$filter=%00", "$filter=%zz", "$filter=%ff",
    f"$filter={'(' * 120}1", f"$filter={'1 add ' * 120}1", "$filter=geography'SRID=0;Xy'", "$filter=geography'x'",
    # what is right and means nothing here
    "$filter=geo.length(Xa) gt 1", "$filter=Xa eq 99999-01-01", "$filter=Xa eq 23:59:60", "$expand=$value",
    "$filter=Xa eq geography'SRID=0;Point(1 2)'", "$filter=Xa eq duration'P9999999999D'",
    # the other options
    "$expand=", "$expand=Xa(", "$expand=Xa($filtr=1)", "$expand=Xa($top=1;$top=2)", "$expand=Xa(@p=1;@p=2)",
    "$expand=Xn.Xt", "$expand=*/Xa", "$select=", "$select=Xa/Xn.*", "$select=@", "$select=Xn.Xt(", "$orderby=",
    "$orderby=Xa xyz", "$search=", "$search=(a", "$search='a", '$search="a', "$compute=1", "$compute=1 as", "$top=x",
    "$skip=-1", "$count=x", "$levels=1", "$format=x", "$skiptoken=", "$index=x", "$schemaversion=(", "$xyz=1",
    "$filtr=Xa", "@1=1", "@p=1&@p=2", "$top=1&$top=2", "=1", "$expandgroup=Xa",
    # $apply
    "$apply=", "$apply=xyz(1)", "$apply=filter", "$apply=Xn.Xf", "$apply=Xn.Xf(1)", "$apply=groupby(Xa)",
    "$apply=groupby((Xa)", "$apply=groupby((1))", "$apply=aggregate(Xa with xyz as Xb)",
    "$apply=aggregate(Xa with sum)", "$apply=aggregate($count)", "$apply=compute(1)", "$apply=topcount(1)",
    "$apply=join(1)", "$apply=join(Xn.Xt as Xa)", "$apply=nest(identity)", "$apply=top(x)", "$apply=concat(identity",
    "$apply=ancestors(Xa,Xb,Xc,identity)", "$apply=ancestors($root/Xa,Xb,Xc,aggregate($count as Xd))",
    "$apply=ancestors($root/Xa,Xb,Xc,identity,x)", "$apply=traverse($root/Xa,Xb,Xc,x)", "$apply=addnested(1)",
]  # fmt: skip

WRONG_PATHS = [
    "Xa//Xb", "Xa/$count/Xb", "$metadata/x", "$xyz", "Xa/$xyz", "$crossjoin(", "Xa/$crossjoin(Xb)", "$filter(1)",
    "Xn.Xa", "Xa(1)/1/2(", "Xa(1", "Xa(a add b)", "Xa/%2F(", "$all/1", "$all/Xn.Xt/Xb", "$crossjoin(Xa)/Xb",
    "Xa/$each/$count", "Xa(%00)", "Xa/" * 1001 + "Xb", "Xa(x)(y", "Xa('b", "%ff",
]  # fmt: skip

HOOKS, RULES = "Systems_Config_WebHooks", "Systems_Bpm_UserBusinessRules"
HOOK = {"Code": "X", "Name": {"EN": "x"}, "URL": "https://x/", "RepositoryName": "General.Currencies.Currencies"}
RULE = {
    "Code": "X",
    "Name": {"EN": "x"},
    "RepositoryName": "Crm.Sales.SalesOrders",
    "IsActive": True,
    "Events": [{"EventType": "COMMIT"}],
}
CONDITION = {"ConditionNo": 1, "AttributeName": "DocumentDate", "ComparisonType": "Equals", "Value": "2026-01-01"}
ACTION = {"ActionNo": 1, "ActionType": "FAIL", "Parameter1Type": "Interpolate", "Parameter1Value": "x"}

#: (method, path, body, headers): what the model, bodies, headers, operations, rules, scripts and webhooks refuse.
REFUSED: list[tuple[str, str, Any, dict[str, str]]] = [
    ("GET", f"{PRODUCTS}?$filter=Xyzzy eq 1", None, {}),
    ("GET", f"{PRODUCTS}?$filter=PartNumber eq 1", None, {}),
    ("GET", f"{PRODUCTS}?$filter=PartNumber", None, {}),
    ("GET", f"{PRODUCTS}?$filter=PartNumber add 1 eq 2", None, {}),
    ("GET", f"{PRODUCTS}?$filter=substring(PartNumber,'x') eq 'y'", None, {}),
    ("GET", f"{PRODUCTS}?$filter=year(PartNumber) eq 1", None, {}),
    ("GET", f"{PRODUCTS}?$filter=round('x') eq 1", None, {}),
    ("GET", f"{PRODUCTS}?$filter=totalseconds(1) eq 1", None, {}),
    ("GET", f"{PRODUCTS}?$filter=Id eq 'x'", None, {}),
    ("GET", f"{PRODUCTS}?$filter=ProductGroup gt {PRODUCTS}(6ba7b810-9dad-11d1-80b4-00c04fd430c8)", None, {}),
    ("GET", f"{PRODUCTS}?$filter=PartNumber has Erp.Xyz'A'", None, {}),
    ("GET", f"{PRODUCTS}?$filter=PartNumber in Id", None, {}),
    ("GET", f"{PRODUCTS}?$filter=@p&@p=@p", None, {}),
    ("GET", f"{PRODUCTS}?$filter=matchesPattern(PartNumber,'(')", None, {}),
    ("GET", f"{PRODUCTS}?$filter=matchesPattern(PartNumber,'(a*)*')", None, {}),
    *(
        ("GET", f"{PRODUCTS}?$filter=matchesPattern(PartNumber,'{pattern}')", None, {})
        for pattern in ("(?=a)", "(?P<n>a)", "a(?i)b", "a%2B%2B", "[[:alpha:]]", "%5CA", "a{256}", "[z-a]", "a**", "[a")
    ),
    ("GET", f"{PRODUCTS}?$filter=matchesPattern(PartNumber,PartNumber)", None, {}),
    ("GET", f"{PRODUCTS}?$filter=cast(PartNumber,Edm.Xyz) eq 'x'", None, {}),
    ("GET", f"{PRODUCTS}?$filter=@xyz.abc eq 1", None, {}),
    ("GET", f"{ORDERS}?$filter=Lines eq 1", None, {}),
    ("GET", f"{ORDERS}?$filter=Lines/LineNo eq 1", None, {}),
    ("GET", f"{ORDERS}?$filter=Lines/any(l:l/Xyzzy eq 1)", None, {}),
    ("GET", f"{ORDERS}?$filter=$root/{PRODUCTS} eq 1", None, {}),
    ("GET", f"{ORDERS}?$expand=DocumentNo", None, {}),
    ("GET", f"{ORDERS}?$expand=Customer($filter=Id eq null)", None, {}),
    ("GET", f"{ORDERS}?$expand=Lines($apply=identity)", None, {}),
    ("GET", f"{ORDERS}?$expand=Lines/Product", None, {}),
    ("GET", f"{ORDERS}?$expand=@xyz.abc", None, {}),
    ("GET", f"{ORDERS}?$select=Xyzzy", None, {}),
    ("GET", f"{ORDERS}?$orderby=Lines", None, {}),
    ("GET", f"{ORDERS}?$compute=1 add 1 as Id", None, {}),
    ("GET", f"{ORDERS}?$search={'a ' * 101}", None, {}),
    ("GET", f"{ORDERS}?$apply=groupby((Xyzzy))", None, {}),
    ("GET", f"{ORDERS}?$apply=groupby((Lines/LineNo))", None, {}),
    ("GET", f"{ORDERS}?$apply=join(Lines as Xa)", None, {}),
    ("GET", f"{ORDERS}?$apply=nest(identity as Xa)", None, {}),
    ("GET", f"{ORDERS}?$apply=aggregate(DocumentNo with sum as Xa)", None, {}),
    ("GET", f"{ORDERS}?$apply=aggregate(DocumentNo with Xn.Xf as Xa)", None, {}),
    ("GET", f"{ORDERS}?$apply=concat(identity,identity)&$orderby=Id", None, {}),
    ("GET", f"{ORDERS}?$apply=groupby((rollup(Customer,Id),rollup(Customer,Id)))", None, {}),
    ("GET", f"{ORDERS}?$skiptoken=x", None, {}),
    ("GET", f"{ORDERS}?$deltatoken=x", None, {}),
    ("GET", f"{ORDERS}(6ba7b810-9dad-11d1-80b4-00c04fd430c8)", None, {}),
    ("GET", f"{ORDERS}(x)", None, {}),
    ("GET", f"{ORDERS}(6ba7b810-9dad-11d1-80b4-00c04fd430c8)?$top=1", None, {}),
    ("GET", f"{ORDERS}/Xyzzy", None, {}),
    ("GET", f"{ORDERS}(1)(2)", None, {}),
    ("GET", f"{ORDERS}/$all", None, {}),
    ("GET", "$entity", None, {}),
    ("GET", f"$entity?$id={ORDERS}", None, {}),
    ("GET", "Xyzzy", None, {}),
    ("GET", "GetRepositoryEvents(repositoryNam='x')", None, {}),
    ("GET", "GetRepositoryEvents('x')", None, {}),
    ("GET", "GetRepositoryEvents(repositoryName='x')", None, {}),
    ("GET", ORDERS, None, {"Accept": "image/png"}),
    ("GET", ORDERS, None, {"TransactionId": "x"}),
    ("GET", f"{ORDERS}?tr=x", None, {"TransactionId": "y"}),
    ("PUT", ORDERS, {}, {}),
    ("POST", CURRENCIES, "", {}),
    ("POST", CURRENCIES, "{", {}),
    ("POST", CURRENCIES, "{a:1}", {}),
    ("POST", CURRENCIES, '{"a" 1}', {}),
    ("POST", CURRENCIES, '{"a":1 "b":2}', {}),
    ("POST", CURRENCIES, '{"a":"\\x"}', {}),
    ("POST", CURRENCIES, '{"a":"\\u12"}', {}),
    ("POST", CURRENCIES, '{"a":"\\ud800"}', {}),
    ("POST", CURRENCIES, '{"a":"b', {}),
    ("POST", CURRENCIES, '{"a":"\n"}', {}),
    ("POST", CURRENCIES, "{} {}", {}),
    ("POST", CURRENCIES, '{"a":1,"a":2}', {}),
    ("POST", CURRENCIES, '{"a":NaN}', {}),
    ("POST", CURRENCIES, f'{{"a":{"1" * 5000}}}', {}),
    ("POST", CURRENCIES, '{"a":' + "[" * 120 + "]" * 120 + "}", {}),
    ("POST", CURRENCIES, b"\xff", {}),
    ("POST", CURRENCIES, [], {}),
    ("POST", CURRENCIES, {}, {}),
    ("POST", CURRENCIES, {"Xyzzy": 1}, {}),
    ("POST", CURRENCIES, {"CurrencySign": 1}, {}),
    ("POST", CURRENCIES, {"CurrencySign": "x" * 500, "Name": "x"}, {}),
    ("POST", CURRENCIES, {"CurrencySign": "\x00", "Name": "x"}, {}),
    ("POST", CURRENCIES, {"@odata.type": "Erp.Xyz"}, {}),
    ("POST", CURRENCIES, {"@erpnet.action": "xyz"}, {}),
    ("POST", CURRENCIES, {"@erpnet.action": "find", "@erpnet.findBy": "xyz"}, {}),
    ("POST", CURRENCIES, "x", {"Content-Type": "text/plain"}),
    ("POST", CURRENCIES, {"Name": "x"}, {"Prefer": "xyz", "If-Match": "xyz"}),
    ("POST", ORDERS, {"Lines": 1}, {}),
    ("POST", ORDERS, {"Lines": [1]}, {}),
    ("POST", ORDERS, {"Customer": 1}, {}),
    ("POST", ORDERS, {"Customer": {"@odata.id": "xyz"}}, {}),
    ("POST", ORDERS, {"State": "Xyzzy"}, {}),
    ("POST", ORDERS, {}, {}),
    ("POST", f"{ORDERS}/$query", "$filter=Xa eq", {"Content-Type": "text/plain"}),
    ("POST", "$batch", {}, {}),
    ("POST", "$batch", {"requests": [1]}, {}),
    ("POST", "$batch", {"requests": [{"id": "1"}]}, {}),
    ("POST", "$batch", {"requests": [{"id": "1", "method": "GET", "url": "Xa"}] * 2}, {}),
    ("POST", "$batch", {"requests": [{"id": "1", "method": "GET", "url": "Xa", "headers": 1}]}, {}),
    ("POST", "$batch", "x", {"Content-Type": "text/plain"}),
    ("POST", "$batch", "x", {"Content-Type": "multipart/mixed"}),
    ("POST", "$batch", "x", {"Content-Type": "multipart/mixed; boundary=b"}),
    ("POST", "$batch", "--b\r\n\r\nx", {"Content-Type": "multipart/mixed; boundary=b"}),
    ("POST", "$batch", "--b\r\n\r\nx\r\n--b--", {"Content-Type": "multipart/mixed; boundary=b"}),
    ("POST", "Import", "[", {}),
    ("POST", "Import", {}, {}),
    ("POST", "Import", '{"objects":1}', {}),
    ("POST", "Import", '{"objects":[] 1', {}),
    ("POST", "Import", '{"objects":[1', {}),
    ("POST", "Import", '{"objects":[]} 1', {}),
    ("POST", "Import", {"objects": [], "transaction": "xyz"}, {}),
    ("POST", "ExecuteScript", "", {"Content-Type": "text/plain"}),
    ("POST", "BeginTransaction", {"model": "xyz"}, {}),
    ("POST", "EndTransaction", {}, {}),
    ("POST", HOOKS, {**HOOK, "URL": "ftp://x"}, {}),
    ("POST", HOOKS, {**HOOK, "URL": "https://u:p@x/"}, {}),
    ("POST", HOOKS, {**HOOK, "URL": "https://x/{", "Headers": "xyz", "Body": "}", "TimeoutSeconds": 900}, {}),
    ("POST", HOOKS, {**HOOK, "URL": "https://x/{Xyzzy}", "Headers": "Host: x"}, {}),
    ("POST", HOOKS, {**HOOK, "Headers": "X y: x", "ContentType": "a\nb"}, {}),
    ("POST", HOOKS, {**HOOK, "RepositoryName": "Xyz"}, {}),
    *(
        ("POST", "Systems_Core_Scripts", {"Code": "X", "Name": {"EN": "x"}, "ParameterSchema": schema}, {})
        for schema in (
            "{",
            "[]",
            '{"x y":1}',
            '{"x":1}',
            '{"x":{"type":"xyz"}}',
            '{"x":{"direction":"xyz"}}',
            '{"x":{"required":3}}',
            '{"x":{"$ref":"xyz"}}',
            '{"x":{"type":"integer","default":"q"}}',
            '{"x":{"minimum":3,"default":1}}',
            '{"x":{"not":{},"default":1}}',
            '{"x":{"minLength":-1}}',
            '{"x":{"properties":{},"additionalProperties":false,"default":{"q":1}}}',
        )
    ),
    ("POST", RULES, {**RULE, "RepositoryName": "Xyz"}, {}),
    ("POST", RULES, {**RULE, "Events": [{"EventType": "STATECHANGING", "EventParameter": "Xyz"}]}, {}),
    ("POST", RULES, {**RULE, "Events": [{"EventType": "ATTRIBUTECHANGED", "EventParameter": "Xyz"}]}, {}),
    ("POST", RULES, {**RULE, "Conditions": [{**CONDITION, "AttributeName": "Xyzzy"}]}, {}),
    ("POST", RULES, {**RULE, "Conditions": [{**CONDITION, "Value": "xyz"}]}, {}),
    ("POST", RULES, {**RULE, "Actions": [{**ACTION, "Parameter1Value": "{x y}"}]}, {}),
    ("POST", RULES, {**RULE, "Actions": [{**ACTION, "Parameter1Value": "{"}]}, {}),
    ("POST", RULES, {**RULE, "Actions": [{**ACTION, "ActionType": "SETVALUE"}]}, {}),
    ("POST", "General_Currencies_Currencies", {}, {"Idempotency_Key": ""}),
    ("POST", "General_Currencies_Currencies", {}, {"Idempotency_Key": "a", "Repeatability_Request_ID": "b"}),
    (
        "POST",
        "General_Currencies_Currencies",
        {},
        {"Repeatability_Request_ID": "b", "Repeatability_First_Sent": "soon"},
    ),
    (
        "POST",
        "General_Currencies_Currencies",
        {},
        {
            "Repeatability_Request_ID": "b",
            "Repeatability_First_Sent": "Thu, 01 Jan 2015 00:00:00 GMT",
        },
    ),
]


#: The language of OData and of the model, which is the same in all others: what is quoted, options, names with dots
#: and underscores, `AND`, `GET`, `common | frontend`.
_SAME = re.compile(
    r"\"[^\"]*\"|'[^']*'|„[^“]*“|[$@]\w+|\b(?:Edm|Erp|Xn)\.\w+|\w+_\w+|\b[A-Z]+\b|\([^)]*\|[^)]*\)"
    r"|Input, Output, InputOutput|Attribute, Reference|New, Adjustment"
)
_TOKENS = {"average", "contains", "customer", "delete", "find", "idempotency", "model", "nest", "transaction"}


def left_over(message: str, language: str, asked: str = "") -> set[str]:
    """English words outside of what is quoted and of what was asked."""
    # The excerpt of a text that is quoted at a position has quotes of its own, and is the caller's.
    own = re.sub(r" (?:in|в) '.*'\)", "", message, flags=re.DOTALL)
    return english_left(_SAME.sub(" ", own), language) - _TOKENS - words(asked)


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_reason_of_the_grammar_is_english(language: str) -> None:
    found = {}
    reads: list[tuple[str, Callable[[str], object]]] = [
        *((text, parse_query_options) for text in WRONG_OPTIONS),
        *((text, parse_resource_path) for text in WRONG_PATHS),
    ]
    for text, read in reads:
        try:
            read(text)
        except ODataUrlError as error:
            with translation.override(language):
                message = str(known_error(error))
            if left := left_over(message, language):
                found[text[:60]] = f"{left}: {message}"
        else:
            found[text[:60]] = "not refused"
    assert "\n".join(f"{what}: {how}" for what, how in found.items()) == ""


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_answer_is_english(api: Api, language: str) -> None:
    found = {}
    for method, path, body, headers in REFUSED:
        answer = api.request(method, path, body, Accept_Language=language, **headers)
        if answer.status_code < 400:
            found[f"{method} {path}"] = "not refused"
            continue
        error = error_of(answer)
        assert error["type"] != "InternalError"
        assert answer["Content-Language"] == language
        assert "OData-Version" in answer
        for message in [error["message"], *(detail["message"] for detail in error.get("details", ()))]:
            if left := left_over(message, language, f"{path} {body}"):
                found[f"{method} {path[:60]} {str(body)[:60]}"] = f"{left}: {message}"
        if "messageFormat" in error:
            assert _filled(error["messageFormat"], error["parameters"]) == error["message"]
    assert "\n".join(f"{what}: {how}" for what, how in found.items()) == ""


def _filled(message_format: str, parameters: list[str]) -> str:
    return re.sub(
        r"\{(\d)\}", lambda at: parameters[int(at[1])] if int(at[1]) < len(parameters) else "", message_format
    )


def test_a_reason_of_the_grammar_needs_no_grammatical_case(api: Api) -> None:
    """Each part is said by itself, and what is the grammar's own stays as it is."""
    answer = api.get(f"{PRODUCTS}?$filter=Lines/", Accept_Language="de")
    error = error_of(answer)
    assert error["parameters"] == [
        "$filter",
        "Erwartet: eine Eigenschaft, any, all, $count oder $filter. Gefunden: das Ende des Textes."
        " (Position 6 in 'Lines/')",
    ]
    assert error["messageFormat"] == "Die Abfrageoption {0} kann nicht gelesen werden: {1}"
    answer = api.get(f"{PRODUCTS}?$filter=a in (1", Accept_Language="bg")
    assert error_of(answer)["parameters"][1] == (
        "Очаква се: ',' или ')'. Намерено: край на текста. (позиция 7 в 'a in (1')"
    )


def test_the_header_of_a_refused_token_is_of_ascii() -> None:
    """RFC 6750, 3: error_description; the body says the same in the reader's language."""
    with translation.override("bg"):
        refused = errors.Unauthorized(errors.TOKEN_INVALID, Message("it is unknown"))
        assert refused.headers()["WWW-Authenticate"].isascii()
        assert refused.message == "Токенът за достъп не е валиден: той е непознат."


def test_a_phrase_is_english_as_text_and_says_its_parts_in_another_language() -> None:
    phrase = Message("Expected {0}, found {1}.", one_of((Message("a name"), "'{1}'", "eq")), Message("white space"))
    assert phrase == "Expected a name, '{1}' or eq, found white space."
    assert translated(phrase, str.upper) == "EXPECTED A NAME, '{1}' OR eq, FOUND WHITE SPACE."
    assert did_you_mean(()) == ""
    assert translated("a name", str.upper) == "a name"


# --- the sources --------------------------------------------------------------------------------------------------

#: Calls whose text reaches the caller: the parser's, the errors', and what makes errors of a reason.
_TELLING = {
    "fail", "refuse", "expect", "close", "finish", "identifier", "note_not_supported", "ODataSyntaxError",
    "mismatch", "retype", "unknown", "failure", "TemplateError", "EgressFailed", "InvalidHeader", "InvalidSchema",
    "InvalidToken", "Problem",
}  # fmt: skip
_PROSE = re.compile(r"[^\W\d_]{2,} [^\W\d_]+")


def _calls() -> Iterator[tuple[str, ast.Call, str]]:
    for app in APPS:
        for path in sorted((BASE_DIR / app).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call):
                    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                    yield f"{Path(path).relative_to(BASE_DIR)}:{node.lineno}", node, name


def _subclasses(kind: type[Exception]) -> Iterator[str]:
    yield kind.__name__
    for below in kind.__subclasses__():
        yield from _subclasses(below)


def test_no_error_is_raised_with_words_that_are_no_phrase() -> None:
    telling = _TELLING | {*_subclasses(errors.PlatformError), "Detail"}
    found = []
    for place, call, name in _calls():
        # `expected` of the parser's errors is not told; only the first argument of these is.
        told = call.args[:1] if name in ("refuse", "ODataSyntaxError") else call.args
        for argument in told if name in telling else ():
            texts = [argument] if isinstance(argument, ast.Constant) else getattr(argument, "values", [])
            plain = " ".join(str(text.value) for text in texts if isinstance(text, ast.Constant))
            if _PROSE.search(re.sub(r"'[^']*'", "''", plain)):
                found.append(f"{place}: {plain}")
    assert found == []


def test_every_phrase_is_a_text_of_the_catalogues_with_an_argument_for_each_place() -> None:
    found = []
    for place, call, name in _calls():
        if name != "Message":
            continue
        template = call.args[0]
        if not isinstance(template, ast.Constant):
            assert ast.unparse(call) == "Message(error.msg)"  # of_json, whose texts stand above it
        elif set(re.findall(r"\{(\d)\}", str(template.value))) != {str(at) for at in range(len(call.args) - 1)}:
            found.append(f"{place}: {ast.unparse(call)}")
    assert found == []
