"""Every way that is known to write an address inside is refused, at both places."""

from collections.abc import Callable
from ipaddress import ip_address
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.webhooks.addresses import AddressRefused, Allowed, checked, public
from app.webhooks.urls import Target, admitted, parse

NOTHING = Allowed()
INSIDE = [
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "100.64.0.1",
    "100.100.100.200",
    "127.0.0.1",
    "127.8.8.8",
    "168.63.129.16",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.192",
    "192.0.2.1",
    "192.168.1.1",
    "192.88.99.1",
    "198.18.0.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::7f00:1",
    "::ffff:10.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:0:127.0.0.1",
    "64:ff9b::10.0.0.1",
    "64:ff9b:1::8.8.8.8",
    "100::1",
    "2001::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "2002:a9fe:a9fe::",
    "3fff::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fec0::1",
    "ff02::1",
]
OUTSIDE = [
    "1.1.1.1",
    "8.8.8.8",
    "172.32.0.1",
    "2606:4700::1111",
    "64:ff9b::8.8.8.8",
    "2002:808:808::",
]


class TestAddresses:
    @pytest.mark.parametrize("text", INSIDE)
    def test_inside_is_refused(self, text: str) -> None:
        assert not NOTHING.admits("a.example", ip_address(text))
        host = f"[{text}]" if ":" in text else text
        with pytest.raises(AddressRefused):
            admitted(f"https://{host}/x", NOTHING)

    @pytest.mark.parametrize("text", OUTSIDE)
    def test_the_internet_is_admitted(self, text: str) -> None:
        assert NOTHING.admits("a.example", ip_address(text))
        host = f"[{text}]" if ":" in text else text
        assert admitted(f"https://{host}/x", NOTHING).port == 443

    @given(st.ip_addresses(v=4))
    def test_mapped_and_embedded_ones_are_judged_as_what_they_lead_to(self, address: Any) -> None:
        number = int(address)
        expected = NOTHING.admits("a.example", address)
        for carrier in ("::ffff:0:0", "64:ff9b::"):
            assert NOTHING.admits("a", ip_address(int(ip_address(carrier)) | number)) == expected
        assert NOTHING.admits("a", ip_address((0x2002 << 112) | (number << 80))) == expected
        assert expected <= address.is_global

    @given(st.ip_addresses(v=6))
    def test_what_is_public_is_global(self, address: Any) -> None:
        assert public(address) <= (address.is_global and int(address) >> 125 == 1)


class TestSpellings:
    @pytest.mark.parametrize(
        "host",
        [
            "2130706433",
            "0x7f000001",
            "0X7F.1",
            "0x7f.0.0.1",
            "0177.0.0.1",
            "017700000001",
            "127.1",
            "127.0.1",
            "127.0.0.1.",
            "127.0.0.01",
            "1.2.3.4.5",
            "256.0.0.1",
            "a.example.1",
            "[::ffff:127.0.0.1]",
            "[::ffff:7f00:1]",
            "[0:0:0:0:0:ffff:7f00:0001]",
            "[::127.0.0.1]",
            "[fe80::1%25eth0]",
            "[fe80::1%eth0]",
            "127。0。0。1",
            "１２７.0.0.1",
            "①②⑦.0.0.1",
            "127.0.0.1%00.example.com",
            "localhost",
            "LOCALHOST.",
            "localhost.localdomain\n.example.com",
        ],
    )
    def test_odd_ones_lead_nowhere(self, host: str, monkeypatch: pytest.MonkeyPatch) -> None:
        resolving(monkeypatch, lambda name: ["127.0.0.1"])
        with pytest.raises(AddressRefused):
            admitted(f"https://{host}/hook", NOTHING)

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "hooks.example.com/x",
            "//hooks.example.com/x",
            "ftp://hooks.example.com/",
            "file:///etc/passwd",
            "gopher://hooks.example.com/",
            "unix:///var/run/docker.sock",
            "https://",
            "https:///x",
            "https://user:pass@hooks.example.com/",
            "https://hooks.example.com@127.0.0.1/",
            "https://@hooks.example.com/",
            "https://hooks.example.com:0/",
            "https://hooks.example.com:65536/",
            "https://hooks.example.com:x/",
            "https://hooks.example.com/#part",
            "https://hooks.example.com\\@127.0.0.1/",
            "https://hooks.example.com/a b",
            "https://hooks.example.com/\r\nHost: other",
            "https://-x.example.com/",
            "https://a..example.com/",
            "https://" + "a" * 64 + ".com/",
            "https://hooks.example.com/" + "x" * 2048,
            "https://[::1/",
            "https://[]/",
        ],
    )
    def test_what_is_no_address_of_a_webhook(self, text: str) -> None:
        with pytest.raises(AddressRefused):
            parse(text)

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("https://hooks.example.com", "https://hooks.example.com/"),
            ("HTTPS://Hooks.Example.COM.:443/A?b=%20", "https://hooks.example.com/A?b=%20"),
            ("https://hooks.example.com:8443/a", "https://hooks.example.com:8443/a"),
            ("https://bücher.example/ü", "https://xn--bcher-kva.example/%C3%BC"),
            ("https://[2606:4700:0::1111]:444/", "https://[2606:4700::1111]:444/"),
            ("http://8.8.8.8:80/x", "http://8.8.8.8/x"),
        ],
    )
    def test_addresses_are_kept_in_one_form(self, text: str, expected: str) -> None:
        assert str(parse(text)) == expected
        assert parse(expected) == parse(text)

    @given(st.text(max_size=60))
    def test_anything_is_a_target_or_refused(self, text: str) -> None:
        for candidate in (text, f"https://{text}", f"https://h.example/{text}"):
            try:
                target = parse(candidate)
            except AddressRefused:
                continue
            assert isinstance(target, Target)
            assert str(target).isascii()
            assert parse(str(target)) == target


