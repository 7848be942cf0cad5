from __future__ import annotations

from ipaddress import ip_address

import pytest

from vesper.effects.http.addresses import BadHost, literal_address, normal_host, refusal


@pytest.mark.parametrize(
    "text, normal",
    [
        ("API.Example.com", "api.example.com"),
        ("api.example.com.", "api.example.com"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("my_service", "my_service"),
        ("10.0.0.1", "10.0.0.1"),
        ("1.2.3.4.", "1.2.3.4"),
        ("[::1]", "::1"),
        ("[0:0::0:1]", "::1"),
        ("[::ffff:127.0.0.1]", "127.0.0.1"),
        ("[::ffff:7f00:1]", "127.0.0.1"),
        ("[2606:4700:4700::1111]", "2606:4700:4700::1111"),
        ("127.0.0.1.example.com", "127.0.0.1.example.com"),
    ],
)
def test_a_host_has_one_spelling(text: str, normal: str) -> None:
    assert normal_host(text) == normal


@pytest.mark.parametrize(
    "text",
    [
        "2130706433",
        "0x7f000001",
        "0x7f.0.0.1",
        "0x7f.1",
        "0177.0.0.1",
        "127.1",
        "127.0.1",
        "127.0.0.1.0",
        "127.0.0.256",
        "127.0.0.01",
        "1.2.3.0x4",
        "example.0",
        "example.0x",
        "",
        ".",
        "..",
        "a..b",
        ".example.com",
        "-a.example",
        "a-.example",
        "a b",
        "a/b",
        "a%2eb",
        "a\nb",
        "a\x00b",
        "user@example.com",
        "[::1",
        "[::1%eth0]",
        "[127.0.0.1]",
        "[]",
        "[::g]",
        "::1",
        "bücher.example",
        "１２７.0.0.1",
        "①②⑦.0.0.1",
        "127。0。0。1",
        "exam\u200bple.com",
        "ⓔxample.com",
        "a" * 64 + ".example",
        "a." * 130,
    ],
)
def test_what_some_programs_read_as_another_host_is_refused(text: str) -> None:
    with pytest.raises(BadHost):
        normal_host(text)


REFUSED = {
    "127.0.0.1": "loopback",
    "127.255.255.254": "loopback",
    "10.1.2.3": "private",
    "172.16.0.1": "private",
    "172.31.255.255": "private",
    "192.168.1.1": "private",
    "100.64.0.1": "carrier",
    "100.127.255.255": "carrier",
    "::1": "loopback",
    "fc00::1": "private",
    "fd12:3456::1": "private",
    "::ffff:127.0.0.1": "loopback",
    "::ffff:10.0.0.1": "private",
    "::127.0.0.1": "loopback",
    "::10.0.0.1": "private",
    "64:ff9b::127.0.0.1": "loopback",
    "64:ff9b::10.0.0.1": "private",
    "2a00::5efe:192.168.0.1": "private",
    "2a00::200:5efe:10.0.0.1": "private",
}
NEVER = {
    "0.0.0.0": "unspecified",
    "0.1.2.3": "unspecified",
    "::": "unspecified",
    "169.254.1.1": "link-local",
    "fe80::1": "link-local",
    "fec0::1": "site-local",
    "169.254.169.254": "metadata",
    "169.254.170.2": "credentials",
    "168.63.129.16": "metadata",
    "100.100.100.200": "metadata",
    "192.0.0.192": "metadata",
    "fd00:ec2::254": "metadata",
    "::ffff:169.254.169.254": "metadata",
    "64:ff9b::169.254.169.254": "metadata",
    "::169.254.169.254": "metadata",
    "2a00::5efe:169.254.169.254": "metadata",
    "224.0.0.1": "multicast",
    "239.255.255.255": "multicast",
    "ff02::1": "multicast",
    "240.0.0.1": "reserved",
    "255.255.255.255": "reserved",
    "192.0.0.1": "protocols",
    "192.0.2.1": "documentation",
    "198.51.100.7": "documentation",
    "203.0.113.9": "documentation",
    "198.18.0.1": "benchmarks",
    "198.19.255.255": "benchmarks",
    "192.88.99.1": "6to4",
    "2002:7f00:1::1": "6to4",
    "2002:808:808::1": "6to4",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2": "Teredo",
    "2001:db8::1": "documentation",
    "3fff::1": "documentation",
    "64:ff9b:1::1": "only this network",
    "2001:10::1": "protocols",
    "100::1": "reserved",
    "4000::1": "reserved",
    "5f00::1": "reserved",
}


@pytest.mark.parametrize("address, kind", REFUSED.items())
def test_internal_addresses_are_opened_by_the_setting_alone(address: str, kind: str) -> None:
    assert kind in (refusal(ip_address(address), allow_private=False) or "")
    assert refusal(ip_address(address), allow_private=True) is None


@pytest.mark.parametrize("address, kind", NEVER.items())
def test_some_addresses_are_never_connected_to(address: str, kind: str) -> None:
    assert kind in (refusal(ip_address(address), allow_private=False) or "")
    assert kind in (refusal(ip_address(address), allow_private=True) or "")


@pytest.mark.parametrize(
    "address",
    [
        *(
            "1.1.1.1",
            "8.8.8.8",
            "100.63.255.255",
            "100.128.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "198.17.0.1",
            "223.255.1.1",
        ),
        *("2606:4700:4700::1111", "2a00::1", "2001:4860:4860::8888", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8"),
    ],
)
def test_public_addresses_are_not_refused(address: str) -> None:
    assert refusal(ip_address(address), allow_private=False) is None


def test_only_addresses_are_addresses() -> None:
    assert literal_address("10.0.0.1") == ip_address("10.0.0.1")
    assert literal_address("::1") == ip_address("::1")
    assert literal_address("example.com") is None
