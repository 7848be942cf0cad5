"""Rate limits of users: requests in any second, minute and hour."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.proofs.machines.messages import kernel_pb2
from tests.proofs.machines.reference.limits import HOUR_US, MINUTE_US, SECOND_US

NEVER_US = (1 << 63) - 1


@dataclass
class Rates:
    """The admitted requests of each user, oldest first, for as long as the kernel runs."""

    burst: int | None
    per_minute: int | None
    per_hour: int | None
    requests: dict[str, list[int]] = field(default_factory=dict)

    def count(self, user: str, length_us: int, now_us: int) -> int:
        return sum(1 for at_us in self.requests.get(user, ()) if at_us + length_us > now_us)

    def refusal(self, user: str, now_us: int) -> tuple[str, int] | None:
        """Return the window that admits nothing for the longest time, and when it admits the next request."""
        windows = (
            ("burst", self.burst, SECOND_US),
            ("minute", self.per_minute, MINUTE_US),
            ("hour", self.per_hour, HOUR_US),
        )
        found: tuple[str, int] | None = None
        for name, most, length_us in windows:
            if most is None or self.count(user, length_us, now_us) < most:
                continue
            until_us = self.requests[user][-most] + length_us if most else NEVER_US
            if found is None or until_us > found[1]:
                found = (name, until_us)
        return found

    def record(self, user: str, now_us: int) -> None:
        self.requests.setdefault(user, []).append(now_us)

    def usage(self, user: str, now_us: int) -> kernel_pb2.RateLimitUsage:
        return kernel_pb2.RateLimitUsage(
            last_second=self.count(user, SECOND_US, now_us),
            last_minute=self.count(user, MINUTE_US, now_us),
            last_hour=self.count(user, HOUR_US, now_us),
        )

    def recent(self, now_us: int) -> dict[str, kernel_pb2.RateLimitUsage]:
        """Return the users with a request within the last hour."""
        users = [name for name in sorted(self.requests) if self.count(name, HOUR_US, now_us)]
        return {name: self.usage(name, now_us) for name in users}
