"""Sends requests and prints each with its answer, short enough to read along."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from typing import Any, TextIO
from urllib.parse import unquote, urlsplit

import requests

TIMEOUT_SECONDS = 30
_ONE_LINE = 110
_LONGEST = 16

# Answer headers that a step may be about; the others are noise here.
_TELLING_HEADERS = ("Location", "Retry-After", "WWW-Authenticate", "X-Warnings")
_LEFT_OUT = ("@odata.context", "@odata.etag")
_SHORTENED = ("access_token", "id_token", "refresh_token")


class StoryFailed(Exception):
    """A step did not go as told."""


class Narrator:
    """One HTTP client with a voice. `quiet` requests are sent without a word."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stdout
        self.http = requests.Session()

    def step(self, number: int, title: str) -> None:
        """Open a step."""
        self._print(f"\n{number}. {title}")

    def say(self, text: str) -> None:
        """A remark."""
        self._print(f"   · {text}")

    def check(self, holds: bool, claim: str, *, otherwise: object = "") -> None:
        """State what must be so. Raises StoryFailed when it is not."""
        if not holds:
            raise StoryFailed(f"not so: {claim}{f' — {otherwise}' if otherwise != '' else ''}")
        self._print(f"   ✓ {claim}")

    def send(
        self,
        method: str,
        url: str,
        *,
        expect: int | tuple[int, ...] = 200,
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, str] | None = None,
        json_body: Any = None,
        text: str | None = None,
        form: Mapping[str, str] | None = None,
        quiet: bool = False,
        http: requests.Session | None = None,
        follow: bool = False,
    ) -> requests.Response:
        """Send, print, and insist on the status. `http` is another client (a browser with cookies of its own)."""
        sent = dict(headers or {})
        if text is not None:
            sent.setdefault("Content-Type", "text/plain; charset=utf-8")
        started = time.perf_counter()
        response = (http or self.http).request(
            method,
            url,
            headers=sent,
            params=params,
            json=json_body,
            data=text.encode() if text is not None else form,
            timeout=TIMEOUT_SECONDS,
            allow_redirects=follow,
        )
        milliseconds = (time.perf_counter() - started) * 1000
        expected = (expect,) if isinstance(expect, int) else expect
        wrong = response.status_code not in expected
        if not quiet or wrong:
            self._tell_request(method, response, sent, json_body=json_body, text=text, form=form)
            self._tell_answer(response, milliseconds)
        if wrong:
            raise StoryFailed(f"{method} {url} answered {response.status_code}; expected {expected}")
        return response

    def _tell_request(
        self,
        method: str,
        response: requests.Response,
        headers: Mapping[str, str],
        *,
        json_body: Any,
        text: str | None,
        form: Mapping[str, str] | None,
    ) -> None:
        parts = urlsplit(response.history[0].url if response.history else response.url)
        query = f"?{unquote(parts.query.replace('+', ' '))}" if parts.query else ""
        self._print(f"   → {method} {_short(unquote(parts.path) + query)}")
        for name in ("TransactionId", "Prefer"):
            if name in headers:
                self._print(f"     {name}: {headers[name]}")
        if json_body is not None:
            self._block(render_json(json_body))
        elif text is not None:
            self._block(text)
        elif form is not None:
            shown = {name: "…" if "password" in name or "secret" in name else value for name, value in form.items()}
            self._block(" ".join(f"{name}={_short(value, 60)}" for name, value in shown.items()))

    def _tell_answer(self, response: requests.Response, milliseconds: float) -> None:
        self._print(f"   ← {response.status_code} {response.reason or ''}  ({milliseconds:.0f} ms)")
        for name in _TELLING_HEADERS:
            if name in response.headers:
                self._print(f"     {name}: {_short(response.headers[name])}")
        if "json" in response.headers.get("Content-Type", ""):
            self._block(render_json(_readable(response.json())))
        elif response.headers.get("Content-Type", "").startswith("text/plain"):
            self._block(response.text)

    def _block(self, text: str) -> None:
        lines = text.strip("\n").splitlines()
        if len(lines) > _LONGEST:
            lines = [*lines[: _LONGEST - 1], f"… {len(lines) - _LONGEST + 1} more lines"]
        for line in lines:
            self._print(f"     {_short(line, 150)}")

    def _print(self, text: str) -> None:
        self._stream.write(f"{text}\n")
        self._stream.flush()


def render_json(value: Any, indent: int = 0) -> str:
    """JSON for reading: what fits stays on one line, the rest is opened up level by level."""
    line = json.dumps(value, ensure_ascii=False)
    if len(line) + indent <= _ONE_LINE or not isinstance(value, dict | list) or not value:
        return line
    pad = " " * (indent + 2)
    if isinstance(value, dict):
        rows = [f"{pad}{json.dumps(name)}: {render_json(item, indent + 2)}" for name, item in value.items()]
        return "{\n" + ",\n".join(rows) + "\n" + " " * indent + "}"
    rows = [f"{pad}{render_json(item, indent + 2)}" for item in value]
    return "[\n" + ",\n".join(rows) + "\n" + " " * indent + "]"


def _readable(value: Any) -> Any:
    """The answer without what only programs read: context addresses, etags and nulls go, tokens are cut."""
    if isinstance(value, list):
        return [_readable(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        name: f"{item[:12]}…" if name in _SHORTENED and isinstance(item, str) else _readable(item)
        for name, item in value.items()
        if item is not None and name not in _LEFT_OUT
    }


def _short(text: str, width: int = 160) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"
