"""The egress policy: allowed destinations, URL parsing and non-public address ranges (spec 06, 6.2).

`foundation.egress.client` checks the addresses that the resolver returns, and connects only to these.

The lists below decide which addresses are public, not `ipaddress.is_global`, whose lists change with the version of the
interpreter. Sources: the IANA IPv4 and IPv6 Special-Purpose Address Registries (RFC 6890), the multicast ranges (RFC
5771, RFC 4291) and, of IPv6, everything outside of global unicast (2000::/3, RFC 4291). Special-purpose ranges that the
registries call globally reachable (anycast of protocols, AS112) are refused, too: no webhook receiver uses them.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass
from encodings.idna import nameprep
from functools import lru_cache
from typing import Never
from urllib.parse import quote, urlsplit

from django.conf import settings

from foundation.messages import TranslatableMessage as Message

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
IPNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network

#: The setting that lists the allowed non-public destinations.
POLICY_SETTING = "EGRESS_ALLOW"
DEFAULT_PORTS = {"http": 80, "https": 443}
# Characters that a request target may hold literally (RFC 3986, 3.3 and 3.4), and % of percent-encoded ones.
_TARGET_SAFE = "/:@!$&'()*+,;=-._~?%[]"
_FORBIDDEN = re.compile(r'[\x00-\x20\\"<>^`{|}\x7f]')
_PLAIN_TARGET = re.compile(r"[A-Za-z0-9/:@!$&'()*+,;=\-._~?%\[\]]+")
# Metadata services that cloud providers put on public addresses.
_METADATA = frozenset({ipaddress.ip_address("168.63.129.16")})
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")
#: Purpose of a range, as messages name it → the ranges. IPv4 inside IPv6 is unwrapped before (real_address).
_SPECIAL_PURPOSE: tuple[tuple[str, tuple[IPNetwork, ...]], ...] = tuple(
    (name, tuple(ipaddress.ip_network(network) for network in networks.split()))
    for name, networks in (
        ("loopback", "127.0.0.0/8 ::1/128"),
        ("link-local", "169.254.0.0/16 fe80::/10"),
        ("multicast", "224.0.0.0/4 ff00::/8"),
        ("unspecified", "0.0.0.0/8 ::/128"),
        ("private", "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 100.64.0.0/10 fc00::/7 fec0::/10"),
        (
            "reserved",
            "192.0.0.0/24 192.0.2.0/24 192.31.196.0/24 192.52.193.0/24 192.88.99.0/24 192.175.48.0/24 198.18.0.0/15 "
            "198.51.100.0/24 203.0.113.0/24 240.0.0.0/4 "
            "2001::/23 2001:db8::/32 2002::/16 2620:4f:8000::/48 3fff::/20",
        ),
    )
)
#: One name of a host: letters, digits, inner hyphens. Underscores occur in the names of private networks.
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
#: Label separators (RFC 3490, 3.1).
_DOTS = re.compile("[.\u3002\uff0e\uff61]")
_HOST_NAME = re.compile(rf"(?=.{{1,254}}\Z){_LABEL}(?:\.{_LABEL})*\.?")


@dataclass(frozen=True, slots=True)
class Destination:
    """The destination of a URL. `host` is lower-case ASCII without brackets, `target` the request target."""

    scheme: str
    host: str
    port: int
    target: str

    @property
    def name(self) -> str:
        """host:port, the key of circuit breakers and queues."""
        return f"{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    @property
    def host_header(self) -> str:
        """RFC 9110, 7.2: the port only where it is not the scheme's own."""
        return self.name if self.port != DEFAULT_PORTS[self.scheme] else self.name.rpartition(":")[0]


def destination_of(url: str) -> Destination:
    """Parse an absolute http(s) URL. Raises ValueError with the reason; userinfo is refused because it misleads
    readers.
    """
    if _FORBIDDEN.search(url):
        raise ValueError(Message('it holds a space, a control character or one of \\ " < > ^ ` { | }'))
    parts = urlsplit(url)
    if parts.scheme not in DEFAULT_PORTS:
        raise ValueError(Message("it must begin with http:// or https://"))
    if "@" in parts.netloc:
        raise ValueError(Message("it must not hold a user name or password before the host"))
    if not parts.hostname:
        raise ValueError(Message("it names no host"))
    host = _host_of(parts.hostname)
    try:
        port = parts.port
    except ValueError:
        port = 0
    if port == 0 or parts.netloc.endswith(":"):
        raise ValueError(Message("its port must be a number from 1 to 65535"))
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    if _PLAIN_TARGET.fullmatch(target) is None:
        target = quote(target, safe=_TARGET_SAFE)
    return Destination(parts.scheme, host, port or DEFAULT_PORTS[parts.scheme], target)


