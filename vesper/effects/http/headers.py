"""Headers that mean what they say: names that are tokens, values on one line, and none that decide how a message ends.

A header with a line break in it is two headers, and perhaps a second request. So names and values are checked one by
one, whoever gave them, before any of them is sent.
"""

from __future__ import annotations

import re
from urllib.parse import quote

MAX_VALUE = 8192
MAX_KEY = 255
"""Characters of a key: what the providers that document a limit take."""
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}", re.ASCII)
_VALUE = re.compile(r"[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?|", re.ASCII)
_OURS = frozenset(
    {
        *("host", "content-length", "transfer-encoding", "connection", "keep-alive", "te", "trailer", "upgrade"),
        *("expect", "accept-encoding", "content-encoding", "proxy-authorization", "proxy-connection"),
    }
)
"""What decides where a message goes, where it ends and how it is packed."""


class BadHeader(ValueError):
    """A header that is not sent. The message does not show its value, which may be a secret."""


def header_name(name: str) -> str:
    """The name, if a node or a configuration may set a header of it. Raises `BadHeader`."""
    shown = f"`{ascii(name[:64])[1:-1]}`"
    if _TOKEN.fullmatch(name) is None:
        raise BadHeader(f"{shown} is no name of a header: letters, digits and hyphens are expected")
    if name.lower() in _OURS:
        raise BadHeader(f"the header {shown} is set by Vesper alone")
    return name


def header_value(name: str, value: str) -> str:
    """The value, if it is one line of visible ASCII. Raises `BadHeader`."""
    shown = f"the header `{ascii(name[:64])[1:-1]}`"
    if len(value) > MAX_VALUE:
        raise BadHeader(f"{shown} has {len(value):,} characters, more than {MAX_VALUE:,}")
    if _VALUE.fullmatch(value) is None:
        odd = re.search(r"[^\x20-\x7e\t]", value)
        problem = "begins or ends with a space" if odd is None else f"has the character U+{ord(odd[0]):04X}"
        raise BadHeader(f"{shown} {problem}: a header is one line of visible ASCII characters")
    return value


def key_text(key: str) -> str:
    """A key as a header has it: visible ASCII and spaces inside as they are, all else and `%` percent-encoded, so that
    two keys stay two. Raises `BadHeader`."""
    if not key:
        raise BadHeader("the key of the request is empty")
    text = quote(key, safe=" !\"#$&'()*+,-./:;<=>?@[\\]^_`{|}~")
    # A space at an end is no part of a header's value, so it would be lost.
    inner = text.strip(" ")
    start = len(text) - len(text.lstrip(" ")) if inner else len(text)
    text = "%20" * start + inner + "%20" * (len(text) - start - len(inner))
    if len(text) > MAX_KEY:
        raise BadHeader(f"the key of the request has {len(text):,} characters as a header, more than {MAX_KEY}")
    return text
