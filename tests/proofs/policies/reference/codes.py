"""Which failure codes a list of codes takes, and which say that the other side is in trouble."""

from __future__ import annotations

import re
from collections.abc import Iterable

_STATUS = re.compile(r"http_[1-5][0-9][0-9]", re.ASCII)


def takes(codes: Iterable[str], code: str) -> bool:
    """True where the list names the code, its class (`http_5xx`), every status (`http_error`), or `any`: as the
    handlers of `on_error` do (docs/spec/flow.md)."""
    names = {code, "any"}
    if _STATUS.fullmatch(code):
        names |= {f"{code[:6]}xx", "http_error"}
    return any(each in names for each in codes)


def is_trouble(code: str) -> bool:
    """True for failures of the other side as a whole: no answer, or one that says that it cannot answer.

    Any other code is an answer, and whoever answers is there. `http_429` is one too: it is about how fast we ask,
    which `rate_limit` and `retry` are for.
    """
    return takes(("timeout", "unavailable", "overloaded", "http_5xx"), code)
