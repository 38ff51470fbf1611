"""Where the instance listens and what people are told about it."""

from __future__ import annotations

import errno
import http.client
import ipaddress
import socket
from collections.abc import Iterator

# http.client and sockets get an address; people get a link.
_UNSPECIFIED = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches what listens on that host."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def port_problem(host: str, port: int) -> str | None:
    """Why nothing can listen there, as a sentence; None when something can."""
    if not 0 < port < 65536:
        return f"PORT must be between 1 and 65535, not {port}."
    try:
        with bound(host, port) as probe:
            probe.listen(1)
    except socket.gaierror:
        return f"HOST {host!r} is not an address of this machine."
    except OSError as error:
        return _sentence(host, port, error)
    return None


def bound(host: str, port: int) -> socket.socket:
    """A new socket on that address, which does not listen yet. OSError where there is none to be had."""
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    opened = socket.socket(family, kind, protocol)
    try:
        # A port whose last connections are still fading away is free.
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind(address)
    except OSError:
        opened.close()
        raise
    return opened


def _sentence(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"Port {port} on {host} is in use by another program; stop that, or choose another port: "
            f"make run PORT={port + 1 if port < 65535 else 8000}"
        )
    if error.errno == errno.EACCES:
        return f"Port {port} may not be used by this user; choose one above 1023: make run PORT=8000"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"HOST {host} is not an address of this machine."
    return f"Nothing can listen on {host} port {port}: {error.strerror}."


def answers(host: str, port: int) -> bool:
    """Whether the web server serves requests there: /healthz answers, or any answer says that there is no such page."""
    connection = http.client.HTTPConnection(_UNSPECIFIED.get(host, host).strip("[]"), port, timeout=5)
    try:
        connection.request("GET", "/healthz", headers={"Host": "localhost"})
        return connection.getresponse().status < 500
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def link_root(host: str, port: int, base_url: str) -> str:
    """The root address to show: BASE_URL when there is one."""
    if base_url:
        return base_url
    name = _UNSPECIFIED.get(host, host)
    return f"http://{f'[{name}]' if ':' in name and not name.startswith('[') else name}:{port}"


def greeting(root: str, *, demo: bool, data_dir: str) -> Iterator[str]:
    """The lines that a start ends with."""
    yield ""
    yield f"  Site             {root}/"
    yield f"  Admin            {root}/admin/"
    yield f"  Domain API       {root}/api/domain/odata/"
    yield f"  OpenID metadata  {root}/id/.well-known/openid-configuration"
    yield f"  Data             {data_dir}"
    if demo:
        yield ""
        yield "  Demo logins      admin/admin (administrator), demo/demo (internal), customer/customer (external)"
        yield "  Demo apps        ServiceDemoClient, WebDemoClient, DualDemoClient (secret DEMO), PublicDemoClient"
        yield ""
        yield "  Get a token and read three products:"
        yield f"    {curl_line(root)}"
    yield ""


def curl_line(root: str) -> str:
    """One line for a shell: a token by client credentials, and a set read with it."""
    token = (
        f"curl -s {root}/id/connect/token -d grant_type=client_credentials -d client_id=ServiceDemoClient "
        '-d client_secret=DEMO | sed \'s/.*"access_token": *"\\([^"]*\\)".*/\\1/\''
    )
    return (
        f'curl -s -H "Authorization: Bearer $({token})" '
        f"'{root}/api/domain/odata/General_Products_Products?$top=3&$select=PartNumber,Name'"
    )
