"""Programs of analysts at the Table API: pandas, Polars, DuckDB, PyArrow; its $metadata by python-odata and odata2ts"""

from __future__ import annotations

import io
import subprocess
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pandas
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import requests
from odata import ODataService

from tests.compatibility.node_clients import TIMEOUT_SECONDS, packages_of, service_token
from tests.support.platform import LivePlatform
from tests.support.programs import requires_program

pytestmark = [pytest.mark.process, pytest.mark.once]

LINES = "Crm_Sales_Order_Lines"
COLUMNS = ["Id", "Line_No", "Quantity_Value", "Unit_Price_Value", "Product_Id", "Notes"]


class Analyst:
    """Reads the lines of orders in a format."""

    def __init__(self, platform: LivePlatform) -> None:
        self.root = f"{platform.base_url}/tableapi/odata/"
        self.session = requests.Session()
        self.session.headers["Authorization"] = f"Bearer {service_token(platform, 'read')}"

    def read(self, form: str, **options: str) -> bytes:
        """The body."""
        query = {"$select": ", ".join(COLUMNS), "$orderby": "Id", "$format": form, "$top": "500000000", **options}
        answer = self.session.get(self.root + LINES, params=query, timeout=60)
        assert answer.status_code == 200, answer.text
        return answer.content


@pytest.fixture(scope="module")
def analyst(live_platform: LivePlatform) -> Analyst:
    return Analyst(live_platform)


@pytest.fixture(scope="module")
def total(analyst: Analyst) -> tuple[int, Decimal]:
    """Number of lines, and the sum of their quantities, from JSON."""
    rows = pandas.read_json(io.BytesIO(analyst.read("json")), typ="series", dtype=False)["value"]
    assert len(rows) > 20
    return len(rows), sum((Decimal(str(row["Quantity_Value"])) for row in rows), Decimal(0))


def test_pandas_reads_csv(analyst: Analyst, total: tuple[int, Decimal]) -> None:
    """pandas.read_csv"""
    frame = pandas.read_csv(io.BytesIO(analyst.read("csv")), dtype={"Quantity_Value": str})
    assert list(frame.columns) == COLUMNS
    assert (len(frame), sum(map(Decimal, frame["Quantity_Value"]))) == total


def test_pandas_reads_lines_of_json(analyst: Analyst, total: tuple[int, Decimal]) -> None:
    """pandas.read_json(lines=True)"""
    assert len(pandas.read_json(io.BytesIO(analyst.read("ndjson")), lines=True)) == total[0]


def test_polars_reads_the_arrow_stream(analyst: Analyst, total: tuple[int, Decimal]) -> None:
    """polars.read_ipc_stream"""
    frame = polars.read_ipc_stream(io.BytesIO(analyst.read("arrow")))
    assert frame.columns == COLUMNS
    assert isinstance(frame.schema["Quantity_Value"], polars.Decimal)
    assert (len(frame), frame["Quantity_Value"].sum()) == total


def test_pyarrow_reads_arrow_and_parquet(analyst: Analyst, total: tuple[int, Decimal]) -> None:
    """pyarrow.ipc.open_stream, pyarrow.parquet.read_table"""
    streamed = pa.ipc.open_stream(analyst.read("arrow")).read_all()
    assert len(streamed) == total[0]
    assert streamed.equals(pq.read_table(io.BytesIO(analyst.read("parquet"))))


def test_duckdb_reads_parquet_and_csv(analyst: Analyst, total: tuple[int, Decimal], tmp_path: Path) -> None:
    """DuckDB: read_parquet, read_csv"""
    for form in ("parquet", "csv"):
        file = tmp_path / f"lines.{form}"
        file.write_bytes(analyst.read(form))
        statement = f"SELECT count(*), sum(Quantity_Value) FROM read_{form}('{file}')"
        found = duckdb.connect().execute(statement).fetchone()
        assert found is not None
        assert (found[0], Decimal(str(found[1]))) == total


def test_python_odata_reads_the_metadata(analyst: Analyst, total: tuple[int, Decimal]) -> None:
    """python-odata: classes of the tables, and their rows"""
    service: Any = ODataService(analyst.root, session=analyst.session, reflect_entities=True, quiet_progress=True)
    lines = service.entities[LINES]
    assert {"Gen_Documents", "Crm_Sales_Orders", "Gen_Products"} <= service.entities.keys()
    assert lines.Id.primary_key
    rows = list(service.query(lines).filter(lines.Line_No > 0).limit(5))
    assert len(rows) == 5
    assert service.query(lines).count() == total[0]


def test_odata2ts_reads_the_metadata(analyst: Analyst, tmp_path: Path) -> None:
    """odata2ts: a type for each table"""
    (tmp_path / "metadata.xml").write_bytes(analyst.session.get(f"{analyst.root}$metadata", timeout=60).content)
    (tmp_path / "tsconfig.json").write_text("{}")
    # One file for all tables takes four times as long.
    (tmp_path / "odata2ts.config.cjs").write_text("module.exports = {bundledFileGeneration: false};")
    command = packages_of("odata") / "node_modules/@odata2ts/odata2ts/lib/run-cli.js"
    flags = ["-s", "metadata.xml", "-o", "src", "-name", "tables", "-m", "models"]
    subprocess.run([requires_program("node"), str(command), *flags], cwd=tmp_path, check=True, timeout=TIMEOUT_SECONDS)
    written = "".join(path.read_text() for path in (tmp_path / "src").rglob("*.ts"))
    assert "Quantity_Value" in written
    assert "Sales_Order_Id" in written
