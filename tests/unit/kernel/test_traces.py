"""Spans of real kernels, as an OTLP receiver gets them."""

from __future__ import annotations

import os
import queue
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace

from tests.support.nodes import ROOT
from tests.support.otlp_receiver import Received, Receiver
from tests.support.waiting import eventually
from tests.unit.kernel.test_metrics import samples, scrape
from tests.unit.kernel.test_worker import DOUBLE, DOUBLES, services
from vesper.config.kernel import KernelSettings
from vesper.kernel import Client, Kernel, KernelError, KernelNotStarted, v1
from vesper.kernel.pipelines.file import read_pipeline_text
from vesper.language.diagnostics.source import SourceFile

TRACE, CALLER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
ONE = "pipeline: one\nstages:\n  only: {node: double, service: desk}\n"
COUNTS = v1.GetProcessCountsRequest()


@contextmanager
def called(trace_id: str = TRACE, is_sampled: bool = True) -> Iterator[None]:
    """Call within a span of this trace."""
    flags = trace.TraceFlags(trace.TraceFlags.SAMPLED if is_sampled else 0)
    context = trace.SpanContext(int(trace_id, 16), int(CALLER, 16), is_remote=False, trace_flags=flags)
    with trace.use_span(trace.NonRecordingSpan(context)):
        yield


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as found:
        yield found


def of_trace(receiver: Receiver) -> dict[str, Received]:
    return {each.name: each for each in receiver.spans if each.trace_id == TRACE}


def submit(client: Client, text: str = ONE, **inputs: str) -> str:
    config = read_pipeline_text(SourceFile("test.pipeline.yaml", text)).config
    pid = client.create_process(v1.CreateProcessRequest()).process.pid
    client.initialize_session(v1.InitializeSessionRequest(pid=pid, pipeline=config, inputs_json=inputs))
    client.schedule_process(v1.ScheduleProcessRequest(pid=pid))
    return pid


def register(client: Client) -> None:
    kind, status = v1.ServiceType.SERVICE_TYPE_WORKER, v1.ServiceStatus.SERVICE_STATUS_HEALTHY
    info = v1.ServiceInfo(name="desk", type=kind, status=status, capabilities=["double"], max_concurrent=9)
    client.register_service(v1.RegisterServiceRequest(service=info))


