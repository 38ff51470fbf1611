"""Catalogues: registration by name, refused loudly, and the enum types that follow them."""

from __future__ import annotations

from typing import ClassVar

import pytest

from foundation.catalogue import Catalogue
from foundation.enums import EnumCatalogue, EnumType, enum_types


class Thing:
    name: ClassVar[str] = ""
    number: ClassVar[int]


class First(Thing):
    name = "First"
    number = 7


class Second(Thing):
    name = "Second"
    number = 3


def test_items_are_found_by_name_and_listed_in_the_order_of_registration() -> None:
    things: Catalogue[Thing] = Catalogue("thing")
    assert things.register(First) is First
    things.register(Second)
    assert (list(things.names()), len(things), "First" in things) == (["First", "Second"], 2, True)
    assert isinstance(things["First"], First)
    assert [type(thing) for thing in things] == [First, Second]
    assert things.get("Third") is None
    things.remove("First")
    assert things.get("First") is None


def test_registration_fails_for_a_name_that_is_missing_malformed_or_taken() -> None:
    things: Catalogue[Thing] = Catalogue("thing")
    things.register(First)
    malformed = type("Malformed", (Thing,), {"name": "two words"})
    for declaration, message in (
        (Thing, "Thing: the thing has no name"),
        (malformed, "Malformed: 'two words' is no name of a thing"),
        (First, "First: the thing First is registered twice"),
    ):
        with pytest.raises(ValueError, match=message):
            things.register(declaration)
    assert list(things.names()) == ["First"]


def test_functions_are_registered_by_a_decorator() -> None:
    functions: Catalogue[object] = Catalogue("function")

    @functions.function("twice")
    def twice(number: int) -> int:
        return 2 * number

    assert functions["twice"] is twice


def test_an_enum_type_has_the_names_of_its_catalogue_ordered_by_number() -> None:
    enum = EnumType("Tests.Things", {})
    try:
        things: EnumCatalogue[Thing] = EnumCatalogue("thing", enum)
        things.register(First)
        things.register(Second)
        assert enum.members == {"Second": 3, "First": 7}
        assert (enum.member("first"), enum.by_number[3], enum.choices()[0]) == ("First", "Second", ("Second", "Second"))
        for changed, message in (({"number": 7}, "First has the number 7"), ({"number": None}, "has no number")):
            declaration = type("Third", (Thing,), {"name": "Third", **changed})
            with pytest.raises(ValueError, match=message):
                things.register(declaration)
            assert "Third" not in things
        things.remove("First")
        assert enum.members == {"Second": 3}
    finally:
        enum_types.remove("Tests.Things")
