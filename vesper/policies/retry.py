"""The `retry` of an effect, read from its policy."""

from __future__ import annotations

from dataclasses import dataclass

from vesper.policies.settings import MAX_US, Policy, number, word, words

DEFAULT_CODES = ("timeout", "unavailable")
DEFAULT_FACTOR = 2
MAX_ATTEMPTS = 100
LONGEST_DELAY_US = 3_600_000_000
"""An hour: the longest wait without `max`, unless `base` is longer."""


@dataclass(frozen=True, slots=True)
class Rule:
    """The `retry` of an effect."""

    attempts: int = 1
    codes: tuple[str, ...] = DEFAULT_CODES
    base_us: int = 0
    factor: int = DEFAULT_FACTOR
    max_us: int = LONGEST_DELAY_US
    is_jittered: bool = False
    is_repeatable: bool = True
    """False for class `unsafe`, which is never asked for twice, whatever the other fields say. The checker refuses a
    step that says otherwise; the `retry` of a node may still meet an `unsafe` effect among others."""

    @staticmethod
    def of(policy: Policy, effect_class: str) -> Rule:
        base_us = number(policy, "backoff_us", MAX_US) or 0
        codes = words(policy, "retry_on")
        return Rule(
            number(policy, "attempts", MAX_ATTEMPTS) or 1,
            DEFAULT_CODES if codes is None else codes,
            base_us,
            number(policy, "backoff_factor", 100) or DEFAULT_FACTOR,
            number(policy, "backoff_max_us", MAX_US) or max(base_us, LONGEST_DELAY_US),
            word(policy, "jitter", ("none", "full")) == "full",
            effect_class != "unsafe",
        )