def _host_of(given: str) -> str:
    """The host as it is resolved: an IPv6 address, or a name in lower-case ASCII (IDNA). Raises ValueError."""
    try:
        if ":" in given:
            return str(ipaddress.IPv6Address(given)) if "%" not in given else _no_host()
        host = _ascii(given)
    except ValueError as exc:  # UnicodeError is one
        raise ValueError(Message("its host is not a valid name")) from exc
    return host if _HOST_NAME.fullmatch(host) else _no_host()


def _listed_name(entry: str) -> str:
    """A listed name in the form of Destination.host, with its `*.`. An entry that is no name stays unchanged and
    matches none.
    """
    above = "*." if entry.startswith("*.") else ""
    try:
        return above + _ascii(entry.removeprefix(above))
    except UnicodeError:
        return entry


def _ascii(name: str) -> str:
    """A name in lower-case ASCII (IDNA). Raises UnicodeError."""
    return (name if name.isascii() else name.encode("idna").decode()).lower()


def _unicode(name: str) -> str:
    """A name, or a piece of one, in lower case with the labels that are in IDNA's ASCII form in Unicode."""
    try:
        return ".".join(
            label.encode().decode("idna") if label.startswith("xn--") else nameprep(label)
            for label in _DOTS.split(name.lower())
        )
    except UnicodeError:  # of a piece, which need not be a name by itself
        return name.lower()


def _no_host() -> Never:
    raise ValueError(Message("its host is not a valid name"))


@dataclass(frozen=True, slots=True)
class EgressPolicy:
    """The allowed addresses: public ones, and those that settings.EGRESS_ALLOW lists.

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
                hosts.add(_listed_name(entry))
        return cls(frozenset(hosts), tuple(networks))

    def allows_host(self, host: str) -> bool:
        """Whether the policy lists the name."""
        labels = host.split(".")
        return host in self.hosts or any(
            f"*.{'.'.join(labels[index:])}" in self.hosts for index in range(1, len(labels))
        )

    def lists(self, host: str) -> bool:
        """Whether the list contains the host: by name, by a `*.` entry above it, or as a single address."""
        return self.allows_host(host) or host in self._single_addresses()

    def may_list(self, pieces: Sequence[str]) -> bool:
        """Whether a host template can produce a listed host. `pieces` are its texts between placeholders.

        An IPv6 address, without brackets, may be written as RFC 5952 says or in full.
        """
        # Compared in Unicode: the IDNA form of a name does not begin and end as the name does.
        shown = [_unicode(piece) for piece in pieces]
        pattern = re.compile("[^:]+".join(map(re.escape, shown)))
        addresses = [network.network_address for network in self.networks if network.num_addresses == 1]
        exact = [*map(str, addresses), *(address.exploded for address in addresses)]
        exact += [_unicode(host) for host in self.hosts if not host.startswith("*.")]
        suffixes = [_unicode(host[1:]) for host in self.hosts if host.startswith("*.")]
        return any(pattern.fullmatch(host) for host in exact) or any(
            shown[-1].endswith(suffix) or suffix.endswith(shown[-1]) for suffix in suffixes
        )

    def _single_addresses(self) -> list[str]:
        return [str(network.network_address) for network in self.networks if network.num_addresses == 1]

    def problem(self, host: str, address: str) -> str | None:
        """Reason why this address of the host is refused; None if it is allowed."""
        ip = real_address(address)
        if self.allows_host(host) or any(ip.version == network.version and ip in network for network in self.networks):
            return None
        return _inside(ip)


#: For URLs that only administrators enter.
ANYWHERE = EgressPolicy.parse(["0.0.0.0/0", "::/0"])


def real_address(address: str) -> IPAddress:
    """The destination of packets: IPv4 inside IPv6 (mapped, 6to4, Teredo, NAT64) is extracted."""
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
        return Message("it is a metadata address")
    for name, networks in _SPECIAL_PURPOSE:
        if any(ip.version == network.version and ip in network for network in networks):
            return Message("it is a {0} address", name)
    if ip.version == 6 and ip not in _GLOBAL_UNICAST:
        return Message("it is not a public address")
    return None


@lru_cache(maxsize=4)
def _parsed_policy(entries: tuple[str, ...]) -> EgressPolicy:
    return EgressPolicy.parse(entries)


def egress_policy() -> EgressPolicy:
    """The instance's policy, from settings.EGRESS_ALLOW."""
    return _parsed_policy(tuple(settings.EGRESS_ALLOW))
