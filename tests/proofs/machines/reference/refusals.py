"""Refusals: a command that is refused changes nothing."""

from __future__ import annotations

from typing import NoReturn

CODES = (
    *("InvalidArgument", "NotFound", "AlreadyExists", "FailedPrecondition", "ResourceExhausted", "Aborted"),
    *("OutOfRange", "Unavailable", "DeadlineExceeded"),
)
INVALID, NOT_FOUND, EXISTS, PRECONDITION, EXHAUSTED, ABORTED = range(6)


class Refused(Exception):
    """Why a command is refused, as a place in `CODES`."""

    def __init__(self, code: int, why: str) -> None:
        super().__init__(why)
        self.code = code


def refuse(code: int, why: str) -> NoReturn:
    raise Refused(code, why)


def demand(is_met: bool, why: str, code: int = INVALID) -> None:
    """Refuse what does not meet a condition."""
    if not is_met:
        raise Refused(code, why)
