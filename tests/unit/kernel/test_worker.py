"""A worker in this process, with a real kernel and a journal on SQLite."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.waiting import eventually
from vesper.config.settings import config_from
from vesper.host.host import Host
from vesper.host.waiting_runs import answer, cancel
from vesper.kernel import Kernel, KernelError, v1
from vesper.kernel.nodes import load_nodes
from vesper.kernel.pipelines.file import PipelineFile, read_pipeline_text
from vesper.kernel.worker import Worker
from vesper.language.diagnostics.source import SourceFile

DOUBLE = """\
node_id: double_v1
type: function
intent: Double a number
inputs: {value: integer}
outputs:
  success: {doubled: integer}
  error: {error_code: "enum[too_large]", message: string}
flow:
  - operation: return
    when: value > 100
    error: {error_code: too_large, message: "{value} is too large"}
  - return: {doubled: value * 2}
"""
ASK = """\
node_id: ask_v1
type: event_handler
intent: Ask two people
inputs: {event_id: string}
outputs: {success: {first: string, second: string}}
flow:
  - {step: first, operation: interrupt, kind: clarification, message: "Who?", ttl: 1h, returns: string,
     on_error: {expired: {value: "'nobody'"}, cancelled: {value: "'withdrawn'"}}}
  - {step: second, operation: interrupt, kind: confirmation, message: "Sure, {first}?", ttl: TTL, returns: string,
     on_error: {expired: {value: "'late'"}, cancelled: {value: "'withdrawn'"}}}
  - operation: return
    success: {first: first, second: second}
security:
  capabilities_required: [interrupts.raise.clarification, interrupts.raise.confirmation]
"""


@dataclass
class Desk:
    kernel: Kernel
    host: Host

    def submit(self, text: str, **inputs: object) -> str:
        """Submit a pipeline, and return its process."""
        read: PipelineFile = read_pipeline_text(SourceFile("test.pipeline.yaml", text))
        client = self.kernel.client
        pid = client.create_process(v1.CreateProcessRequest()).process.pid
        given = {name: json.dumps(each) for name, each in inputs.items()}
        client.initialize_session(v1.InitializeSessionRequest(pid=pid, pipeline=read.config, inputs_json=given))
        client.schedule_process(v1.ScheduleProcessRequest(pid=pid))
        return pid

    def ended(self, pid: str) -> v1.GetRequestStatusResponse:
        """Wait for the end of a process."""
        request = v1.GetRequestStatusRequest(pid=pid)
        eventually(lambda: self.kernel.client.get_request_status(request).process.terminal_reason != 0)
        return self.kernel.client.get_request_status(request)

    def asked(self, pid: str, message: str) -> v1.FlowInterrupt:
        """Wait for a question of a process."""
        request = v1.ListInterruptsRequest(pid=pid, status="INTERRUPT_STATUS_PENDING")

        def found() -> list[v1.FlowInterrupt]:
            return [each for each in self.kernel.client.list_interrupts(request).interrupts if each.message == message]

        eventually(lambda: len(found()) == 1)
        return found()[0]

    def answer(self, asked: v1.FlowInterrupt, value: object) -> None:
        response = v1.InterruptResponse(value_json=json.dumps(value), by="alice")
        request = v1.ResolveInterruptRequest(interrupt_id=asked.interrupt_id, response=response)
        self.kernel.client.resolve_interrupt(request)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    folder = tmp_path_factory.mktemp("desk")
    for name, text in {
        "double_v1": DOUBLE,
        "ask_v1": ASK.replace("TTL", "1h"),
        "hasty_v1": ASK.replace("TTL", "200ms").replace("ask_v1", "hasty_v1"),
    }.items():
        (folder / f"{name}.vsp").write_text(text, encoding="utf-8")
    config = config_from({"grants": [{"nodes": ["*"], "allow": ["interrupts.raise.*"]}]}, folder)
    with Kernel() as kernel, Host(config) as host:
        nodes = load_nodes(sorted(folder.glob("*.vsp")), "python", host, None)
        worker = Worker(kernel.client, host, nodes, "desk", threads=4)
        thread = threading.Thread(target=worker.run)
        thread.start()
        eventually(lambda: any(each.workers for each in services(kernel)))
        yield Desk(kernel, host)
        worker.stop()
        thread.join(30)
        assert not thread.is_alive()
        assert [each.workers for each in services(kernel)] == [0]


def services(kernel: Kernel) -> list[v1.ServiceInfo]:
    return list(kernel.client.list_services(v1.ListServicesRequest()).services)


DOUBLES = """\
pipeline: doubles
stages:
  one: {node: double, service: desk, routes: [{to: two}], on_error: small}
  two: {node: double_v1, service: desk, inputs: {value: outputs.one.doubled}, on_error: small}
  small: {node: double, service: desk, inputs: {value: inputs.instead}}
