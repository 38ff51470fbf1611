"""The XLSX file of an export has the values that every format of the Table API has (spec 11)."""

from __future__ import annotations

import csv
import io
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from django.core.management import call_command
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from domain.odata.sheets.cells import restored
from tests.domain.table_api.conftest import Tables, body_of
from tests.rules.cast import World, dataset, new_product
from tests.support.spreadsheets import SheetCell, read_sheet

#: Attribute → column.
COLUMNS = {
    "Id": "Id", "PartNumber": "Part_Number", "Name": "Name", "Description": "Description", "ScrapRate": "Scrap_Rate",
    "Active": "Active", "ProductGroup": "Product_Group_Id", "CreationTime": "Creation_Time",
}  # fmt: skip
_ASKED = f"Gen_Products?$select={', '.join(COLUMNS.values())}&$orderby=Id"

_texts = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=20)
_names = st.dictionaries(st.sampled_from(["EN", "BG", "DE"]), _texts, min_size=1)
_products = st.fixed_dictionaries(
    {
        "Name": _names,
        "Description": st.none() | _names,
        "ScrapRate": st.integers(0, 999_999).map(lambda number: Decimal(number).scaleb(-6)),
        "Active": st.booleans(),
    }
)


def _of_cell(cell: SheetCell | None) -> Any:
    if cell is None:
        return None
    match cell.kind:
        case "n":
            return Decimal(cell.text)
        case "b":
            return cell.text == "1"
    return restored(cell.text)


def _of_text(name: str, text: str) -> Any:
    """A cell of CSV. None of these texts is empty."""
    if not text:
        return None
    if name == "Active":
        return text == "true"
    return Decimal(text) if name == "Scrap_Rate" else text


def _of_arrow(table: pa.Table) -> list[list[Any]]:
    def told(name: str, value: Any) -> Any:
        return f"{value:%Y-%m-%dT%H:%M:%S.%f}Z" if name == "Creation_Time" else value

    return [[told(name, value) for name, value in row.items()] for row in table.to_pylist()]


def _by_format(tables: Tables) -> dict[str, list[list[Any]]]:
    def asked(form: str) -> bytes:
        answer = tables.get(f"{_ASKED}&$format={form}")
        assert answer.status_code == 200
        return body_of(answer)

    _head, *rows = csv.reader(io.StringIO(asked("csv").decode(), newline=""))
    lines = [json.loads(line, parse_float=Decimal) for line in asked("ndjson").decode().split("\n") if line]
    return {
        "json": [list(row.values()) for row in json.loads(asked("json"), parse_float=Decimal)["value"]],
        "ndjson": [list(line.values()) for line in lines],
        "csv": [[_of_text(name, cell) for name, cell in zip(COLUMNS.values(), row, strict=True)] for row in rows],
        "arrow": _of_arrow(pa.ipc.open_stream(asked("arrow")).read_all()),
        "parquet": _of_arrow(pq.read_table(io.BytesIO(asked("parquet")))),
    }


@given(products=st.lists(_products, max_size=4))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15)
def test_an_exported_workbook_has_the_same_values(
    world: World, tables: Tables, tmp_path: Path, products: list[dict[str, Any]]
) -> None:
    with transaction.atomic():
        ds = dataset(world.context)
        for number, values in enumerate(products):
            new_product(ds, world, f"={number}", **values)
        ds.commit()
        file = tmp_path / "products.xlsx"
        select = ", ".join(COLUMNS)
        call_command("export_data", "General.Products.Products", "--select", select, "--output", str(file))
        head, *rows = read_sheet(file.read_bytes())
        assert [cell.text for cell in head.values()] == list(COLUMNS)
        exported = [[_of_cell(row.get(letter)) for letter in head] for row in rows]
        assert len(exported) == len(products) + 1
        for form, found in _by_format(tables).items():
            assert found == exported, form
        transaction.set_rollback(True)
