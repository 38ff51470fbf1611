"""What is installed is what was tested (spec 09, 9.1).

Who: whoever changes a package, or publishes one under its name, on the way to an installation. What: to bring their
code into the product. What prevents it: every package, those that others need included, is pinned with hashes, and
production installs nothing that only tests use. `make audit` asks for known vulnerabilities.
"""

from __future__ import annotations

import ast
import importlib.metadata
import re
import sys
from pathlib import Path

import pytest

from platform_site.environment import BASE_DIR

PRODUCTION, DEVELOPMENT = BASE_DIR / "requirements.txt", BASE_DIR / "requirements-dev.txt"
APPS = (
    "foundation", "audit", "identity", "domain", "rules", "scripts", "webhooks", "jobs", "event_sinks", "platform_site",
)  # fmt: skip
#: Packages whose code may be absent; who imports them says what to install.
OPTIONAL = {"opentelemetry"}
#: Copied into generated clients; the product does not import it.
COPIED = BASE_DIR / "domain/odata/client/runtime.py"
PIN = re.compile(r"(?P<name>[a-z0-9-]+)==(?P<version>[^\s;]+)(?: ; [^\\]+)?(?: \\\n    --hash=sha256:[0-9a-f]{64})+")


def pins(path: Path) -> dict[str, set[str]]:
    """name → versions of the packages of a compiled file; a marker chooses where there are several."""
    found: dict[str, set[str]] = {}
    text = path.read_text()
    for pin in PIN.finditer(text):
        found.setdefault(pin["name"], set()).add(pin["version"])
    rest = PIN.sub("", text)
    assert all(line.strip().startswith("#") for line in rest.splitlines() if line.strip()), "only pins with hashes"
    return found


def wanted(path: Path) -> dict[str, str]:
    """name → version that a person has written down."""
    lines = [line.partition("#")[0].strip() for line in path.read_text().splitlines()]
    named = [
        re.fullmatch(r"([\w.-]+)(?:\[[\w,]+\])?==(\S+)", line) for line in lines if line and not line.startswith("-")
    ]
    assert all(named), "one version of each"
    return {re.sub(r"[._]", "-", found[1].lower()): found[2] for found in named if found}


@pytest.mark.parametrize("path", [PRODUCTION, DEVELOPMENT], ids=lambda path: path.name)
def test_every_package_is_pinned_with_hashes_and_from_no_place(path: Path) -> None:
    found = pins(path)
    for name, version in wanted(path.with_suffix(".in")).items():
        assert found[name] == {version}, f"{name}: make requirements"
    assert not re.search(r"://|^--(index|extra|find)|/(home|opt|tmp|usr|work)\b", path.read_text(), re.M)


def test_production_has_no_tools_of_tests() -> None:
    assert not pins(PRODUCTION).keys() & {"pytest", "pytest-django", "pytest-xdist", "hypothesis", "playwright", "mypy"}


def test_development_has_the_versions_of_production() -> None:
    production, development = pins(PRODUCTION), pins(DEVELOPMENT)
    for name in production.keys() & development.keys():
        assert production[name] == development[name], name


def test_the_product_imports_only_what_production_installs() -> None:
    installed = pins(PRODUCTION)
    provided = {
        module
        for module, distributions in importlib.metadata.packages_distributions().items()
        if any(re.sub(r"[._]", "-", each.lower()) in installed for each in distributions)
    }
    allowed = provided | set(sys.stdlib_module_names) | set(APPS) | OPTIONAL
    for app in APPS:
        for path in set((BASE_DIR / app).rglob("*.py")) - {COPIED}:
            for node in ast.walk(ast.parse(path.read_text())):
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    names.append(node.module)
                for name in names:
                    assert name.partition(".")[0] in allowed, f"{path}: {name}"
