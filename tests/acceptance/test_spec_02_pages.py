"""spec 02 The Domain API as OData: pages, aggregation, change tracking"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.acceptance.caller import ODATA, Caller, answered, error_of
from tests.acceptance.objects import CUSTOMER, GROUPS, LINES, ORDERS, PRODUCT, PRODUCTS, Maker
from tests.acceptance.statements import statement

NEXT, DELTA = "@odata.nextLink", "@odata.deltaLink"


def path_of(link: str) -> str:
    """A link as a path of this instance."""
    return link.partition(ODATA)[2]


@pytest.fixture(scope="module")
def five(service: Caller) -> Iterator[str]:
    """The mark of five groups, with the codes 1-mark to 5-mark and two kinds of notes."""
    mark = secrets.token_hex(4).upper()
    with Maker.of(service, mark) as make:
        for number in range(1, 6):
            body = {"Code": f"{number}-{mark}", "Name": {"EN": f"{number} {mark}"}, "Notes": f"kind {number % 2}"}
            make.new(GROUPS, body)
        yield mark


def pages(caller: Caller, path: str, **headers: str) -> list[list[dict[str, Any]]]:
    """The pages from the first to the last, by their links."""
    found = []
    link: str | None = path
    while link is not None:
        answer = caller.read(link, **headers)
        found.append(answer["value"])
        link = path_of(answer[NEXT]) if NEXT in answer else None
    return found


class TestPaging:
    @pytest.mark.parametrize("preference", ["odata.maxpagesize", "maxpagesize"])
    @statement("spec 2.2", "Prefer: {preference}=n: pages of n with @odata.nextLink, none on the last page")
    def test_pages(self, service: Caller, five: str, preference: str) -> None:
        query = f"{GROUPS}?$filter=endswith(Code,'{five}')&$orderby=Code&$select=Code"
        found = pages(service, query, Prefer=f"{preference}=2")
        assert [[row["Code"][0] for row in page] for page in found] == [["1", "2"], ["3", "4"], ["5"]]

    @statement("spec 2.2", "The link carries an opaque $skiptoken and keeps the query's options")
    def test_link(self, service: Caller, five: str) -> None:
        query = f"{GROUPS}?$filter=endswith(Code,'{five}')&$select=Code"
        link = service.read(query, Prefer="odata.maxpagesize=2")[NEXT]
        options = parse_qs(urlsplit(link).query)
        assert options["$skiptoken"]
        assert options["$select"] == ["Code"]

    @statement("spec 2.2", "Preference-Applied names the page size")
    def test_applied(self, service: Caller) -> None:
        answer = answered(service.get(PRODUCTS, Prefer="odata.maxpagesize=2"), 200)
        assert answer.headers["Preference-Applied"] in ("odata.maxpagesize=2", "maxpagesize=2")

    @statement("spec 2.2", "Rows inserted and removed between two pages neither skip nor repeat others")
    def test_stable(self, make: Maker) -> None:
        def row(code: str) -> str:
            body = {"Code": f"{code}{make.mark}", "Name": {"EN": "x"}, "Notes": make.mark}
            return str(make.new(GROUPS, body)["@odata.id"])

        rows = [row(code) for code in "BDFH"]
        query = f"{GROUPS}?$filter=Notes eq '{make.mark}'&$orderby=Code&$select=Code"
        first = make.caller.read(query, Prefer="odata.maxpagesize=2")
        row("A")
        row("G")
        answered(make.caller.delete(rows[0]), 204)
        rest = make.caller.read(path_of(first[NEXT]))["value"]
        assert "".join(found["Code"][0] for found in [*first["value"], *rest]) == "BDFGH"

    @statement("spec 2.2", "Paging resumes by key also where rows are equal in $orderby, descending, and null")
    def test_ties(self, service: Caller, five: str) -> None:
        for order in ("Notes", "Notes desc", "PictureLastUpdateTime,Notes desc", "length(Code)"):
            query = f"{GROUPS}?$filter=endswith(Code,'{five}')&$orderby={order}&$select=Code"
            found = [row["Code"][0] for page in pages(service, query, Prefer="odata.maxpagesize=1") for row in page]
            assert sorted(found) == ["1", "2", "3", "4", "5"]

    @pytest.mark.parametrize("token", ["x", "AAAA", ""])
    @statement("spec 2.2", "A tampered $skiptoken is a 400: '{token}'")
    def test_tampered(self, service: Caller, token: str) -> None:
        error_of(service.get(f"{PRODUCTS}?$skiptoken={token}"), 400)

    @statement("spec 2.2", "A $skiptoken with one character changed is a 400")
    def test_changed(self, service: Caller) -> None:
        link = path_of(service.read(f"{PRODUCTS}?$select=Id", Prefer="odata.maxpagesize=2")[NEXT])
        at = link.index("$skiptoken=") + len("$skiptoken=") + 3
        error_of(service.get(link[:at] + ("A" if link[at] != "A" else "B") + link[at + 1 :]), 400)

    @statement("spec 2.2", "A page has at most 1000 rows, whatever is preferred")
    def test_largest(self, service: Caller) -> None:
        answer = answered(service.get(f"{PRODUCTS}?$select=Id", Prefer="odata.maxpagesize=100000"), 200)
        assert len(answer.json()["value"]) <= 1000

    @statement("spec 2.2", "A page size that is no positive number is ignored, as preferences are")
    def test_ignored(self, service: Caller) -> None:
        for size in ("0", "-1", "x"):
            answered(service.get(f"{PRODUCTS}?$select=Id&$top=1", Prefer=f"odata.maxpagesize={size}"), 200)


@dataclass(frozen=True, slots=True)
class Sales:
    """Two orders with three lines whose quantities are 1, 2 and 3, each at 10 EUR."""

    caller: Caller
    mark: str

    def lines(self, transformations: str, more: str = "") -> list[dict[str, Any]]:
        """$apply on the lines of these orders."""
        chosen = f"filter(SalesOrder/ReferenceDocumentNo eq '{self.mark}')"
        rows = self.caller.rows(f"{LINES}?$apply={chosen}/{transformations}{more}")
        return [{name: value for name, value in row.items() if "@odata." not in name} for row in rows]

    def orders(self, transformations: str, more: str = "") -> list[dict[str, Any]]:
        """$apply on these orders."""
        chosen = f"filter(ReferenceDocumentNo eq '{self.mark}')"
        return self.caller.rows(f"{ORDERS}?$apply={chosen}/{transformations}{more}")


@pytest.fixture(scope="module")
def sales(service: Caller) -> Iterator[Sales]:
    mark = secrets.token_hex(4).upper()
    with Maker.of(service, mark) as make:
        dozens = make.product(PartNumber=f"D-{mark}")
        for date, quantities in (("2025-11-30", (1, 2)), ("2026-01-05", (3,))):
            lines = [
                {
                    "Product@odata.bind": dozens if value == 2 else PRODUCT,
                    "Quantity": {"Value": value, "Unit": "dz" if value == 2 else "pcs"},
                    "UnitPrice": {"Value": 10, "Currency": "EUR"},
                    "Notes": f"note {mark} {value}",
                }
                for value in quantities
            ]
            make.order(DocumentDate=date, ReferenceDocumentNo=mark, Lines=lines)
        yield Sales(service, mark)


APPLIED: list[tuple[str, list[dict[str, Any]]]] = [
    ("aggregate($count as N)", [{"N": 3}]),
    ("aggregate(QuantityValue with sum as S)", [{"S": 6}]),
    ("aggregate(QuantityValue with min as S)", [{"S": 1}]),
    ("aggregate(QuantityValue with max as S)", [{"S": 3}]),
    ("aggregate(QuantityValue with average as S)", [{"S": 2}]),
    ("aggregate(LineNo with countdistinct as N)", [{"N": 2}]),
    ("filter(LineNo eq 10)/aggregate($count as N)", [{"N": 2}]),
    ("groupby((LineNo))/orderby(LineNo)", [{"LineNo": 10}, {"LineNo": 20}]),
    (
        "groupby((LineNo),aggregate($count as N,QuantityValue with sum as S))/orderby(LineNo desc)",
        [{"LineNo": 20, "N": 1, "S": 2}, {"LineNo": 10, "N": 2, "S": 4}],
    ),
    (
        "groupby((LineNo),aggregate($count as N))/groupby((N),aggregate($count as M))/orderby(N)",
        [{"N": 1, "M": 1}, {"N": 2, "M": 1}],
    ),
    ("compute(LineNo mul 2 as T)/aggregate(T with sum as S)", [{"S": 80}]),
    (
        "concat(aggregate($count as N),aggregate(LineNo with max as M))",
        [{"N": 3}, {"M": 20}],
    ),
    ("groupby((QuantityValue))/orderby(QuantityValue desc)/top(1)", [{"QuantityValue": 3}]),
    ("groupby((QuantityValue))/orderby(QuantityValue)/skip(2)", [{"QuantityValue": 3}]),
    ("topcount(1,QuantityValue)/aggregate(QuantityValue with sum as S)", [{"S": 3}]),
    ("bottomcount(2,QuantityValue)/aggregate(QuantityValue with sum as S)", [{"S": 3}]),
    ("topsum(4,QuantityValue)/aggregate(QuantityValue with sum as S)", [{"S": 5}]),
    ("bottompercent(50,QuantityValue)/groupby((LineNo))/aggregate($count as N)", [{"N": 2}]),
    ("groupby((QuantityValue))/topsum(4,QuantityValue)/aggregate($count as N)", [{"N": 2}]),
    ("groupby((QuantityValue))/toppercent(50,QuantityValue)/aggregate($count as N)", [{"N": 1}]),
    ("identity/aggregate($count as N)", [{"N": 3}]),
    (
        "groupby((SalesOrder/DocumentDate),aggregate($count as N))/orderby(SalesOrder/DocumentDate)",
        [
            {"SalesOrder": {"DocumentDate": "2025-11-30"}, "N": 2},
            {"SalesOrder": {"DocumentDate": "2026-01-05"}, "N": 1},
        ],
    ),
    ("aggregate(LineAmount with sum as S)", [{"S": {"Value": 60, "Currency": "EUR"}}]),
]


class TestApply:
    @pytest.mark.parametrize("apply, expected", APPLIED, ids=[text for text, _ in APPLIED])
    @statement("spec 2.2", "$apply={apply}")
    def test_apply(self, sales: Sales, apply: str, expected: list[dict[str, Any]]) -> None:
        assert sales.lines(apply) == expected

    @statement("spec 2.2", "$apply=search(…)")
    def test_search(self, service: Caller, five: str) -> None:
        rows = service.rows(f'{GROUPS}?$apply=search("1-{five}" OR "2-{five}")/aggregate($count as N)')
        assert [row["N"] for row in rows] == [2]

    @statement("spec 2.2", "Quantities are aggregated per unit")
    def test_units(self, sales: Sales) -> None:
        found = sales.lines("aggregate(Quantity with sum as S)")
        assert sorted((row["S"]["Unit"], row["S"]["Value"]) for row in found) == [("dz", 2), ("pcs", 4)]

    @statement("spec 2.2", "Grouping by a reference and by a path of references gives the references")
    def test_references(self, sales: Sales) -> None:
        (row,) = sales.lines("groupby((SalesOrder/Customer),aggregate($count as N))")
        assert row["SalesOrder"]["Customer"]["@odata.id"] == CUSTOMER
        assert row["N"] == 3
        (found,) = sales.orders("groupby((Customer),aggregate($count as N))")
        assert (found["Customer"]["@odata.id"], found["N"]) == (CUSTOMER, 2)

    @statement("spec 2.2", "expandgroup=Path($select=…;$expand=…) expands what was grouped by")
    def test_expandgroup(self, sales: Sales) -> None:
        more = "&expandgroup=Customer($select=Number;$expand=Party($select=PartyName))"
        (found,) = sales.orders("groupby((Customer),aggregate($count as N))", more)
        assert isinstance(found["Customer"]["Number"], str)
        assert isinstance(found["Customer"]["Party"]["PartyName"], dict)

    @statement("spec 2.2", "yearmonth() groups by month")
    def test_yearmonth(self, sales: Sales) -> None:
        found = sales.orders("groupby((yearmonth(DocumentDate)),aggregate($count as N))", "&$orderby=yearmonth")
        assert [(row["yearmonth"], row["N"]) for row in found] == [("2025-11", 1), ("2026-01", 1)]

    @pytest.mark.parametrize(
        "more, expected",
        [
            ("&$filter=N ge 2", [10]),
            ("&$orderby=LineNo desc", [20, 10]),
            ("&$orderby=LineNo&$top=1", [10]),
            ("&$orderby=LineNo&$skip=1", [20]),
        ],
    )
    @statement("spec 2.2", "{more} works on what $apply gives")
    def test_after(self, sales: Sales, more: str, expected: list[int]) -> None:
        found = sales.lines("groupby((LineNo),aggregate($count as N))", more)
        assert [row["LineNo"] for row in found] == expected

    @statement("spec 2.2", "$count=true counts the groups")
    def test_count(self, sales: Sales) -> None:
        chosen = f"filter(SalesOrder/ReferenceDocumentNo eq '{sales.mark}')"
        answer = sales.caller.read(f"{LINES}?$apply={chosen}/groupby((LineNo))&$count=true&$top=1")
        assert (answer["@odata.count"], len(answer["value"])) == (2, 1)

    @pytest.mark.parametrize("apply", ["nonsense", "groupby(LineNo)", "aggregate(Nothing with sum as S)", "filter("])
    @statement("spec 02", "$apply={apply} is a 400")
    def test_senseless(self, service: Caller, apply: str) -> None:
        error_of(service.get(f"{LINES}?$apply={apply}"), 400)


class TestChangeTracking:
    @statement("spec 2.2", "A delta answers what was added, changed and removed since, and a new link")
    def test_delta(self, make: Maker) -> None:
        caller = make.caller
        kept = make.group(Notes=make.mark)
        gone = make.new(GROUPS, {"Code": f"X{make.mark}", "Name": {"EN": "x"}, "Notes": make.mark})["@odata.id"]
        query = f"{GROUPS}?$filter=Notes eq '{make.mark}'&$select=Code"
        answer = answered(caller.get(query, Prefer="odata.track-changes"), 200)
        assert "track-changes" in answer.headers["Preference-Applied"]
        first = answer.json()
        assert {row["@odata.id"] for row in first["value"]} == {kept, gone}
        caller.change(kept, {"Code": f"K{make.mark}"})
        answered(caller.delete(gone), 204)
        added = make.new(GROUPS, {"Code": f"N{make.mark}", "Name": {"EN": "n"}, "Notes": make.mark})["@odata.id"]
        second = caller.read(path_of(first[DELTA]), OData_MaxVersion="4.01")
        present = {row["@odata.id"]: row["Code"] for row in second["value"] if "@removed" not in row}
        assert present == {kept: f"K{make.mark}", added: f"N{make.mark}"}
        (removed,) = [row for row in second["value"] if "@removed" in row]
        assert gone in str(removed)
        assert caller.read(path_of(second[DELTA]))["value"] == []

    @statement("spec 2.2", "An answer without the preference has no @odata.deltaLink; a tampered link is a 400")
    def test_link(self, service: Caller) -> None:
        assert DELTA not in service.read(f"{GROUPS}?$select=Code")
        error_of(service.get(f"{GROUPS}?$deltatoken=x"), 400)

    @statement("spec 2.2", "AggregateLastUpdateTimeUtc of roots moves with each change, also of a child")
    def test_watermark(self, make: Maker) -> None:
        order = make.order()
        name = "AggregateLastUpdateTimeUtc"
        before = make.caller.read(f"{order}?$select={name}")[name]
        make.caller.change(make.line_of(order), {"Notes": "later"})
        rows = make.caller.rows(f"{ORDERS}?$filter={name} gt {before}&$select=Id")
        assert order in {row["@odata.id"] for row in rows}
