"""`python -m bench.tokens`: client_credentials with our secret check against the toolkit's default, PBKDF2.

Both run under the same server with the same settings, data and machine, and take turns. The second one differs in one
thing: the secret is compared as django-oauth-toolkit does by default, with Django's PBKDF2 hasher and its iterations.
The token is made, signed and stored by the same code in both, so the ratio is that of whole requests.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from django.contrib.auth.hashers import PBKDF2PasswordHasher

from bench.instance import free_port, prepare, serve, wait_for
from bench.load import Request, requests_per_second
from platform_site.wsgi import application  # reads the settings, which the next import needs

# isort: split
from identity.oauth import clients

GOAL = 5.0
_FORM = b"grant_type=client_credentials&client_id=ServiceDemoClient&client_secret=DEMO"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure the token endpoint.")
    parser.add_argument("--seconds", type=float, default=3.0, help="length of one measurement")
    parser.add_argument("--rounds", type=int, default=5, help="measurements of each side")
    parser.add_argument("--connections", type=int, default=4, help="connections that ask at once")
    arguments = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="bench-tokens-"))
    servers: list[subprocess.Popen[bytes]] = []
    try:
        environment = prepare(directory, "small")
        ports = free_port(), free_port()
        for port, application in zip(ports, ("platform_site.wsgi:application", "bench.tokens:pbkdf2"), strict=True):
            servers.append(serve(application, port, {**environment, "BASE_URL": f"http://127.0.0.1:{port}"}))
            wait_for(port)
        requests = [
            Request(
                "POST",
                f"http://127.0.0.1:{port}/id/connect/token",
                {"Content-Type": "application/x-www-form-urlencoded"},
                lambda number: _FORM,
            )
            for port in ports
        ]
        rounds = [
            [
                requests_per_second(request, seconds=arguments.seconds, connections=arguments.connections)
                for request in requests
            ]
            for _ in range(arguments.rounds + 1)
        ][1:]  # the first one warms both up
        ratios = sorted(ours / default for ours, default in rounds)
        ratio = statistics.median(ratios)
        print(f"{os.cpu_count()} cores, {arguments.rounds} rounds of {arguments.seconds:g} s, 2 server processes")
        print(f"SHA-256 of a 256-bit secret  {statistics.median(ours for ours, _ in rounds):8,.0f} tokens/s")
        print(f"PBKDF2, Django's default     {statistics.median(default for _, default in rounds):8,.0f} tokens/s")
        verdict = "reached" if ratio >= GOAL else "missed"
        print(f"ratio                        {ratio:8.1f} ({ratios[0]:.1f}–{ratios[-1]:.1f}); goal {GOAL:g} {verdict}")
    finally:
        for server in servers:
            server.terminate()
        for server in servers:
            server.wait()
        shutil.rmtree(directory, ignore_errors=True)


def pbkdf2(environ: dict[str, Any], start_response: Any) -> Any:
    """The platform with the toolkit's default check of secrets."""
    return _application()(environ, start_response)


_made: list[Any] = []


def _application() -> Any:
    if not _made:
        hasher = PBKDF2PasswordHasher()
        stored = hasher.encode("DEMO", hasher.salt())
        clients.secret_matches = lambda application, secret: hasher.verify(secret, stored)  # type: ignore[attr-defined]
        _made.append(application)
    return _made[0]


if __name__ == "__main__":
    main()
