"""Whatever is changed behind the platform's back is found, and at its place (spec 12.4)."""

from __future__ import annotations

import random
import re

import pytest
from django.conf import settings
from django.db import transaction

from audit.models import AuditEntry, AuditHead
from audit.verify import chain_verify, head_parse
from tests.audit.chains import TABLE, Tamperer, entries, execute, minute_of, rechain, renumber

pytestmark = pytest.mark.django_db

MINUTES, PER_MINUTE = 5, 12
SIZE = MINUTES * PER_MINUTE


class Undo(Exception):
    """Rolls a tampering back."""


def places() -> list[int]:
    return [finding.position for finding in chain_verify().findings]


@pytest.fixture
def chain() -> list[AuditHead]:
    """A chain with a head after each minute, as the newest is."""
    return [minute_of(PER_MINUTE, minute) for minute in range(MINUTES)]


def test_an_untouched_chain_verifies(chain: list[AuditHead]) -> None:
    entries(3)
    report = chain_verify()
    assert (report.findings, report.entries, report.heads, report.waiting) == ([], SIZE, MINUTES, 3)
    assert (report.last.position, report.last.hash) == (SIZE, chain[-1].hash)


def tamper_at_random(count: int, seed: int) -> None:
    found: dict[str, int] = {}
    random_ = random.Random(seed)
    for number in range(count):
        try:
            with transaction.atomic():
                what, position = Tamperer(random_, SIZE).act()
                findings = chain_verify().findings
                assert findings, f"{what} at {position} was not found (seed {seed}, tampering {number})"
                assert min(place for place, _text in findings) == position, (what, position, findings)
                found[what] = found.get(what, 0) + 1
                raise Undo
        except Undo:
            pass
    assert sum(found.values()) == count
    assert chain_verify().findings == []


def test_random_tamperings_are_found_at_their_place(chain: list[AuditHead]) -> None:
    tamper_at_random(60, seed=12)


@pytest.mark.fuzz
def test_a_thousand_random_tamperings_are_found_at_their_place(chain: list[AuditHead]) -> None:
    tamper_at_random(1_000, seed=random.randrange(1 << 30))


def test_a_removed_entry_is_located_between_heads_when_all_hashes_are_made_anew(chain: list[AuditHead]) -> None:
    execute(f"DELETE FROM {TABLE} WHERE position = 30")
    renumber(30, -1)
    rechain(30)
    first = chain_verify().findings[0]
    assert first.position == 2 * PER_MINUTE + 1
    assert re.search(r"of the entries 25 to 36 some were changed, inserted or removed", first.what)


def test_a_copied_entry_is_found_even_with_its_genuine_seal(chain: list[AuditHead]) -> None:
    columns = "kind, at, actor, subject, content, seal"
    execute(f"INSERT INTO {TABLE} ({columns}, hash) SELECT {columns}, '' FROM {TABLE} WHERE position = 7")
    assert any("is a copy of that at" in finding.what for finding in chain_verify().findings)


def test_what_is_inserted_before_it_is_chained_has_no_seal(chain: list[AuditHead]) -> None:
    entries(1)
    row = AuditEntry.objects.get(position=None)
    execute(f"UPDATE {TABLE} SET actor = 'bob' WHERE id = %s", row.pk)
    assert [text for _place, text in chain_verify().findings if f"the id {row.pk} " in text]
    minute_of(0, MINUTES)
    assert places() == [SIZE + 1]


def test_heads_cannot_be_made_with_a_key_of_ones_own(chain: list[AuditHead]) -> None:
    """The public keys are in the database, too: the seal is what somebody with the database alone cannot make."""
    AuditHead.objects.filter(pk=chain[2].pk).update(hash=chain[1].hash)
    assert places() == [3 * PER_MINUTE]
    AuditHead.objects.filter(pk=chain[2].pk).update(hash=chain[2].hash, token=chain[3].token, seal=chain[3].seal)
    assert places() == [3 * PER_MINUTE]


class TestTheEnd:
    """Whoever removes entries at the end removes the heads over them, too."""

    def cut(self, keep: int) -> None:
        execute(f"DELETE FROM {TABLE} WHERE position > %s", keep)
        AuditHead.objects.filter(position__gt=keep).delete()

    def test_an_external_head_tells(self, chain: list[AuditHead]) -> None:
        self.cut(3 * PER_MINUTE)
        assert places() == []
        report = chain_verify(external=[head_parse(chain[-1].token)])
        assert [finding.position for finding in report.findings] == [3 * PER_MINUTE + 1]
        assert "are missing at the end: the external head of" in report.findings[0].what

    def test_also_when_other_entries_have_taken_their_place(self, chain: list[AuditHead]) -> None:
        self.cut(3 * PER_MINUTE)
        for minute in range(3, MINUTES + 1):
            minute_of(PER_MINUTE, minute)
        assert places() == []
        report = chain_verify(external=[head_parse(chain[-1].token)])
        assert [finding.position for finding in report.findings] == [4 * PER_MINUTE + 1]


def test_a_part_of_the_chain_is_verified_from_the_head_before_it(chain: list[AuditHead]) -> None:
    execute(f"UPDATE {TABLE} SET subject = 'x' WHERE position = 3")
    later = chain_verify(first=30, last=40)
    assert (later.findings, later.entries) == ([], 40 - 2 * PER_MINUTE)
    assert [place for place, _text in chain_verify(last=20).findings] == [3]


@pytest.mark.skipif(
    settings.DATABASES["default"]["ENGINE"] != "foundation.sqlite", reason="PostgreSQL stores no such values"
)
@pytest.mark.parametrize("value", [b"\xff\xfe", "X'00FF'", "NULL"])
@pytest.mark.parametrize("column", ["content", "at", "position", "seal", "hash"])
def test_values_that_no_entry_can_have_are_findings(chain: list[AuditHead], column: str, value: object) -> None:
    if value == "NULL" and column != "position":
        value = "''"
    if isinstance(value, bytes):
        execute(f"UPDATE {TABLE} SET {column} = CAST(%s AS TEXT) WHERE position = 20", value)
    else:
        execute(f"UPDATE {TABLE} SET {column} = {value} WHERE position = 20")
    entries(2)
    minute_of(1, MINUTES)
    found = places()
    assert 20 in found
