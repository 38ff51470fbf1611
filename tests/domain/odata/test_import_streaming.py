"""Import of many objects: memory stays bounded, a body that breaks off does nothing; and the command."""

from __future__ import annotations

import io
import json
import resource
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from django.core.management import CommandError, call_command
from django.test import RequestFactory

from domain.odata.http.views import spool_body
from domain.odata.invoke.import_operation import Import
from domain.odata.operations.catalogue import OperationCall
from foundation import errors
from tests.domain.odata.test_import import currency
from tests.domain.odata.test_live_transactions import Caller
from tests.domain.odata.test_writing import CURRENCIES
from tests.rules.cast import World, dataset
from tests.support.api import Api, error_of
from tests.support.platform import LivePlatform


class _Body(io.RawIOBase):
    """A long body that is made while it is read."""

    def __init__(self, count: int, mode: str) -> None:
        self._count, self._mode = count, mode
        self.seek(0)

    def _parts(self) -> Iterator[bytes]:
        yield f'{{"transaction":"{self._mode}","model":"common","loggingLevel":0,"objects":['.encode()
        for number in range(self._count):
            comma = "," if number else ""
            body = {"@odata.type": "Erp.General_Currencies_Currency", "@erpnet.action": "create",
                    "CurrencySign": _sign(number), "Name": f"Currency {number}"}  # fmt: skip
            yield f"{comma}{json.dumps(body)}".encode()
        yield b"]}"

    def seek(self, offset: int, whence: int = 0) -> int:
        """To the beginning."""
        self._source, self._left = self._parts(), b""
        return 0

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        while len(self._left) < size and (part := next(self._source, None)) is not None:
            self._left += part
        found, self._left = self._left[:size], self._left[size:]
        return found


