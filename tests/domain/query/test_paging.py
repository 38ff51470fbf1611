"""Paging by key: tokens, and sets that change between two pages (spec 02, 2.2)."""

from __future__ import annotations

from urllib.parse import unquote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from domain.entities.general_product_groups import ProductGroup
from foundation import errors
from tests.domain.query.conftest import Ask, english
from tests.domain.query.reference import Row

SET = "General_Products_ProductGroups"


def token_of(body: dict[str, object]) -> str:
    """The $skiptoken of the next link."""
    return unquote(str(body["@odata.nextLink"]).partition("$skiptoken=")[2])


def _group(number: int, notes: str | None) -> ProductGroup:
    return ProductGroup(
        id=f"00000000-0000-7000-8000-{number:012d}",
        code=f"C{number}",
        name=english("x"),
        notes=notes,
        full_path=f"/c{number}/",
    )


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(
    notes=st.lists(st.none() | st.sampled_from("abc"), min_size=1, max_size=12),
    is_descending=st.booleans(),
    size=st.integers(1, 4),
    changes=st.lists(st.tuples(st.booleans(), st.integers(0, 30), st.none() | st.sampled_from("abc")), max_size=12),
)
def test_what_is_there_throughout_is_seen_once_and_in_order(
    db: None,
    ask: Ask,
    notes: list[str | None],
    is_descending: bool,
    size: int,
    changes: list[tuple[bool, int, str | None]],
) -> None:
    ProductGroup.objects.all().delete()
    first = {2 * number: note for number, note in enumerate(notes)}
    ProductGroup.objects.bulk_create([_group(number, note) for number, note in first.items()])
    present, lasting = set(first), set(first)
    seen: list[str] = []
    options = f"$select=Code&$orderby=Notes{' desc' if is_descending else ''}"
    token, pending = "", list(changes)
    for _ in range(100):
        body = ask(SET, f"{options}&$skiptoken={token}" if token else options, max_page_size=size)
        seen += [row["Code"] for row in body["value"]]
        if "@odata.nextLink" not in body:
            break
        token = token_of(body)
        if pending:
            insert, number, note = pending.pop(0)
            if insert and number not in present:
                _group(number, note).save(force_insert=True)
                present.add(number)
            elif not insert and number in present:
                ProductGroup.objects.filter(code=f"C{number}").delete()
                present.discard(number)
                lasting.discard(number)
    assert len(seen) == len(set(seen))
    expected = sorted(lasting)
    expected.sort(key=lambda number: (first[number] is not None, first[number] or ""), reverse=is_descending)
    lasting_codes = {f"C{number}" for number in lasting}
    assert [code for code in seen if code in lasting_codes] == [f"C{number}" for number in expected]


def test_a_token_goes_on_where_top_still_allows(products: list[Row], ask: Ask) -> None:
    body = ask("General_Products_Products", "$select=Id&$top=5", max_page_size=3)
    assert len(body["value"]) == 3
    rest = ask("General_Products_Products", f"$select=Id&$top=5&$skiptoken={token_of(body)}", max_page_size=3)
    assert len(rest["value"]) == 2
    assert "@odata.nextLink" not in rest


def test_the_last_page_says_so(products: list[Row], ask: Ask) -> None:
    assert "@odata.nextLink" not in ask("General_Products_Products", "", max_page_size=len(products))
    assert "@odata.nextLink" in ask("General_Products_Products", "", max_page_size=len(products) - 1)


def test_the_link_keeps_the_callers_options(products: list[Row], ask: Ask) -> None:
    body = ask("General_Products_Products", "$select=Id", max_page_size=1, base_path="Set?$select=Id")
    assert body["@odata.nextLink"].startswith("Set?$select=Id&$skiptoken=")


@pytest.mark.parametrize("token", ["x", "####", "AAAA", "eyJhIjoxfQ", "A" * 60])
def test_a_token_that_is_not_ours_is_refused(products: list[Row], ask: Ask, token: str) -> None:
    with pytest.raises(errors.BadRequest) as failure:
        ask("General_Products_Products", f"$skiptoken={token}")
    assert failure.value.code is errors.INVALID_SKIPTOKEN


def test_a_token_does_not_fit_another_order_or_set(products: list[Row], ask: Ask) -> None:
    token = token_of(ask("General_Products_Products", "$orderby=PartNumber", max_page_size=1))
    for set_name, options in (
        ("General_Products_Products", ""),
        ("General_Products_Products", "&$orderby=PartNumber desc"),
        ("General_Products_ProductGroups", "&$orderby=Code"),
    ):
        with pytest.raises(errors.BadRequest):
            ask(set_name, f"$skiptoken={token}{options}")


def test_a_changed_token_is_refused(products: list[Row], ask: Ask) -> None:
    token = token_of(ask("General_Products_Products", "", max_page_size=1))
    for position in range(0, len(token), 5):
        changed = token[:position] + ("A" if token[position] != "A" else "B") + token[position + 1 :]
        with pytest.raises(errors.BadRequest):
            ask("General_Products_Products", f"$skiptoken={changed}")
