"""Try mutants on recorded chunks, each in a process of its own with limits of time and memory."""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import ForkProcess
from typing import Any

from tests.proofs.mutants.drawn.recording import Chunk, Inputs, ReplayingEngine
from tests.proofs.mutants.planted import die_with_parent
from vesper.cli.verify.ways.public import WAYS
from vesper.engines.engine import Done, Engine
from vesper.engines.registry import REFERENCE
from vesper.verify.differential.forms import COMPARED
from vesper.verify.differential.verifier import Verifier
from vesper.verify.differential.ways.way import Answer, Way

MEMORY_BYTES = 4 * 2**30
SLOWER = 10
"""A mutant that takes so many times as long as no fault is noticed, but not before `GRACE_SECONDS`."""
GRACE_SECONDS = 10.0
WAIT_SECONDS = 120.0
"""Wall-clock time in which a process may use no processor, and `SLOWER` times its share on a busy machine."""


class Noticed(Exception):
    """The engines differ; the message says in which way."""


class ReplayingVerifier(Verifier):
    """A verifier of one chunk that stops at the first difference."""

    def __init__(self, chunk: Chunk) -> None:
        self._kept = chunk.inputs
        reference = ReplayingEngine(COMPARED[REFERENCE], chunk.answers)
        engines: dict[str, Engine] = {**COMPARED, REFERENCE: reference}
        super().__init__(chunk.compiled, engines, chunk.seed, False, checks_postconditions=chunk.is_node, ways=WAYS)
        if not chunk.runs_cases:
            self._cases = ()

    def _inputs(self, first: int) -> Iterator[Inputs]:
        return iter(self._kept)

    def _cover(self, done: Done) -> None:
        """Collect nothing: the inputs are drawn already."""

    def _report_broken(self, *_: object, **__: object) -> None:
        """Report nothing: promises are broken by nodes, and not by engines."""

    def _report_difference(self, *_: object, **__: object) -> None:
        raise Noticed("differs")

    def _report_way(self, way: Way, answer: Answer) -> None:
        raise Noticed(f"{way.name} differs")


def difference(chunk: Chunk) -> tuple[str | None, int]:
    """Return what is noticed on a chunk, and how many executions were not comparable."""
    try:
        report = ReplayingVerifier(chunk).run(len(chunk.inputs), stop_after=1)
    except Noticed as noticed:
        return str(noticed), 0
    except Exception as error:  # noqa: BLE001  # the verifier reports whatever a node raises
        return f"raised {type(error).__name__}", 0
    if report.case_failures:
        return "a case fails", 0
    if report.differences:
        return "differs", 0
    is_lost = report.not_comparable > chunk.lost and report.too_many_lost
    return "not comparable" if is_lost else None, report.not_comparable


# -- the process of one mutant --------------------------------------------------------------------


def confine(seconds: float) -> None:
    """Limit the processor time from now on; SIGXCPU ends the process."""
    used = time.process_time()
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (int(used + seconds) + 1, hard))


def silence() -> None:
    """Drop what a dying engine writes to standard error."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    os.close(nowhere)


def limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def try_chunks(fault: str, chunks: Sequence[Chunk], at: Any, answer_to: Connection) -> None:
    """Run a mutant on every chunk that reaches its place; publish the number of the chunk before it begins."""
    from vesper import _direct

    die_with_parent()
    silence()
    limit_memory()
    _direct.select_fault(fault)  # type: ignore[attr-defined]  # of this build alone
    for number, chunk in enumerate(chunks):
        if fault in chunk.reached:
            at.value = number
            confine(GRACE_SECONDS + SLOWER * chunk.engine_seconds)
            found, _ = difference(chunk)
            if found is not None:
                answer_to.send((number, found))
                return
    answer_to.send(None)


def try_control(chunks: Sequence[Chunk], answer_to: Connection) -> None:
    """Run the engines without a fault; send time, reached places and differences of each chunk."""
    from vesper import _direct

    die_with_parent()
    measured = []
    _direct.note_reached()  # type: ignore[attr-defined]  # of this build alone
    for chunk in chunks:
        begun = time.process_time()
        found, lost = difference(chunk)
        taken = time.process_time() - begun
        measured.append((taken, frozenset(_direct.reached()), lost, found))  # type: ignore[attr-defined]
    answer_to.send(measured)


def measure_control(chunks: Sequence[Chunk]) -> list[str]:
    """Complete chunks by a run without a fault; return what differs, which must be nothing."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=try_control, args=(chunks, sender))
    process.start()
    sender.close()
    measured = receiver.recv()
    process.kill()  # routed calls leave threads behind
    process.join()
    wrong = []
    for chunk, (taken, reached, lost, found) in zip(chunks, measured, strict=True):
        chunk.engine_seconds, chunk.reached, chunk.lost = taken, reached, lost
        if found is not None and found != "not comparable":
            wrong.append(f"{chunk.label}: {found}")
            chunk.reached = frozenset()
    return wrong


# -- processes of many mutants --------------------------------------------------------------------


@dataclass(slots=True)
class Trial:
    """A running process, and what it publishes."""

    name: str
    process: ForkProcess
    answers: Connection
    at: Any
    until: float

    def is_over(self) -> bool:
        return not self.process.is_alive() or time.monotonic() > self.until or self.answers.poll()

    def result(self) -> tuple[int, str] | None:
        """Return the place that noticed the mutant, with what was noticed."""
        found: tuple[int, str] | None = None
        has_answered = False
        try:
            if self.answers.poll():
                found, has_answered = self.answers.recv(), True
        except EOFError:
            has_answered = False
        is_late = not has_answered and self.process.is_alive()
        self.process.kill()
        self.process.join()
        if has_answered:
            return found
        code = self.process.exitcode or 0
        how = "does not end" if is_late or code == -signal.SIGXCPU else f"ends with {code}"
        return int(self.at.value), how


def start_trial(name: str, target: Callable[..., None], args: tuple[object, ...], seconds: float) -> Trial:
    """Start the process of a mutant; `target` gets the arguments, a shared number and a pipe."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    at = context.Value("q", 0, lock=False)
    process = context.Process(target=target, args=(*args, at, sender))
    process.start()
    sender.close()
    return Trial(name, process, receiver, at, time.monotonic() + seconds)


def run_trials(
    names: Sequence[str],
    begin: Callable[[str], Trial],
    processes: int,
    keep: Callable[[str, tuple[int, str] | None], None],
) -> None:
    """Run the trials of all names, some at a time."""
    waiting = list(names)
    running: list[Trial] = []
    try:
        while waiting or running:
            while waiting and len(running) < processes:
                running.append(begin(waiting.pop(0)))
            time.sleep(0.005)
            for each in [each for each in running if each.is_over()]:
                running.remove(each)
                keep(each.name, each.result())
    finally:
        for each in running:
            each.process.kill()
            each.process.join()
