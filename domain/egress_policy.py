"""Where the instance may send requests to: reading a URL, and which addresses lead inside (spec 06, 6.2).

Addresses are judged as the resolver gives them, never by how a URL spells them; `domain.egress` uses no others.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote, urlsplit

from django.conf import settings

from foundation.phrases import Phrase

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
IPNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network

DEFAULT_PORTS = {"http": 80, "https": 443}
# Everything a request target may hold literally (RFC 3986, 3.3 and 3.4), and % of what is encoded already.
_TARGET_SAFE = "/:@!$&'()*+,;=-._~?%[]"
_FORBIDDEN = re.compile(r'[\x00-\x20\\"<>^`{|}\x7f]')
_PLAIN_TARGET = re.compile(r"[A-Za-z0-9/:@!$&'()*+,;=\-._~?%\[\]]+")
# Services of the machine itself that cloud providers put on public addresses.
_METADATA = frozenset({ipaddress.ip_address("168.63.129.16")})
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_RELAY = ipaddress.ip_network("192.88.99.0/24")


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a URL leads. `host` is lower-case ASCII without brackets, `target` the request target."""

    scheme: str
    host: str
    port: int
    target: str

    @property
    def name(self) -> str:
        """host:port, as breakers and queues know it."""
        return f"{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    @property
    def host_header(self) -> str:
        """RFC 9110, 7.2: the port only where it is not the scheme's own."""
        return self.name if self.port != DEFAULT_PORTS[self.scheme] else self.name.rpartition(":")[0]


def destination_of(url: str) -> Destination:
    """Read an absolute http(s) URL. Raises ValueError with the reason; userinfo, which misleads readers, is one."""
    if _FORBIDDEN.search(url):
        raise ValueError(Phrase('it holds a space, a control character or one of \\ " < > ^ ` { | }'))
    parts = urlsplit(url)
    if parts.scheme not in DEFAULT_PORTS:
        raise ValueError(Phrase("it must begin with http:// or https://"))
    if "@" in parts.netloc:
        raise ValueError(Phrase("it must not hold a user name or password before the host"))
    host, port = parts.hostname, parts.port  # the port raises ValueError by itself
    if not host or "%" in host:
        raise ValueError(Phrase("it names no host"))
    if port == 0:
        raise ValueError(Phrase("port 0 cannot be connected to"))
    try:
        ascii_host = host.encode("ascii").decode() if host.isascii() else host.encode("idna").decode()
    except UnicodeError as exc:
        raise ValueError(Phrase("its host is not a valid name")) from exc
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    if _PLAIN_TARGET.fullmatch(target) is None:
        target = quote(target, safe=_TARGET_SAFE)
    return Destination(parts.scheme, ascii_host.lower(), port or DEFAULT_PORTS[parts.scheme], target)


@dataclass(frozen=True, slots=True)
class EgressPolicy:
    """Which addresses may be reached: public ones, and what the instance allows besides (settings.EGRESS_ALLOW).

    hosts      names whose addresses are all allowed: "erp.local", or "*.erp.local" for every name below
    networks   addresses that are allowed under any name
    """

    hosts: frozenset[str] = frozenset()
    networks: tuple[IPNetwork, ...] = ()

    @classmethod
    def parse(cls, entries: Sequence[str]) -> EgressPolicy:
        """From host names, addresses and CIDR networks."""
        hosts: set[str] = set()
        networks: list[IPNetwork] = []
        for entry in entries:
            try:
                networks.append(ipaddress.ip_network(entry.strip("[]"), strict=False))
            except ValueError:
                hosts.add(entry.lower())
        return cls(frozenset(hosts), tuple(networks))

    def allows_host(self, host: str) -> bool:
        """Whether the name itself is on the list."""
        labels = host.split(".")
        return host in self.hosts or any(
            f"*.{'.'.join(labels[index:])}" in self.hosts for index in range(1, len(labels))
        )

    def problem(self, host: str, address: str) -> str | None:
        """Why this address must not be connected to for this host; None when it may."""
        ip = real_address(address)
        if self.allows_host(host) or any(ip.version == network.version and ip in network for network in self.networks):
            return None
        return _inside(ip)


def real_address(address: str) -> IPAddress:
    """The address that packets finally reach: IPv4 inside IPv6 (mapped, 6to4, Teredo, NAT64) is unwrapped."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv4Address):
        return ip
    embedded = ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
    if embedded is not None:
        return embedded
    if ip in _NAT64 or (int(ip) >> 32 == 0 and int(ip) > 1):
        return ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
    return ip


def _inside(ip: IPAddress) -> str | None:
    if ip in _METADATA:
        return Phrase("it is a metadata address")
    for name in ("loopback", "link_local", "multicast", "unspecified", "private", "reserved"):
        if getattr(ip, f"is_{name}"):
            return Phrase("it is a {0} address", name.replace("_", "-"))
    if not ip.is_global or (ip.version == 4 and ip in _RELAY) or getattr(ip, "is_site_local", False):
        return Phrase("it is not a public address")
    return None


@lru_cache(maxsize=4)
def _parsed_policy(entries: tuple[str, ...]) -> EgressPolicy:
    return EgressPolicy.parse(entries)


def egress_policy() -> EgressPolicy:
    """The instance's policy, from settings.EGRESS_ALLOW."""
    return _parsed_policy(tuple(settings.EGRESS_ALLOW))
