"""Both clients against a real kernel."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from google.protobuf.message import Message

from tests.support.nodes import ROOT
from tests.support.waiting import eventually
from vesper.kernel import AsyncClient, Client, Kernel, KernelError, v1
from vesper.kernel.calls import Rpc, Unary
from vesper.kernel.rpcs import Rpcs

RPCS = {name: each for name, each in vars(Rpcs).items() if isinstance(each, Rpc)}
PROCESS = v1.CreateProcessRequest(user_id="u-1")


@pytest.fixture(scope="module")
def kernel() -> Iterator[Kernel]:
    with Kernel() as found:
        yield found


def test_every_rpc_of_the_services_is_in_the_table() -> None:
    from vesper.kernel.v1 import commbus_pb2, engine_pb2, interrupt_pb2, kernel_pb2, orchestration_pb2, registry_pb2

    declared = {
        f"/{service.full_name}/{method.name}": (method.input_type.name, method.output_type.name)
        for module in (commbus_pb2, engine_pb2, interrupt_pb2, kernel_pb2, orchestration_pb2, registry_pb2)
        for service in module.DESCRIPTOR.services_by_name.values()
        for method in service.methods
    }
    found = {each.path: (each.request.DESCRIPTOR.name, each.answer.DESCRIPTOR.name) for each in RPCS.values()}
    assert found == declared
    assert len(RPCS) == len(found)


@pytest.mark.parametrize("name", [name for name, each in RPCS.items() if isinstance(each, Unary)])
def test_the_kernel_answers_each_rpc_and_both_clients_report_alike(kernel: Kernel, name: str) -> None:
    request = RPCS[name].request(**({"timeout_us": 1_000} if name == "query" else {}))

    def result_of(call: object) -> str:
        return f"answer {type(call).__name__}" if isinstance(call, Message) else str(call)

    def sync() -> str:
        try:
            return result_of(getattr(kernel.client, name)(request))
        except KernelError as error:
            return error.code

    async def asynchronous() -> str:
        async with kernel.async_client() as client:
            try:
                return result_of(await getattr(client, name)(request))
            except KernelError as error:
                return error.code

    found = sync()
    assert found == asyncio.run(asynchronous())
    assert found not in ("UNIMPLEMENTED", "UNKNOWN", "INTERNAL", "UNAVAILABLE")


def test_an_error_has_code_and_message(kernel: Kernel) -> None:
    with pytest.raises(KernelError, match='NOT_FOUND: There is no process "p0"') as caught:
        kernel.client.get_process(v1.GetProcessRequest(pid="p0"))
    assert (caught.value.code, caught.value.message) == ("NOT_FOUND", 'There is no process "p0".')


def test_a_deadline_ends_a_call(kernel: Kernel) -> None:
    subscriber = kernel.client.subscribe(v1.SubscribeRequest(topics=["slow"]))  # it never replies
    eventually(lambda: kernel.client.publish(v1.PublishRequest(topic="slow")).receivers == 1)
    with pytest.raises(KernelError, match="DEADLINE_EXCEEDED"):
        kernel.client.query(v1.QueryRequest(topic="slow"), timeout=0.2)
    subscriber.cancel()
    assert [each for each in subscriber if each.topic != "slow"] == []


def test_streams_deliver_and_end_when_they_are_cancelled(kernel: Kernel) -> None:
    def after() -> v1.SubscribeEventsRequest:
        last = kernel.client.get_system_status(v1.GetSystemStatusRequest()).last_sequence
        return v1.SubscribeEventsRequest(after_sequence=last)

    request = after()
    pid = kernel.client.submit(v1.SubmitRequest(process=PROCESS)).process.pid
    events = kernel.client.subscribe_events(request)
    assert next(events).pid == pid
    events.cancel()
    assert {each.pid for each in events} <= {pid}
    request = after()
    kernel.client.terminate_process(v1.TerminateProcessRequest(pid=pid))

    async def asynchronous() -> None:
        async with kernel.async_client() as client:
            stream = client.subscribe_events(request)
            assert (await anext(aiter(stream))).pid == pid
            stream.cancel()
            assert {each.pid async for each in stream} <= {pid}

    asyncio.run(asynchronous())


def test_events_continue_after_a_sequence_before_the_first_that_was_ever_kept(tmp_path: Path) -> None:
    def first(kernel: Kernel, after: int) -> int:
        events = kernel.client.subscribe_events(v1.SubscribeEventsRequest(after_sequence=after))
        found = next(events).sequence
        events.cancel()
        return found

    with Kernel(store=f"sqlite:{tmp_path / 'kernel.db'}") as kernel:
        kernel.client.submit(v1.SubmitRequest(process=PROCESS))
        sequence = first(kernel, 0)
        assert first(kernel, sequence - 1) == sequence
    with Kernel(store=f"sqlite:{tmp_path / 'kernel.db'}") as again:
        last = again.client.get_system_status(v1.GetSystemStatusRequest()).last_sequence
        again.client.submit(v1.SubmitRequest(process=PROCESS))
        assert first(again, last) > last


def test_a_token_is_needed_and_never_sent_in_plain_text() -> None:
    with Kernel(token="kt-17") as kernel:
        assert kernel.client.get_process_counts(v1.GetProcessCountsRequest()).total == 0
        with Client(kernel.address) as other, pytest.raises(KernelError, match="UNAUTHENTICATED"):
            other.get_process_counts(v1.GetProcessCountsRequest())
    for kind in (Client, AsyncClient):
        with pytest.raises(ValueError, match="in plain text"):
            kind("kernel.example:7443", token="kt-17")


def test_without_grpc_the_error_names_the_extra(tmp_path: Path) -> None:
    (tmp_path / "grpc.py").write_text("raise ModuleNotFoundError(name='grpc')", encoding="utf-8")
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]); import vesper.kernel\n"
        "assert not {'grpc', 'google'} & set(sys.modules)\n"
        "try:\n vesper.kernel.Client\nexcept ModuleNotFoundError as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout == "clients of the kernel need the package `grpc`: pip install 'vesper[kernel]'\n"
