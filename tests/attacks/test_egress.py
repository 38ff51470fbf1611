"""Requests of the instance lead to public addresses alone, and say what their authors wrote.

Who: whoever may write webhook templates or scripts, and who controls the name server of a host. What: to reach the
machine itself, its network or the metadata of a cloud provider; to smuggle a second request by headers of the
connection. What prevents it: foundation.egress resolves a name once and connects to an address that it has checked
against a list of its own, and refuses headers of the connection, for webhooks and scripts alike.
"""

from __future__ import annotations

import json

import pytest
from pytest_django import Settings

from identity.models import TrustedApplication
from identity.oauth import backchannel
from tests.support.api import Api, error_of
from tests.support.receiver import Answer, LoopbackReceiver

#: An address of each range of the IANA special-purpose registries, of multicast, and of IPv4 inside IPv6.
INSIDE = (
    "0.0.0.0", "10.0.0.1", "100.64.0.1", "127.0.0.1", "169.254.169.254", "172.16.0.1", "192.0.0.1", "192.0.0.255",
    "192.0.2.1", "192.31.196.1", "192.52.193.1", "192.88.99.1", "192.168.0.1", "192.175.48.1", "198.18.0.1",
    "198.51.100.1", "203.0.113.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "168.63.129.16",
    "::", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::1", "100::1", "2001::1", "2001:db8::1",
    "2002:7f00:1::", "2620:4f:8000::1", "3fff::1", "5f00::1", "fc00::1", "fe80::1", "fec0::1", "ff02::1",
)  # fmt: skip
#: Ways to write 127.0.0.1 that URLs take, and names that lead there.
SPELLINGS = ("2130706433", "0x7f000001", "0177.0.0.1", "127.1", "localhost")
#: RFC 9110, 7.6.1; RFC 9112, 6; and what proxies of the way read.
OF_THE_CONNECTION = (
    "connection", "content-length", "expect", "host", "keep-alive", "proxy-authenticate", "proxy-authorization",
    "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
)  # fmt: skip


def host_of(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def told_by_script(administrator: Api, source: str) -> list[dict[str, object]]:
    answer = administrator.post("ExecuteScript", source, Content_Type="text/plain")
    assert answer.status_code == 200, answer.content
    return [json.loads(line) for line in answer.json()["console"].splitlines()]


def web_hook(url: str, headers: str = "") -> dict[str, object]:
    return {
        "Code": "HOOK", "Name": {"EN": "Hook"}, "RepositoryName": "General.Currencies.Currencies", "URL": url,
        "Headers": headers or None,
    }  # fmt: skip


def test_scripts_reach_no_address_inside(administrator: Api, settings: Settings) -> None:
    settings.EGRESS_ALLOW = []
    urls = [f"http://{host_of(address)}:9/" for address in (*INSIDE, *SPELLINGS)]
    source = f"for (const url of {json.dumps(urls)}) console.log(JSON.stringify(Action.http.get(url)));"
    answers = told_by_script(administrator, source)
    assert len(answers) == len(urls)
    tried = [url for url, answer in zip(urls, answers, strict=True) if "not allowed" not in str(answer["errorMessage"])]
    assert tried == []


def test_templates_with_an_address_inside_are_refused_when_saved(administrator: Api, settings: Settings) -> None:
    settings.EGRESS_ALLOW = []
    for address in (*INSIDE, *SPELLINGS):
        answer = administrator.post("Systems_Config_WebHooks", web_hook(f"http://{host_of(address)}:9/"))
        assert answer.status_code == 500, address
        assert error_of(answer)["target"] == "URL", address


@pytest.mark.parametrize("name", OF_THE_CONNECTION)
def test_nobody_sets_headers_of_the_connection(
    administrator: Api, settings: Settings, loopback_receiver: LoopbackReceiver, name: str
) -> None:
    settings.EGRESS_ALLOW = ["127.0.0.0/8"]
    url = loopback_receiver.url
    answer = administrator.post("Systems_Config_WebHooks", web_hook(url, f"{name.title()}: x"))
    assert (answer.status_code, error_of(answer)["target"]) == (500, "Headers")
    given = json.dumps({name.upper(): "x"})
    (sent,) = told_by_script(administrator, f"console.log(JSON.stringify(Action.http.post('{url}', 'a', {given})))")
    assert not sent["isSuccess"]
    assert loopback_receiver.requests == []


def test_a_message_of_single_sign_out_is_not_redirected(demo: None, loopback_receiver: LoopbackReceiver) -> None:
    """Its address is an administrator's, and may lead inside; whoever answers there may not choose another one."""
    loopback_receiver.respond_with = lambda request: Answer(302, headers={"Location": f"{loopback_receiver.url}/next"})
    application = TrustedApplication.objects.get(application_uri="WebDemoClient")
    application.back_channel_logout_url = f"{loopback_receiver.url}/logout"
    application.save()
    with pytest.raises(RuntimeError, match="302"):
        backchannel.send(str(application.pk), "http://testserver/id", "demo", "sid")
    assert [request.path for request in loopback_receiver.requests] == ["/logout"]
