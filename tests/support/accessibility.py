"""axe-core over a page in Chromium (spec 09, 9.5): which rules of accessibility it breaks."""

from __future__ import annotations

from functools import cache
from typing import Any

from playwright.sync_api import Page

from tests.support.platform import ROOT
from tests.support.programs import missing

_AXE = ROOT / "tests" / "clients" / "axe" / "node_modules" / "axe-core" / "axe.min.js"
#: What axe calls an impact that keeps people from using a page.
SERIOUS = ("serious", "critical")


@cache
def _source() -> str:
    if not _AXE.exists():
        missing("needs the packages of tests/clients/axe (make clients)")
    return _AXE.read_text(encoding="utf-8")


def violations(page: Page, *, only: tuple[str, ...] = ()) -> list[str]:
    """Each rule that is broken in a way that keeps people out, with the elements: "rule: selector, selector".

    None is []. `only` names rules, where others cannot have another result than before.

    Evaluated from outside, so the page's security policy, which allows no foreign script, stays as it is.
    """
    if not page.evaluate("'axe' in window"):
        page.evaluate(_source())
    # Preloading would fetch style sheets of other hosts, and violate the policy on its way.
    options = {"resultTypes": ["violations"], "preload": False, **({"runOnly": list(only)} if only else {})}
    found: list[dict[str, Any]] = page.evaluate(
        "options => axe.run(document, options).then(r => r.violations)", options
    )
    return [
        f"{rule['id']}: {', '.join(str(node['target']) for node in rule['nodes'])}"
        for rule in found
        if rule["impact"] in SERIOUS
    ]
