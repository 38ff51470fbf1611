"""make audit: look the pinned packages up in the advisories of PyPI, with pip-audit. No part of CI.

Exit status: 0 no known vulnerability, 1 known vulnerabilities, 3 not (all) audited: the service could not be reached or
does not know some packages. `make` names that status and ends with 2 itself.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

_FILES = ("requirements.txt", "requirements-dev.txt")
#: For one answer of the service.
_TIMEOUT_SECONDS = "15"


def main() -> int:
    """Audit and say what was found."""
    # Every pin and its hashes are in the files: nothing is resolved or installed.
    files = [argument for file in _FILES for argument in ("-r", file)]
    done = subprocess.run(
        [
            str(Path(sys.executable).with_name("pip-audit")), "--disable-pip", "--require-hashes", *files,
            "--format", "json", "--progress-spinner", "off", "--timeout", _TIMEOUT_SECONDS,
        ],
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    try:
        dependencies = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        print(done.stderr.strip(), file=sys.stderr)
        print("NOT AUDITED: the service of PyPI's advisories could not be asked; see above.", file=sys.stderr)
        return 3
    vulnerable = [each for each in dependencies if each.get("vulns")]
    for each in vulnerable:
        for found in each["vulns"]:
            fixed = ", ".join(found["fix_versions"]) or "no version yet"
            print(f"{each['name']} {each['version']}: {found['id']}, fixed in {fixed}")
    skipped = [each["name"] for each in dependencies if "skip_reason" in each]
    print(f"{len(dependencies) - len(skipped)} packages audited, {len(vulnerable)} with known vulnerabilities.")
    if skipped:
        which = "any of them" if len(skipped) == len(dependencies) else ", ".join(skipped)
        print(f"NOT AUDITED: {len(skipped)} packages; the service does not know {which}.", file=sys.stderr)
    if vulnerable:
        return 1
    return 3 if skipped else 0


if __name__ == "__main__":
    sys.exit(main())
