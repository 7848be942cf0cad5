"""Reduction of crashes: every candidate runs in a forked process that may crash again."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress

from vesper.verify.differential.verifier import Verifier
from vesper.verify.programs.campaign import INPUTS_PER_PROGRAM, examine, program_seeds
from vesper.verify.programs.nodes import draw_program
from vesper.verify.programs.reduce import reduce_program
from vesper.verify.programs.text import Draft
from vesper.verify.shrink.inputs import shrink
from vesper.verify.workers.crashes import Ending, signal_name
from vesper.verify.workers.process import end_with_parent
from vesper.verify.workers.tasks import Reduced, ReductionTask, Workload
from vesper.verify.workers.watch import Watch

REDUCTION_SECONDS = 4.0
_HANG_SECONDS = 0.5
"""Time after which a candidate counts as hanging. The reduced input was seen to hang for longer."""
_POLL_SECONDS = 0.002
_RAISED = 97
_OUT_OF_MEMORY = 98


def reduce_crash(task: ReductionTask, work: Workload, watch: Watch, send: Callable[[Reduced], None]) -> None:
    """Send ever smaller forms of a crash until nothing smaller crashes alike or the time is over."""
    if task.program is not None:
        _reduce_program(task, task.program, work, watch, send)
    elif task.node is not None and task.crash.inputs is not None:
        _reduce_inputs(task, work, watch, send)


def _reduce_inputs(task: ReductionTask, work: Workload, watch: Watch, send: Callable[[Reduced], None]) -> None:
    assert task.node is not None
    crash, compiled = task.crash, work.nodes[task.node]
    assert crash.inputs is not None
    engines = {name: engine for name, engine in work.engines.items() if name == crash.engine}
    if not engines:
        return
    verifier = Verifier(compiled, engines, work.seed, ways=(), beat=watch.beat)
    end = time.monotonic() + REDUCTION_SECONDS

    def still_fails(candidate: dict[str, object]) -> bool:
        if not _ends_alike(lambda: verifier.rerun(candidate, crash.number), crash.ending, watch, end):
            return False
        send(Reduced(candidate))
        return True

    shrink(compiled.node, crash.inputs, still_fails)


def _reduce_program(
    task: ReductionTask, number: int, work: Workload, watch: Watch, send: Callable[[Reduced], None]
) -> None:
    end = time.monotonic() + REDUCTION_SECONDS
    crash, seed = task.crash, program_seeds(work.seed, number + 1)[number]

    def still_fails(candidate: Draft) -> bool:
        def run() -> None:
            found = examine(candidate, work.engines, seed, INPUTS_PER_PROGRAM, ways=work.ways, beat=watch.beat)
            if found is not None and found.kind == "raised":
                os._exit(_RAISED)

        if not _ends_alike(run, crash.ending, watch, end) or watch.activity().engine != crash.engine:
            return False
        send(Reduced(watch.activity().inputs, candidate.text()))
        return True

    reduce_program(draw_program(seed), still_fails)


def _ends_alike(run: Callable[[], None], ending: Ending, watch: Watch, end: float) -> bool:
    """Return whether a candidate ends its process in the given way before the time is over."""
    left = end - time.monotonic()
    # A candidate that was ended earlier than a hang lasts proves no hang.
    if left <= (_HANG_SECONDS if ending.kind == "hang" else 0):
        return False
    watch.beat("", 0, "", None)
    child = os.fork()
    if child == 0:
        _run_candidate(run)
    status = _wait(child, _HANG_SECONDS if ending.kind == "hang" else left)
    if status is None:
        return ending.kind == "hang"
    match ending.kind:
        case "raised":
            return status == _RAISED
        case "memory":
            return status in (_OUT_OF_MEMORY, -signal.SIGABRT)
        case "signal":
            return status < 0 and ending.text.endswith(signal_name(-status))
        case _:
            return False


def _run_candidate(run: Callable[[], None]) -> None:
    status = _RAISED
    try:
        end_with_parent()
        run()
        status = 0
    except MemoryError:
        status = _OUT_OF_MEMORY
    except BaseException:  # noqa: BLE001  # the status reports it; a forked copy must not continue
        status = _RAISED
    finally:
        os._exit(status)


def _wait(child: int, seconds: float) -> int | None:
    """Return the exit status of a child; None if it had to be killed."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(_POLL_SECONDS)
    with suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None
