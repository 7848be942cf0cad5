"""Members of the kernel's enums as words."""

from __future__ import annotations

import re


def short_name(enum: str, value: int) -> str:
    """Return the word of a member: `pending` of `INTERRUPT_STATUS_PENDING`."""
    from vesper.kernel import v1

    prefix = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", enum).upper()
    name: str = getattr(v1, enum).Name(value)
    return name.removeprefix(f"{prefix}_").lower()
