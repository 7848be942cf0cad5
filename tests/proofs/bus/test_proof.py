"""The verdict of `make proof-bus`, and a small part of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.proofs.bus.actors import Record
from tests.proofs.bus.campaign import ROOT, full_queue, judge, problems_of

SENT = [Record(sender, number, 0, 0) for number in range(4) for sender in range(2)]
READ = [record._replace(delivery=1) for record in SENT]


def verdict(
    steady: list[Record] | None = None, dropping: list[Record] | None = None, worker: list[Record] | None = None
) -> dict[str, int]:
    read = {"steady": steady or READ, "slow": READ, "dropping": dropping or READ[2:6]}
    return judge(SENT, read, [worker or READ[:4], [] if worker else READ[4:]])


def wrong(found: dict[str, int]) -> dict[str, int]:
    return {name: found[name] for name in ("lost", "doubled", "misordered", "gaps") if found[name]}


def test_a_right_run_has_no_problem() -> None:
    found = verdict()
    assert (wrong(found), found["acknowledged"]) == ({}, 8)


@pytest.mark.parametrize(
    "steady, problem",
    [
        (READ[:-1], {"lost": 1}),
        ([*READ, READ[-1]], {"doubled": 1}),
        ([READ[2], *READ[:2], *READ[3:]], {"misordered": 1}),
    ],
)
def test_a_wrong_stream_is_found_out(steady: list[Record], problem: dict[str, int]) -> None:
    assert wrong(verdict(steady=steady)) == problem


def test_a_gap_within_a_dropped_stream_is_found_out() -> None:
    assert wrong(verdict(dropping=[*READ[:2], *READ[4:6]])) == {"gaps": 2}


def test_what_no_worker_had_is_lost() -> None:
    assert wrong(verdict(worker=READ[1:])) == {"lost": 1}


def test_a_second_handling_needs_a_redelivery() -> None:
    assert wrong(verdict(worker=[*READ, READ[0]])) == {"doubled": 1, "misordered": 1}
    again = READ[0]._replace(delivery=2)
    found = verdict(worker=[*READ, again])
    assert (wrong(found), found["redelivered"]) == ({}, 1)


def test_too_much_memory_and_too_short_queues_are_problems() -> None:
    found = {**verdict(), "unacknowledged": 0, "redelivered": 1, "dropped_streams": 1, "rss_mib": 300.0}
    found["most_queued"] = 8
    assert problems_of(found, 8) == ["the kernel had 300.0 MiB, the limit is 256"]
    assert problems_of({**found, "rss_mib": 90.0}, 8) == []
    assert problems_of({**found, "rss_mib": 90.0}, 9) == ["at most 8 messages were queued, not 9: no queue was full"]


def test_only_a_large_part_has_to_fill_a_queue() -> None:
    assert [full_queue(50_000, 200), full_queue(50_000, 16_777), full_queue(6_000, 200)] == [4_096, 971, 0]


def test_a_small_campaign_loses_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.proofs.bus.campaign", "--no-write", "--folder", str(tmp_path / "bus")]
    command += ["--publishers", "6", "--messages", "40", "--part", "40", "--kills", "2", "--payload", "1000"]
    command += ["--pause", "0.1", "--work", "0.005"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
