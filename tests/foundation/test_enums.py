"""Members of enumerations, as people and systems write them."""

from __future__ import annotations

import pytest

from foundation.enums import DOCUMENT_STATE, label


@pytest.mark.parametrize("text", ["FirmPlanned", "firmplanned", "FIRM PLANNED", "firm_planned", " 20 "])
def test_a_member_is_found_in_every_spelling(text: str) -> None:
    assert DOCUMENT_STATE.member(text) == "FirmPlanned"


@pytest.mark.parametrize(
    "member,text",
    [
        ("FirmPlanned", "Firm planned"), ("MTS", "MTS"), ("Not_IsNull", "Not is null"),
        ("CostAndFreightCF", "Cost and freight CF"),
        ("DataAccessAPI", "Data access API"), ("JavaScript", "JavaScript"), ("PrivateKeyJwt", "PrivateKeyJwt"),
    ],
)  # fmt: skip
def test_people_read_members_in_words(member: str, text: str) -> None:
    assert label(member) == text


def test_other_text_is_refused_with_the_members() -> None:
    with pytest.raises(ValueError, match="'Shipped' is not one of New, Adjustment, Planned"):
        DOCUMENT_STATE.member("Shipped")
