"""The real instance as a process: what `make run` starts, on a free port with a data directory of its own."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.instances import database_of_its_own, instance_environment, prepared_instance

ROOT = Path(__file__).resolve().parent.parent.parent

# A first start migrates, makes keys and loads the demo data; two cores may be busy with other tests meanwhile.
START_TIMEOUT_SECONDS = 180.0
STOP_TIMEOUT_SECONDS = 30.0

#: Of the instance that tests share: they open more sessions than the demo licence has.
LICENSED_SESSIONS = 500


def free_port() -> int:
    """A TCP port on loopback that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass(frozen=True, slots=True)
class LivePlatform:
    """A running instance. `environment` is what its commands are run with."""

    base_url: str
    data_dir: Path
    process: subprocess.Popen[str]
    output: list[str]
    environment: Mapping[str, str]

    @property
    def odata_url(self) -> str:
        """The OData root, with the trailing slash."""
        return f"{self.base_url}/api/domain/odata/"

    def stop(self) -> int:
        """Stop as Ctrl-C does; the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        try:
            return self.process.wait(STOP_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise


@contextmanager
def start_platform(
    data_dir: Path | None = None,
    *,
    port: int | None = None,
    settings: Mapping[str, str] | None = None,
    first_start: bool = False,
) -> Iterator[LivePlatform]:
    """Start `manage.py serve` in demo mode, wait until it says that it is ready, stop it when the block ends.

    A new data directory is filled from a prepared instance, unless the first start is what matters: it prepares all by
    itself then. Raises RuntimeError with everything that it printed when it ends, or is not ready in time.
    """
    given = dict(settings or {})
    with ExitStack() as stack:
        directory = data_dir or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="platform-live-"))) / "data"
        if "DATABASE_URL" not in given:
            is_used = directory.exists() and any(directory.iterdir())
            is_copy = not (first_start or is_used)
            given |= stack.enter_context(prepared_instance(directory) if is_copy else database_of_its_own())
        chosen_port = port or free_port()
        environment = instance_environment(directory, chosen_port, **{"DEMO": "1", **given})
        process = subprocess.Popen(
            [sys.executable, "manage.py", "serve"],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            # Ctrl-C in the terminal that runs the tests reaches the instance through stop(), not beside it.
            start_new_session=True,
        )
        output: list[str] = []
        ready = threading.Event()
        reader = threading.Thread(target=_read, args=(process, output, ready), daemon=True)
        reader.start()
        platform = LivePlatform(f"http://127.0.0.1:{chosen_port}", directory, process, output, environment)
        try:
            if not ready.wait(START_TIMEOUT_SECONDS) or not any(line.strip() == "ready" for line in output):
                raise RuntimeError("the instance did not start:\n" + "".join(output))
            yield platform
        finally:
            platform.stop()
            reader.join(60)


def _read(process: subprocess.Popen[str], output: list[str], ready: threading.Event) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        output.append(line)
        if line.strip() == "ready":
            ready.set()
    ready.set()  # ended: whoever waits need not wait on
