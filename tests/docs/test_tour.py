"""The five minutes of the README: every line as it stands, in one shell, against a demo instance (spec 09, 9.6)."""

from __future__ import annotations

import json
import os
import re
import subprocess

import pytest

from platform_site.environment import BASE_DIR
from tests.docs.pages import USUAL, assert_told
from tests.support.platform import start_platform

_TOUR = re.compile(r"<!-- tour:begin -->(.*)<!-- tour:end -->", re.DOTALL)
_BLOCK = re.compile(r"^```(sh|json)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_MARK = "--- what this block answered ends here ---"


def tour() -> list[tuple[str, str]]:
    """(language, text) of the tour's blocks."""
    found = _TOUR.search((BASE_DIR / "README.md").read_text(encoding="utf-8"))
    assert found
    return _BLOCK.findall(found[1])


def test_another_port_is_written_in_one_place_and_no_key_has_its_digits() -> None:
    found = _TOUR.search((BASE_DIR / "README.md").read_text(encoding="utf-8"))
    assert found
    assert found[1].count("8000") == 1


def take(base_url: str) -> None:
    """Every line of the tour, against that instance. Raises AssertionError with what came instead."""
    blocks = tour()
    script = "".join(f"{text}\necho\necho '{_MARK}'\n" for language, text in blocks if language == "sh")
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script.replace(USUAL, base_url)],
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answers = iter(done.stdout.split(_MARK))
    shown = 0
    for (language, text), (following, expected) in zip(blocks, [*blocks[1:], ("", "")], strict=True):
        if language == "sh":
            answer = next(answers)
            if following == "json":
                shown += 1
                assert answer.strip(), text
                assert_told(json.loads(expected), json.loads(answer))
    assert shown == 6


@pytest.mark.process
@pytest.mark.once
def test_it_answers_what_the_readme_shows() -> None:
    with start_platform() as platform:
        take(platform.base_url)
