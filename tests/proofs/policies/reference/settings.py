"""Settings of a policy that only make sense together."""

from __future__ import annotations

from vesper.policies.settings import Policy, PolicyError, number


def numbers(policy: Policy, *bounds: tuple[str, int]) -> tuple[int, ...] | None:
    """Return numbers that only make sense together; None where the policy has none of them."""
    found = {key: number(policy, key, most) for key, most in bounds}
    given = tuple(value for value in found.values() if value is not None)
    if given and len(given) < len(found):
        missing = next(key for key, value in found.items() if value is None)
        present = next(key for key, value in found.items() if value is not None)
        raise PolicyError(f"policy: `{present}` is of no use without `{missing}`, which is missing")
    return given or None
