"""Generated Python client (manage.py generate_client)"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from tests.support.platform import ROOT, LivePlatform

pytestmark = [pytest.mark.process, pytest.mark.once]

_MORE = """
from decimal import Decimal

products = service.General_Products_Products
product = next(products.query(orderby="PartNumber", top=1, expand="ProductGroup"))
assert product.odata_id is not None and product.ProductGroup is not None and product.ProductGroup.odata_id is not None
assert isinstance(next(products.query(filter="StandardPricePerLotValue gt 0")).StandardPricePerLot, model.AmountValue)
product_id = products.get(product, select="Id").Id
assert product_id is not None and products.count(filter=f"Id eq {literal(product_id)}") == 1
copy = products.create(
    model.General_Products_Product(
        PartNumber="TYPED'1", Name={"EN": "Typed"}, ProductGroup=product.ProductGroup,
        MeasurementUnit=product.MeasurementUnit,
        StandardPricePerLot=model.AmountValue(Value=Decimal("12.3456"), Currency="EUR"),
    )
)
again = next(products.query(filter=f"PartNumber eq {literal(chr(84) + 'YPED' + chr(39) + '1')}"))
assert again.odata_id == copy.odata_id and again.StandardPricePerLot is not None
assert again.StandardPricePerLot.Value == Decimal("12.3456"), again.StandardPricePerLot
assert service.GetVersion() is not None
products.CreateNotification(
    copy, user=next(service.Systems_Security_Users.query(top=1)), notificationClass="T", subject="s"
)
products.delete(copy)
try:
    with service.transaction():
        currencies.create(model.General_Currencies_Currency(CurrencySign="XTU", Name="Gone"))
        raise RuntimeError("rolled back")
except RuntimeError:
    pass
assert currencies.count(filter="CurrencySign eq 'XTU'") == 0
try:
    currencies.create(model.General_Currencies_Currency(Name="No sign"))
except ApiError as error:
    assert (error.status, bool(error.kind), "CurrencySign" in str(error)) == (500, True, True)
else:
    raise AssertionError("created without a sign")
assert list(currencies.query(top=0)) == []
assert len(list(service.Crm_Sales_SalesOrders.query(select="Id"))) == service.Crm_Sales_SalesOrders.count()
service.close()
print("all holds")
"""


def _example() -> str:
    text = (ROOT / "docs/guides/typed-clients.md").read_text()
    match = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert match
    return match.group(1)


def test_the_example_of_the_guide_is_strictly_typed_and_runs(live_platform: LivePlatform, tmp_path: Path) -> None:
    """The package passes `mypy --strict` with the guide's example: query, expand, write, transaction, errors."""
    run = [sys.executable, "manage.py", "generate_client", "python", str(tmp_path / "platform_client")]
    subprocess.run(run, cwd=ROOT, env=live_platform.environment, check=True, timeout=120)
    script = tmp_path / "example.py"
    script.write_text(_example().replace("http://127.0.0.1:8000", live_platform.base_url) + _MORE)
    (tmp_path / "mypy.ini").write_text("[mypy]\nstrict = True\n")
    types = subprocess.run(
        [sys.executable, "-m", "mypy", "example.py", "platform_client"],
        cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert types.returncode == 0, types.stdout[-3000:]
    ran = subprocess.run(
        [sys.executable, "example.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert ran.stdout.splitlines()[0] == "XTS Test"
    assert ran.stdout.splitlines()[1].startswith("404 ")
    assert ran.stdout.splitlines()[-1] == "all holds"


@pytest.mark.django_db
def test_wrong_names_are_refused(tmp_path: Path) -> None:
    """A name that no Python package can have, and a directory that cannot be written."""
    with pytest.raises(CommandError, match="cannot have this name"):
        call_command("generate_client", "python", str(tmp_path / "my-client"))
    (tmp_path / "file").write_text("")
    with pytest.raises(CommandError, match="file"):
        call_command("generate_client", "python", str(tmp_path / "file" / "client"))
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]
