"""Membership in the canary and in the verification sample: keyed hashes, the same in every process.

The canary is sticky: all requests of a node with the same routing key (a customer, an order) get the same route, on
every machine and after every restart. The verification sample is drawn by execution, with another salt, so that it is
independent of the canary and does not always contain the same customers.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import Enum

_WHOLE = 10_000
_SPACE = 2**64
KEY_BYTES = 64
"""Maximum length of a blake2b key."""


class Salt(Enum):
    CANARY = b"vesper.canary.v1"
    SAMPLE = b"vesper.sample.v1"


@dataclass(frozen=True, slots=True)
class Shares:
    """Shares of requests, in parts of ten thousand."""

    canary: int = 500
    sample: int = 100

    def __post_init__(self) -> None:
        if not 100 <= self.canary <= 500:
            raise ValueError(f"the canary takes 100 to 500 of 10,000 requests (1 to 5 %), not {self.canary}")
        if not 1 <= self.sample <= _WHOLE:
            raise ValueError(f"the verification sample takes 1 to 10,000 of 10,000 requests, not {self.sample}")


DEFAULT_SHARES = Shares()


def ticket(node: str, text: bytes, key: bytes, salt: Salt) -> int:
    """Return a number from 0 to 2⁶⁴ - 1 that depends on the arguments alone."""
    if len(key) > KEY_BYTES:
        raise ValueError(f"the key for routing has {len(key)} bytes, and {KEY_BYTES} is the most")
    name = node.encode()
    drawn = hashlib.blake2b(digest_size=8, key=key, person=salt.value)
    drawn.update(len(name).to_bytes(8, "big"))  # so that no other pair concatenates to the same bytes
    drawn.update(name)
    drawn.update(text)
    return int.from_bytes(drawn.digest(), "big")


def is_below(drawn: int, share: int) -> bool:
    """Return True where a ticket is among `share` of ten thousand."""
    return drawn * _WHOLE < share * _SPACE


def is_in_canary(node: str, routing_key: bytes, key: bytes, shares: Shares = DEFAULT_SHARES) -> bool:
    return is_below(ticket(node, routing_key, key, Salt.CANARY), shares.canary)


def is_sampled(node: str, execution: bytes, key: bytes, shares: Shares = DEFAULT_SHARES) -> bool:
    return is_below(ticket(node, execution, key, Salt.SAMPLE), shares.sample)
