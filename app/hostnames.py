"""By what names a service is called: those of a ``Host`` header, and which of them are its own."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address

AUTHORITY = re.compile(r"(?:\[([0-9A-Fa-f]*:[0-9A-Fa-f:.]*)\]|([A-Za-z0-9._-]+))(?::[0-9]{0,5})?")
NAME = re.compile(r"[a-z0-9_][a-z0-9._-]{0,252}")


def called(authority: str) -> str | None:
    """The name or address in ``name:port``; None where that is no such thing."""
    form = AUTHORITY.fullmatch(authority)
    return None if form is None else form[1] or form[2]


def plain(host: str) -> str:
    """One spelling of all of ``LOCALHOST.`` and ``localhost``, ``0:0::1`` and ``::1``."""
    address = _address(host)
    return host.lower().removesuffix(".") if address is None else str(address)


def is_loopback(host: str) -> bool:
    """Whether it can only mean this machine: ``localhost`` or an address of the loopback."""
    address = _address(host)
    return plain(host) == "localhost" if address is None else address.is_loopback


def checked(names: list[str]) -> list[str]:
    """The names, if each is one; ``ValueError``."""
    for name in names:
        if _address(name) is None and NAME.fullmatch(plain(name)) is None:
            raise ValueError(
                f"{name!r} is no host name: write priors.example.com or 10.1.2.3, without a port"
            )
    return names


@dataclass(frozen=True)
class Own:
    """The names that are a service's own, beside those of the loopback.

    An address cannot be rebound, there being nobody to ask what it means: who listens on all
    addresses of a machine is called by any, ``any_address``.
    """

    names: frozenset[str]
    any_address: bool = False

    @classmethod
    def of(cls, host: str, allowed: Iterable[str]) -> "Own":
        """Of a service that listens on ``host``, and is called ``allowed`` besides."""
        address = _address(host)
        everywhere = not host or (address is not None and address.is_unspecified)
        return cls(frozenset(plain(name) for name in (host, *allowed)), everywhere)

    def has(self, name: str) -> bool:
        """Whether the name or address is among them."""
        if is_loopback(name) or plain(name) in self.names:
            return True
        return self.any_address and _address(name) is not None


def _address(host: str) -> IPv4Address | IPv6Address | None:
    """None for a name. The zone of an address says where it is valid, and nothing else."""
    try:
        address = ip_address(host.removeprefix("[").removesuffix("]").partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address
