"""Members of enumerations, as people and systems write them."""

from __future__ import annotations

import pytest

from foundation.enums import DOCUMENT_STATE


@pytest.mark.parametrize("text", ["FirmPlanned", "firmplanned", "FIRM PLANNED", "firm_planned", " 20 "])
def test_a_member_is_found_in_every_spelling(text: str) -> None:
    assert DOCUMENT_STATE.member(text) == "FirmPlanned"


def test_other_text_is_refused_with_the_members() -> None:
    with pytest.raises(ValueError, match="'Shipped' is not one of New, Adjustment, Planned"):
        DOCUMENT_STATE.member("Shipped")
