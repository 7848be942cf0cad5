"""A short sample of the proof, and the proof's own eyes: it sees a limiter and a breaker that are wrong."""

from __future__ import annotations

import pytest

from tests.proofs.policies.load import TOLERANCE, Work, crowd, limiter, limiter_in_memory, limiter_in_redis, retries
from tests.proofs.policies.reference import gate
from tests.support.servers import Redis
from tests.support.shared_limits import Admission, MemoryPolicyState, Token
from tests.unit.policies.crowds import SECOND, StillClock
from vesper.policies.settings import Policy

BUSY = 0.3
"""A machine on which tests run may not get to ask in time; it must still not let out more."""
EVENLY = [number * 10_000 for number in range(500)]


def test_a_limiter_under_threads() -> None:
    line = limiter_in_memory(1.5, BUSY)
    assert line.is_right, line


def test_a_limiter_over_two_processes(redis_server: Redis) -> None:
    line = limiter_in_redis(redis_server.url, 1.5, 2, BUSY)
    assert line.is_right, line


def test_retries_are_as_promised() -> None:
    assert all(line.is_right for line in retries())


@pytest.mark.parametrize(
    "moments,is_right",
    [
        (EVENLY, True),
        ([number * 9_800 for number in range(510)], False),
        ([number * 10_200 for number in range(490)], False),
        ([at - 5_000 * (at // 10_000 % 2) for at in EVENLY], True),
        ([at for at in EVENLY if not 2 * SECOND < at < 2 * SECOND + 70_000], False),
        ([at if at < 2 * SECOND or at > 3 * SECOND else 2 * SECOND + at % 1_000 for at in EVENLY], False),
        ([*EVENLY, *(SECOND + number for number in range(3))], False),
    ],
)
def test_the_proof_sees_a_limiter_that_is_wrong(moments: list[int], is_right: bool) -> None:
    assert limiter("given", [Work(moments, 0, 5 * SECOND)], TOLERANCE).is_right is is_right


class LetsAllProbe(MemoryPolicyState):
    """Admits whom a half-open breaker would reject."""

    def acquire(
        self,
        name: str,
        policy: Policy,
        now_us: int,
        deadline_us: int | None = None,
        waiting: Token | None = None,
        *,
        tokens: int = 0,
        patience_us: int | None = None,
    ) -> Admission:
        admission = super().acquire(name, policy, now_us, deadline_us, waiting, tokens=tokens, patience_us=patience_us)
        if isinstance(admission.decision, gate.Rejected) and admission.decision.wait_us == 0:
            return Admission(gate.Admitted(now_us, 0), super().acquire(name, {}, now_us).token)
        return admission


def test_the_proof_sees_a_breaker_that_is_wrong() -> None:
    line = crowd("given", LetsAllProbe(), StillClock())
    assert not line.is_right
    assert "probes of a half-open breaker: 64, expected 1" in line.found
