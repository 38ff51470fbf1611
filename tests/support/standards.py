"""Files of the OASIS OData standard, which are not part of the project."""

from __future__ import annotations

import os
from pathlib import Path

from platform_site.environment import BASE_DIR
from tests.support.programs import missing


def standard_file(name: str) -> Path:
    """A file from `$ODATA_STANDARD_FILES` or `../shared/odata`; absent, it skips the test, or fails it with CI=true."""
    directory = Path(os.environ.get("ODATA_STANDARD_FILES") or BASE_DIR.parent / "shared" / "odata")
    path = directory / name
    if not path.exists():
        missing(f"needs {name} of the OData standard; set ODATA_STANDARD_FILES to the folder that has it")
    return path
