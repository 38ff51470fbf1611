"""Listening addresses, and the URLs shown to users for them."""

from __future__ import annotations

import errno
import http.client
import ipaddress
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

# The address to connect to, and to show in links, for an unspecified listening address.
_UNSPECIFIED = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104


def is_loopback(host: str) -> bool:
    """Whether only this machine can connect to that host."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def reached_by_others(host: str, base_url: str) -> str:
    """The settings that make the instance reachable from other machines, in words; "" if it is not."""
    # Behind a proxy the instance itself listens on loopback; BASE_URL is the public URL.
    named = {"HOST": host, "BASE_URL": urlsplit(base_url).hostname or "localhost"}
    reached = [f"{setting}={name}" for setting, name in named.items() if not is_loopback(name)]
    return f"{reached[0]}, which other machines reach" if reached else ""


def start_problem(host: str, port: int, base_url: str, *, debug: bool, demo: bool, accepts_risk: bool) -> str | None:
    """Reason why the web server must not start with these settings, as sentences; None if it may.

    accepts_risk: the operator accepts demo logins or DEBUG on an instance that other machines can reach.
    """
    return exposure_problem(host, base_url, debug=debug, demo=demo, accepts_risk=accepts_risk) or port_problem(
        host, port
    )


def exposure_problem(host: str, base_url: str, *, debug: bool, demo: bool, accepts_risk: bool) -> str | None:
    """Reason why these settings may not be served to other machines; None if they may, or are not."""
    reached = "" if accepts_risk else reached_by_others(host, base_url)
    cure = "HOST=127.0.0.1 and no BASE_URL, or add --i-know (`make run ARGS=--i-know`) if that is what you want."
    if reached and debug:
        return (
            "DEBUG shows stack traces and settings in error answers, so it is not served at "
            f"{reached}. Use DEBUG=0, or {cure}"
        )
    if reached and demo:
        return f"Demo mode has logins and secrets that everybody knows, so it is not served at {reached}. Use {cure}"
    return None


def port_problem(host: str, port: int) -> str | None:
    """Reason why no server can listen at the address, as a sentence; None if one can."""
    if not 0 < port < 65536:
        return f"PORT must be between 1 and 65535, not {port}."
    try:
        with bind(host, port) as probe:
            probe.listen(1)
    except socket.gaierror:
        return f"HOST {host!r} is not an address of this machine."
    except OSError as error:
        return _sentence(host, port, error)
    return None


def bind(host: str, port: int, *, is_one_of_several: bool = False) -> socket.socket:
    """A new socket bound to that address, not listening yet; others may be bound, too. Raises OSError."""
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    opened = socket.socket(family, kind, protocol)
    try:
        # So that a port with connections in TIME_WAIT can be bound.
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if is_one_of_several:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
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


def is_responding(host: str, port: int, *, name: str = "localhost") -> bool:
    """Whether the web server answers there, asked as `name`: /healthz responds, also with 404."""
    connection = http.client.HTTPConnection(_UNSPECIFIED.get(host, host).strip("[]"), port, timeout=5)
    try:
        connection.request("GET", "/healthz", headers={"Host": name})
        return connection.getresponse().status < 500
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def link_root(host: str, port: int, base_url: str) -> str:
    """The root URL to show: BASE_URL if set."""
    if base_url:
        return base_url
    name = _UNSPECIFIED.get(host, host)
    return f"http://{f'[{name}]' if ':' in name and not name.startswith('[') else name}:{port}"


def startup_lines(root: str, *, demo: bool, data_dir: str) -> Iterator[str]:
    """The lines that are printed after a start."""
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
    """A shell line: a token by client credentials, and a set read with it."""
    token = (
        f"curl -s {root}/id/connect/token -d grant_type=client_credentials -d client_id=ServiceDemoClient "
        '-d client_secret=DEMO | sed \'s/.*"access_token": *"\\([^"]*\\)".*/\\1/\''
    )
    return (
        f'curl -s -H "Authorization: Bearer $({token})" '
        f"'{root}/api/domain/odata/General_Products_Products?$top=3&$select=PartNumber,Name'"
    )
