"""Permissions and row policies hold on every way to a row (spec 01, 1.7)."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from domain.model.registry import repositories
from domain.query import (
    ParentScope,
    Representation,
    compile_filter,
    count,
    follow,
    predicate_holds,
    read_entity,
    select_ids,
    select_rows,
)
from domain.syntax import parse_query_options
from domain.syntax.ast import NO_OPTIONS
from foundation import errors
from identity.context import CallContext, Caller, Lineage, Operation
from tests.domain.query.conftest import Ask, english
from tests.domain.query.reference import Row

PRODUCTS = repositories["General.Products.Products"]
GROUPS = repositories["General.Products.ProductGroups"]
PRICES = repositories["Crm.Pricing.ProductPrices"]


@dataclass(frozen=True)
class Rights:
    """Permissions of a test caller."""

    key: str
    denied: frozenset[str] = frozenset()
    rules: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def allows(self, repository: str, operation: Operation) -> bool:
        """All but what is denied."""
        return repository not in self.denied

    def policies(self, repository: str, operation: Operation) -> tuple[str, ...]:
        """The rules of the repository."""
        return dict(self.rules).get(repository, ())

    def alternatives(self, lineage: Lineage) -> tuple[tuple[tuple[str, ...], ...], ...]:
        """As of one role."""
        found = tuple(self.policies(*member) for member in lineage)
        return (found,) if any(found) else ()


def caller(key: str, *, denied: tuple[str, ...] = (), **rules: tuple[str, ...]) -> CallContext:
    """A caller; rules by repository name with `__` for dots."""
    made = tuple((name.replace("__", "."), texts) for name, texts in rules.items())
    return CallContext(
        user=Caller(id="00000000-0000-7000-8006-000000000002", login="charlie"),
        permissions=Rights(key, frozenset(denied), made),
    )


ONE_GROUP = caller(
    "one group", General__Products__ProductGroups=("Code eq 'G2'", "Code eq 'G9' and $user.Login eq 'x'")
)


def test_a_hidden_target_reads_as_null_everywhere(products: list[Row], ask: Ask) -> None:
    body = ask("General_Products_Products", "$select=Id,ProductGroup", ctx=ONE_GROUP)
    expanded = ask("General_Products_Products", "$select=Id&$expand=ProductGroup($select=Code)", ctx=ONE_GROUP)
    for row, whole, expected in zip(body["value"], expanded["value"], products, strict=True):
        seen = expected["ProductGroup"]["Code"] == "G2"
        assert (row["ProductGroup"] is not None) == seen
        assert (whole["ProductGroup"] is not None) == seen


@pytest.mark.parametrize(
    "filter_text, seen",
    [
        ("ProductGroup ne null", True),
        ("ProductGroup/Code eq 'G2'", True),
        ("ProductGroup/Code ne null", True),
        ("ProductGroup/Id ne null", True),
        ("contains(ProductGroup,'')", True),
        ("ProductGroup eq null", False),
        ("ProductGroup/Code eq null", False),
        ("ProductGroup/Code eq 'G1'", None),
        ("ProductGroup/Notes eq 'no'", None),
    ],
)
def test_a_filter_sees_null_behind_a_hidden_target(
    products: list[Row], ask: Ask, filter_text: str, seen: bool | None
) -> None:
    expected = {row["Id"] for row in products if (row["ProductGroup"]["Code"] == "G2") is seen}
    options = parse_query_options(f"$filter={filter_text}")
    assert {
        row["Id"]
        for row in ask("General_Products_Products", f"$select=Id&$filter={filter_text}", ctx=ONE_GROUP)["value"]
    } == expected
    assert count(PRODUCTS, options, ONE_GROUP) == len(expected)


def test_sets_keys_counts_and_aggregates_show_visible_rows_only(products: list[Row], ask: Ask) -> None:
    body = ask("General_Products_ProductGroups", "$select=Id,Code&$count=true", ctx=ONE_GROUP)
    assert [row["Code"] for row in body["value"]] == ["G2"]
    assert body["@odata.count"] == 1
    hidden = next(row["ProductGroup"]["Id"] for row in products if row["ProductGroup"]["Code"] != "G2")
    visible = body["value"][0]["Id"]
    assert read_entity(GROUPS, hidden, NO_OPTIONS, ONE_GROUP, Representation()) is None
    assert read_entity(GROUPS, visible, NO_OPTIONS, ONE_GROUP, Representation()) is not None
    assert follow(GROUPS, hidden, (), ONE_GROUP) is None
    assert select_ids(GROUPS, ctx=ONE_GROUP) == [visible]
    assert ask("General_Products_ProductGroups", "$apply=aggregate($count as N)", ctx=ONE_GROUP)["value"][0]["N"] == 1
    groups = ask("General_Products_Products", "$apply=groupby((ProductGroup/Code))", ctx=ONE_GROUP)["value"]
    assert {row["ProductGroup"]["Code"] for row in groups} == {None, "G2"}


def test_collections_show_visible_rows_only(products: list[Row], ask: Ask) -> None:
    active = caller("active prices", Crm__Pricing__ProductPrices=("IsActive",))
    body = ask("General_Products_Products", "$select=Id&$expand=Prices($select=Id),Prices/$count", ctx=active)
    for row, expected in zip(body["value"], products, strict=True):
        seen = [price["Id"] for price in expected["Prices"] if price["IsActive"]]
        assert [price["Id"] for price in row["Prices"]] == seen
        assert row["Prices@odata.count"] == len(seen)
    filtered = ask("General_Products_Products", "$select=Id&$filter=Prices/any(p:p/IsActive eq false)", ctx=active)
    assert filtered["value"] == []
    every = ask("General_Products_Products", "$select=Id&$filter=Prices/all(p:p/IsActive)", ctx=active)
    assert len(every["value"]) == len(products)
    summed = ask("General_Products_Products", "$apply=aggregate(Prices/$count as N)", ctx=active)["value"][0]["N"]
    assert summed == sum(price["IsActive"] for row in products for price in row["Prices"])


def test_the_collection_of_a_hidden_parent_is_empty(products: list[Row], ask: Ask) -> None:
    owner = next(row for row in products if row["Prices"])
    scope = ParentScope(PRODUCTS, owner["Id"], "Prices")
    none = caller("no products", General__Products__Products=("PartNumber eq 'none'",))
    assert len(ask("Crm_Pricing_ProductPrices", "", parent=scope)["value"]) == len(owner["Prices"])
    assert ask("Crm_Pricing_ProductPrices", "$count=true", parent=scope, ctx=none) == {
        "@odata.context": "$metadata#Crm_Pricing_ProductPrices",
        "@odata.count": 0,
        "value": [],
    }
    assert count(PRICES, NO_OPTIONS, none, parent=scope) == 0


def test_what_may_not_be_read_at_all_is_not_there(products: list[Row], ask: Ask) -> None:
    without = caller("no groups", denied=("General.Products.ProductGroups", "Crm.Pricing.ProductPrices"))
    with pytest.raises(errors.NotFound):
        ask("General_Products_ProductGroups", "", ctx=without)
    with pytest.raises(errors.NotFound):
        read_entity(GROUPS, products[0]["ProductGroup"]["Id"], NO_OPTIONS, without, Representation())
    body = ask(
        "General_Products_Products", "$select=ProductGroup&$expand=Prices&$filter=ProductGroup eq null", ctx=without
    )
    assert len(body["value"]) == len(products)
    assert all(row["ProductGroup"] is None and row["Prices"] == [] for row in body["value"])


def test_policies_may_speak_of_the_caller(products: list[Row]) -> None:
    mine = caller("mine", General__Products__ProductGroups=("Id eq $user.Id", "$user.IsAdmin"))
    assert select_ids(GROUPS, ctx=mine) == ["00000000-0000-7000-8006-000000000002"]


def test_callers_with_equal_rights_share_plans_but_not_values(products: list[Row]) -> None:
    rules = {"General__Products__ProductGroups": ("Id eq $user.Id",)}
    first = caller("shared", **rules)
    second = first.with_(user=Caller(id="00000000-0000-7000-8006-000000000003", login="bob"))
    assert select_ids(GROUPS, ctx=first) == ["00000000-0000-7000-8006-000000000002"]
    assert select_ids(GROUPS, ctx=second) == ["00000000-0000-7000-8006-000000000003"]


def test_a_policy_on_a_write_looks_at_the_stored_row(products: list[Row], context: CallContext) -> None:
    key = products[0]["Id"]
    code = products[0]["ProductGroup"]["Code"]
    assert predicate_holds(PRODUCTS, f"ProductGroup/Code eq '{code}'", key, context)
    assert not predicate_holds(PRODUCTS, f"ProductGroup/Code ne '{code}'", key, context)
    assert not predicate_holds(PRODUCTS, "$user.Login eq 'x'", key, context)


@pytest.mark.parametrize(
    "text",
    ["Nothing eq 1", "PartNumber eq 1", "PartNumber", "PartNumber eq", "$user.Nothing eq 'x'", "ABCClass eq 'Q'"],
)
def test_a_policy_that_cannot_work_is_refused_when_it_is_saved(db: None, text: str) -> None:
    with pytest.raises(errors.BadRequest):
        compile_filter(PRODUCTS, text)


def test_a_policy_that_works_is_accepted(db: None) -> None:
    compile_filter(PRODUCTS, "ProductGroup/Code eq $user.Login or Prices/any(p:p/Notes eq $user.Name)")
    compile_filter(PRODUCTS, "PartNumber eq '$user.Login'")


def test_rows_of_a_derived_type_keep_their_own_restrictions_in_the_base_set(db: None, context: CallContext) -> None:
    from domain.entities.general_contacts import Company, Person

    Company.objects.create(
        party_name=english("Company"), concrete_repository="General.Contacts.Companies", name=english("C")
    )
    Person.objects.create(
        party_code="2",
        party_name=english("Person"),
        concrete_repository="General.Contacts.Persons",
        first_name=english("P"),
        last_name=english("P"),
    )
    parties = repositories["General.Contacts.Parties"]
    assert len(select_ids(parties, ctx=context)) == 2
    no_companies = caller("no companies", denied=("General.Contacts.Companies",))
    names = select_rows(parties, ["PartyName"], ctx=no_companies)
    assert names == [({"EN": "Person"},)]
    some = caller("some", General__Contacts__Persons=("FirstName eq 'X'",))
    assert select_rows(parties, ["PartyName"], ctx=some) == [({"EN": "Company"},)]
