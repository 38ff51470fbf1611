"""The fenced blocks of the documentation, and how each kind is carried out against an instance (spec 09, 9.6).

A block says by its language and title what it is; nothing is left out in silence:

| block | what is done with it |
|---|---|
| after `<!-- not run: why -->` | nothing |
| titled with a file of the repository | it must stand in that file |
| titled with another file's name | it is written there, for the commands of its page |
| `http` | the request is sent, relative to the service root, with a service's token; it must succeed, or say else |
| `json`, `js` titled `POST Set` | it is sent as the body |
| `js` | it is run with ExecuteScript |
| `sh`, `console` | it is run in one shell for the page; the lines after a `$` line are what it prints |
| `python` | it is run, in one namespace for the page |
| `json`, `text` titled `Answer…`, `Console`, `Output` or with a status | it is in the answer of the block before it |
"""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import requests

from platform_site.environment import BASE_DIR
from tests.support.platform import LivePlatform

#: The address that the documentation uses; the instance's takes its place.
USUAL = "http://127.0.0.1:8000"
_BLOCK = re.compile(
    r"(?:<!-- not run: (?P<reason>[^\n]*?) -->\n+)?"
    r"^```(?P<language>\w*)(?: title=\"(?P<title>[^\"]*)\")?\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
#: The README's tour and story are carried out by test_tour.py and by `make story`.
_OTHERS = re.compile(r"<!-- (tour|story):begin -->.*?<!-- \1:end -->", re.DOTALL)
_ANSWER = re.compile(r"(Answer|Console|Output|\d{3} )")
_FILE = re.compile(r"[\w./-]+\.\w+")
_END = "--- what this block printed ends here ---"


@dataclass(frozen=True)
class Block:
    """One fenced block; `line` is that of its fence, counted from 1."""

    page: str
    line: int
    language: str
    title: str
    text: str
    reason: str

    @property
    def is_answer(self) -> bool:
        """Whether it shows what the block before it answered."""
        return self.language in ("json", "text") and bool(_ANSWER.match(self.title))

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def pages() -> list[Path]:
    """README and every page of docs/."""
    return [BASE_DIR / "README.md", *sorted((BASE_DIR / "docs").rglob("*.md"))]


def blocks(path: Path) -> list[Block]:
    """The page's blocks in order, without those that other tests carry out."""
    content = _OTHERS.sub(lambda found: "\n" * found[0].count("\n"), path.read_text(encoding="utf-8"))
    return [
        Block(
            str(path.relative_to(BASE_DIR)),
            content.count("\n", 0, found.start("language")) + 1,
            found["language"],
            found["title"] or "",
            found["text"],
            found["reason"] or "",
        )
        for found in _BLOCK.finditer(content)
    ]


def assert_told(told: Any, answered: Any) -> None:
    """What a page shows is in the answer, which may have more members. `…` in a text stands for anything."""
    if isinstance(told, dict):
        for name, value in told.items():
            assert isinstance(answered, dict), (told, answered)
            assert name in answered, (name, answered)
            assert_told(value, answered[name])
    elif isinstance(told, list):
        assert len(told) == len(answered), answered
        for one, other in zip(told, answered, strict=True):
            assert_told(one, other)
    elif isinstance(told, str) and "…" in told:
        assert re.fullmatch(_pattern(told), str(answered), re.DOTALL), (told, answered)
    else:
        assert told == answered, (told, answered)


def assert_printed(told: str, printed: str) -> None:
    """Line by line; `…` stands for anything, also for several lines."""
    assert re.fullmatch(_pattern(told.strip()), printed.strip(), re.DOTALL), f"told:\n{told}\nprinted:\n{printed}"


def _pattern(told: str) -> str:
    return ".*?".join(re.escape(part) for part in told.split("…"))


@dataclass
class Outcome:
    """What a block led to: an HTTP answer, or what it printed."""

    printed: str = ""
    response: requests.Response | None = None


@dataclass
class PageRun:
    """The blocks of one page, in order. `directory` is where its shell works and its files are."""

    platform: LivePlatform
    token: str
    directory: Path
    replacements: Mapping[str, str]
    namespace: dict[str, Any] = field(default_factory=lambda: {"__name__": "example"})
    _shell: subprocess.Popen[str] | None = None

    def run(self, page: list[Block]) -> int:
        """Carry out all of them; how many there were. Raises AssertionError with the block that fails."""
        try:
            for block, following in zip(page, [*page[1:], None], strict=True):
                answer = following if following is not None and following.is_answer and not following.reason else None
                try:
                    self._one(block, answer)
                except Exception as error:
                    raise AssertionError(f"{block}: {error}") from error
            return len(page)
        finally:
            self.close()

    def close(self) -> None:
        """End the shell and what it started."""
        if self._shell is not None:
            assert self._shell.stdin is not None
            self._shell.stdin.close()
            self._shell.wait(60)
            assert self._shell.stdout is not None
            self._shell.stdout.close()

    def _one(self, block: Block, answer: Block | None) -> None:
        if block.reason or block.is_answer:
            return
        carry_out = way_of(block)
        assert carry_out is not None, "nothing says how to carry this block out; see tests/docs/pages.py"
        outcome = carry_out(self, block)
        if outcome.response is not None:
            _check_response(outcome.response, answer, self._real(answer.text) if answer is not None else "")
        elif answer is not None and answer.language == "json":
            assert_told(json.loads(self._real(answer.text)), json.loads(outcome.printed))
        elif answer is not None:
            assert_printed(self._real(answer.text), outcome.printed)

    # --- ways to carry out a block ----------------------------------------------------------------------------------

    def in_file(self, block: Block) -> Outcome:
        """The block stands in the file that its title names."""
        assert block.text.strip() in (BASE_DIR / block.title).read_text(encoding="utf-8"), f"not in {block.title}"
        return Outcome()

    def as_file(self, block: Block) -> Outcome:
        """The block becomes a file for the commands that follow."""
        file = self.directory / block.title
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(self._real(block.text), encoding="utf-8")
        return Outcome()

    def request(self, block: Block) -> Outcome:
        """A request as the page shows it: request line, headers, empty line, body."""
        head, _, body = self._real(block.text).partition("\n\n")
        request, *lines = head.splitlines()
        method, _, path = request.partition(" ")
        return self._send(method, path, body, dict(line.split(": ", 1) for line in lines))

    def posted(self, block: Block) -> Outcome:
        """A body; the title has method and path."""
        method, _, path = block.title.partition(" ")
        kind = {"json": "application/json", "js": "text/plain"}[block.language]
        return self._send(method, path, self._real(block.text), {"Content-Type": kind})

    def script(self, block: Block) -> Outcome:
        """A script of the caller's own."""
        return self._send("POST", "ExecuteScript", self._real(block.text), {"Content-Type": "text/plain"})

    def shell(self, block: Block) -> Outcome:
        """Lines of a shell, which keeps its variables for the page; any command that fails ends it."""
        return Outcome(self._in_shell(self._real(block.text).replace("curl -s ", "curl -sS --fail-with-body ")))

    def console(self, block: Block) -> Outcome:
        """Commands after `$ `, each followed by what it prints."""
        printed = ""
        for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
            command, _, told = part.partition("\n")
            printed = self._in_shell(self._real(command) + "\n")
            assert_printed(self._real(told), printed)
        return Outcome(printed)

    def python(self, block: Block) -> Outcome:
        """Statements; what they print is what they answer."""
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(compile(self._real(block.text), str(block), "exec"), self.namespace)
        return Outcome(printed.getvalue())

    # --- means ------------------------------------------------------------------------------------------------------

    def _real(self, text: str) -> str:
        usual = "|".join(re.escape(usual) for usual in sorted(self.replacements, key=len, reverse=True))
        return re.sub(usual, lambda found: self.replacements[found[0]], text)

    def _send(self, method: str, path: str, body: str, headers: Mapping[str, str]) -> Outcome:
        url = self.platform.odata_url + quote(path, safe="/?$&=(),:;'@*-_.~%+")
        sent = {"Authorization": f"Bearer {self.token}", **headers}
        return Outcome(response=requests.request(method, url, data=body.encode(), headers=sent, timeout=60))

    def _in_shell(self, lines: str) -> str:
        if self._shell is None:
            self._shell = subprocess.Popen(
                ["bash", "-eu", "-o", "pipefail"],
                cwd=self.directory,
                env={**self.platform.environment, "PATH": os.environ["PATH"], "TOKEN": self.token},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        self._shell.stdin.write(f"{lines}echo; echo '{_END}'\n")
        self._shell.stdin.flush()
        printed = ""
        for line in self._shell.stdout:
            if line.strip() == _END:
                return printed
            printed += line
        raise AssertionError(f"the shell ended with {self._shell.wait(60)}:\n{printed}")


Way = Callable[[PageRun, Block], Outcome]
_BY_LANGUAGE: Mapping[str, Way] = {
    "http": PageRun.request,
    "js": PageRun.script,
    "sh": PageRun.shell,
    "console": PageRun.console,
    "python": PageRun.python,
}


def way_of(block: Block) -> Way | None:
    """How the block is carried out; None when nothing says so."""
    if _FILE.fullmatch(block.title):
        return PageRun.in_file if (BASE_DIR / block.title).is_file() else PageRun.as_file
    if re.match(r"(POST|PATCH|PUT) \S+", block.title):
        return PageRun.posted if block.language in ("json", "js") else None
    return _BY_LANGUAGE.get(block.language)


def replacements(platform: LivePlatform, receiver_port: int) -> dict[str, str]:
    """What stands in the pages → what it is here."""
    return {
        USUAL: platform.base_url,
        "127.0.0.1:9900": f"127.0.0.1:{receiver_port}",
        '("127.0.0.1", 9900)': f'("127.0.0.1", {receiver_port})',
        ".venv/bin/python manage.py": f"{sys.executable} {BASE_DIR / 'manage.py'}",
        ".venv/bin/python": sys.executable,
    }


def _check_response(response: requests.Response, answer: Block | None, told: str) -> None:
    status = re.match(r"(\d{3}) ", answer.title) if answer is not None else None
    if status:
        assert response.status_code == int(status[1]), f"{response.status_code}: {response.text}"
    else:
        assert response.ok, f"{response.status_code}: {response.text}"
    asked = response.request.headers.get("Accept-Language", "en")
    if response.content:
        assert response.headers.get("Content-Language", asked) == asked
    if answer is None:
        return
    if answer.title == "Console":
        assert_printed(told, response.json()["console"])
    elif answer.language == "json":
        assert_told(json.loads(told), response.json())
    else:
        assert_printed(told, response.text)
