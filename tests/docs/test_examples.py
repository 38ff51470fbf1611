"""Every example of README and docs/ does what it says, against one demo instance (spec 09, 9.6): tests.docs.pages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import requests

from platform_site.environment import BASE_DIR
from tests.docs.pages import Block, PageRun, blocks, pages, replacements, way_of
from tests.support.platform import LivePlatform, free_port, start_platform

PAGES = {str(path.relative_to(BASE_DIR)): blocks(path) for path in pages()}
RUN = [page for page, found in PAGES.items() if any(not block.reason for block in found)]


@dataclass
class Service:
    platform: LivePlatform
    token: str


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    """An instance of its own: the examples leave rules behind. One web process: others learn of a rule later."""
    with start_platform(settings={"WEB_PROCESSES": "1"}) as platform:
        form = {"grant_type": "client_credentials", "client_id": "ServiceDemoClient", "client_secret": "DEMO"}
        url = f"{platform.base_url}/id/connect/token"
        answer = requests.post(url, data={**form, "scope": "read update exec"}, timeout=60)
        yield Service(platform, answer.json()["access_token"])


@pytest.mark.process
@pytest.mark.once
@pytest.mark.parametrize("page", RUN)
def test_a_page_does_what_it_says(service: Service, page: str, tmp_path: Path) -> None:
    run = PageRun(service.platform, service.token, tmp_path, replacements(service.platform, free_port()))
    assert run.run(PAGES[page])


def test_every_block_is_run_or_says_why_not() -> None:
    neither = []
    for found in PAGES.values():
        before: Block | None = None
        for block in found:
            follows = before is not None and not before.reason
            is_run = follows if block.is_answer else way_of(block) is not None
            if block.reason:
                assert len(block.reason.split()) >= 3, f"{block}: a reason is a sentence, not {block.reason!r}"
            elif not is_run:
                neither.append(str(block))
            before = block
    assert not neither, "neither run nor marked with <!-- not run: why -->; tests/docs/pages.py says how"


def test_no_fence_is_overlooked() -> None:
    """The blocks that are found are all that there are: every fence opens or closes one."""
    for path in pages():
        content = re.sub(r"<!-- (tour|story):begin -->.*?<!-- \1:end -->", "", path.read_text("utf-8"), flags=re.DOTALL)
        fences = re.findall(r"^\s*(?:```|~~~)", content, re.MULTILINE)
        assert len(fences) == 2 * len(blocks(path)), path


def test_each_guide_has_examples() -> None:
    run = {page: sum(not block.reason and not block.is_answer for block in found) for page, found in PAGES.items()}
    for page, least in {
        "docs/guides/integrators.md": 9,
        "docs/guides/administrators.md": 3,
        "docs/guides/operators.md": 4,
        "docs/guides/python-developers.md": 2,
        "docs/guides/webhooks.md": 5,
        "docs/guides/build-an-application.md": 18,
        "docs/guides/cookbook.md": 12,
        "docs/reference/api.md": 20,
    }.items():
        assert run[page] >= least, (page, run[page])
