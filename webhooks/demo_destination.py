"""The receiver that demo webhooks send to: the instance itself, in demo mode.

Templates use a reserved host name for it (RFC 2606, 2), since the port of an instance may change. Egress policies
refuse addresses of the machine itself; demo webhooks reach only the path of the demo receiver.
"""

from __future__ import annotations

import re
from typing import Final

from django.conf import settings

from foundation.egress.policy import EgressPolicy

RECEIVER_PATH: Final = "sys/demo-receiver/"
HOST: Final = "demo-receiver.invalid"
_ADDRESS = "127.0.0.1"
#: Without dots, so that ".." cannot leave the path.
_URL = re.compile(rf"http://{re.escape(HOST)}/([\w/-]*)", re.ASCII)
_POLICY = EgressPolicy.parse([_ADDRESS])


def is_demo_host(host: str) -> bool:
    """Whether requests to the host reach the demo receiver of this instance."""
    return settings.DEMO and host == HOST


def sent_to(url: str) -> tuple[str, EgressPolicy | None]:
    """The URL to send a request for `url` to, and the policy that allows it; None for the instance's policy."""
    match = _URL.fullmatch(url) if settings.DEMO else None
    if match is None:
        return url, None
    return f"http://{_ADDRESS}:{settings.PORT}/{RECEIVER_PATH}{match[1]}", _POLICY
