"""Guids are ordered by creation and canonical (spec 08, 8.1)."""

from __future__ import annotations

import multiprocessing
import uuid

import pytest

from foundation.guids import is_guid, new_guid, parse_guid


def test_new_guids_are_version_7_ordered_and_unique() -> None:
    made = [new_guid() for _ in range(20_000)]
    assert made == sorted(made)
    assert len(set(made)) == len(made)
    assert {uuid.UUID(guid).version for guid in made} == {7}
    assert {uuid.UUID(guid).variant for guid in made} == {uuid.RFC_4122}


def test_processes_forked_from_one_make_different_guids() -> None:
    """With the same random bits, two of them in one millisecond would be the same guid."""
    new_guid()
    forks = multiprocessing.get_context("fork")
    with forks.Pool(2) as one, forks.Pool(2) as other:
        made = [guid for pool in (one, other) for guid in pool.map(_made, range(8))]
    tails = [guid[-12:] for guid in (*made, new_guid())]
    assert len(set(tails)) == len(tails)


def _made(number: int) -> str:
    return new_guid()


def test_parsing_gives_lower_case_and_refuses_the_rest() -> None:
    guid = new_guid()
    assert parse_guid(guid.upper()) == guid
    for text in ("", "x", guid[:-1], guid.replace("-", ""), f"{{{guid}}}"):
        assert not is_guid(text)
        with pytest.raises(ValueError, match="not a guid"):
            parse_guid(text)
