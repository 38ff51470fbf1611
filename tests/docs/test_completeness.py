"""What there is many of is documented in full, and links of pages outside the site lead somewhere (spec 09, 9.6)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.core.management import get_commands
from markdown.extensions.toc import slugify  # type: ignore[import-untyped]

from platform_site.environment import BASE_DIR

_APPS = (
    "foundation",
    "audit",
    "identity",
    "domain",
    "scripts",
    "rules",
    "webhooks",
    "jobs",
    "event_sinks",
    "platform_site",
)
_METRIC = re.compile(
    r"(?P<kind>\bCounter|\bHistogram|\bgauge|GaugeMetricFamily|CounterMetricFamily)\(\s*\"(?P<name>platform_\w+)\""
)
#: Run by whoever changes the source, not by operators.
_FOR_DEVELOPERS = {"generate_docs"}


def test_every_metric_is_documented() -> None:
    page = (BASE_DIR / "docs/operations.md").read_text(encoding="utf-8")
    sources = [path.read_text(encoding="utf-8") for app in _APPS for path in (BASE_DIR / app).rglob("*.py")]
    found = [match for source in sources for match in _METRIC.finditer(source)]
    names = {match["name"] + ("_total" if "Counter" in match["kind"] else "") for match in found}
    assert len(names) >= 15
    assert not [name for name in names if f"`{name}`" not in page]


def test_every_command_is_in_the_operators_guide() -> None:
    page = (BASE_DIR / "docs/guides/operators.md").read_text(encoding="utf-8")
    ours = {name for name, app in get_commands().items() if app in _APPS} - _FOR_DEVELOPERS
    assert len(ours) >= 18
    assert not [name for name in ours if f"`{name}`" not in page]


@pytest.mark.parametrize("page", ["README.md", "deploy/README.md", "CHANGELOG.md"])
def test_links_within_the_repository_lead_somewhere(page: str) -> None:
    """Those of docs/ are checked by `make docs`, which does not see these pages."""
    path = BASE_DIR / page
    for target in re.findall(r"\]\((?!https?:|mailto:)([^)\s]+)\)", path.read_text(encoding="utf-8")):
        file, _, anchor = target.partition("#")
        linked = (path.parent / file) if file else path
        assert linked.exists(), target
        assert not anchor or anchor in _anchors(linked), target


def _anchors(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {slugify(title, "-") for title in titles}
