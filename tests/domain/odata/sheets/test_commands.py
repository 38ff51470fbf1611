"""import_data of spreadsheets, export_data, and the way there and back (spec 11, 11.2)."""

from __future__ import annotations

import csv
import io
import json
import os
import resource
import subprocess
import sys
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from domain.model.registry import repositories
from domain.odata.sheets.cells import neutralised, restored
from domain.odata.sheets.writing import sheet_writer
from domain.query import select_rows
from identity.context import CallContext
from tests.domain.odata.sheets.test_import_sheets import SET, workbook
from tests.domain.odata.test_adjustments import move
from tests.domain.odata.test_writing import CURRENCIES, PRODUCTS
from tests.rules.cast import World, dataset, new_line, new_order
from tests.support.api import Api
from tests.support.platform import ROOT
from tests.support.spreadsheets import read_sheet

SALES = ["Crm_Sales_SalesOrders", "Crm_Sales_SalesOrderLines"]
#: Characters that XML, PostgreSQL or a transfer as UTF-8 cannot have.
_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
_HARD = st.sampled_from(["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx", "'=1", "''+", "'", "_x0041_", "_x005F_", " a ",
                         "a\r\nb", "\u2028", '"', ";,", "\ufeffx", "＝1", "{}", "\x01", "\uffff"])  # fmt: skip


def rows_of(set_name: str, names: list[str]) -> list[tuple[Any, ...]]:
    repository = repositories.for_set(set_name)
    assert repository is not None
    return select_rows(repository[0], names, ctx=CallContext(user=None), orderby="Id")


