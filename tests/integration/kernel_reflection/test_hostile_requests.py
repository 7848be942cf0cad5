"""Requests that no honest client sends: the kernel refuses them, and loses nothing of what it has."""

from __future__ import annotations

import random
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from tests.integration.kernel_reflection.cases import cases_of
from tests.integration.kernel_reflection.conftest import MAX_MESSAGE_BYTES, check_health
from tests.integration.kernel_reflection.mutations import extreme
from tests.integration.kernel_reflection.world import PACKAGE, USER_LIMIT, World
from tests.support.waiting import eventually
from tests.support.work.kernel_process import KernelProcess
from tests.support.work.reflected import Json, Reflected, RequestQueue

NAMES = tuple(name for name in cases_of("v1") if name.startswith(PACKAGE))
REFUSALS = {
    "ABORTED",
    "ALREADY_EXISTS",
    "FAILED_PRECONDITION",
    "INVALID_ARGUMENT",
    "NOT_FOUND",
    "OUT_OF_RANGE",
    "RESOURCE_EXHAUSTED",
}
# A stream that only reads, and a query without an answer, end by their deadline.
TIMED_OUT = {"DEADLINE_EXCEEDED", "CANCELLED"}
"""The codes of docs/spec/kernel.md for a caller whose time is over."""
ANSWERS = REFUSALS | TIMED_OUT | {"OK"}
SHORT_SECONDS = 0.5
MALFORMED = {
    "a length beyond the end": b"\x0a\xff\x01",
    "a varint without an end": b"\x08" + b"\xff" * 11,
    "field number zero": b"\x00\x00",
    "a wire type that does not exist": b"\x0f",
    "the end of a group without its begin": b"\x0c",
    "groups in groups": b"\x0b" * 50_000,
}


@pytest.fixture
def kept(world: World) -> Iterator[None]:
    """Things that have to be as they were when the test is over."""
    # None of them is ready: workers of these tests may take what is.
    pids = frozenset([world.new(), world.running(), world.ended(), world.exhausted(), world.step()["pid"]])
    before = world.facts(only=pids)
    assert len(before) >= len(pids)
    yield
    assert world.facts(only=pids) == before