@contextmanager
def working(kernel: Kernel, receiver: Receiver, folder: Path) -> Iterator[None]:
    """Have a worker in a process of its own, whose spans are sent before it ends."""
    (folder / "double_v1.vsp").write_text(DOUBLE, encoding="utf-8")
    (folder / "vesper.toml").write_text(f'[observe]\notlp = "{receiver.url}"\n', encoding="utf-8")
    command = [sys.executable, "-P", "-m", "vesper", "kernel", "worker", "--service", "desk", "--engine", "python"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen([*command, "--address", kernel.address, "."], cwd=folder, env=environment) as process:
        try:
            eventually(lambda: any(each.workers for each in services(kernel)))
            yield
        finally:
            process.send_signal(signal.SIGTERM)


def test_a_trace_goes_from_the_caller_through_the_kernel_to_the_worker(receiver: Receiver, tmp_path: Path) -> None:
    with Kernel(settings=KernelSettings(otlp=receiver.url)) as kernel, working(kernel, receiver, tmp_path):
        with called():
            pid = submit(kernel.client, DOUBLES, value="21")
        request = v1.GetRequestStatusRequest(pid=pid)
        eventually(lambda: kernel.client.get_request_status(request).process.terminal_reason != 0)
        made = kernel.client.create_envelope(v1.CreateEnvelopeRequest(inputs_json={"value": "5"}))
        agent = v1.AgentConfig(name="alone", agent="double", service="desk")
        with called():
            kernel.client.execute_agent(v1.ExecuteAgentRequest(agent=agent, envelope_id=made.envelope_id))
    spans = of_trace(receiver)
    rpcs = {"KernelService/CreateProcess", "OrchestrationService/InitializeSession", "KernelService/ScheduleProcess"}
    alone = spans["EngineService/ExecuteAgent"]
    assert spans.keys() == {*rpcs, "step one", "step two", "step alone", "sir.execute", "EngineService/ExecuteAgent"}
    assert {spans[each].parent_id for each in rpcs} | {alone.parent_id} == {CALLER}
    assert spans["step alone"].parent_id == alone.span_id
    session = spans["OrchestrationService/InitializeSession"]
    assert session.attributes["rpc.grpc.status_code"] == "OK"
    steps = spans["step one"], spans["step two"]
    assert {each.parent_id for each in steps} == {session.span_id}
    runs = {each.parent_id for each in receiver.spans if (each.trace_id, each.service) == (TRACE, "vesper")}
    assert runs == {each.span_id for each in (*steps, spans["step alone"])}
    about = steps[0].attributes
    named = [about[f"sir.kernel.{name}"] for name in ("pid", "stage", "agent", "service")]
    assert named == [pid, "one", "double", "desk"]
    assert about["sir.kernel.step_id"] != steps[1].attributes["sir.kernel.step_id"]
    assert {each.service for each in steps} == {"vesper-kernel"}


def test_steps_that_a_caller_takes_have_spans_and_the_last_are_sent_at_the_end(receiver: Receiver) -> None:
    with Kernel(settings=KernelSettings(otlp=receiver.url)) as kernel:
        client = kernel.client
        config = read_pipeline_text(SourceFile("test.pipeline.yaml", ONE)).config
        pid = client.create_process(v1.CreateProcessRequest()).process.pid
        with called():
            client.initialize_session(v1.InitializeSessionRequest(pid=pid, pipeline=config))
        client.schedule_process(v1.ScheduleProcessRequest(pid=pid))
        client.get_next_runnable(v1.GetNextRunnableRequest(worker="w"))
        step = client.get_next_instruction(v1.GetNextInstructionRequest(pid=pid, worker="w"))
        result = v1.AgentExecutionResult(step_id=step.step_id, output_json="1")
        client.report_agent_result(v1.ReportAgentResultRequest(pid=pid, worker="w", result=result))
    spans = of_trace(receiver)
    found = spans["step only"]
    assert found.parent_id == spans["OrchestrationService/InitializeSession"].span_id
    assert step.envelope.metadata["traceparent"] == f"00-{TRACE}-{found.span_id}-01"
    others = {each.name: each for each in receiver.spans if each.trace_id != TRACE}
    assert others["OrchestrationService/ReportAgentResult"].parent_id == ""


def test_a_step_whose_worker_goes_ends(receiver: Receiver) -> None:
    with Kernel(settings=KernelSettings(otlp=receiver.url)) as kernel:
        register(kernel.client)
        sent: queue.SimpleQueue[v1.WorkRequest | None] = queue.SimpleQueue()
        sent.put(v1.WorkRequest(start=v1.WorkerStart(service="desk", worker="w", max_concurrent=1)))
        work = kernel.client.work(iter(sent.get, None))
        with called():
            submit(kernel.client, value="1")
        assert next(iter(work)).step.agent_name == "only"
        work.cancel()
        sent.put(None)
        eventually(lambda: "step only" in of_trace(receiver))


@pytest.mark.parametrize("sample, is_sampled, is_there", [(0.0, True, True), (1.0, False, False)])
def test_the_caller_decides_about_its_trace(
    receiver: Receiver, sample: float, is_sampled: bool, is_there: bool
) -> None:
    with Kernel(settings=KernelSettings(otlp=receiver.url, sample=sample)) as kernel:
        with called(is_sampled=is_sampled):
            kernel.client.get_process_counts(COUNTS)
        kernel.client.get_process_counts(COUNTS)
    assert ("KernelService/GetProcessCounts" in of_trace(receiver)) is is_there
    roots = [each for each in receiver.spans if each.trace_id != TRACE]
    assert len(roots) == sample


def test_a_refused_caller_makes_no_span(receiver: Receiver) -> None:
    with Kernel(settings=KernelSettings(otlp=receiver.url), token="kt-17") as kernel, called():
        with Client(kernel.address) as other, pytest.raises(KernelError, match="UNAUTHENTICATED"):
            other.get_system_status(v1.GetSystemStatusRequest())
        kernel.client.get_process_counts(COUNTS)
        with pytest.raises(KernelError, match="NOT_FOUND"):
            kernel.client.get_process(v1.GetProcessRequest(pid="p9"))
    assert {name: each.attributes["rpc.grpc.status_code"] for name, each in of_trace(receiver).items()} == {
        "KernelService/GetProcessCounts": "OK",
        "KernelService/GetProcess": "NOT_FOUND",
    }


def test_spans_are_counted_and_a_receiver_that_is_away_stops_no_rpc(receiver: Receiver) -> None:
    def exported(kernel: Kernel, result: str) -> float:
        return samples(scrape(kernel))[f'sir_kernel_spans_total{{result="{result}"}}']

    with socket.create_server(("127.0.0.1", 0)) as taken:
        away = f"http://127.0.0.1:{taken.getsockname()[1]}"
    for otlp, result, other in ((away, "dropped", "exported"), (receiver.url, "exported", "dropped")):
        settings = KernelSettings(otlp=otlp, metrics="127.0.0.1:0")
        with Kernel(settings=settings) as kernel:
            for _ in range(5):
                kernel.client.get_process_counts(COUNTS)
            eventually(lambda kernel=kernel, result=result: exported(kernel, result) == 5)  # type: ignore[misc]
            assert exported(kernel, other) == 0


@pytest.mark.parametrize(
    "settings",
    [
        {"otlp": "https://127.0.0.1:4318"},
        {"otlp": "http://user:password@127.0.0.1:4318"},
        {"otlp": "127.0.0.1:4318"},
        {"otlp": "http://127.0.0.1:4318", "sample": 1.5},
    ],
)
def test_settings_that_cannot_be_used_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(KernelNotStarted, match=r"VESPER_KERNEL_(OTLP|SAMPLE)") as caught:
        Kernel(settings=KernelSettings(**settings)).start()
    assert "password" not in str(caught.value)