def written(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n")
    return path


def test_the_command_imports_a_csv_file(api: Api, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("import_data", str(written(tmp_path / f"{SET}.csv", "CurrencySign,Name", "USD,Dollar", "GBP,Pound")))
    call_command("import_data", str(written(tmp_path / "new.csv", "CurrencySign,Name", "CHF,Franc")), repository=SET)
    assert "2 succeeded, 0 failed" in capsys.readouterr().out
    assert api.get(f"{CURRENCIES}/$count").content == b"4"


def test_the_command_takes_a_mapping_and_writes_refused_rows(
    api: Api, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "book.xlsx"
    file.write_bytes(workbook({"Geld": [["Zeichen", "Titel"], ["USD", "Dollar"], [None, "Nobody"], ["GBP", "Pound"]]}))
    columns = {"Zeichen": "CurrencySign", "Titel": "Name"}
    mapping = written(
        tmp_path / "mapping.json", json.dumps({"sheets": {"Geld": {"repository": SET, "columns": columns}}})
    )
    refused = tmp_path / "refused.csv"
    with pytest.raises(CommandError):
        call_command("import_data", str(file), "--mapping", str(mapping), "--errors", str(refused))
    assert "Geld row 3: " in capsys.readouterr().err
    assert api.get(f"{CURRENCIES}/$count").content == b"3"
    assert refused.read_text("utf-8-sig").startswith("Zeichen,Titel,Error\n,Nobody,")


def test_refused_rows_are_mended_and_imported(api: Api, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path / f"{SET}.csv", "CurrencySign,Name", "USD,Dollar", ",'=Pound", "CHF,Franc")
    for ending in ("csv", "xlsx"):
        refused = tmp_path / f"refused.{ending}"
        with pytest.raises(CommandError):
            call_command("import_data", str(file), "--errors", str(refused))
        assert f"{SET} row 3: " in capsys.readouterr().err
    assert api.get(f"{CURRENCIES}/$count").content == b"3"
    (line,) = csv.DictReader(io.StringIO((tmp_path / "refused.csv").read_text("utf-8-sig")))
    assert (line["CurrencySign"], line["Name"]) == ("", "'=Pound")
    assert "CurrencySign" in line["Error"]
    header, row = read_sheet((tmp_path / "refused.xlsx").read_bytes())
    assert [cell.text for cell in header.values()] == ["CurrencySign", "Name", "Error"]
    assert row["B"].text == "'=Pound"
    mended = (tmp_path / "refused.csv").read_text("utf-8-sig").replace("\n,", "\nGBP,")
    (tmp_path / f"{SET}.csv").write_text(mended)
    call_command("import_data", str(file))
    assert api.read(f"{CURRENCIES}?$filter=CurrencySign eq 'GBP'")["value"][0]["Name"] == "=Pound"


@pytest.mark.parametrize("mode", ["per-object", "all-objects"])
def test_a_dry_run_tells_and_changes_nothing(
    api: Api, tmp_path: Path, capsys: pytest.CaptureFixture[str], mode: str
) -> None:
    file = written(tmp_path / f"{SET}.csv", "CurrencySign,Name", "USD,Dollar", "EUR,Changed", ",Nothing")
    with pytest.raises(CommandError):
        call_command("import_data", str(file), "--dry-run", "--transaction", mode)
    told = capsys.readouterr().err
    assert f"{SET} row 2: Added\n{SET} row 3: Modified\n{SET} row 4: " in told
    assert api.get(f"{CURRENCIES}/$count").content == b"1"
    objects = {"objects": [{"@odata.type": "Erp.General_Currencies_Currency", "CurrencySign": "USD", "Name": "x"}]}
    call_command("import_data", str(written(tmp_path / "o.json", json.dumps(objects))), "--dry-run")
    assert "object 1: Added" in capsys.readouterr().err
    assert api.get(f"{CURRENCIES}/$count").content == b"1"


def test_a_broken_file_imports_nothing(api: Api, tmp_path: Path) -> None:
    file = written(tmp_path / f"{SET}.csv", "CurrencySign,Name", "USD,Dollar", "GBP")
    with pytest.raises(CommandError, match="row 3, column B"):
        call_command("import_data", str(file))
    with pytest.raises(CommandError, match="mapping"):
        call_command("import_data", str(file), "--mapping", str(written(tmp_path / "m.json", '{"sheet": {}}')))
    assert api.get(f"{CURRENCIES}/$count").content == b"1"


@pytest.mark.parametrize("ending", ["csv", "xlsx"])
def test_a_template_has_the_headers(api: Api, tmp_path: Path, ending: str) -> None:
    file = tmp_path / f"template.{ending}"
    call_command("export_data", SET, "--template", "--output", str(file))
    if ending == "xlsx":
        (header,) = [[cell.text for cell in row.values()] for row in read_sheet(file.read_bytes())]
    else:
        (header,) = csv.reader(io.StringIO(file.read_text("utf-8-sig")))
    assert {"Id", "CurrencySign", "Name"} <= set(header)
    assert not {"ObjectVersion", "DisplayText"} & set(header)


def test_an_export_is_filtered_and_has_chosen_columns(api: Api, world: World, tmp_path: Path) -> None:
    file = tmp_path / "out.csv"
    call_command("export_data", "Crm.Sales.Customers", "--select", "Number, Party.PartyCode", "--filter",
                 "Number eq 'C1'", "--output", str(file))  # fmt: skip
    rows = list(csv.reader(io.StringIO(file.read_text("utf-8-sig"))))
    assert (rows[0], rows[1][0], len(rows)) == (["Number", "Party.PartyCode"], "C1", 2)
    for wrong in (["Nothing"], [SET, "--filter", "Nope eq 1"], [SET, "--select", "Nope"]):
        with pytest.raises(CommandError, match=r"Nothing|Nope"):
            call_command("export_data", *wrong, "--output", str(file))
    assert list(csv.reader(io.StringIO(file.read_text("utf-8-sig")))) == rows


@given(_TEXT | _HARD)
def test_the_prefix_of_formulas_is_undone(text: str) -> None:
    cell = neutralised(text)
    assert not cell.startswith(("=", "+", "-", "@", "\t", "\r"))
    assert restored(cell) == text


@pytest.mark.parametrize("ending", ["csv", "xlsx", "json"])
@pytest.mark.parametrize("set_name", ["Crm_Sales_Customers", PRODUCTS, *SALES])
def test_an_export_imported_again_changes_nothing(
    api: Api, world: World, tmp_path: Path, set_name: str, ending: str
) -> None:
    ds = dataset(world.context)
    released = new_order(ds, world)
    for order in (released, new_order(ds, world)):
        new_line(ds, world, order)
    ds.commit()
    move(api, f"Crm_Sales_SalesOrders({released.id})", "Released")
    file, answers = tmp_path / f"{set_name}.{ending}", tmp_path / "answers"
    call_command("export_data", set_name, "--output", str(file))
    call_command("import_data", str(file), "--answers", str(answers))
    told = [json.loads(line) for line in answers.read_text().splitlines()]
    assert {(each["@erpnet.state"], each["@erpnet.result"]) for each in told} == {("Unchanged", "success")}


@pytest.mark.parametrize("ending", ["csv", "xlsx", "json"])
@hypothesis_settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    texts=st.lists(_TEXT | _HARD, min_size=4, max_size=4),
    number=st.decimals(0, 10**9, places=2, allow_nan=False, allow_infinity=False),
)
def test_any_text_and_number_comes_back(
    api: Api, world: World, tmp_path: Path, ending: str, texts: list[str], number: Decimal
) -> None:
    name, german, description, external = texts
    body = {"Name": {"EN": name or "x", "DE": german}, "Description": {"EN": description},
            "ExternalId": external.strip()[:32] or None, "StandardPricePerLot": {"Value": str(number)}}  # fmt: skip
    changed = api.patch(f"{PRODUCTS}({world.product})", body)
    assert changed.status_code == 204, changed.content
    names = ["Id", "PartNumber", *body, "ObjectVersion"]
    before = rows_of(PRODUCTS, names)
    file, answers = tmp_path / f"{PRODUCTS}.{ending}", tmp_path / "answers"
    call_command("export_data", PRODUCTS, "--output", str(file))
    call_command("import_data", str(file), "--answers", str(answers), "--logging-level", "0")
    told = [json.loads(line) for line in answers.read_text().splitlines()]
    assert [answer["@erpnet.state"] for answer in told] == ["Unchanged"] * len(before), told
    assert rows_of(PRODUCTS, names) == before


_GROWTH = """
import resource, sys, django
django.setup()
from domain.odata.sheets.mapping import FileMapping
from domain.odata.sheets.source import SheetSource
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
def read(path):
    with open(path, "rb") as file:
        source = SheetSource(file, path.rpartition(".")[2], FileMapping(), "General_Currencies_Currencies")
        count = source.check()
        assert sum(1 for _ in source.bodies()) == count
        return count
read(sys.argv[1])
before = peak()
assert read(sys.argv[2]) == 30_000
print(peak() - before)
"""


@pytest.mark.process
def test_a_long_file_is_read_in_the_memory_of_a_short_one(tmp_path: Path) -> None:
    """The long test below imports the rows, too."""
    for ending in ("csv", "xlsx"):
        files = [tmp_path / f"{count}.{ending}" for count in (300, 30_000)]
        for file in files:
            _write_many(file, int(file.stem))
        environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "platform_site.settings", "DATA_DIR": str(tmp_path)}
        run = subprocess.run(
            [sys.executable, "-c", _GROWTH, *map(str, files)],
            env=environment, cwd=ROOT, capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert int(run.stdout.split()[-1]) < 8 * 1024, (ending, run.stdout)


@pytest.mark.fuzz
@pytest.mark.parametrize("mode", ["all-objects", "per-object"])
@pytest.mark.parametrize("ending", ["csv", "xlsx"])
def test_a_hundred_thousand_lines_grow_the_process_by_less_than_100_mb(
    world: World, tmp_path: Path, ending: str, mode: str
) -> None:
    file = tmp_path / f"{SET}.{ending}"
    _write_many(file, 100_000)
    before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
    call_command("import_data", str(file), "--transaction", mode, "--model", "common", "--logging-level", "0")
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(f"{ending} {mode}: {time.monotonic() - started:.0f} s, peak grew by {grown:.0f} MB")
    assert grown < 100


def _write_many(file: Path, count: int) -> None:
    with file.open("wb") as stream:
        writer = sheet_writer(stream, file.suffix[1:])
        writer.begin(SET, ["CurrencySign", "Name"])
        for number in range(count):
            sign = "".join(chr(ord("A") + number // 32**place % 32) for place in (3, 2, 1, 0))
            writer.write([sign, f"Currency {number}"])
        writer.close()
