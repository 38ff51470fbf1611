"""odata2ts (npm), and tsc"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.compatibility.node_clients import packages_of, seen_by, service_token
from tests.support.platform import ROOT, LivePlatform

pytestmark = [pytest.mark.process, pytest.mark.once]

EDM = "{http://docs.oasis-open.org/odata/ns/edm}"
#: odata2ts parses what it has written once more for each type: the whole model takes it minutes, a part seconds.
SOME = frozenset(
    {
        "Crm_Sales_SalesOrderLines",
        "Crm_Sales_SalesOrders",
        "General_Currencies_Currencies",
        "General_Products_ProductGroups",
        "General_Products_Products",
    }
)


@pytest.mark.parametrize("sets", [pytest.param(SOME, id="some"), pytest.param(None, id="all", marks=pytest.mark.fuzz)])
def test_a_generated_client_reads_and_writes(
    live_platform: LivePlatform, tmp_path: Path, sets: frozenset[str] | None
) -> None:
    """A client from `$metadata`, clean under `tsc --strict`: functions, create, filter, expand, patch, delete, 404."""
    command = [sys.executable, "manage.py", "generate_client", "typescript", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, env=live_platform.environment, check=True, timeout=120)
    if sets is not None:
        keep(tmp_path / "metadata.xml", sets)
    seen = seen_by(
        "odata",
        "odata2ts.cjs",
        ODATA_URL=live_platform.odata_url.rstrip("/"),
        ODATA_TOKEN=service_token(live_platform),
        WORK_DIR=str(tmp_path),
        # What is generated lies elsewhere and finds its libraries here.
        NODE_PATH=str(packages_of("odata") / "node_modules"),
    )
    assert seen["version"]
    assert seen["created"]["status"] == 201
    assert seen["found"] == {"count": 1, "names": ["Test"]}
    assert (seen["patched"], seen["read"], seen["deleted"]) == (204, "Patched", 204)
    assert seen["gone"]["status"] == 404
    assert "There is no" in seen["gone"]["message"]
    assert len(seen["products"]) == 3
    assert [part for part, _ in seen["products"]] == sorted((part for part, _ in seen["products"]), reverse=True)
    assert all(group for _, group in seen["products"])
    assert all(count >= 1 for count in seen["orders"])
    assert seen["strict"] == []


def keep(metadata: Path, sets: frozenset[str]) -> None:
    """Leave these entity sets of a metadata document, with what they refer to among one another."""
    ElementTree.register_namespace("", EDM.strip("{}"))
    ElementTree.register_namespace("edmx", f"{EDM.strip('{}')}x")
    tree = ElementTree.parse(metadata)
    types = {f"Erp.{each.get('Name')}": each.get("BaseType") for each in tree.iter(f"{EDM}EntityType")}
    kept = {each.get("EntityType") for each in tree.iter(f"{EDM}EntitySet") if each.get("Name") in sets}
    while bases := {types[name] for name in kept if name} - kept - {None}:
        kept |= bases

    def is_left(element: ElementTree.Element) -> bool:
        match element.tag.removeprefix(EDM):
            case "EntitySet":
                return element.get("Name") in sets
            case "EntityType":
                return f"Erp.{element.get('Name')}" in kept
            case "NavigationPropertyBinding":
                return element.get("Target") in sets
            case "NavigationProperty" | "Function" | "Action":
                names = [
                    (each.get("Type") or "").removeprefix("Collection(").rstrip(")") for each in (element, *element)
                ]
                return all(name in kept or name not in types for name in names)
        return True

    for parent in list(tree.iter()):
        parent[:] = [child for child in parent if is_left(child)]
    tree.write(metadata)
