"""A client of the change stream."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from typing import Any

import requests

from tests.domain.odata.test_live_transactions import Caller

PATH = "/api/domain/events"


class Listener:
    """Reads Server-Sent Events in a thread, and connects again where it was until it is stopped."""

    def __init__(self, caller: Caller, since: str = "", **asked: str) -> None:
        self.events: list[dict[str, Any]] = []
        self.connections = 0
        self.cursor = since
        self._caller, self._asked = caller, asked
        self._is_open, self._is_stopped = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()
        assert self._is_open.wait(60)

    def _listen(self) -> None:
        while not self._is_stopped.is_set():
            try:
                self._read_response()
            except requests.RequestException:
                self._is_stopped.wait(0.05)

    def _read_response(self) -> None:
        headers = {**self._caller.http.headers, "Accept": "text/event-stream"}
        if self.cursor:
            headers["Last-Event-ID"] = self.cursor
        url = self._caller.platform.base_url + PATH
        with requests.get(url, params=self._asked, headers=headers, stream=True, timeout=40) as answer:
            if answer.status_code != 200:
                self._is_stopped.wait(0.05)
                return
            self.connections += 1
            for line in answer.iter_lines():
                name, _, value = line.decode().partition(": ")
                if name == "id":
                    self.cursor = value
                    self._is_open.set()
                elif name == "data":
                    self.events.append(json.loads(value))
                if self._is_stopped.is_set():
                    return

    def wait_for(self, happened: Callable[[list[dict[str, Any]]], bool], seconds: float = 120) -> None:
        """Wait until it holds of the events."""
        deadline = time.monotonic() + seconds
        while not happened(list(self.events)):
            assert time.monotonic() < deadline, [event["type"] for event in self.events][-20:]
            time.sleep(0.02)

    def stop(self) -> None:
        self._is_stopped.set()
