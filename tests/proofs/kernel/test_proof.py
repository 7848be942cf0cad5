"""What the judgement of `make proof-kernel` notices. `make proof-sample` runs a small campaign."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from pathlib import Path

from tests.proofs.kernel.campaign import KINDS, Estate
from vesper.kernel import v1


def test_what_was_done_twice_or_not_at_all_is_noticed(tmp_path: Path) -> None:
    estate = Estate(tmp_path)
    estate.start_kernel()
    try:
        for _ in range(3):
            estate.submit(random.Random(1))
        assert estate.under_way() == 3
        first, second, third = estate.kinds
        assert set(estate.kinds.values()) <= set(KINDS)
        write(tmp_path, first, ["draft"] * 5)
        pid = estate.processes()[second].pid
        estate.kernel.client.terminate_process(v1.TerminateProcessRequest(pid=pid))
        estate.kinds["e99"] = "published"
        found = estate.judge()
    finally:
        estate.kernel.stop()
    assert [each.partition(" ")[0] for each in found["doubled"]] == [first]
    assert [each.partition(" ")[0] for each in found["missing"]] == [first, second, third, "e99"]
    assert [each.split(":")[0].partition(" ")[0] for each in found["wrong"]] == [first, second, third]
    assert found["lost"] == ["e99"]


def test_a_campaign_continues_where_it_was(tmp_path: Path) -> None:
    estate = Estate(tmp_path)
    estate.start_kernel()
    estate.submit(random.Random(1))
    estate.kill("kernel")
    estate.sent = "e0"  # as if it had ended before the kernel confirmed
    estate.save()
    estate.kernel.stop()
    again = Estate(tmp_path)
    again.start_kernel()
    try:
        again.submit(random.Random(2))
        assert (again.sent, again.kinds, again.kills.total()) == ("", estate.kinds, 1)
        assert again.under_way() == 1
    finally:
        again.kernel.stop()


def write(folder: Path, request: str, stages: list[str]) -> None:
    with closing(sqlite3.connect(folder / "done.db")) as database:
        database.executemany("INSERT INTO done VALUES (?, ?)", [(request, stage) for stage in stages])
        database.commit()
