"""deploy/Dockerfile as data, for who checks it and for who carries it out without an engine."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from platform_site.environment import BASE_DIR

DEPLOY = BASE_DIR / "deploy"
DOCKERFILE = DEPLOY / "Dockerfile"


class Instruction(NamedTuple):
    """One line: `name` is RUN, COPY and so on, `arguments` what follows, continuation lines joined."""

    name: str
    arguments: str


def instructions(path: Path = DOCKERFILE) -> list[Instruction]:
    """Every instruction, in order."""
    text = re.sub(r"\\\n\s*", "", path.read_text())
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [Instruction(*line.split(None, 1)) for line in lines]
