"""Where an instance may listen and what it says about it."""

from __future__ import annotations

import socket
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from platform_site.serving import addresses
from tests.support.platform import free_port
from tests.support.programs import requires_program


@pytest.mark.parametrize(
    "host,expected",
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("localhost", True),
        ("::1", True),
        ("[::1]", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.168.1.5", False),
        ("erp.example.com", False),
    ],
)
def test_which_hosts_only_this_machine_reaches(host: str, expected: bool) -> None:
    assert addresses.is_loopback(host) is expected


def test_a_free_port_is_no_problem() -> None:
    assert addresses.port_problem("127.0.0.1", free_port()) is None


def test_a_port_in_use_is_said_in_a_sentence_with_the_way_out() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        problem = addresses.port_problem("127.0.0.1", port)
    assert problem is not None
    assert problem.startswith(f"Port {port} on 127.0.0.1 is in use by another program")
    assert f"make run PORT={port + 1}" in problem


@pytest.mark.parametrize(
    "host,port,words",
    [
        ("203.0.113.7", 8000, "not an address of this machine"),
        ("no such host", 8000, "not an address of this machine"),
        ("127.0.0.1", 70000, "between 1 and 65535"),
        ("127.0.0.1", 0, "between 1 and 65535"),
    ],
)
def test_other_problems_are_sentences_too(host: str, port: int, words: str) -> None:
    assert words in (addresses.port_problem(host, port) or "")


@pytest.mark.parametrize("status,expected", [(200, True), (404, True), (400, True), (503, False)])
def test_it_answers_when_it_serves_requests(status: int, expected: bool) -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Silent."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        assert addresses.is_responding("127.0.0.1", server.server_port) is expected
    finally:
        server.shutdown()
        server.server_close()


def test_it_does_not_answer_where_nobody_listens() -> None:
    assert addresses.is_responding("127.0.0.1", free_port()) is False


@pytest.mark.parametrize(
    "host,base_url,expected",
    [
        ("127.0.0.1", "", "http://127.0.0.1:8000"),
        ("0.0.0.0", "", "http://127.0.0.1:8000"),
        ("::1", "", "http://[::1]:8000"),
        ("0.0.0.0", "https://erp.example.com", "https://erp.example.com"),
    ],
)
def test_the_link_that_people_get(host: str, base_url: str, expected: str) -> None:
    assert addresses.link_root(host, 8000, base_url) == expected


def test_the_greeting_names_demo_logins_in_demo_mode_only() -> None:
    assert "admin/admin" in "\n".join(addresses.startup_lines("http://x", demo=True, data_dir="/d"))
    assert "admin/admin" not in "\n".join(addresses.startup_lines("http://x", demo=False, data_dir="/d"))


def test_the_curl_line_finds_the_token_in_the_answer() -> None:
    shell, sed = requires_program("bash", "sh"), requires_program("sed")
    assert sed
    line = addresses.curl_line("http://x")
    expression = line[line.index("sed ") : line.index(')" ')]
    done = subprocess.run(
        [shell, "-c", expression],
        input='{"access_token": "abc.def-ghi", "token_type": "Bearer"}',
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "abc.def-ghi"
