"""Which addresses events may be sent to: those of the Internet, and what the operator allows.

A caller names the host, and the service is inside the network: without this, whoever registers a
webhook could reach what only the service can reach (server-side request forgery).
"""

import re
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

NUMBER = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)")
NAME = re.compile(r"(?=.{1,253}$)[a-z0-9_](?:[a-z0-9_-]{0,62})(?:\.[a-z0-9_](?:[a-z0-9_-]{0,62}))*")
EMBEDDED = {IPv6Network("64:ff9b::/96"): 0, IPv6Network("2002::/16"): 80}
"""IPv6 networks that lead to an IPv4 address, and the bits to its right: NAT64, 6to4."""
METADATA = {
    ip_address(text)
    for text in ("168.63.129.16", "100.100.100.200", "192.0.0.192", "fd00:ec2::254")
}
"""Where clouds tell an instance its credentials; the link-local one is not alone."""
UNICAST = IPv6Network("2000::/3")
"""Outside it no IPv6 address is of the Internet, whatever the tables of a Python release say."""
UNUSUAL = [ip_network(text) for text in ("192.88.99.0/24", "2001::/32", "3fff::/20")]
"""Global by those tables, but roads to elsewhere or nowhere: relays, Teredo, documentation."""


class AddressRefused(Exception):
    """Nothing may be sent there; the message is for whoever registered it."""


@dataclass(frozen=True)
class Allowed:
    """What the operator allows beyond the Internet: host names, and networks."""

    names: frozenset[str] = frozenset()
    networks: tuple[Network, ...] = ()

    @classmethod
    def of(cls, entries: Sequence[str]) -> "Allowed":
        """From the setting; ``ValueError`` for what is neither a name nor a network."""
        names: set[str] = set()
        networks: list[Network] = []
        for entry in entries:
            try:
                networks.append(ip_network(entry))
            except ValueError:
                if _numeric(entry) or not NAME.fullmatch(entry):
                    raise ValueError(
                        f"PRIORSHIFT_WEBHOOK_ALLOWED_HOSTS: {entry!r} is neither a host name in "
                        "lower case nor a network such as 10.1.0.0/16"
                    ) from None
                names.add(entry)
        return cls(frozenset(names), tuple(networks))

    def plainly(self, host: str) -> bool:
        """Whether ``host`` is allowed by its own name or number, then without TLS too."""
        address = literal(host)
        return host in self.names if address is None else self._lists(address)

    def admits(self, host: str, address: Address) -> bool:
        """Whether ``host`` may be sent to at ``address``."""
        real = inner(address)
        if self._lists(address) or self._lists(real):
            return True
        if real in METADATA or real.is_link_local or real.is_multicast or real.is_unspecified:
            return False
        return host in self.names or public(real)

    def _lists(self, address: Address) -> bool:
        return any(address in network for network in self.networks)


def literal(host: str) -> Address | None:
    """The address that a host is written as, None for a name; ``AddressRefused`` for odd spellings.

    What ends in a number is an address to some resolvers (2130706433, 0x7f.1, 0177.0.0.1): it is
    one in its plain form or nothing.
    """
    if not _numeric(host):
        return None
    try:
        if "%" in host:
            raise ValueError
        return ip_address(host)
    except ValueError:
        raise AddressRefused("write the address plainly, as 192.0.2.1 or [2001:db8::1]") from None


def _numeric(host: str) -> bool:
    return ":" in host or NUMBER.fullmatch(host.rpartition(".")[2]) is not None


def inner(address: Address) -> Address:
    """The IPv4 address that an IPv6 one stands for; itself if it stands for none."""
    if isinstance(address, IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    for network, right in EMBEDDED.items():
        if address in network:
            return IPv4Address(int(address) >> right & 0xFFFFFFFF)
    return address


def public(address: Address) -> bool:
    """Whether an address is of the Internet."""
    if isinstance(address, IPv6Address) and address not in UNICAST:
        return False
    unusual = address in METADATA or any(address in network for network in UNUSUAL)
    return address.is_global and not (unusual or address.is_reserved or address.is_multicast)


def resolve(host: str, port: int) -> list[Address]:
    """The addresses of a host, in the order to try them; ``OSError`` if it has none now."""
    written = literal(host)
    if written is not None:
        return [written]
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(ip_address(str(item[4][0]).partition("%")[0]) for item in found))


def checked(host: str, port: int, allowed: Allowed) -> list[Address]:
    """The same, all of them admitted; ``AddressRefused`` if one of them is not.

    A host of several addresses, some of them inside, is trying something.
    """
    addresses = resolve(host, port)
    if not all(allowed.admits(host, address) for address in addresses):
        raise AddressRefused(
            "the host is not of the Internet; the operator allows others with "
            "PRIORSHIFT_WEBHOOK_ALLOWED_HOSTS"
        )
    return addresses
