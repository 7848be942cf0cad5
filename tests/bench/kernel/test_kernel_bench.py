"""Check the tools of `make bench-kernel`: the rival answers as the kernel does, bars that are missed are named."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.bench.kernel.run import Measured, Server, missed, summary
from vesper.kernel import Client, Kernel, KernelError, v1


@pytest.fixture(scope="module", params=["kernel", "grpc_aio"])
def client(request: pytest.FixtureRequest) -> Iterator[Client]:
    if request.param == "kernel":
        with Kernel() as kernel:
            yield kernel.client
        return
    command = [sys.executable, "-m", "tests.bench.kernel.aio_server"]
    with Server(command, os.sched_getaffinity(0)) as server, Client(server.address) as client:
        yield client


def test_both_servers_give_the_same_answers(client: Client) -> None:
    quota = v1.Quota(max_llm_calls=2, max_tokens_in=100)
    request = v1.CreateProcessRequest(request_id="order-1", user_id="ann", quota=quota)
    created = client.create_process(request).process
    assert (created.request_id, created.user_id, created.quota) == ("order-1", "ann", quota)
    assert created.state == v1.ProcessState.PROCESS_STATE_NEW
    usage = v1.Usage(llm_calls=1, tokens_in=40)
    recorded = client.record_usage(v1.RecordUsageRequest(pid=created.pid, usage=usage))
    assert (recorded.remaining.llm_calls_remaining, recorded.remaining.tokens_in_remaining) == (1, 60)
    assert client.get_process(v1.GetProcessRequest(pid=created.pid)).process.usage == usage
    counts = client.get_process_counts(v1.GetProcessCountsRequest())
    assert (dict(counts.by_state), counts.total) == ({"new": 1}, 1)


def test_both_servers_refuse_alike(client: Client) -> None:
    with pytest.raises(KernelError) as caught:
        client.get_process(v1.GetProcessRequest(pid="p999"))
    assert caught.value.code == "NOT_FOUND"
    client.create_process(v1.CreateProcessRequest(request_id="order-2"))
    with pytest.raises(KernelError) as caught:
        client.create_process(v1.CreateProcessRequest(request_id="order-2"))
    assert caught.value.code == "ALREADY_EXISTS"


def test_both_servers_end_what_exceeds_its_quota(client: Client) -> None:
    quota = v1.Quota(max_llm_calls=1)
    pid = client.create_process(v1.CreateProcessRequest(quota=quota)).process.pid
    used = v1.RecordUsageRequest(pid=pid, usage=v1.Usage(llm_calls=2))
    recorded = client.record_usage(used)
    assert recorded.process.state == v1.ProcessState.PROCESS_STATE_TERMINATED
    assert recorded.process.terminal_reason == v1.TerminalReason.TERMINAL_REASON_QUOTA_EXCEEDED


def figures(kernel: float, p99_us: int, memory: float) -> dict[str, Any]:
    found = {
        "kernel": Measured([kernel, kernel + 1, kernel - 1], [10], [p99_us], [0.5], [15.0]),
        "grpc_aio": Measured([4000.0], [100], [9000], [0.1], [240.0]),
    }
    return summary(found, memory)


def test_the_last_line_compares_medians() -> None:
    last = figures(48_000.0, 700, 512.4)
    assert (last["vs_grpc_aio"], last["bytes_per_process"]) == (12.0, 512)
    assert missed(last) == []


@pytest.mark.parametrize(
    "given, problem",
    [
        ((39_000.0, 700, 512.0), "9.75 times the RPCs of grpc.aio, the bar is 10"),
        ((48_000.0, 700, 1100.0), "1100 bytes a process, the bar is 1024"),
        ((48_000.0, 9000, 512.0), "p99 of 9000 µs, that of grpc.aio is 9000 µs"),
    ],
)
def test_a_bar_that_is_not_reached_is_named(given: tuple[float, int, float], problem: str) -> None:
    assert missed(figures(*given)) == [problem]