def _sign(number: int) -> str:
    """A sign of four characters, which is all that the attribute holds; a million of them are different."""
    return "".join(chr(ord("A") + number // 32**place % 32) for place in (3, 2, 1, 0))


def _import(world: World, count: int, mode: str) -> tuple[dict[str, Any], float, float]:
    """(answer, growth of the peak in MB, seconds)."""
    before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
    call = OperationCall(
        world.context, dataset(world.context), {}, headers={"content-type": "application/json"},
        body_file=_Body(count, mode),  # type: ignore[arg-type]
    )  # fmt: skip
    result = Import().run(call)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    return result.value, grown, time.monotonic() - started


def test_many_objects_are_not_held_in_memory(world: World) -> None:
    answer, grown, _ = _import(world, 2_000, "all-objects")
    assert answer["@erpnet.result"] == "success"
    assert grown < 100


@pytest.mark.fuzz
@pytest.mark.parametrize("mode", ["all-objects", "per-object"])
def test_a_hundred_thousand_objects_grow_the_process_by_less_than_100_mb(world: World, mode: str) -> None:
    answer, grown, seconds = _import(world, 100_000, mode)
    print(f"{mode}: {seconds:.0f} s, peak grew by {grown:.0f} MB")
    answers = orjson.loads(orjson.dumps(answer["objects"]))
    refused = [entry["@erpnet.error"] for entry in answers if "@erpnet.error" in entry]
    assert (refused, len(answers)) == ([], 100_000)
    assert answer["@erpnet.result"] == "success"
    assert grown < 100


@pytest.mark.parametrize("mode,count", [("per-object", 4_000), ("all-objects", 20_000)])
@pytest.mark.alone
def test_reads_are_answered_while_an_import_runs(live_platform: LivePlatform, mode: str, count: int) -> None:
    """It works for long in one of the processes, and others go first between its objects."""
    importer, reader = Caller(live_platform), Caller(live_platform)
    euro = reader.send("GET", f"{CURRENCIES}?$filter=CurrencySign eq 'EUR'").json()["value"][0]
    objects = [currency("EUR", Name=f"Euro {number % 2}") for number in range(count)]
    took: list[float] = []

    def run() -> None:
        started = time.monotonic()
        body = {"objects": objects, "transaction": mode, "loggingLevel": 0}
        assert importer.send("POST", "Import", body).json()["@erpnet.result"] == "success"
        took.append(time.monotonic() - started)

    def read() -> float:
        # A connection of its own, so that every process answers some of them.
        started = time.monotonic()
        answer = reader.http.get(
            live_platform.odata_url + euro["@odata.id"], headers={"Connection": "close"}, timeout=60
        )
        assert answer.status_code == 200, answer.text
        return time.monotonic() - started

    thread = threading.Thread(target=run)
    thread.start()
    beside = []
    while thread.is_alive():
        beside.append(read())
    thread.join()
    assert importer.send("PATCH", euro["@odata.id"], {"Name": euro["Name"]}).status_code == 204
    beside.sort()
    figures = f"{len(beside)} reads, median {beside[len(beside) // 2]:.4f}, at most {beside[-1]:.3f} of {took[0]:.1f} s"
    # The import keeps the execution slot from its own caller's reads for OWN_SLICE_SECONDS, and loses it then.
    assert beside[len(beside) // 2] < took[0] / 20, figures
    assert beside[-1] < took[0] / 2, figures


def test_a_body_that_breaks_off_does_nothing(api: Api) -> None:
    request = RequestFactory().post("/", b"{}", content_type="application/json")
    request.META["CONTENT_LENGTH"] = "100"
    with pytest.raises(errors.BadRequest):
        spool_body(request)


def test_a_body_beyond_the_limit_is_413(api: Api, settings: Any) -> None:
    settings.MAX_IMPORT_BYTES = 100
    refused = api.post("Import", {"objects": [currency("USD", Name="x" * 200)]})
    assert (refused.status_code, error_of(refused)["type"]) == (413, "PayloadTooLarge")
    assert api.get(f"{CURRENCIES}/$count").content == b"1"


def test_the_command_imports_a_file(api: Api, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "objects.json"
    file.write_text(json.dumps({"objects": [currency("USD"), currency("GBP")]}))
    answers = tmp_path / "answers"
    call_command("import_data", str(file), "--answers", str(answers), "--user", "anna")
    assert "2 succeeded, 0 failed" in capsys.readouterr().out
    assert [json.loads(line)["@erpnet.state"] for line in answers.read_text().splitlines()] == ["Added", "Added"]
    assert api.get(f"{CURRENCIES}/$count").content == b"3"


class _Terminal(io.StringIO):
    """A terminal that keeps what was written to it."""

    def isatty(self) -> bool:
        """Yes."""
        return True


def test_the_command_shows_how_far_it_is(api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = _Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    file = tmp_path / "objects.json"
    broken = {"@odata.type": "Erp.General_Currencies_Currency"}
    file.write_text(json.dumps({"objects": [currency("USD"), currency("GBP"), broken, currency("CHF")]}))
    with pytest.raises(CommandError):
        call_command("import_data", str(file))
    shown = [line.strip() for line in terminal.getvalue().replace("\n", "\r").split("\r") if line.strip()]
    assert [line for line in shown if line.startswith("[")] == [
        f"[{'#' * filled}{'.' * (40 - filled)}] {percent} % ({done} of 4)"
        for filled, percent, done in ((10, " 25", 1), (20, " 50", 2), (30, " 75", 3), (40, "100", 4))
    ]
    # A failure stands in a line of its own, above the bar.
    assert any(line.startswith("object 3: ") and "#" not in line for line in shown)


def test_the_command_tells_what_failed(api: Api, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "objects.json"
    file.write_text(json.dumps({"objects": [currency("USD"), {"@odata.type": "Erp.General_Currencies_Currency"}]}))
    with pytest.raises(CommandError):
        call_command("import_data", str(file))
    assert "object 2:" in capsys.readouterr().err
    file.write_text("{")
    with pytest.raises(CommandError, match=r"objects\.json"):
        call_command("import_data", str(file))
    with pytest.raises(CommandError):
        call_command("import_data", str(tmp_path / "nothing"))
    with pytest.raises(CommandError, match="nobody"):
        call_command("import_data", str(file), "--user", "nobody")
