"""Failure codes that an effect can have, for checking answers given by users."""

from __future__ import annotations

import re

from vesper.language.diagnostics.suggest import did_you_mean
from vesper.values.generated.effects import EFFECTS

_HTTP_CODE = re.compile(r"http_[1-5][0-9]{2}", re.ASCII)


def no_such_code(effect: str, step: str, code: str) -> str | None:
    """Return why a step cannot fail with this code; None if it can."""
    codes = EFFECTS[effect].codes()
    if code in codes or ("http_error" in codes and _HTTP_CODE.fullmatch(code)):
        return None
    known = ["http_NNN" if each == "http_error" else each for each in codes]
    hint = did_you_mean(code, known) or f"it can fail with {', '.join(known)}"
    return f"`{step}` cannot fail with `{code[:80]}`; {hint}"
