"""Queries: what clients read, at a time."""

from __future__ import annotations

from collections.abc import Callable

from google.protobuf.message import Message

from tests.proofs.machines.messages import engine_pb2, interrupt_pb2, kernel_pb2, registry_pb2
from tests.proofs.machines.reference import limits
from tests.proofs.machines.reference.kernel import Kernel
from tests.proofs.machines.reference.refusals import NOT_FOUND, demand, refuse

DEFAULT_PAGE, MOST_IN_PAGE = 100, 1_000


def check_quota(kernel: Kernel, text: bytes) -> Message:
    pid = text.decode()
    control = kernel.processes.get(pid).message
    over = limits.exceeded(control.quota, control.usage, control.created_us, kernel.now_us)
    left = limits.remaining(control.quota, control.usage, control.created_us, kernel.now_us)
    return kernel_pb2.CheckQuotaResponse(within_quota=not over, exceeded=over, usage=control.usage, remaining=left)


def request_status(kernel: Kernel, text: bytes) -> Message:
    pid = text.decode()
    control = kernel.processes.get(pid).message
    pending = kernel.pending(pid)
    return kernel_pb2.GetRequestStatusResponse(
        process=control,
        envelope=kernel.session_envelope(pid),
        pending_interrupt=pending[0] if pending else None,
        remaining=limits.remaining(control.quota, control.usage, control.created_us, kernel.now_us),
    )


def check_bounds(kernel: Kernel, text: bytes) -> Message:
    envelope_id = text.decode()
    envelope = kernel.envelope(envelope_id)
    given = (envelope.bounds, envelope.usage, envelope.created_us, kernel.now_us)
    over = limits.exceeded(*given)
    return engine_pb2.BoundsCheckResult(within_bounds=not over, exceeded=over, remaining=limits.remaining(*given))


def _page_size(given: int) -> int:
    demand(0 <= given <= MOST_IN_PAGE, "the page is out of bounds")
    return given or DEFAULT_PAGE


def list_processes(kernel: Kernel, text: bytes) -> Message:
    request = kernel_pb2.ListProcessesRequest.FromString(text)
    size = _page_size(request.page_size)
    demand(request.state in range(8), "there is no such state")
    after = int(request.page_token[1:] or 0)
    found = [
        process.message
        for process in kernel.processes.all.values()
        if process.number > after
        and request.state in (0, process.state)
        and request.user_id in ("", process.message.user_id)
        and request.session_id in ("", process.message.session_id)
    ]
    token = found[size - 1].pid if len(found) > size else ""
    return kernel_pb2.ListProcessesResponse(processes=found[:size], next_page_token=token)


def list_interrupts(kernel: Kernel, text: bytes) -> Message:
    request = interrupt_pb2.ListInterruptsRequest.FromString(text)
    size = _page_size(request.page_size)
    after = int(request.page_token[1:] or 0)
    if request.pid:
        kernel.processes.get(request.pid)
    demand(request.status in range(5), "there is no such status")
    demand(request.kind in range(8), "there is no such kind")
    found = [
        each
        for name, each in kernel.interrupts.items()
        if int(name[1:]) > after
        and request.pid in ("", each.pid)
        and request.status in (0, each.status)
        and request.kind in (0, each.kind)
    ]
    token = found[size - 1].interrupt_id if len(found) > size else ""
    return interrupt_pb2.ListInterruptsResponse(interrupts=found[:size], next_page_token=token)


def list_services(kernel: Kernel, text: bytes) -> Message:
    request = registry_pb2.ListServicesRequest.FromString(text)
    demand(request.type in range(5), "there is no such type")
    services = sorted(kernel.registry.services.items())
    return registry_pb2.ListServicesResponse(services=[each for _, each in services if request.type in (0, each.type)])


def service_stats(kernel: Kernel, _text: bytes) -> Message:
    return kernel.registry.stats()


def can_accept(kernel: Kernel, text: bytes) -> Message:
    return registry_pb2.CanAcceptResponse(can_accept=kernel.registry.can_accept(text.decode()))


def session_state(kernel: Kernel, text: bytes) -> Message:
    return kernel.session_state(text.decode())


def get_interrupt(kernel: Kernel, text: bytes) -> Message:
    name = text.decode()
    demand(name != "", "an interrupt has a name")
    if name not in kernel.interrupts:
        refuse(NOT_FOUND, f"no interrupt {name}")
    return kernel.interrupts[name]


def get_envelope(kernel: Kernel, text: bytes) -> Message:
    return kernel.envelope(text.decode())


QUERIES: tuple[Callable[[Kernel, bytes], Message], ...] = (
    *(check_quota, request_status, check_bounds, list_processes, list_interrupts, list_services, service_stats),
    *(can_accept, session_state, get_interrupt, get_envelope),
)
