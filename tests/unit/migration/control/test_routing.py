"""Routing: deterministic across processes, with exact shares."""

from __future__ import annotations

import subprocess
import sys

import pytest

from vesper.migration.control.routing import Salt, Shares, is_below, is_in_canary, is_sampled, ticket

KEY = b"a key of the installation"


def names(count: int) -> list[bytes]:
    return [f"customer-{number}".encode() for number in range(count)]


@pytest.mark.parametrize("count, share", [(20_000, 500), (20_000, 100)])
def test_the_canary_takes_its_share(count: int, share: int) -> None:
    taken = sum(is_in_canary("pay_v1", name, KEY, Shares(canary=share)) for name in names(count))
    expected = count * share / 10_000
    assert abs(taken - expected) < 5 * expected**0.5


def test_tickets_are_spread_evenly() -> None:
    buckets = [0] * 16
    for name in names(16_000):
        buckets[ticket("pay_v1", name, KEY, Salt.CANARY) >> 60] += 1
    chi_squared = sum((count - 1_000) ** 2 / 1_000 for count in buckets)
    assert chi_squared < 40  # 15 degrees of freedom: one key in 2,000 would be above


def test_the_sample_does_not_depend_on_the_canary() -> None:
    in_canary = [name for name in names(40_000) if is_in_canary("pay_v1", name, KEY)]
    sampled = sum(is_sampled("pay_v1", name, KEY) for name in in_canary)
    assert abs(sampled - len(in_canary) / 100) < 5 * (len(in_canary) / 100) ** 0.5


def test_a_larger_share_keeps_all_earlier_members() -> None:
    small = {name for name in names(5_000) if is_in_canary("pay_v1", name, KEY, Shares(canary=100))}
    large = {name for name in names(5_000) if is_in_canary("pay_v1", name, KEY, Shares(canary=500))}
    assert small < large


def test_draws_of_nodes_are_independent() -> None:
    assert ticket("ab", b"c", KEY, Salt.CANARY) != ticket("a", b"bc", KEY, Salt.CANARY)
    assert ticket("a", b"c", KEY, Salt.CANARY) != ticket("a", b"c", b"another", Salt.CANARY)
    assert ticket("a", b"c", KEY, Salt.CANARY) != ticket("a", b"c", KEY, Salt.SAMPLE)


GOLDEN = {
    ("pay_v1", b"customer-0", Salt.CANARY): 3_521_609_228_316_601_592,
    ("pay_v1", b"customer-0", Salt.SAMPLE): 6_980_323_140_247_186_617,
    ("prüfung_v1", b"", Salt.CANARY): 15_092_041_094_633_455_968,
}


def test_tickets_never_change() -> None:
    """A change here moves customers between engines in every installation."""
    assert {key: ticket(key[0], key[1], KEY, key[2]) for key in GOLDEN} == GOLDEN


def test_another_process_draws_the_same() -> None:
    source = (
        "from vesper.migration.control.routing import Salt, ticket\n"
        f"print(ticket('pay_v1', b'customer-0', {KEY!r}, Salt.CANARY))"
    )
    ran = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    assert int(ran.stdout) == ticket("pay_v1", b"customer-0", KEY, Salt.CANARY)


def test_the_ends_of_the_shares() -> None:
    assert is_below(0, 1)
    assert is_below(2**64 - 1, 10_000)
    assert not is_below(2**64 - 1, 9_999)


@pytest.mark.parametrize("canary, sample", [(99, 100), (501, 100), (500, 0), (500, 10_001)])
def test_shares_out_of_bounds_are_refused(canary: int, sample: int) -> None:
    with pytest.raises(ValueError, match="of 10,000 requests"):
        Shares(canary, sample)


def test_a_key_that_is_too_long_is_refused() -> None:
    with pytest.raises(ValueError, match="65 bytes"):
        ticket("a", b"", bytes(65), Salt.CANARY)
