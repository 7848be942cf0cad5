"""The metrics of a kernel, read by HTTP from its process."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.nodes import ROOT
from tests.support.servers import Postgres
from tests.support.waiting import eventually
from vesper.config.kernel import KernelSettings
from vesper.config.settings import config_from
from vesper.effects.settings import ConfigError
from vesper.kernel import Kernel, KernelError, KernelNotStarted, v1

SETTINGS = KernelSettings(metrics="127.0.0.1:0", quota={"llm_calls": 1})


@pytest.fixture
def kernel(tmp_path: Path) -> Iterator[Kernel]:
    with Kernel(f"sqlite:{tmp_path / 'kernel.db'}", settings=SETTINGS) as kernel:
        yield kernel


class Answer(NamedTuple):
    status: int
    kind: str
    text: str


def get(kernel: Kernel, path: str = "/metrics", token: str = "") -> Answer:
    with closing(HTTPConnection(kernel.metrics_address, timeout=30)) as connection:
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
        answer = connection.getresponse()
        return Answer(answer.status, answer.headers.get("Content-Type", ""), answer.read().decode())


def scrape(kernel: Kernel) -> str:
    answer = get(kernel)
    assert answer.status == 200
    return answer.text


def samples(text: str) -> dict[str, float]:
    rows = (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, value in rows}


def test_an_idle_kernel_serves(kernel: Kernel) -> None:
    assert get(kernel).kind == "text/plain; version=0.0.4; charset=utf-8"
    found = samples(scrape(kernel))
    assert (found["sir_kernel_serving"], found["sir_kernel_log_changes_total"]) == (1, 0)
    assert not any(name.startswith("sir_kernel_rpcs") for name in found)


def test_processes_rpcs_and_the_log_are_counted(kernel: Kernel) -> None:
    client = kernel.client
    pids = [client.create_process(v1.CreateProcessRequest()).process.pid for _ in range(3)]
    client.schedule_process(v1.ScheduleProcessRequest(pid=pids[0]))
    with pytest.raises(KernelError):
        client.get_process(v1.GetProcessRequest(pid="p999"))
    client.record_usage(v1.RecordUsageRequest(pid=pids[1], usage=v1.Usage(llm_calls=2)))
    found = samples(scrape(kernel))
    states = {name: found[f'sir_kernel_processes{{state="{name}"}}'] for name in ("new", "ready", "terminated")}
    assert states == {"new": 1, "ready": 1, "terminated": 1}
    assert found['sir_kernel_rpcs_total{method="KernelService/CreateProcess",code="OK"}'] == 3
    assert found['sir_kernel_rpcs_total{method="KernelService/GetProcess",code="NOT_FOUND"}'] == 1
    assert found['sir_kernel_quota_exceeded_total{resource="llm_calls"}'] == 1
    assert found["sir_kernel_log_changes_total"] == 5
    assert 1 <= found["sir_kernel_log_lag_seconds_count"] <= 5
    name = "sir_kernel_rpc_duration_seconds"
    buckets = [value for key, value in found.items() if key.startswith(f'{name}_bucket{{method="KernelService/CreateP')]
    assert (len(buckets), buckets[-1]) == (17, 3)
    assert buckets == sorted(buckets)
    assert found[f'{name}_sum{{method="KernelService/CreateProcess"}}'] > 0


def test_interrupts_and_messages_are_counted(kernel: Kernel) -> None:
    client = kernel.client
    pid = client.submit(v1.SubmitRequest()).process.pid
    client.get_next_runnable(v1.GetNextRunnableRequest(worker="w"))
    kind = v1.InterruptKind.INTERRUPT_KIND_CONFIRMATION
    asked = client.create_interrupt(v1.CreateInterruptRequest(pid=pid, kind=kind, message="Well?")).interrupt
    assert samples(scrape(kernel))["sir_kernel_interrupts_pending"] == 1
    response = v1.InterruptResponse(value_json="true", by="ann")
    client.resolve_interrupt(v1.ResolveInterruptRequest(interrupt_id=asked.interrupt_id, response=response))
    messages = client.subscribe(v1.SubscribeRequest(topics=["orders"], acknowledges=True))
    while samples(scrape(kernel))["sir_kernel_bus_subscribers"] == 0:
        pass
    client.publish(v1.PublishRequest(topic="orders", sender="s"))
    got = next(messages)
    found = samples(scrape(kernel))
    assert (found["sir_kernel_interrupts_pending"], found["sir_kernel_bus_queued"]) == (0, 1)
    assert found['sir_kernel_bus_messages_total{result="accepted"}'] == 1
    assert found['sir_kernel_bus_messages_total{result="delivered"}'] == 1
    client.acknowledge(v1.AcknowledgeRequest(subscription_id=got.subscription_id, message_ids=[got.message_id]))
    assert samples(scrape(kernel))["sir_kernel_bus_queued"] == 0
    messages.cancel()


def test_every_sample_is_declared(kernel: Kernel) -> None:
    kernel.client.submit(v1.SubmitRequest())
    text = scrape(kernel)
    page = (ROOT / "docs" / "reference" / "metrics.md").read_text(encoding="utf-8")
    declared = set(re.findall(r"`(sir_kernel_\w+)`", page))
    shown = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    assert shown == declared
    named = set(
        re.findall(r"sir_kernel_\w+", (ROOT / "docs" / "how-to" / "run-a-kernel.md").read_text(encoding="utf-8"))
    )
    assert named == declared


def test_metrics_need_the_token_of_the_kernel(tmp_path: Path) -> None:
    with Kernel(settings=SETTINGS, token="secret-of-the-kernel") as kernel:
        refused = get(kernel)
        assert (refused.status, "sir_" in refused.text) == (401, False)
        assert "sir_kernel_serving 1" in get(kernel, token="secret-of-the-kernel").text


def test_metrics_for_other_machines_need_tokens() -> None:
    with pytest.raises(KernelNotStarted, match="without authentication"):
        Kernel(settings=KernelSettings(metrics="0.0.0.0:0")).start()


def test_only_the_page_of_metrics_is_served(kernel: Kernel) -> None:
    assert get(kernel, "/").status == 404


@pytest.mark.parametrize("text", ["9464", "host:", ":9464", "host:99999"])
def test_an_address_has_host_and_port(text: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="`HOST:PORT` is expected"):
        config_from({"kernel": {"metrics": text}}, tmp_path)
    assert config_from({"kernel": {"metrics": "[::1]:9464"}}, tmp_path).kernel.metrics == "[::1]:9464"


def test_a_standby_says_that_it_does_not_serve(postgres: Postgres) -> None:
    dsn = postgres.new_database()
    with Kernel(dsn, settings=SETTINGS) as first, Kernel(dsn, settings=SETTINGS) as second:
        assert [samples(scrape(each))["sir_kernel_serving"] for each in (first, second)] == [1, 0]
        first.kill()
        eventually(lambda: samples(scrape(second))["sir_kernel_serving"] == 1)
