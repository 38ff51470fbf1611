"""Logs give no access, and say what happened and nothing else.

Who: whoever reads the logs of the instance or of the proxy in front of it, and who sends addresses with control
characters. What: to follow links for passwords and e-mail addresses, or use codes and tokens, that a line names; to
forge lines or move the cursor of a terminal. What prevents it: the formatters (platform_site.logging) mask and escape
in every line, whichever logger writes it; the shipped nginx configuration logs addresses in the same way.
"""

from __future__ import annotations

import json
import logging
import re
import sys

import pytest
from django.test import Client

from platform_site.environment import BASE_DIR
from platform_site.logging import JsonFormatter, TextFormatter

SECRETS = (
    "/id/account/reset/MDE5/d2x-s3kr1t0k3n",
    "/id/account/email/MDE5/s3kr1t0k3n",
    "/id/account/login?next=/id/connect/authorize%3Fx&code=s3kr1t0k3n",
    "/x?access_token=s3kr1t0k3n&a=1",
    "/x?a=1&client_secret=s3kr1t0k3n",
    "/x?Api-Key=s3kr1t0k3n",
    "https://shop.example/callback?state=s3kr1t0k3n",
    "/sys/tools/sha256?secret=s3kr1t0k3n",
)


@pytest.mark.parametrize("address", SECRETS)
@pytest.mark.parametrize("formatter", [TextFormatter(), JsonFormatter()])
def test_secrets_in_addresses_are_masked_whoever_logs_them(formatter: logging.Formatter, address: str) -> None:
    try:
        raise ValueError(f"no answer from {address}")
    except ValueError:
        exc_info = sys.exc_info()
    record = logging.getLogger("django.security.csrf").makeRecord(
        "django.security.csrf", logging.WARNING, __file__, 1, "Forbidden (%s): %s", ("Origin", address), exc_info,
        extra={"address": address, "seen": [address]},
    )  # fmt: skip
    assert "s3kr1t" not in formatter.format(record)


@pytest.mark.parametrize("character", ["\n", "\r", "\x1b", "\x00", "\x7f", "\x9b", "\u2028", "\u202e", "\x08"])
@pytest.mark.parametrize("formatter", [TextFormatter(), JsonFormatter()])
def test_control_characters_are_escaped(formatter: logging.Formatter, character: str) -> None:
    record = logging.getLogger("platform").makeRecord(
        "platform", logging.INFO, __file__, 1, "GET %s 404", (f"/a{character}12:00:00 ERROR forged",), None,
        extra={"client": f"x{character}y"},
    )  # fmt: skip
    line = formatter.format(record)
    assert character not in (line if isinstance(formatter, TextFormatter) else "".join(json.loads(line).values()))
    assert len(line.splitlines()) == 1


@pytest.mark.django_db
def test_a_request_with_a_link_and_control_characters_leaves_neither(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    Client().get("/id/account/reset/MDE5/d2x-s3kr1t0k3n")
    Client().get("/id/%0A12:00:00%20ERROR%1B[2J")
    lines = [TextFormatter().format(record) for record in caplog.records]
    assert any("/id/account/reset/MDE5/[not logged]" in line for line in lines)
    assert not any("s3kr1t" in line or "\n" in line or "\x1b" in line for line in lines)


def test_nginx_logs_addresses_without_secrets() -> None:
    text = (BASE_DIR / "deploy/nginx/business-platform.conf").read_text()
    (form,) = re.findall(r"^log_format platform '(.*)';$", text, re.MULTILINE)
    assert not {"$request", "$request_uri", "$args", "$uri", "$http_referer"} & set(re.findall(r"\$\w+", form))
    assert text.count("server {") == text.count("access_log /var/log/nginx/access.log platform;")
    (pattern, logged) = re.findall(r'"~(\^.*)" "(.*)";', text)[0]
    link = re.compile(pattern.replace("(?<link>", "(?P<link>"))

    def written(uri: str) -> str:
        """What the map of the configuration makes of an address."""
        found = link.search(uri)
        return logged.replace("${link}", found["link"]) if found else uri

    for kind in ("reset", "email"):
        assert written(f"/id/account/{kind}/MDE5/d2x-s3kr1t") == f"/id/account/{kind}/MDE5/[not logged]"
        assert written(f"/id/account/{kind}/MDE5/set") == f"/id/account/{kind}/MDE5/set"
    assert written("/profile/") == "/profile/"
