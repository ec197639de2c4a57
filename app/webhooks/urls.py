"""Addresses of webhooks, read once into the parts that are checked and then used."""

import re
from dataclasses import dataclass

import httpx

from app.webhooks.addresses import NAME, AddressRefused, Allowed, checked, literal

LONGEST = 2048
PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Target:
    """Where to post. ``host`` without brackets, in lower case, in ASCII, without a last dot."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def authority(self) -> str:
        """The host as headers have it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.path}"


def parse(text: str) -> Target:
    """The parts of an address; ``AddressRefused`` if it is none that events can be sent to."""
    if len(text) > LONGEST or not text.isprintable() or any(c in text for c in " \\#"):
        raise AddressRefused(
            f"must be an address of at most {LONGEST} characters, without spaces or #"
        )
    try:
        url = httpx.URL(text)
    except httpx.InvalidURL:
        raise AddressRefused("is not a valid address") from None
    if url.scheme not in PORTS:
        raise AddressRefused("must begin with https://")
    if url.userinfo or "@" in re.split("[/?]", text.partition("//")[2])[0]:
        raise AddressRefused("must not hold credentials; the signature tells who sends")
    host = url.raw_host.decode("ascii").lower().removesuffix(".")
    address = literal(host)
    if address is not None:
        host = str(address)
    elif NAME.fullmatch(host) is None:
        raise AddressRefused("has no valid host")
    port = url.port or PORTS[url.scheme]
    if url.port == 0 or port > 65_535:
        raise AddressRefused("has no valid port")
    return Target(url.scheme, host, port, url.raw_path.decode("ascii"))


def admitted(text: str, allowed: Allowed) -> Target:
    """The same, of a host that events may be sent to; one that is unknown now may be known later.

    It is asked again, and decides, when something is sent.
    """
    target = parse(text)
    if target.scheme != "https" and not allowed.plainly(target.host):
        raise AddressRefused("must begin with https://; http is for hosts that the operator allows")
    try:
        checked(target.host, target.port, allowed)
    except OSError:
        return target
    return target
