"""The committed table of docs/reference/compatibility.md is that of the tests in this folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compatibility import table


def test_the_committed_table_is_up_to_date() -> None:
    """Each test has a row, each row a test, and each passed when the table was written: `make compatibility`."""
    expected = [(row.area, row.driven) for row in table.rows()]
    written = table.written_verdicts()
    assert list(written) == expected
    assert not {row: verdict for row, verdict in written.items() if verdict != table.PASSES}


def test_no_two_tests_say_the_same() -> None:
    """Rows are told apart by their words."""
    said = [(row.area, row.driven) for row in table.rows()]
    assert len(said) == len(set(said))


def test_rows_that_did_not_run_keep_their_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run of some tests changes their rows only; a row that never ran says so."""
    page = tmp_path / "page.md"
    page.write_text(f"before\n{table.START}\n{table.END}\nafter\n", encoding="utf-8")
    first, second, third = (table.Row("Area", name, f"file::{name}") for name in ("one", "two | three", "four"))
    monkeypatch.setattr(table, "PAGE", page)
    monkeypatch.setattr(table, "rows", lambda: [first, second, third])
    table.write({first.node: table.PASSES, second.node: table.FAILS})
    table.write({first.node: table.FAILS})
    assert table.written_verdicts() == {
        ("Area", "one"): table.FAILS,
        ("Area", "two | three"): table.FAILS,
        ("Area", "four"): table.NOT_RUN,
    }
    assert page.read_text(encoding="utf-8").startswith("before\n")
    assert page.read_text(encoding="utf-8").endswith("\nafter\n")
