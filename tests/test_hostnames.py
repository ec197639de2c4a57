"""One spelling of a host, and which are a service's own."""

import pytest

from app.hostnames import Own, called, checked, is_loopback, plain


@pytest.mark.parametrize(
    ("authority", "name"),
    [
        ("app", "app"),
        ("App.:8000", "App."),
        ("[::1]:8000", "::1"),
        ("127.0.0.1:", "127.0.0.1"),
        ("my_service:1", "my_service"),
        ("", None),
        (":80", None),
        ("a@b", None),
        ("a b", None),
        ("a:b", None),
        ("[a]", None),
        ("a\n", None),
        ("\xe4", None),
    ],
)
def test_the_name_before_the_port(authority: str, name: str | None) -> None:
    assert called(authority) == name


def test_spellings() -> None:
    assert plain("LOCALHOST.") == "localhost"
    assert plain("[0::1]") == plain("::1") == "::1"
    assert plain("::ffff:127.0.0.1") == "127.0.0.1"
    assert plain("fe80::1%eth0") == "fe80::1"


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.1.2.3", "::1", "::FFFF:127.0.0.1"])
def test_loopback(host: str) -> None:
    assert is_loopback(host)
    assert Own.of("10.0.0.1", []).has(host)


@pytest.mark.parametrize("host", ["", "0.0.0.0", "::", "127.1", "local", "localhost.a", "10.0.0.1"])
def test_not_loopback(host: str) -> None:
    assert not is_loopback(host)
    assert not Own.of("127.0.0.1", []).has(host)


def test_who_listens_on_one_address_is_called_by_that_one() -> None:
    own = Own.of("10.0.0.5", ["Priors.Example.com."])
    assert own.has("10.0.0.5")
    assert own.has("priors.example.com")
    assert not own.has("10.0.0.6")
    assert Own.of("priors", []).has("PRIORS")


@pytest.mark.parametrize("host", ["", "0.0.0.0", "::"])
def test_who_listens_on_all_is_called_by_any_address_and_no_name(host: str) -> None:
    own = Own.of(host, [])
    assert own.has("10.0.0.6")
    assert own.has("fd00::1")
    assert not own.has("evil.example")
    assert not own.has("10.0.0")


def test_names_are_checked() -> None:
    names = ["app", "a.b-c.d_e", "10.1.2.3", "::1", "[fd00::1]", "UPPER."]
    assert checked(names) == names
    for wrong in (
        "",
        ".",
        "a:80",
        "http://a",
        "*.a",
        "a b",
        "\xe4",
        "a/b",
        "a\n",
        "[a]",
        "x" * 300,
    ):
        with pytest.raises(ValueError, match="is no host name"):
            checked([wrong])
