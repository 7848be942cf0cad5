"""The rival of `make bench-kernel`: processes in dictionaries behind `grpc.aio`, with the messages of the kernel.

It does what the kernel does for four of its RPCs, except for the log, events and deadlines.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import grpc
from grpc import aio

from vesper.kernel import v1

if TYPE_CHECKING:
    Context = aio.ServicerContext[Any, Any]

SERVICE = "vesper.kernel.v1.KernelService"
_COUNTERS = ("llm_calls", "tool_calls", "agent_hops", "iterations", "tokens_in", "tokens_out")


class Processes:
    """The logic, in memory."""

    def __init__(self) -> None:
        self._processes: dict[str, v1.Process] = {}
        self._requests: dict[str, str] = {}
        self._counts: dict[str, int] = {}
        self._sequence = 0

    async def create(self, request: v1.CreateProcessRequest, context: Context) -> v1.CreateProcessResponse:
        self._sequence += 1
        name = request.request_id or f"r{self._sequence}"
        if name in self._requests:
            await context.abort(grpc.StatusCode.ALREADY_EXISTS, f'The request "{name}" has a process.')
        pid, now_us = f"p{self._sequence}", time.time_ns() // 1000
        process = v1.Process(
            pid=pid,
            request_id=name,
            user_id=request.user_id,
            session_id=request.session_id,
            parent_pid=request.parent_pid,
            state=v1.ProcessState.PROCESS_STATE_NEW,
            priority=request.priority or v1.Priority.PRIORITY_NORMAL,
            quota=request.quota,
            usage=v1.Usage(),
            created_us=now_us,
            changed_us=now_us,
        )
        self._processes[pid] = process
        self._requests[name] = pid
        self._counts["new"] = self._counts.get("new", 0) + 1
        return v1.CreateProcessResponse(process=process)

    async def get(self, request: v1.GetProcessRequest, context: Context) -> v1.GetProcessResponse:
        return v1.GetProcessResponse(process=await self._find(request.pid, context))

    async def record(self, request: v1.RecordUsageRequest, context: Context) -> v1.RecordUsageResponse:
        process = await self._find(request.pid, context)
        usage, quota, remaining = process.usage, process.quota, v1.RemainingBudget()
        for name in _COUNTERS:
            used = getattr(usage, name) + getattr(request.usage, name)
            setattr(usage, name, used)
            if quota.HasField(f"max_{name}"):
                left = getattr(quota, f"max_{name}") - used
                setattr(remaining, f"{name}_remaining", max(0, left))
                if left < 0:
                    self._end(process, name)
        return v1.RecordUsageResponse(process=process, remaining=remaining)

    async def count(self, _: v1.GetProcessCountsRequest, __: Context) -> v1.GetProcessCountsResponse:
        return v1.GetProcessCountsResponse(by_state=self._counts, total=len(self._processes))

    async def _find(self, pid: str, context: Context) -> v1.Process:
        found = self._processes.get(pid)
        if found is None:
            await context.abort(grpc.StatusCode.NOT_FOUND, f"There is no process {pid}.")
            raise AssertionError("abort raises")
        return found

    def _end(self, process: v1.Process, counter: str) -> None:
        if process.state == v1.ProcessState.PROCESS_STATE_NEW:
            self._counts["new"] -= 1
            self._counts["terminated"] = self._counts.get("terminated", 0) + 1
            process.state = v1.ProcessState.PROCESS_STATE_TERMINATED
            process.terminal_reason = v1.TerminalReason.TERMINAL_REASON_QUOTA_EXCEEDED
            process.terminal_message = f"The quota of {counter} is exceeded."


def handler(call: Callable[[Any, Any], Awaitable[Any]], request: Any, answer: Any) -> Any:
    return grpc.unary_unary_rpc_method_handler(
        call, request_deserializer=request.FromString, response_serializer=answer.SerializeToString
    )


async def serve() -> None:
    """Serve on a free port of loopback, and print the address."""
    server, processes = aio.server(), Processes()
    methods = {
        "CreateProcess": handler(processes.create, v1.CreateProcessRequest, v1.CreateProcessResponse),
        "GetProcess": handler(processes.get, v1.GetProcessRequest, v1.GetProcessResponse),
        "RecordUsage": handler(processes.record, v1.RecordUsageRequest, v1.RecordUsageResponse),
        "GetProcessCounts": handler(processes.count, v1.GetProcessCountsRequest, v1.GetProcessCountsResponse),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, methods),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(f"listening on 127.0.0.1:{port}", flush=True)
    await server.wait_for_termination()


if __name__ == "__main__":
    asyncio.run(serve())