@pytest.mark.parametrize("version", ["v1"], indirect=True)
@pytest.mark.usefixtures("kept")
class TestHostile:
    def test_bytes_that_are_no_message(self, kernel: Reflected, world: World) -> None:
        before = world.sequence()
        for name in NAMES:
            for what, data in MALFORMED.items():
                assert kernel.call(name, data).code == "INTERNAL", f"{name}: {what}"
        assert world.sequence() == before

    def test_texts_that_are_not_unicode(self, kernel: Reflected) -> None:
        for name in NAMES:
            for field in kernel.methods[name].input_type.fields:
                if field.type == field.TYPE_STRING:
                    data = bytes([field.number << 3 | 2, 2]) + b"\xc3\x28"
                    assert kernel.call(name, data).code == "INTERNAL", f"{name}: {field.name}"

    def test_random_bytes(self, kernel: Reflected) -> None:
        draws = random.Random(20_261_119)
        for name in NAMES:
            for length in (1, 3, 9, 40):
                result = kernel.call(name, draws.randbytes(length), timeout=SHORT_SECONDS)
                assert result.code in ANSWERS | {"INTERNAL", "UNAVAILABLE"}, f"{name}: {result}"

    def test_parts_of_good_requests(self, kernel: Reflected, world: World) -> None:
        draws = random.Random(20_261_120)
        for name in NAMES:
            whole = kernel.encode(kernel.methods[name].input_type, cases_of("v1")[name][0].make(world))
            for _ in range(3):
                cut = bytearray(whole[: draws.randrange(len(whole) + 1)])
                if cut:
                    cut[draws.randrange(len(cut))] ^= 1 << draws.randrange(8)
                result = kernel.call(name, bytes(cut), timeout=SHORT_SECONDS)
                assert result.code in ANSWERS | {"INTERNAL", "UNAVAILABLE"}, f"{name}: {result}"

    def test_extreme_numbers(self, kernel: Reflected, world: World) -> None:
        for name in NAMES:
            for request in extreme(kernel.methods[name].input_type, cases_of("v1")[name][0].make(world)):
                result = kernel.call(name, request, timeout=SHORT_SECONDS)
                assert result.code in ANSWERS, f"{name} {request}: {result}"

    def test_messages_that_are_too_large(self, kernel: Reflected, world: World) -> None:
        before = world.sequence()
        for name in NAMES:
            result = kernel.call(name, bytes(MAX_MESSAGE_BYTES + 1))
            assert result.code == "OUT_OF_RANGE", f"{name}: {result}"
        user = "u" * (MAX_MESSAGE_BYTES + 1)
        assert kernel.call(f"{PACKAGE}.KernelService/ListProcesses", {"user_id": user}).code == "OUT_OF_RANGE"
        assert world.sequence() == before
        fitting = "u" * (MAX_MESSAGE_BYTES - 100)
        assert kernel.call(f"{PACKAGE}.KernelService/ListProcesses", {"user_id": fitting}).code == "OK"

    def test_methods_that_do_not_exist(self, kernel: Reflected) -> None:
        services = {name.partition("/")[0] for name in NAMES}
        paths = [f"/{each}/{method}" for each in services for method in ("Nothing", "", "getprocess", "../GetProcess")]
        for path in [*paths, "/vesper.kernel.v2.KernelService/GetProcess", "/none/GetProcess"]:
            call: Any = kernel.channel.unary_unary(path)
            with pytest.raises(grpc.RpcError) as raised:
                call(b"", timeout=30)
            assert raised.value.code().name == "UNIMPLEMENTED", path

    def test_deadlines_that_are_over(self, kernel: Reflected, world: World) -> None:
        query = {"topic": world.listened(), "timeout_us": 3_600_000_000}
        assert kernel.call(f"{PACKAGE}.CommBusService/Query", query, timeout=SHORT_SECONDS).code in TIMED_OUT
        eventually(lambda: "open_queries" not in world.do("KernelService/GetSystemStatus", {})["bus"])
        for name in NAMES:
            if not kernel.methods[name].client_streaming:
                result = kernel.call(name, cases_of("v1")[name][0].make(world), timeout=0)
                # An answer may be faster than the deadline.
                assert result.code in TIMED_OUT | {"OK"}, f"{name}: {result}"

    def test_requests_that_are_withdrawn(self, kernel: Reflected, world: World) -> None:
        for name in NAMES:
            request: Json = cases_of("v1")[name][0].make(world)
            kernel.start(name, [request]).cancel()
        topic = world.name()
        streams = [kernel.start(f"{PACKAGE}.CommBusService/Subscribe", [{"topics": [topic]}]) for _ in range(20)]
        world.subscribe(topics=[topic])
        for stream in streams:
            stream.cancel()
        world.close()
        assert kernel.call(f"{PACKAGE}.CommBusService/Publish", {"topic": topic}).answer.get("receivers") is None

    def test_a_worker_that_vanishes_gives_its_step_back(self, kernel: Reflected, world: World) -> None:
        service = world.service()
        pid = world.ready()
        request = {"pid": pid, "pipeline": world.pipeline(service=service)}
        world.do("OrchestrationService/InitializeSession", request)
        given = []
        for worker in ("first", "second"):
            start = {"start": {"service": service, "worker": world.name(worker), "max_concurrent": 1}}
            # The requests of this stream never end: it is withdrawn.
            stream = kernel.start(f"{PACKAGE}.RegistryService/Work", _once_and_wait(start))
            given.append(next(iter(stream))["step"]["step_id"])
            stream.cancel()
            eventually(lambda: world.workers_of(service) == 0)
        assert given[0] == given[1]

    def test_connections_that_are_no_grpc(self, process: KernelProcess, world: World) -> None:
        host, _, port = process.address.rpartition(":")
        draws = random.Random(20_261_121)
        preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        frames = [
            b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
            draws.randbytes(4_000),
            preface,
            preface + b"\xff\xff\xff\x00\x00\x00\x00\x00\x01",  # a frame of 16 MB
            preface + b"\x00\x00\x00\x04\x00\x00\x00\x00\x00" + b"\x00\x00\x01\x01\x05\x00\x00\x00\x01\xff",
            preface + draws.randbytes(4_000),
        ]
        for data in frames:
            with socket.create_connection((host, int(port)), timeout=30) as connection:
                connection.sendall(data)
        check_health(process)


def _once_and_wait(request: Json) -> Iterator[Json]:
    requests = RequestQueue()
    requests.put(request)
    return iter(requests)


def test_the_state_survives_a_kill(tmp_path: Path) -> None:
    """What good, bad and random requests of every RPC have left is the same after the death of the kernel."""
    draws = random.Random(20_261_122)
    with KernelProcess(tmp_path, rate_per_hour=str(USER_LIMIT)) as process:
        with Reflected(process.address) as kernel:
            world = World(kernel)
            for name in NAMES:
                for case in cases_of("v1")[name]:
                    kernel.call(name, case.make(world))
                kernel.call(name, draws.randbytes(9), timeout=SHORT_SECONDS)
            world.close()
            before = world.facts()
        assert len(before) > 100
        process.end(signal.SIGKILL)
        process.start()
        with Reflected(process.address) as again:
            assert World(again).facts() == before
        check_health(process)
        assert process.end() == 0
        assert process.stderr == ""