"""


def test_stages_take_inputs_from_request_and_outputs(desk: Desk) -> None:
    status = desk.ended(desk.submit(DOUBLES, value=21))
    assert status.process.terminal_reason == v1.TerminalReason.TERMINAL_REASON_COMPLETED
    assert dict(status.envelope.outputs_json) == {"one": '{"doubled":42}', "two": '{"doubled":84}'}


def test_a_failure_takes_the_route_of_errors(desk: Desk) -> None:
    status = desk.ended(desk.submit(DOUBLES, value=99, instead=1))
    assert [each.stage for each in status.envelope.history] == ["one", "two", "small"]
    assert "too_large" in status.envelope.history[1].error
    status = desk.ended(desk.submit(DOUBLES, value=99))
    assert status.process.terminal_reason == v1.TerminalReason.TERMINAL_REASON_AGENT_FAILED
    assert "bad_input" in status.process.terminal_message


def test_an_unknown_node_fails_its_step(desk: Desk) -> None:
    status = desk.ended(desk.submit("pipeline: p\nstages:\n  one: {node: nothing, service: desk}\n"))
    assert "unknown_agent" in status.process.terminal_message
    assert "ask, ask_v1, double" in status.process.terminal_message


ASKING = "pipeline: asking\nstages:\n  one: {node: NODE, service: desk}\n"


def test_answers_in_the_kernel_resolve_the_interrupts_of_the_run(desk: Desk) -> None:
    pid = desk.submit(ASKING.replace("NODE", "ask"), event_id="e-1")
    first = desk.asked(pid, "Who?")
    assert first.kind == v1.InterruptKind.INTERRUPT_KIND_CLARIFICATION
    assert json.loads(first.data_json)["answer_type"] == "string"
    desk.answer(first, 17)  # no string: the run keeps waiting, and the question returns with the reason
    again = desk.asked(pid, "Who?")
    assert again.interrupt_id != first.interrupt_id
    assert "the type is string" in json.loads(again.data_json)["problem"]
    desk.answer(again, "Ann")
    desk.answer(desk.asked(pid, "Sure, Ann?"), "yes")
    status = desk.ended(pid)
    assert json.loads(status.envelope.outputs_json["one"]) == {"first": "Ann", "second": "yes"}
    assert len(desk.host.journal.find(node="ask_v1")) == 1


def test_answers_in_the_journal_resolve_the_interrupts_of_the_kernel(desk: Desk) -> None:
    pid = desk.submit(ASKING.replace("NODE", "ask"), event_id="e-2")
    first = desk.asked(pid, "Who?")
    answer(desk.host.journal, first.run_id, "Bob", "carol")
    second = desk.asked(pid, "Sure, Bob?")
    found = desk.kernel.client.get_interrupt(v1.GetInterruptRequest(interrupt_id=first.interrupt_id)).interrupt
    assert (found.response.value_json, found.response.by) == ('"Bob"', "carol")
    cancel(desk.host.journal, second.run_id, "not needed", "carol")
    status = desk.ended(pid)
    assert json.loads(status.envelope.outputs_json["one"]) == {"first": "Bob", "second": "withdrawn"}


def test_cancelled_and_expired_questions_reach_the_run(desk: Desk) -> None:
    pid = desk.submit(ASKING.replace("NODE", "hasty"), event_id="e-3")
    first = desk.asked(pid, "Who?")
    desk.kernel.client.cancel_interrupt(v1.CancelInterruptRequest(interrupt_id=first.interrupt_id, by="dan"))
    status = desk.ended(pid)
    assert json.loads(status.envelope.outputs_json["one"]) == {"first": "withdrawn", "second": "late"}


def test_requests_and_inference_run_nodes(desk: Desk) -> None:
    client = desk.kernel.client
    envelope = v1.Envelope(inputs_json={"value": "4"})
    request = v1.ServiceRequest(envelope=envelope, metadata={"node": "double"})
    response = client.dispatch(v1.DispatchRequest(service="desk", request=request)).response
    assert (dict(response.envelope.outputs_json), response.error) == ({"double": '{"doubled":8}'}, "")
    request.envelope.inputs_json["value"] = "400"
    response = client.dispatch(v1.DispatchRequest(service="desk", request=request)).response
    assert response.error == "too_large: 400 is too large"
    request.metadata["node"] = "triple"
    assert "has no node" in client.dispatch(v1.DispatchRequest(service="desk", request=request)).response.error
    made = client.create_envelope(v1.CreateEnvelopeRequest(inputs_json={"value": "5"}))
    agent = v1.AgentConfig(name="one", agent="double", service="desk")
    result = client.execute_agent(v1.ExecuteAgentRequest(agent=agent, envelope_id=made.envelope_id))
    assert result.output_json == '{"doubled":10}'
    (info,) = services(desk.kernel)
    info = v1.ServiceInfo(name="desk", type="SERVICE_TYPE_INFERENCE", capabilities=info.capabilities, max_concurrent=9)
    client.register_service(v1.RegisterServiceRequest(service=info))
    inferred = client.dispatch_inference(v1.DispatchInferenceRequest(model="double", input_json='{"value":6}'))
    assert inferred.output_json == '{"doubled":12}'
    with pytest.raises(KernelError, match=r"ABORTED.*too_large"):
        client.dispatch_inference(v1.DispatchInferenceRequest(model="double", input_json='{"value":600}'))


def test_a_worker_without_a_token_ends_with_the_refusal(desk: Desk, tmp_path: Path) -> None:
    with Kernel(token="kt") as kernel:
        from vesper.kernel import Client

        with Client(kernel.address) as client, pytest.raises(KernelError, match="UNAUTHENTICATED"):
            Worker(client, desk.host, [], "desk").run()
