"""Programs under tests/clients that speak with a test line by line, and a person's browser for them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Page

from tests.compatibility.node_clients import packages_of
from tests.support.instances import instance_environment
from tests.support.platform import ROOT, LivePlatform
from tests.support.processes import database_of
from tests.support.programs import requires_program
from tests.support.receiver import Answer, LoopbackReceiver


class LineProgram:
    """A Node.js program; says and hears one line in turn, its own as JSON."""

    def __init__(self, folder: str, script: str, **configuration: Any) -> None:
        self.process = subprocess.Popen(
            [requires_program("node"), script, json.dumps(configuration)],
            cwd=packages_of(folder), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def says(self) -> Any:
        """Its next line. Raises AssertionError with what it wrote to stderr when it ended."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            assert self.process.stderr is not None
            raise AssertionError(self.process.stderr.read())
        return json.loads(line)

    def hears(self, text: str) -> None:
        """Write it a line."""
        assert self.process.stdin is not None
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()


def sign_in(page: Page, login: str) -> None:
    """Fill the login page in; demo passwords equal logins."""
    page.fill("[name=login]", login)
    page.fill("[name=password]", login)
    page.click("button")


def allow_device(page: Page, url: str, code: str, login: str) -> None:
    """Open the URL that a device shows, sign in, and allow the device with this code."""
    page.goto(url)
    sign_in(page, login)
    page.wait_for_selector("#user_code")
    assert page.input_value("#user_code") == code
    page.click("button[type=submit]")
    assert code in page.inner_text("main")
    page.click("button[value=allow]")
    assert "The device is connected" in page.inner_text("main")


@contextmanager
def registered(
    platform: LivePlatform, name: str, *options: str, page: bytes = b"the application"
) -> Iterator[tuple[LoopbackReceiver, str | None]]:
    """Register an application; (its server, which answers `page` everywhere, its secret)."""
    answer = Answer(body=page, headers={"Content-Type": "text/html"})
    with LoopbackReceiver(default=answer).running() as receiver:
        urls = {
            "--login-url": "callback",
            "--logout-url": "bye",
            "--front-channel-logout-url": "front",
            "--back-channel-logout-url": "back",
        }
        command = [sys.executable, "manage.py", "register_app", name, "--json", *options]
        command += ["--scope", "openid profile email offline_access read"]
        for option, path in urls.items():
            command += [option, f"{receiver.url}/{path}"]
        environment = instance_environment(platform.data_dir, 0, **database_of(platform))
        done = subprocess.run(command, env=environment, cwd=ROOT, check=True, capture_output=True, text=True)
        yield receiver, json.loads(done.stdout)["client_secret"]
