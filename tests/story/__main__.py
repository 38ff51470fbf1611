"""`make story`: tell the story against BASE_URL, else the instance on PORT, else one started for the purpose."""

from __future__ import annotations

import argparse
import io
import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import requests

from tests.story.narrator import Narrator, StoryFailed
from tests.story.steps import tell
from tests.support.platform import start_platform

# Few slots make the last step quick; more than one, so that people can be seen to share.
LICENSE_SESSIONS = "4"

_PLACE = re.compile(r"(<!-- story:begin -->\n).*?(<!-- story:end -->)", re.DOTALL)


def main() -> int:
    """The command; 0 when everything was as told, 1 when not."""
    parser = argparse.ArgumentParser(prog="make story", description=__doc__)
    parser.add_argument("--write", type=Path, metavar="FILE", help="put the story between the marks of FILE")
    parser.add_argument("--own", action="store_true", help="start an instance even when one is running")
    options = parser.parse_args()
    voice = _Both() if options.write else None
    started = time.monotonic()
    try:
        with instance(own=options.own) as base_url:
            print("(Left out of the answers shown: @odata.context, @odata.etag and nulls.)")
            tell(base_url, Narrator(voice))
    except (StoryFailed, requests.RequestException, RuntimeError) as error:
        print(f"\nThe story broke off: {error}", file=sys.stderr)
        return 1
    print(f"\nThe story is true ({time.monotonic() - started:.0f} s).")
    if voice is not None:
        write(options.write, voice.getvalue())
    return 0


@contextmanager
def instance(*, own: bool) -> Iterator[str]:
    """The root address of the instance to tell the story against."""
    given = os.environ.get("BASE_URL", "").rstrip("/")
    default = f"http://127.0.0.1:{os.environ.get('PORT') or 8000}"
    if not own and (given or serves(default)):
        print(f"Against the running instance {given or default}")
        yield given or default
        return
    print("An instance is started for the story ...", flush=True)
    with start_platform(settings={"LICENSE_SESSIONS": LICENSE_SESSIONS}, first_start=True) as platform:
        print(f"Against {platform.base_url}")
        yield platform.base_url


def serves(base_url: str) -> bool:
    """Whether an instance of this platform answers there."""
    try:
        answer = requests.get(f"{base_url}/sys/auto-discovery", timeout=5)
        return answer.ok and "WebSites" in answer.json()
    except (requests.RequestException, ValueError):
        return False


class _Both(io.StringIO):
    """To the terminal and into memory."""

    def write(self, text: str) -> int:
        sys.stdout.write(text)
        return super().write(text)

    def flush(self) -> None:
        sys.stdout.flush()


def write(path: Path, told: str) -> None:
    """Put the story between the marks of a file: steps, requests, answers and claims, without the bodies."""
    lines = [line.rstrip() for line in told.splitlines() if not line.startswith(" " * 5)]
    block = "\n".join(lines).strip()
    text = path.read_text(encoding="utf-8")
    path.write_text(_PLACE.sub(lambda match: f"{match[1]}```text\n{block}\n```\n{match[2]}", text), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
