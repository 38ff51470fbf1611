"""Pictures of the pages: `python -m tests.pages.pictures` makes those of the documentation, docs/pictures/*.webp.

With a directory it leaves every page there instead, wide and light and as a dark phone shows it, for people to look at:
`python -m tests.pages.pictures /tmp/pages --language bg --only home rule`.
"""

from __future__ import annotations

import argparse
import base64
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import Browser, Page, ViewportSize

from tests.pages.cast import Cast, everything_shown
from tests.pages.states import State, states
from tests.support.chromium import PHONE, WIDE, administrators_page, launched, watched_page
from tests.support.platform import ROOT, start_platform

DOCUMENTATION = ROOT / "docs" / "pictures"
_NARROW: ViewportSize = {"width": 390, "height": 640}
_BROAD: ViewportSize = {"width": 1000, "height": 600}
_AS_WEBP = """async (url) => {
  const image = await createImageBitmap(await (await fetch(url)).blob());
  const canvas = Object.assign(document.createElement('canvas'), {width: image.width, height: image.height});
  canvas.getContext('2d').drawImage(image, 0, 0);
  return canvas.toDataURL('image/webp', 0.82);
}"""
#: Name of the state → window and colours in which the documentation shows it.
SHOWN: dict[str, tuple[ViewportSize, str]] = {
    "home": (_BROAD, "light"),
    "list": ({"width": 1200, "height": 640}, "light"),
    "order": ({"width": 1200, "height": 760}, "light"),
    "order-board": ({"width": 1200, "height": 640}, "light"),
    "rule-try": (_BROAD, "light"),
    "script": (_BROAD, "dark"),
    "webhook": (_NARROW, "dark"),
    "delivery": (_BROAD, "light"),
    "query": ({"width": 1000, "height": 800}, "light"),
}


def make_documentation(chromium: Browser, cast: Cast) -> Iterator[Path]:
    """The pictures of the documentation, each as it is written."""
    with administrators_page(chromium, cast.platform.base_url, reduced_motion="reduce") as page:
        for state in states(cast):
            if state.name in SHOWN:
                viewport, colours = SHOWN[state.name]
                page.set_viewport_size(viewport)
                page.emulate_media(color_scheme="dark" if colours == "dark" else "light")
                _open(page, state)
                yield _small(page, DOCUMENTATION / f"{state.name}.webp")


def make_all(chromium: Browser, cast: Cast, directory: Path, only: list[str], language: str) -> Iterator[Path]:
    """Every state twice, each as it is written."""
    options = {"reduced_motion": "reduce", "locale": language}
    base_url = cast.platform.base_url
    with (
        watched_page(chromium, base_url, **options) as stranger,
        administrators_page(chromium, base_url, **options) as administrator,
    ):
        for state in states(cast):
            if only and state.name not in only:
                continue
            page = stranger if state.public else administrator
            page.set_viewport_size(WIDE)
            page.emulate_media(color_scheme="light")
            _open(page, state)
            yield _pictured(page, directory / f"{state.name}-wide.png")
            page.set_viewport_size(PHONE)
            page.emulate_media(color_scheme="dark")
            yield _pictured(page, directory / f"{state.name}-phone.png")


def _open(page: Page, state: State) -> None:
    page.goto("about:blank")
    page.goto(state.path)
    state.prepare(page)


def _pictured(page: Page, path: Path) -> Path:
    page.screenshot(path=path, full_page=True)
    return path


def _small(page: Page, path: Path) -> Path:
    """What is seen, as WebP: a third of a PNG's bytes. Written by the browser, which can."""
    png = base64.b64encode(page.screenshot(caret="hide")).decode()
    page.goto("about:blank")
    webp: str = page.evaluate(_AS_WEBP, f"data:image/png;base64,{png}")
    path.write_bytes(base64.b64decode(webp.partition(",")[2]))
    return path


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.pages.pictures", description=__doc__.splitlines()[0])
    parser.add_argument("directory", nargs="?", type=Path, help="every page, into this directory")
    parser.add_argument("--only", nargs="+", default=[], help="names of states (tests/pages/states.py)")
    parser.add_argument("--language", default="en", help="what the browser asks for")
    given = parser.parse_args()
    if given.directory is not None:
        given.directory.mkdir(parents=True, exist_ok=True)
    with start_platform() as platform, everything_shown(platform) as cast, launched() as chromium:
        made = (
            make_documentation(chromium, cast)
            if given.directory is None
            else make_all(chromium, cast, given.directory, given.only, given.language)
        )
        for path in made:
            print(f"{path} {path.stat().st_size // 1024} KB")


if __name__ == "__main__":
    main()
