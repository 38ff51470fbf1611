"""A newcomer's first minutes, from the README alone: a copy of the tree, an empty home, `make run`, tour.

`python -m tests.newcomer`; run by .ci/run. What differs from a newcomer's machine: the port is a free one, and pip may
take what it has downloaded before. The suite runs the story (tests/story).
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.docs.test_tour import take
from tests.support.platform import ROOT, free_port


def main() -> int:
    """The command; 0 when all went as the README says."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="newcomer-") as scratch:
        tree, home = Path(scratch) / "platform", Path(scratch) / "home"
        tree.mkdir()
        home.mkdir()
        # Tracked files as they stand, without what working here has left in the tree.
        files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
        present = b"\0".join(name for name in files.split(b"\0") if name and (ROOT / os.fsdecode(name)).exists())
        packed = subprocess.run(
            ["tar", "-c", "--null", "-T", "-"], cwd=ROOT, input=present, capture_output=True, check=True
        )
        subprocess.run(["tar", "-x"], cwd=tree, input=packed.stdout, check=True)
        port = free_port()
        cache = os.environ.get("PIP_CACHE_DIR") or str(Path.home() / ".cache" / "pip")
        # What says where packages come from belongs to the machine; nothing else of ours is handed on.
        index = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
        environment = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", **index}
        run = subprocess.Popen(
            ["make", "run", f"PORT={port}"],
            cwd=tree,
            env={**environment, "PIP_CACHE_DIR": cache},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        assert run.stdout is not None
        try:
            for line in run.stdout:
                print(line, end="", flush=True)
                if line.strip() == "ready":
                    break
            else:
                print("make run ended before it was ready", file=sys.stderr)
                return 1
            print(f"Ready after {time.monotonic() - started:.0f} s")
            take(f"http://127.0.0.1:{port}")
        finally:
            os.killpg(run.pid, signal.SIGINT)
            run.communicate(timeout=60)
    print(f"The README is true for a newcomer ({time.monotonic() - started:.0f} s).")
    return 0


if __name__ == "__main__":
    sys.exit(main())