def resolving(monkeypatch: pytest.MonkeyPatch, found: Callable[[str], list[str]]) -> list[str]:
    """Answers of the system's resolver; what it was asked."""
    asked: list[str] = []

    def getaddrinfo(host: str, port: int, *args: Any, **named: Any) -> list[Any]:
        asked.append(host)
        return [(2, 1, 6, "", (address, port)) for address in found(host)]

    monkeypatch.setattr("socket.getaddrinfo", getaddrinfo)
    return asked


def unknown(host: str) -> list[str]:
    raise OSError


class TestNames:
    def test_all_addresses_of_a_name_must_be_admitted(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        resolving(monkeypatch, lambda host: ["8.8.8.8", "10.0.0.1"])
        with pytest.raises(AddressRefused, match="PRIORSHIFT_WEBHOOK_ALLOWED_HOSTS"):
            admitted("https://hooks.example.com/", NOTHING)
        resolving(monkeypatch, lambda host: ["8.8.8.8", "1.1.1.1", "8.8.8.8"])
        found = checked("hooks.example.com", 443, NOTHING)
        assert found == [ip_address("8.8.8.8"), ip_address("1.1.1.1")]

    def test_one_that_is_unknown_may_be_known_when_it_matters(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        resolving(monkeypatch, unknown)
        assert admitted("https://hooks.example.com/", NOTHING).host == "hooks.example.com"
        with pytest.raises(OSError):
            checked("hooks.example.com", 443, NOTHING)


class TestAllowing:
    def test_names_and_networks(self, monkeypatch: pytest.MonkeyPatch) -> None:
        allowed = Allowed.of(["alerts.internal", "10.1.0.0/16", "::1", "127.0.0.1"])
        resolving(monkeypatch, {"alerts.internal": ["10.9.9.9"], "b": ["10.1.2.3"]}.__getitem__)
        for good in (
            "http://alerts.internal/x",
            "http://ALERTS.internal.:8080/x",
            "http://10.1.2.3/",
            "https://b/",
            "http://[::1]:9/",
            "http://127.0.0.1:9/",
        ):
            admitted(good, allowed)
        for bad in ("http://b/", "http://10.2.0.1/", "http://8.8.8.8/", "https://127.0.0.2/"):
            with pytest.raises(AddressRefused):
                admitted(bad, allowed)

    @pytest.mark.parametrize("address", ["169.254.169.254", "fd00:ec2::254", "0.0.0.0", "fe80::1"])
    def test_a_name_does_not_open_the_metadata_of_a_cloud(
        self, monkeypatch: pytest.MonkeyPatch, address: str
    ) -> None:
        resolving(monkeypatch, lambda host: [address])
        with pytest.raises(AddressRefused):
            admitted("https://alerts.internal/", Allowed.of(["alerts.internal"]))
        admitted("https://alerts.internal/", Allowed.of(["alerts.internal", address]))

    @pytest.mark.parametrize(
        "entry", ["", "10.1.2.3/8", "127.1", "Upper", "http://a", "*.a", "a b"]
    )
    def test_what_is_neither_is_told_at_the_start(self, entry: str) -> None:
        with pytest.raises(ValueError, match="PRIORSHIFT_WEBHOOK_ALLOWED_HOSTS"):
            Allowed.of([entry])
