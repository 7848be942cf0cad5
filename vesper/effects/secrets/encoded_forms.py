"""The forms in which a secret may stand in a text after something encoded it."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final
from urllib.parse import quote, quote_plus

_MIN_FORM: Final = 4
_MIN_IN_VALUES: Final = 8
"""A shorter secret is not looked for in what comes back: `test` stands in half of all answers."""


@lru_cache(maxsize=256)
def forms_of(secret: str) -> frozenset[str]:
    """All forms that are looked for; none is so short that it stands everywhere. Asked for with every request."""
    data = secret.encode("utf-8")
    escaped = json.dumps(secret)[1:-1]
    percent = {quote(secret, safe=""), quote(secret), quote_plus(secret), quote(secret, safe="!~*'()")}
    found = {
        secret,
        escaped,
        escaped.replace("/", "\\/"),
        json.dumps(secret, ensure_ascii=False)[1:-1],
        repr(secret)[1:-1],
        repr(data)[2:-1],
        html.escape(secret),
        data.hex(),
        data.hex().upper(),
        *percent,
        *map(_with_lower_hex, percent),
    }
    for before in range(3):
        inner = _inside_base64(data, before)
        found |= {inner, inner.replace("+", "-").replace("/", "_")}
    whole = base64.b64encode(data).decode()
    for form in (whole, whole.replace("+", "-").replace("/", "_")):
        found |= {form, form.rstrip("=")}
    return frozenset(form for form in found if len(form) >= _MIN_FORM)


def holds_any(value: object, secrets: Iterable[str]) -> bool:
    """Whether a secret stands anywhere in a value, in any form that is as long as itself."""
    forms = {
        form for text in secrets if len(text) >= _MIN_IN_VALUES for form in forms_of(text) if len(form) >= len(text)
    }
    if not forms:
        return False
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, Mapping):
            waiting += each.keys()
            waiting += each.values()
        elif isinstance(each, list | tuple | set | frozenset):
            waiting += each
        elif each is not None and not isinstance(each, bool):
            text = each.decode("latin-1") if isinstance(each, bytes) else str(each)
            if any(form in text for form in forms):
                return True
    return False


def _inside_base64(data: bytes, before: int) -> str:
    """The characters that are the same in the base64 of every text that has `data` after so many bytes (modulo 3)."""
    text = base64.b64encode(b"\0" * before + data).decode().rstrip("=")
    first = (0, 2, 3)[before]  # these hold bits of what comes before
    bits = 8 * (before + len(data))
    return text[first : bits // 6]  # one more would hold bits of what comes after


def _with_lower_hex(percent: str) -> str:
    parts = percent.split("%")
    return "%".join([parts[0], *(part[:2].lower() + part[2:] for part in parts[1:])])
