"""The page of the kernel: what a real one says, answers of operators, and notices where none can be asked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.dashboard import TestClient, client_of
from tests.support.servers import free_port
from vesper.config.settings import Config, config_from
from vesper.dashboard.access.caller import Role
from vesper.dashboard.app import whole_site
from vesper.dashboard.pages.kernel import state
from vesper.kernel import Kernel, v1

SITE = whole_site(["vesper.dashboard.pages.kernel"])
PATH = "/workload/kernel"
HOSTILE = "<script>alert(1)</script>"
REASON = {"reason": "as agreed"}


def config_of(folder: Path, address: str, **more: object) -> Config:
    return config_from({"kernel": {"port": int(address.rpartition(":")[2]), **more}}, folder)


def ask(kernel: Kernel, message: str) -> str:
    """Let a process ask, and return the interrupt."""
    client = kernel.client
    quota = v1.Quota(max_llm_calls=3, timeout_us=3_600_000_000)
    process = v1.CreateProcessRequest(request_id=f"order {message}", user_id="bob", quota=quota)
    pid = client.submit(v1.SubmitRequest(process=process)).process.pid
    while client.get_next_runnable(v1.GetNextRunnableRequest(worker="w-1")).process.pid != pid:
        pass  # those that were answered are ready again
    client.record_usage(v1.RecordUsageRequest(pid=pid, usage=v1.Usage(llm_calls=1, tokens_in=40)))
    kind = v1.InterruptKind.INTERRUPT_KIND_CONFIRMATION
    asked = v1.CreateInterruptRequest(pid=pid, kind=kind, message=message, data_json='{"amount": "12.50"}')
    return client.create_interrupt(asked).interrupt.interrupt_id


@pytest.fixture(scope="module")
def kernel() -> Iterator[Kernel]:
    with Kernel() as kernel:
        yield kernel


@pytest.fixture
def client(kernel: Kernel, tmp_path: Path) -> Iterator[TestClient]:
    with client_of(config_of(tmp_path, kernel.address), SITE) as found:
        yield found


def shown(client: TestClient) -> dict[str, Any]:
    found: dict[str, Any] = client.get(f"/api{PATH}").json()
    return found


def test_the_page_shows_processes_with_their_budgets(client: TestClient, kernel: Kernel) -> None:
    ask(kernel, HOSTILE)
    view = shown(client)
    assert (view["address"], view["notice"]) == (kernel.address, None)
    newest = view["state"]["processes"][0]
    assert (newest["request"], newest["user"], newest["state"]) == (f"order {HOSTILE}", "bob", "waiting")
    assert newest["budgets"] == [
        {"name": "llm_calls", "used": 1, "limit": 3},
        {"name": "tokens_in", "used": 40, "limit": None},
    ]
    assert view["state"]["counts"]["waiting"] == view["state"]["pending"] >= 1
    text = client.get(PATH).text
    assert HOSTILE not in text
    assert "llm calls: 1 of 3, 2 left" in text
    assert "&lt;script&gt;" in text


def test_services_and_the_bus_are_shown(client: TestClient, kernel: Kernel) -> None:
    service = v1.ServiceInfo(
        name="desk",
        type=v1.ServiceType.SERVICE_TYPE_WORKER,
        max_concurrent=4,
        status=v1.ServiceStatus.SERVICE_STATUS_HEALTHY,
    )
    kernel.client.register_service(v1.RegisterServiceRequest(service=service))
    kernel.client.acquire_slot(v1.AcquireSlotRequest(name="desk"))
    messages = kernel.client.subscribe(v1.SubscribeRequest(topics=["orders"], acknowledges=True))
    while not shown(client)["state"]["subscribers"]:
        pass
    kernel.client.publish(v1.PublishRequest(topic="orders", sender="s"))
    next(messages)
    found = shown(client)["state"]
    (desk,) = found["services"]
    assert (desk["name"], desk["status"], desk["load"], desk["max_concurrent"]) == ("desk", "healthy", 1, 4)
    assert (found["subscribers"], found["topics"], found["queued"]) == (1, 1, 1)
    assert "1 of 4" in client.get(PATH).text
    messages.cancel()


def test_the_latest_processes_are_first_and_few(
    client: TestClient, kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "_WINDOWS", (2, 10, 10_000))
    made = [kernel.client.create_process(v1.CreateProcessRequest()).process.pid for _ in range(30)]
    pids = [each["pid"] for each in shown(client)["state"]["processes"]]
    assert pids == made[:-26:-1]


def test_an_operator_answers_once_with_json(client: TestClient, kernel: Kernel, tmp_path: Path) -> None:
    interrupt = ask(kernel, "Refund 12.50?")
    path = f"/api{PATH}/answer"
    given = {**REASON, "interrupt": interrupt, "value": '{"approved": true}'}
    with client_of(config_of(tmp_path, kernel.address), SITE, roles=[Role.VIEWER]) as viewer:
        assert viewer.post(path, json=given).status_code == 403
        assert "needs the role operator" in viewer.get(PATH).text
    wrong = client.post(path, json={**given, "value": "{approved"})
    assert (wrong.status_code, "no JSON" in wrong.text) == (400, True)
    done = client.post(path, json=given)
    assert done.status_code == 200, done.text
    assert f"Answered {interrupt} of p" in done.json()["message"]
    found = kernel.client.get_interrupt(v1.GetInterruptRequest(interrupt_id=interrupt)).interrupt
    assert (found.response.value_json, found.response.by) == ('{"approved": true}', "ann")
    assert interrupt not in [each["id"] for each in shown(client)["state"]["interrupts"]]
    assert client.post(path, json=given).status_code == 409
    assert client.post(path, json={**given, "interrupt": "i999999"}).status_code == 409


def test_an_answer_that_is_required_is_not_left_out(client: TestClient, kernel: Kernel) -> None:
    interrupt = ask(kernel, "Well?")
    refused = client.post(f"/api{PATH}/answer", json={**REASON, "interrupt": interrupt, "value": ""})
    assert refused.status_code == 409


def test_without_a_kernel_there_is_a_notice(tmp_path: Path) -> None:
    with client_of(config_from({}, tmp_path), SITE) as client:
        found = client.get(PATH)
        assert (found.status_code, "No kernel is configured." in found.text) == (200, True)
        assert shown(client)["state"] is None
    with client_of(config_of(tmp_path, f"127.0.0.1:{free_port()}"), SITE) as client:
        found = client.get(PATH)
        assert (found.status_code, "cannot be asked: UNAVAILABLE" in found.text) == (200, True)
        assert "vesper kernel serve" in found.text
        answer = client.post(f"/api{PATH}/answer", json={**REASON, "interrupt": "i1", "value": "true"})
        assert answer.status_code == 503


def test_a_kernel_with_tokens_needs_one_of_the_dashboard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Kernel(token="token-of-the-kernel") as kernel:
        config = config_of(tmp_path, kernel.address)
        with client_of(config, SITE) as client:
            assert "VESPER_KERNEL_TOKEN" in shown(client)["notice"]["remedy"]
        monkeypatch.setenv("VESPER_KERNEL_TOKEN", "token-of-the-kernel")
        with client_of(config, SITE) as client:
            assert shown(client)["notice"] is None
