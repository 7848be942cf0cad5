"""The page of the kernel in Chromium: shown, accessible and narrow enough with a real kernel, and an answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe

from tests.browser.conftest import Dashboard
from vesper.kernel import Kernel, v1

PATH = "/workload/kernel"


@pytest.fixture(scope="module")
def kernel() -> Iterator[Kernel]:
    with Kernel() as kernel:
        client = kernel.client
        service = v1.ServiceInfo(name="desk", type=v1.ServiceType.SERVICE_TYPE_WORKER, max_concurrent=4)
        client.register_service(v1.RegisterServiceRequest(service=service))
        quota = v1.Quota(max_llm_calls=3, timeout_us=3_600_000_000)
        process = v1.CreateProcessRequest(request_id="o-17", user_id="bob", quota=quota)
        pid = client.submit(v1.SubmitRequest(process=process)).process.pid
        client.get_next_runnable(v1.GetNextRunnableRequest(worker="w-1"))
        kind = v1.InterruptKind.INTERRUPT_KIND_CONFIRMATION
        client.create_interrupt(v1.CreateInterruptRequest(pid=pid, kind=kind, message="Refund 12.50 for o-17?"))
        yield kernel


@pytest.fixture(scope="module")
def dashboard(kernel: Kernel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    folder = tmp_path_factory.mktemp("kernel")
    settings = f"[kernel]\nport = {kernel.address.rpartition(':')[2]}\n"
    (folder / "vesper.toml").write_text(settings, encoding="utf-8")
    with Dashboard(folder, "--allow-changes") as found:
        yield found
        assert "Traceback" not in found.log


@pytest.mark.parametrize("is_dark", [False, True], ids=["light", "dark"])
def test_the_page_is_accessible_and_fits(dashboard: Dashboard, open_page: Any, is_dark: bool) -> None:
    page = open_page(dashboard.url + PATH, width=360, dark=is_dark)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    violations = Axe().run(page).response["violations"]
    assert [each["id"] for each in violations if each["impact"] in ("serious", "critical")] == []


def test_an_interrupt_is_answered(dashboard: Dashboard, kernel: Kernel, open_page: Any) -> None:
    page = open_page(dashboard.url + PATH)
    assert page.get_by_text("llm calls: 0 of 3, 3 left").count()
    form = page.locator("details.action")
    form.locator("summary").click()
    form.locator("[name=value]").fill('{"approved": true}')
    form.locator("[name=reason]").fill("as agreed")
    form.locator("button[type=submit]").click()
    page.wait_for_selector("text=No process waits for an answer.")
    (answered,) = kernel.client.list_interrupts(v1.ListInterruptsRequest()).interrupts
    assert answered.response.value_json == '{"approved": true}'
