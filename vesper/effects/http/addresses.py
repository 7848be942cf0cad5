"""Which hosts have a name that can be trusted to mean what it says, and which addresses may be connected to.

Two rules, both needed. `normal_host` is about texts: a host has one spelling, and the spellings that only some
programs read as an address (`0177.0.0.1`, `2130706433`, `127.1`) are refused, so that lists of hosts can be compared.
But a name says nothing of where it leads: `refusal` is about the address itself, and is asked with the very address
that is about to be connected to, after the name was looked up, so that nobody can answer the check with one address
and the connection with another.
"""

from __future__ import annotations

import ipaddress
import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address

_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?", re.ASCII)
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII)
_MAX_HOST = 253


class BadHost(ValueError):
    """A text that is no host, or not spelled in the one way that everybody reads alike."""


def normal_host(text: str) -> str:
    """The one spelling of a host: a name in lower case, an IPv4 address as four numbers, an IPv6 address in its short
    form and without brackets, unless it stands for an IPv4 address. Raises `BadHost`."""
    if not text:
        raise BadHost("the host is missing")
    if not text.isascii():
        # Python's own encoding of such names is that of 2003, browsers use that of 2008: for some names they differ.
        raise BadHost(f"the host {_shown(text)} is not in ASCII: write its `xn--` form")
    if text.startswith("["):
        return _ipv6(text)
    host = text.lower().removesuffix(".")
    if len(host) > _MAX_HOST:
        raise BadHost(f"a host has at most {_MAX_HOST} characters, not {len(host):,}")
    labels = host.split(".")
    for label in labels:
        if _LABEL.fullmatch(label) is None:
            raise BadHost(f"{_shown(text)} is no host: {_shown(label)} is no label of a name")
    if _NUMBER.fullmatch(labels[-1]) is None:
        return host
    # What ends in a number is an address to those who connect, in more spellings than one.
    try:
        return str(IPv4Address(host))
    except ValueError:
        raise BadHost(f"{_shown(text)} is no host: an IPv4 address is four numbers from 0 to 255, in decimal") from None


def _ipv6(text: str) -> str:
    inner = text[1:-1]
    if not text.endswith("]") or "%" in inner:
        raise BadHost(f"{_shown(text)} is no host: an IPv6 address stands in brackets and has no zone")
    try:
        address = IPv6Address(inner)
    except ValueError:
        raise BadHost(f"{_shown(text)} is no host: `{inner[:64]}` is no IPv6 address") from None
    return str(address.ipv4_mapped or address)  # a mapped one is only another spelling of the IPv4 address


def _shown(text: str) -> str:
    return f"`{ascii(text[:64])[1:-1]}`"


def literal_address(host: str) -> Address | None:
    """The address that a host in its normal spelling is; None for a name."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


# -- what may be connected to ---------------------------------------------------------------------

# The tables are ours and not `is_private` of Python, which changed between minor versions and has no word for why.
_INTERNAL = {
    "10.0.0.0/8": "private",
    "172.16.0.0/12": "private",
    "192.168.0.0/16": "private",
    "100.64.0.0/10": "shared by the customers of a carrier",
    "127.0.0.0/8": "loopback",
    "::1/128": "loopback",
    "fc00::/7": "private",
}
"""Where a company's own services are: `allow_private_addresses` opens these."""

_NOWHERE = {
    "0.0.0.0/8": "unspecified",
    "169.254.0.0/16": "link-local",
    "192.0.0.0/24": "reserved for protocols",
    "192.0.2.0/24": "reserved for documentation",
    "192.88.99.0/24": "a relay of 6to4",
    "198.18.0.0/15": "reserved for benchmarks",
    "198.51.100.0/24": "reserved for documentation",
    "203.0.113.0/24": "reserved for documentation",
    "224.0.0.0/4": "multicast",
    "240.0.0.0/4": "reserved",
    "::/128": "unspecified",
    "64:ff9b:1::/48": "a translation of an IPv4 address that only this network knows",
    "2001::/32": "a Teredo tunnel",
    "2001::/23": "reserved for protocols",
    "2001:db8::/32": "reserved for documentation",
    "2002::/16": "a 6to4 tunnel",
    "3fff::/20": "reserved for documentation",
    "fe80::/10": "link-local",
    "fec0::/10": "site-local",
    "ff00::/8": "multicast",
}
"""Where no service is that a node should reach; no setting opens these."""

_METADATA = {
    "169.254.169.254/32": "the metadata service of a cloud",
    "169.254.170.2/32": "the credentials service of a cloud",
    "168.63.129.16/32": "the metadata service of a cloud",
    "100.100.100.200/32": "the metadata service of a cloud",
    "192.0.0.192/32": "the metadata service of a cloud",
    "fd00:ec2::254/128": "the metadata service of a cloud",
    "fd20:ce::254/128": "the metadata service of a cloud",
}
"""Whoever reaches these gets the credentials of the machine; no setting opens them either."""

_Rules: TypeAlias = "list[tuple[IPv4Network | IPv6Network, str]]"


def _rules(table: dict[str, str]) -> _Rules:
    return [(ipaddress.ip_network(network), kind) for network, kind in table.items()]


_NEVER: _Rules = [*_rules(_METADATA), *_rules(_NOWHERE)]
_ON_DEMAND: _Rules = _rules(_INTERNAL)
_UNICAST = IPv6Network("2000::/3")
_MAPPED = IPv6Network("::ffff:0:0/96")
_TRANSLATED = IPv6Network("64:ff9b::/96")
_COMPATIBLE = IPv6Network("::/96")
_ISATAP = (0x00005EFE, 0x02005EFE)


def refusal(address: Address, allow_private: bool) -> str | None:
    """Why nothing may connect to this address: what it is. None where it may."""
    inner = _embedded(address)
    if inner is not None:
        kind = refusal(inner, allow_private)
        return None if kind is None else f"{kind}, as {inner} inside an IPv6 address"
    for network, kind in _NEVER:
        if address in network:
            return kind
    for network, kind in _ON_DEMAND:
        if address in network:
            return None if allow_private else kind
    if isinstance(address, IPv6Address):
        if address not in _UNICAST:
            return "reserved"
        last = int(address) & 0xFFFFFFFFFFFFFFFF
        if last >> 32 in _ISATAP:
            return refusal(IPv4Address(last & 0xFFFFFFFF), allow_private)
    return None


def _embedded(address: Address) -> IPv4Address | None:
    """The IPv4 address that a connection to this IPv6 address would really go to."""
    if not isinstance(address, IPv6Address):
        return None
    if address in _MAPPED or address in _TRANSLATED:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    if address in _COMPATIBLE and int(address) > 1:  # `::` and `::1` are addresses of their own
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return None
