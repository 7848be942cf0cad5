"""URLs: one strict reader for those of the configuration and of redirects, and the rule by which an endpoint is joined.

Libraries differ in what they take a strange URL for, and what one checks another connects to. So whatever is strange is
refused, and what is sent is put together from the parts that were checked.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote, unquote_to_bytes

from vesper.effects.http.addresses import BadHost, normal_host

MAX_TARGET = 8192
"""Bytes of a path with its query; servers commonly take no more."""
_URL = re.compile(r"(https?)://([^/?#]*)([^?#]*)(\?[^#]*)?(#.*)?", re.IGNORECASE | re.ASCII)
_AUTHORITY = re.compile(r"(\[[^\[\]]*\]|[^:\[\]]*)(?::([0-9]{1,5}))?", re.ASCII)
_ODD = re.compile(r"[^\x21-\x7e]|[\\\"<>^`{|}]")
_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_PORTS = {"http": 80, "https": 443}
_DECODINGS = 4
"""How often a segment is decoded in search of dots. One that has still more layers is refused unread."""


class BadUrl(ValueError):
    """A URL or an endpoint that is not used; the message says why and shows at most a part of it."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a connection goes: `host` in its normal spelling."""

    scheme: str
    host: str
    port: int

    @property
    def is_secure(self) -> bool:
        return self.scheme == "https"

    @property
    def authority(self) -> str:
        """As the header `Host` has it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}"


@dataclass(frozen=True, slots=True)
class Url:
    origin: Origin
    path: str
    """Begins with `/`, or is empty."""
    query: str
    """Without the `?`."""

    @property
    def target(self) -> str:
        return (self.path or "/") + (f"?{self.query}" if self.query else "")


def read_url(text: str) -> Url:
    """An absolute URL. Its fragment is left out: it is never sent. Raises `BadUrl`."""
    shown = shown_url(text)
    if len(text) > MAX_TARGET:
        raise BadUrl(f"{shown} is longer than {MAX_TARGET:,} characters")
    if _ODD.search(text):
        raise BadUrl(f"{shown} has a character that no URL has")
    found = _URL.fullmatch(text)
    if found is None:
        raise BadUrl(f"{shown} is no URL that begins with `https://` or `http://`")
    scheme, authority, path, query = found[1].lower(), found[2], found[3], found[4] or ""
    if "@" in authority:
        raise BadUrl(f"{shown} has a user name in it: credentials belong into `auth`")
    origin = read_origin(scheme, authority)
    _check_segments(path, shown)
    return Url(origin, path, query[1:])


def read_origin(scheme: str, authority: str) -> Origin:
    """`host` or `host:port`. Raises `BadUrl`."""
    parts = _AUTHORITY.fullmatch(authority)
    if parts is None:
        raise BadUrl(f"`{ascii(authority[:64])[1:-1]}` is no host, nor a host with a port")
    port = _PORTS[scheme] if parts[2] is None else int(parts[2])
    if not 1 <= port <= 65535:
        raise BadUrl(f"{port} is no port")
    try:
        return Origin(scheme, normal_host(parts[1]), port)
    except BadHost as bad:
        raise BadUrl(str(bad)) from None


def joined(base: Url, endpoint: str, query: list[tuple[str, str]]) -> str:
    """The target of a request: the endpoint below the base, with the query. It cannot leave the base. Raises `BadUrl`.

    The holes of an endpoint were percent-encoded when it was made (docs/spec/flow.md), so what is plain in it is what
    the author of the node wrote; but dots need no encoding, so a segment may still be `..`."""
    shown = f"the endpoint {shown_url(endpoint)}"
    if _ODD.search(endpoint):
        raise BadUrl(f"{shown} has a character that must be percent-encoded")
    if "#" in endpoint:
        raise BadUrl(f"{shown} has a `#`, and what comes after it would not be sent")
    if endpoint and not endpoint.startswith(("/", "?")):
        raise BadUrl(f"{shown} does not begin with `/`: it is a path below the provider's `base_url`")
    path, _, own_query = endpoint.partition("?")
    if path.startswith("//"):
        raise BadUrl(f"{shown} begins with `//`, which names a host")
    _check_segments(path, shown)
    if "//" in path:
        raise BadUrl(f"{shown} has an empty segment: perhaps a value in it is empty")
    pairs = [f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in query]
    all_of_query = "&".join([*([own_query] if own_query else []), *pairs])
    target = Url(base.origin, base.path + path, all_of_query).target
    if len(target) > MAX_TARGET:
        raise BadUrl(f"{shown} and its query have {len(target):,} characters, more than {MAX_TARGET:,}")
    return target


def redirected(url: Url, location: str) -> Url:
    """Where a redirect leads: an absolute URL, one without a scheme, or a path. Raises `BadUrl`."""
    if location.startswith("//"):
        return read_url(f"{url.origin.scheme}:{location}")
    if location.startswith("/"):
        return read_url(f"{url.origin}{location}")
    return read_url(location)


def shown_url(text: str) -> str:
    """A part of a URL for a message, with nothing in it that a terminal would act on."""
    return f"`{ascii(text[:100])[1:-1]}{'…' if len(text) > 100 else ''}`"


def _check_segments(path: str, shown: str) -> None:
    """No segment may be `.` or `..`, however often it is encoded: whoever is on the way may decode it."""
    if _BROKEN_ESCAPE.search(path):
        raise BadUrl(f"{shown} has a `%` without two hexadecimal digits")
    for segment in path.split("/"):
        for part in re.split(rb"[/\\]", _decoded(segment, shown)):
            # `;` begins parameters of a segment: some servers read `..;x` as `..`.
            if part.split(b";")[0] in (b".", b".."):
                raise BadUrl(f"{shown} has a segment `.` or `..`")
            if any(byte < 0x20 or byte == 0x7F for byte in part):
                raise BadUrl(f"{shown} has a control character")


def _decoded(segment: str, shown: str) -> bytes:
    found = segment.encode("ascii")
    for _ in range(_DECODINGS):
        once_more = unquote_to_bytes(found)
        if once_more == found:
            return found
        found = once_more
    raise BadUrl(f"{shown} is percent-encoded more than {_DECODINGS - 1} times over")
