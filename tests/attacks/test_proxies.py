"""Only proxies that are named say where a request comes from.

Who: a guesser who invents addresses in X-Forwarded-For, and a stranger who writes one beside the proxy's. What: to be
counted anew for each try, or to be taken for somebody else. What prevents it: the header is read of TRUSTED_PROXIES
alone; names with an underscore, which a WSGI environment cannot tell apart, are dropped; every sample of deploy/ names
its proxy, and `doctor` warns where none is named.
"""

from __future__ import annotations

import pytest
import requests

from tests.support.platform import LivePlatform, start_platform

pytestmark = [pytest.mark.process, pytest.mark.once]


def statuses(platform: LivePlatform, header: str) -> list[int]:
    """Wrong secrets, each of which says that it comes from an address of its own."""

    def guess(number: int) -> int:
        form = {
            "grant_type": "client_credentials",
            "client_id": "NoSuchApplication",
            "client_secret": f"guess-{number}",
        }
        said = {header: f"198.51.100.{number}"}
        answer = requests.post(f"{platform.base_url}/id/connect/token", data=form, headers=said, timeout=60)
        return answer.status_code

    return [guess(number) for number in range(1, 76)]


def is_slowed_down(found: list[int]) -> bool:
    """Whether a limit of thirty a minute held; a minute may end in between."""
    return found.count(401) <= 60 and 429 in found


def test_a_stranger_cannot_invent_addresses() -> None:
    with start_platform(settings={"TRUSTED_PROXIES": "192.0.2.1"}) as platform:
        assert is_slowed_down(statuses(platform, "X-Forwarded-For"))


def test_a_named_proxy_is_believed(live_platform: LivePlatform) -> None:
    """127.0.0.1 is named unless another is, so each address has its own limit; no other header counts."""
    assert set(statuses(live_platform, "X-Forwarded-For")) == {401}
    for header in ("X_Forwarded_For", "X-Real-IP", "Forwarded"):
        assert is_slowed_down(statuses(live_platform, header)), header
