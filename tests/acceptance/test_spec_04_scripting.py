"""spec 04 Scripting"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.acceptance.caller import Caller, answered, error_of, id_of
from tests.acceptance.objects import COMPANY, GROUPS, ORDERS, PRODUCT, SCRIPTS, Maker, order
from tests.acceptance.people import Browser
from tests.acceptance.receiving import Hooks
from tests.acceptance.statements import statement

OUTPUT = {"a": {"type": "integer", "direction": "Output", "required": True}}
GROUP = "Domain.General.Products.ProductGroupsRepository"


@pytest.fixture(scope="module")
def admin(anyone: Caller) -> Browser:
    """A signed-in administrator."""
    browser = Browser(anyone)
    answered(browser.log_in("admin"), 302)
    return browser


class TestSandbox:
    @statement("spec 04", "No state leaks from one run to the next: neither globals nor prototypes")
    def test_leaks(self, service: Caller) -> None:
        spoil = "globalThis.left = 1; Array.prototype.left = 1; Object.prototype.left = 1; console.log = null;"
        for _ in range(2):
            service.run(spoil)
        look = "console.log(typeof left, [].left === undefined, ({}).left === undefined, typeof Domain)"
        assert {service.run(look)["console"] for _ in range(3)} == {"undefined true true object"}

    @pytest.mark.parametrize(
        "name", ["require", "process", "fetch", "XMLHttpRequest", "WebSocket", "std", "os", "setTimeout", "Worker"]
    )
    @statement("spec 04", "A script reads no files, environment or modules and opens no sockets: there is no {name}")
    def test_absent(self, service: Caller, name: str) -> None:
        assert service.run(f"console.log(typeof {name})")["console"] == "undefined"

    @statement("spec 04", "A script imports no module")
    def test_modules(self, service: Caller) -> None:
        error_of(service.script("import * as os from 'os';"), 500)

    @pytest.mark.parametrize(
        "limit, source",
        [
            ("wall time", "for (;;) {}"),
            ("wall time in one native call", "/(a+)+b/.test('a'.repeat(40));"),
            ("memory", "let a = 'x'; for (;;) a += a + a;"),
            ("source", "//" + "x" * 1_000_100),
        ],
        ids=lambda value: value.replace(" ", "-") if len(value) < 40 else "",
    )
    @statement("spec 04", "Over the limit of {limit} a script fails as ScriptLimitExceeded, and others run on")
    def test_limits(self, service: Caller, limit: str, source: str) -> None:
        error = error_of(service.script(source), 500, 413)
        assert error["type"] == "ScriptLimitExceeded", error["message"]
        assert service.run("console.log(1)")["console"] == "1"

    @statement("spec 04", "Over 1 MB the console is truncated, with a mark")
    def test_console(self, service: Caller) -> None:
        console = service.run("for (let i = 0; i < 30; i++) console.log('x'.repeat(50000));")["console"]
        assert 1_000_000 <= len(console) < 1_100_000
        assert console.rstrip("x")[-1:] not in {"", "x"}


class TestTypes:
    @pytest.mark.parametrize(
        "expression, value",
        [
            ("Amount.Multiply(Amount(2.5, 'EUR'), 5)", "12.5 EUR"),
            ("Amount.Add(Amount(0.1, 'EUR'), Amount(0.2, 'EUR'))", "0.3 EUR"),
            ("Quantity.Divide(Quantity(6, 'kg'), Quantity(4, 'kg'))", "1.5"),
            ("Quantity(6, 'kg').Subtract(Quantity(4, 'kg'))", "2 kg"),
            ("MultilanguageString({EN: 'a', DE: 'b'}).DE", "b"),
            ("new CustomPropertyValue('RED').Value", "RED"),
        ],
    )
    @statement("spec 04", "Domain.Types: {expression} is {value}")
    def test_arithmetic(self, service: Caller, expression: str, value: str) -> None:
        types = "const {Amount, Quantity, MultilanguageString, CustomPropertyValue} = Domain.Types;"
        assert service.run(f"{types} console.log(String({expression}))")["console"] == value

    @statement("spec 04", "Values of Domain.Types are immutable")
    def test_immutable(self, service: Caller) -> None:
        source = "'use strict'; const a = Domain.Types.Amount(1, 'EUR'); try { a.Value = 2; } catch (e) {}"
        assert service.run(f"{source} console.log(a.Value)")["console"] == "1"


#: Filter → codes (without the mark) of the groups that fit, in order of Code.
QUERIES = {
    "{Code: 'A-{mark}'}": "A",
    "{code: 'A-{mark}'}": "A",
    "{Code: {equals: 'A-{mark}'}}": "A",
    "{Code: {in: ['A-{mark}', 'C-{mark}']}}": "AC",
    "{Code: [{like: '%{mark}'}, {greaterthanorequal: 'B'}]}": "BC",
    "{Code: [{endswith: '{mark}'}, {lessthanorequal: 'B-{mark}'}]}": "AB",
    "{Code: [{contains: '-{mark}'}, {startswith: 'C'}]}": "C",
    "{Code: {endswith: '{mark}'}, Notes: 'n'}": "A",
    "{Code: {endswith: '{mark}'}, Notes: [{equals: 'n'}, {includeNulls: true}]}": "AB",
    "{Code: {endswith: '{mark}'}, Active: false}": "C",
    "{Code: {endswith: '{mark}'}, ParentGroup: {g}.query({Code: 'A-{mark}'})[0]}": "B",
    "{CustomProperty_p{mark}: 'given'}": "C",
    "{Code: {endswith: '{mark}'}}, {fetch: 2, orderBy: 'Code desc'}": "CB",
    "{}, {filter: \"endswith(Code, '{mark}') and Notes ne null\"}": "AC",
}


class TestQueries:
    @pytest.fixture(scope="class")
    @classmethod
    def found(cls, service: Caller) -> Iterator[dict[str, str]]:
        """The codes that each query finds, by the query."""
        with Maker.of(service, "Q04") as make:
            code = make.text_property(GROUPS)
            first = make.new(GROUPS, {"Code": "A-Q04", "Name": {"EN": "x"}, "Notes": "n"})["@odata.id"]
            make.new(GROUPS, {"Code": "B-Q04", "Name": {"EN": "x"}, "ParentGroup@odata.bind": first})
            values = {"Notes": "m", "Active": False, f"CustomProperty_{code}": "given"}
            make.new(GROUPS, {"Code": "C-Q04", "Name": {"EN": "x"}, **values})
            answers = {}
            for number, query in enumerate(QUERIES):
                written = query.replace("{mark}", "Q04").replace("{g}", GROUP)
                ordered = written if "orderBy" in written or "filter" in written else f"{written}, {{orderBy: 'Code'}}"
                answers[query] = (
                    f"try {{ console.log('{number}', {GROUP}.query({ordered}).map(g => g.Code[0]).join('')); }}"
                    f" catch (e) {{ console.log('{number}', e.message); }}"
                )
            lines = service.run("\n".join(answers.values()))["console"].split("\n")
            yield dict(zip(QUERIES, (line.partition(" ")[2] for line in lines), strict=True))

    @pytest.mark.parametrize("query", QUERIES)
    @statement("spec 04", "query takes {query}")
    def test_query(self, found: dict[str, str], query: str) -> None:
        assert found[query] == QUERIES[query]

    @statement("spec 04", "getByIdList takes an array of ids or a text of them with commas")
    def test_by_id_list(self, make: Maker) -> None:
        id = make.group()[-37:-1]
        source = f"console.log({GROUP}.getByIdList(['{id}']).length, {GROUP}.getByIdList('{id},{id}')[0].Id)"
        assert make.caller.run(source)["console"] == f"1 {id}"

    @statement("spec 04", "createNew makes an entity with initial values")
    def test_create(self, make: Maker) -> None:
        source = f"const g = {GROUP}.createNew({{Code: 'G-{make.mark}', Name: 'New'}}); Transaction.commit();"
        id = make.caller.run(f"{source} console.log(g.Id);")["console"]
        make.remove_later(f"{GROUPS}({id})")
        assert make.caller.read(f"{GROUPS}({id})")["Name"] == {"EN": "New"}

    @statement("spec 04", "A query for rows that the caller did not commit finds them, too")
    def test_own(self, service: Caller, mark: str) -> None:
        source = f"{GROUP}.createNew({{Code: 'G-{mark}', Name: 'New'}});"
        assert service.run(f"{source} console.log({GROUP}.query({{Code: 'G-{mark}'}}).length)")["console"] == "1"


class TestEntities:
    @pytest.fixture(scope="class")
    @classmethod
    def order(cls, service: Caller) -> Iterator[str]:
        """JavaScript that names an order with three lines."""
        with Maker.of(service, "E04") as make:
            made = make.new(ORDERS, order(lines=3, DocumentNotes="notes"))
            yield f"Domain.Crm.Sales.SalesOrdersRepository.getById('{id_of(made)}')"

    @pytest.mark.parametrize(
        "what, source, printed",
        [
            ("Attributes are named in any case", "so.documentnotes === so.DocumentNotes", "true"),
            ("The same entity is the same object", "so === so.Lines[0].SalesOrder", "true"),
            ("References load lazily", "so.EnterpriseCompany.Id", COMPANY[-37:-1]),
            ("A child collection has Count and length", "`${so.Lines.Count} ${so.Lines.length}`", "3 3"),
            ("A child collection is indexed", "so.Lines[2].LineNo > so.Lines[0].LineNo", "true"),
            ("A child collection is iterated", "[...so.Lines].length", "3"),
            ("A child collection has map", "so.lines.map(line => 1).join('')", "111"),
            ("A child collection has filter", "so.lines.filter(line => false).length", "0"),
            ("A child collection has forEach", "(() => { let n = 0; so.Lines.forEach(() => n++); return n; })()", "3"),
            ("Delete of a collection deletes one", "(so.Lines.Delete(so.Lines[0]), so.Lines.length)", "2"),
            ("DeleteAll deletes all", "(so.Lines.DeleteAll(), so.Lines.length)", "0"),
            ("Delete deletes the entity", "(so.Lines[0].Delete(), so.Lines.Count)", "2"),
            ("ObjectState is Unchanged at first", "so.ObjectState", "Unchanged"),
            ("ObjectState is Modified after a change", "(so.DocumentNotes = 'x', so.ObjectState)", "Modified"),
            ("ObjectState is Deleted after Delete", "(o => (o.Delete(), o.ObjectState))(so)", "Deleted"),
            ("DisplayText is a text", "typeof so.DisplayText", "string"),
            ("Enums are strings", "so.State", "New"),
            ("Operations are methods", "(so.ChangeState('Planned'), so.State)", "Planned"),
            ("A text is converted to a date", "(so.DocumentDate = '2026-05-06', so.DocumentDate.getUTCDate())", "6"),
            ("A number is converted to a text", "(so.ReferenceDocumentNo = 12, so.ReferenceDocumentNo)", "12"),
            ("A text is converted to a number", "(so.Lines[0].LineNo = '77', so.Lines[0].LineNo)", "77"),
            ("A plain text sets the caller's language", "(so.Lines[0].ProductDescription = 'x').length && "
             "so.Lines[0].ProductDescription.EN", "x"),
        ],
        ids=lambda value: "",
    )  # fmt: skip
    @statement("spec 04", "{what}")
    def test_entity(self, service: Caller, order: str, what: str, source: str, printed: str) -> None:
        answer = service.run(f"const so = {order}; console.log(String({source}));")
        assert answer["console"] == printed

    @statement("spec 04", "Setting an unknown attribute throws, with the name and a code; a script can catch it")
    def test_unknown(self, service: Caller, order: str) -> None:
        source = f"try {{ {order}.Nothing = 1; }} catch (e) {{ console.log(e instanceof Error, e.code, e.message); }}"
        caught = service.run(source)["console"].split(" ", 2)
        assert (caught[0], caught[1].isdigit(), "Nothing" in caught[2]) == ("true", True, True)

    @statement("spec 04", "CustomProperties['code'] is read by .Value and assigned a text or a CustomPropertyValue")
    def test_custom(self, make: Maker) -> None:
        code = make.text_property(GROUPS)
        group = f"{GROUP}.getById('{make.group()[-37:-1]}').CustomProperties['{code}']"
        source = (
            f"{group} = 'one'; console.log({group}.Value);"
            f"{group} = new Domain.Types.CustomPropertyValue('two'); console.log({group}.Value);"
        )
        assert make.caller.run(source)["console"] == "one\ntwo"


class TestAction:
    @statement("spec 04", "Action.log and Action.error write Systems.Monitoring.InformationMessages")
    def test_log(self, service: Caller, mark: str) -> None:
        service.run(f"Action.log('said {mark}'); Action.error('failed {mark}');")
        rows = service.rows(f"Systems_Monitoring_InformationMessages?$filter=contains(Message,'{mark}')")
        assert {row["InformationMessageType"] for row in rows} == {"Information", "Error"}
        assert {row["Message"] for row in rows} == {f"said {mark}", f"failed {mark}"}

    @statement("spec 04", "Action.cancel ends the script with its message; nothing pending is committed")
    def test_cancel(self, make: Maker) -> None:
        group = make.group()
        change = f"{GROUP}.getById('{group[-37:-1]}').Notes = 'x';"
        refused = error_of(make.caller.script(f"{change} Action.cancel('stop'); Transaction.commit();"), 500)
        assert (refused["message"], refused["type"]) == ("stop", "ScriptCancelled")
        assert make.caller.read(group)["Notes"] is None

    @statement("spec 04", "Action.notify.user makes a notification for a user")
    def test_notify(self, service: Caller, mark: str) -> None:
        (user,) = service.rows("Systems_Security_Users?$filter=Login eq 'demo'&$select=Id")
        service.run(f"Action.notify.user('{id_of(user)}', 'hello {mark}'); Transaction.commit();")
        assert service.count("Systems_Core_Notifications") >= 1
        (row,) = service.rows(f"Systems_Core_Notifications?$filter=Subject eq 'hello {mark}'")
        assert row["User"]["@odata.id"] == user["@odata.id"]

    @statement("spec 04", "Action.user has id, name, roles, locale and email; Action.session id and startedAt")
    def test_user(self, service: Caller) -> None:
        source = (
            "const u = Action.user, s = Action.session;"
            "console.log(u.id.length, typeof u.name, Array.isArray(u.roles), u.locale, 'email' in u);"
            "console.log(s.id, s.startedAt instanceof Date);"
        )
        answer = service.run(source)
        assert answer["console"] == f"36 string true en true\n{answer['sessionId']} true"

    @statement("spec 04", "Action.http.get and post answer isSuccess, statusCode, body, headers and errorMessage")
    def test_http(self, service: Caller, hooks: Hooks, mark: str) -> None:
        url = f"{hooks.url}/script/{mark}"
        hooks.answer(f"/script/{mark}", [200, 404])
        source = (
            f"const g = Action.http.get('{url}', {{'X-Mark': '{mark}'}}), p = Action.http.post('{url}', 'sent');"
            "console.log(Object.keys(g).sort().join(), g.isSuccess, g.statusCode, p.isSuccess, p.statusCode);"
        )
        assert service.run(source)["console"] == "body,errorMessage,headers,isSuccess,statusCode true 200 false 404"
        get, post = hooks.at(f"/script/{mark}")
        assert (get.method, get.headers["X-Mark"], post.method, post.body) == ("GET", mark, "POST", b"sent")

    @pytest.mark.parametrize("host", ["169.254.169.254", "10.0.0.1", "[fe80::1]"])
    @statement("spec 04", "Action.http obeys the egress rules: {host} is refused without an exception")
    def test_egress(self, service: Caller, host: str) -> None:
        source = f"const g = Action.http.get('http://{host}/'); console.log(g.isSuccess, g.statusCode, g.errorMessage);"
        assert service.run(source)["console"].startswith("false 0 ")

    @statement("spec 04", "Action.files is for managed scripts only")
    def test_files(self, service: Caller) -> None:
        assert service.run("console.log(typeof Action.files)")["console"] == "undefined"

    @pytest.mark.parametrize("commit", [True, False])
    @statement("4.4", "A file made by Action.files in Execute persists only when the transaction ends with commit true")
    def test_file(self, make: Maker, commit: bool) -> None:
        reference = make.order()
        source = (
            f"const o = Domain.Crm.Sales.SalesOrdersRepository.getById('{reference[-37:-1]}');"
            f"return Action.files.create(o, '{make.mark}.txt', 'content').Id;"
        )
        inside = make.caller.begin()
        run = inside.post(f"{make.script(source)}/Execute", {})
        created = answered(run, 200).json()["returnValue"]
        assert created, "the identifier is no proof that the file persists"
        inside.end(commit=commit)
        files = make.caller.rows(f"{reference}/FileAttachments")
        assert [row["FileName"] for row in files] == ([f"{make.mark}.txt"] if commit else [])

    @statement("4.4", "A file made by Action.files in Execute without a transaction does not persist")
    def test_file_alone(self, make: Maker) -> None:
        reference = make.order()
        source = (
            f"const o = Domain.Crm.Sales.SalesOrdersRepository.getById('{reference[-37:-1]}');"
            "return Action.files.create(o, 'a.txt', 'content').Id;"
        )
        answered(make.caller.post(f"{make.script(source)}/Execute", {}), 200)
        assert make.caller.rows(f"{reference}/FileAttachments") == []


class TestExecuteScript:
    @pytest.mark.parametrize(
        "what, source, named",
        [
            ("a syntax error", "let a = 1;\nlet (;", "line 2"),
            ("a runtime error", "\n\nnull.x;", "line 3"),
            ("an error of the host", "\nDomain.General.Products.ProductsRepository.query({Nothing: 1});", "line 2"),
            ("a thrown text", "\n  throw 'sorry';", "line 2"),
        ],
    )
    @statement("spec 04", "{what} is told with its line and column, and info has the position")
    def test_position(self, service: Caller, what: str, source: str, named: str) -> None:
        refused = error_of(service.script(source), 400, 500)
        assert f"{named}, column " in refused["message"] + refused["info"]

    @statement("spec 04", "info of a failed script has the console so far")
    def test_console(self, service: Caller, mark: str) -> None:
        assert mark in error_of(service.script(f"console.log('{mark}'); null.x;"), 500)["info"]

    @statement("spec 04", "A body that is not UTF-8 is refused")
    def test_encoding(self, service: Caller) -> None:
        answer = service.post("ExecuteScript", b"console.log('\xff')", Content_Type="text/plain")
        assert error_of(answer, 400)["type"] == "ScriptEncoding"


class TestManaged:
    @pytest.mark.parametrize(
        "what, values, named",
        [
            ("a syntax error", {"ScriptText": "return 1;\nlet (;"}, "line 2"),
            ("a schema that is no JSON", {"ParameterSchema": '{\n"a": }'}, "line 2"),
            ("an unknown type", {"ParameterSchema": '{"a": {"type": "number of things"}}'}, "a"),
            ("a default of another type", {"ParameterSchema": '{"a": {"type": "integer", "default": "x"}}'}, "default"),
        ],
    )
    @statement("spec 04", "Saving a script refuses {what} and says where")
    def test_saving(self, service: Caller, mark: str, what: str, values: dict[str, Any], named: str) -> None:
        body = {"Code": f"S-{mark}", "Name": {"EN": "x"}, "Language": "JavaScript", "IsActive": True, **values}
        assert named in error_of(service.post(SCRIPTS, body), 500)["message"]

    @statement("spec 04", "Code of a script is unique")
    def test_code(self, make: Maker) -> None:
        make.script("return 1;")
        body = {"Code": f"S-{make.mark}", "Name": {"EN": "x"}, "Language": "JavaScript"}
        assert error_of(make.caller.post(SCRIPTS, body), 500)["code"] == 2129

    @statement("spec 04", "Inputs are parameters.<name> and variables; outputs are assigned to parameters.<name>")
    def test_parameters(self, make: Maker) -> None:
        schema = {
            "a": {"type": "integer", "direction": "Input"},
            "b": {"type": "array", "items": {"type": "integer"}, "direction": "InputOutput"},
        }
        script = make.script("parameters.b = [a, parameters.a, ...b]; return b.length;", schema)
        answer = make.caller.post(f"{script}/Execute", {"arguments": {"a": 1, "b": [2]}})
        body = answered(answer, 200).json()
        assert (body["parameters"], body["returnValue"]) == ({"b": [1, 1, 2]}, 1)
        assert "@odata.context" in body

    @pytest.mark.parametrize(
        "arguments, named",
        [
            ({"unknown": 1, "needed": 1}, {"unknown"}),
            ({"needed": "one", "color": "blue"}, {"needed", "color"}),
            ({}, {"needed"}),
            ({"needed": 1, "out": 1}, {"out"}),
            ({"needed": 1, "deep": {"x": "no"}}, {"deep"}),
        ],
    )
    @statement("spec 04", "The arguments {arguments} are refused and each wrong one is named: {named}")
    def test_arguments(self, make: Maker, arguments: dict[str, Any], named: set[str]) -> None:
        schema = {
            "needed": {"type": "integer", "required": True},
            "color": {"type": "string", "enum": ["red"]},
            "deep": {"type": "object", "properties": {"x": {"type": "integer"}}},
            "out": {"type": "integer", "direction": "Output"},
        }
        refused = error_of(make.caller.post(f"{make.script('1;', schema)}/Execute", {"arguments": arguments}), 500)
        assert refused["type"] == "ScriptArgumentsInvalid"
        assert {detail["target"] for detail in refused["details"]} == named

    @pytest.mark.parametrize("value", ["1n", "() => 1", "(() => { const a = []; a.push(a); return a; })()"])
    @statement("spec 04", "A return value that JSON cannot hold is an error: {value}")
    def test_return_value(self, make: Maker, value: str) -> None:
        error_of(make.caller.post(f"{make.script(f'return {value};')}/Execute", {}), 500)

    @pytest.mark.parametrize(
        "what, values, schema, kind",
        [
            ("inactive", {"IsActive": False}, None, "ScriptInactive"),
            ("empty", {"ScriptText": " "}, None, "ScriptHasNoText"),
            ("in another language", {"Language": "CSharp"}, None, "ScriptLanguageNotSupported"),
            ("with invalid arguments", {}, {"a": {"type": "integer", "required": True}}, "ScriptArgumentsInvalid"),
            ("with invalid outputs", {}, OUTPUT, "ScriptOutputsInvalid"),
        ],
        ids=lambda value: value if isinstance(value, str) else "",
    )
    @statement("spec 04", "Execute of a script {what} has a code of its own: {kind}")
    def test_codes(self, make: Maker, what: str, values: dict[str, Any], schema: Any, kind: str) -> None:
        script = make.script("return 1;", schema, **values)
        assert error_of(make.caller.post(f"{script}/Execute", {}), 500)["type"] == kind

    @statement("spec 04", "Every run is recorded: who, what, its outcome and the head of its console")
    def test_history(self, make: Maker, admin: Browser) -> None:
        answered(make.caller.post(f"{make.script(f'console.log(`{make.mark} seen`);')}/Execute", {}), 200)
        error_of(make.caller.script(f"console.log('{make.mark} seen'); null.x;"), 500)
        page = answered(admin.get(f"/admin/scripts/scriptrun/?q=S-{make.mark}"), 200).text
        assert f"S-{make.mark}" in page
        assert "service" in page
        assert "Managed" in page

    @statement("spec 04", "The admin edits a script's text, runs it and lists its runs")
    def test_admin(self, make: Maker, admin: Browser) -> None:
        script = make.script("return 1;")
        page = answered(admin.get(f"/admin/domain/script/{script[-37:-1]}/change/"), 200).text
        assert "return 1;" in page
        assert PRODUCT not in page
