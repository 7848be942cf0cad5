"""Kernel: processes with budgets, interrupts to answer, services, and the bus of the configured kernel."""

from __future__ import annotations

from dataclasses import dataclass

from vesper.dashboard.action import Action, Context, Role
from vesper.dashboard.page import Page
from vesper.dashboard.pages.kernel.answers import answer
from vesper.dashboard.pages.kernel.connection import Absence, client_of
from vesper.dashboard.pages.kernel.state import KernelState, read_state
from vesper.kernel.errors import KernelError


@dataclass(frozen=True, slots=True)
class Notice:
    """Why there is no state, and what to do."""

    reason: str
    remedy: str


@dataclass(frozen=True, slots=True)
class KernelView:
    """The kernel of the settings."""

    address: str
    """Empty where none is configured."""
    notice: Notice | None
    state: KernelState | None


def read_kernel(context: Context) -> KernelView:
    """Read the state of the kernel.

    A kernel that cannot be reached is a notice of the page, not a failure.
    """
    try:
        client = client_of(context.stores)
        try:
            return KernelView(client.address, None, read_state(client))
        except KernelError as problem:
            raise Absence.of(context.stores.config, problem) from None
    except Absence as absence:
        return KernelView(absence.address, Notice(absence.why, absence.remedy), None)


PAGES = (
    Page(
        name="kernel",
        path="/workload/kernel",
        title="Kernel",
        read=read_kernel,
        template="kernel/kernel.html",
        summary="Processes of the kernel with their budgets, interrupts to answer, services with health and load, "
        "and its bus.",
    ),
)

ACTIONS = (
    Action(
        name="answer_kernel_interrupt",
        path="/workload/kernel/answer",
        role=Role.OPERATOR,
        perform=answer,
        summary="Resolves the interrupt with this response; its process continues. The first answer counts.",
    ),
)
