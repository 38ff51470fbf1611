"""The Dockerfile carried out without a container engine: each stage in a root of its own, then started as in compose.

    debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates bookworm /var/tmp/base
    sudo .venv/bin/python -m tests.deploy.image_by_hand /var/tmp/base

As root, some minutes, no part of the suite. FROM is a copy of that base, whose Python is Debian's own of the same minor
version; RUN, COPY, WORKDIR, ENV and USER do what they say; at last the entry point runs as the image's user on a
read-only root with only /tmp and /data to write to, its HEALTHCHECK is asked until it agrees, and SIGTERM must end it
in order. Not shown: pulling images, layers, networks between containers, limits.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from platform_site.environment import BASE_DIR
from tests.deploy.dockerfile import Instruction, instructions
from tests.support.platform import free_port

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#: Of the machine, so that what it reaches and trusts is reached and trusted inside.
_OF_THE_MACHINE = ("etc/resolv.conf", "etc/ssl/certs/ca-certificates.crt")
#: compose.yaml's stop_grace_period.
_GRACE_SECONDS = 30
_START_SECONDS = 60


@dataclass(slots=True)
class Stage:
    """One stage: its root, and what instructions have set so far."""

    root: Path
    environment: dict[str, str] = field(default_factory=lambda: {"PATH": _PATH})
    directory: str = "/"
    user: str = "0"
    settings: dict[str, str] = field(default_factory=dict)

    def inside(self, path: str) -> Path:
        """Where a path of the image is on this machine."""
        return self.root / os.path.join(self.directory, path).lstrip("/")

    def command(self, words: list[str]) -> list[str]:
        """The line that runs a command inside, as the stage's user."""
        given = [f"{name}={value}" for name, value in self.environment.items()]
        change = f'cd {shlex.quote(self.directory)} && exec "$@"'
        user = f"--userspec={self.user}:{self.user}"
        return ["chroot", user, str(self.root), "env", "-i", *given, "sh", "-c", change, "-", *words]


def main(base: Path) -> None:
    """Build and run; raises where a step does not hold."""
    with tempfile.TemporaryDirectory(prefix="image-by-hand-") as directory:
        stage = build(base, Path(directory))
        run(stage)


def build(base: Path, directory: Path) -> Stage:
    """Every instruction, in order; the last stage."""
    stages: dict[str, Stage] = {}
    for instruction in instructions():
        print(f"{instruction.name} {instruction.arguments}", flush=True)
        if instruction.name == "FROM":
            _, _, name = instruction.arguments.partition(" AS ")
            stages[name] = stage = Stage(copy_of(base, directory / f"stage{len(stages)}"))
        else:
            carry_out(instruction, stage, stages)
    return stage


def copy_of(base: Path, root: Path) -> Path:
    """A root for one stage. The image calls its Python `python`."""
    subprocess.run(["cp", "-a", "--reflink=auto", str(base), str(root)], check=True)
    for file in _OF_THE_MACHINE:
        shutil.copyfile(Path("/") / file, root / file)
    (root / "usr/local/bin/python").symlink_to("/usr/bin/python3")
    return root


def carry_out(instruction: Instruction, stage: Stage, stages: dict[str, Stage]) -> None:
    """One instruction but FROM."""
    name, arguments = instruction
    match name:
        case "RUN":
            subprocess.run(stage.command(["sh", "-c", arguments]), check=True, stdout=subprocess.DEVNULL)
        case "COPY":
            copy(shlex.split(arguments), stage, stages)
        case "ENV":
            given = dict(word.split("=", 1) for word in shlex.split(arguments))
            known = stage.environment["PATH"]
            stage.environment |= {key: value.replace("$PATH", known) for key, value in given.items()}
        case "WORKDIR":
            stage.directory = arguments
            stage.inside("").mkdir(parents=True, exist_ok=True)
        case "USER":
            stage.user = arguments
        case _:
            stage.settings[name] = arguments


def copy(words: list[str], stage: Stage, stages: dict[str, Stage]) -> None:
    """COPY [--from=STAGE] SOURCE … TARGET. A directory's content goes into the target, as an engine does it."""
    source = stages[words.pop(0).removeprefix("--from=")].root if words[0].startswith("--from=") else BASE_DIR
    *sources, target = words
    place = stage.inside(target)
    for name in sources:
        found = source / name.lstrip("/")
        if found.is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(found, place, symlinks=True, dirs_exist_ok=True, ignore=ignored)
        else:
            shutil.copy2(found, place)


def run(stage: Stage) -> None:
    """Start it as compose.yaml does, wait for its health, stop it."""
    stage.environment["PORT"] = str(free_port())
    words = [*json.loads(stage.settings["ENTRYPOINT"]), *json.loads(stage.settings["CMD"])]
    root = shlex.quote(str(stage.root))
    # A mount namespace of its own: nothing of this is left when it ends.
    prepare = (
        f"mount --bind {root} {root} && mount --bind {root}/data {root}/data && mount -t tmpfs tmpfs {root}/tmp"
        f" && mount -t proc proc {root}/proc && mount -o remount,bind,ro {root}"
        f' && ! touch {root}/app/x 2>/dev/null && exec "$@"'
    )
    begun = time.monotonic()
    process = subprocess.Popen(["unshare", "--mount", "sh", "-c", prepare, "-", *stage.command(words)])
    try:
        check = stage.settings["HEALTHCHECK"]
        ask = stage.command(json.loads(check[check.index("[") :]))
        while subprocess.run(ask, check=False, stderr=subprocess.DEVNULL).returncode:
            assert process.poll() is None, f"it ended with status {process.returncode}"
            assert time.monotonic() - begun < _START_SECONDS, "it did not become healthy"
            time.sleep(0.5)
        print(f"healthy after {time.monotonic() - begun:.1f} seconds")
        process.send_signal(signal.SIGTERM)
        status = process.wait(_GRACE_SECONDS)
        assert status == 0, f"SIGTERM ended it with status {status}"
        print("SIGTERM ended it in order")
    finally:
        process.kill()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
