"""What `vesper verify` does in a run with a time limit, recorded once with the reference engine.

Each chunk has the inputs that the verifier drew for one node or one random program, and what the python engine
answered. A mutant is then tried by the other engines alone, which takes a fraction of the time.
"""

from __future__ import annotations

import gc
import pickle
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TypeAlias

from tests.support.nodes import compiled as compiled_file
from tests.support.nodes import worked_nodes
from vesper.codegen.module import generate_module
from vesper.compiler import Compiled, compile_source
from vesper.engines.engine import Blocked, Completion, Done, Engine, Execution, Limits, Observer, Program
from vesper.engines.outcome import Outcome
from vesper.engines.registry import REFERENCE
from vesper.language.diagnostics.source import SourceFile
from vesper.verify.corpus import kept_programs
from vesper.verify.differential.forms import COMPARED
from vesper.verify.differential.verifier import Verifier
from vesper.verify.programs.campaign import (
    INPUTS_PER_PROGRAM,
    PROGRAMS_PER_GENERATION,
    program_path,
    program_seeds,
)
from vesper.verify.programs.nodes import draw_program
from vesper.verify.rounds import INPUTS_PER_ROUND, Rounds, Unit
from vesper.verify.variants.campaign import variant_source
from vesper.verify.variants.draw import draw_variant
from vesper.verify.workers.tasks import Workload

KEPT_FOLDER = Path(__file__).parents[3] / "conformance" / "programs"
MAX_INPUTS = 1_000_000
"""More than any budget of time draws."""

Inputs: TypeAlias = dict[str, object]
Steps: TypeAlias = "list[Blocked | Done]"
Answers: TypeAlias = "dict[str, list[Steps | Outcome]]"


@dataclass(slots=True)
class Chunk:
    """Inputs of one node or random program, with the answers of the reference."""

    label: str
    compiled: Compiled
    seed: int
    is_node: bool
    inputs: list[Inputs]
    answers: Answers
    runs_cases: bool
    """True for the first chunk of a node; the later ones only answer requests like its cases."""
    reference_seconds: float = 0.0
    """Processor time of drawing, compiling and the reference."""
    engine_seconds: float = 0.0
    """Processor time of the other engines without a fault."""
    reached: frozenset[str] = frozenset()
    """Mutants whose places are executed."""
    lost: int = 0
    """Executions that are not comparable without a fault."""


def key_of(method: str, inputs: Mapping[str, object], now: datetime | None, limits: Limits | None) -> str:
    return f"{method} {now!r} {limits!r} {inputs!r}"


# -- the reference, recorded and replayed ---------------------------------------------------------


@dataclass(slots=True)
class RecordingEngine:
    """The reference engine, which keeps its answers."""

    engine: Engine
    answers: Answers = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.engine.name

    def load(self, compiled: Compiled) -> RecordingProgram:
        return RecordingProgram(self.engine.load(compiled), self)


@dataclass(slots=True)
class RecordingProgram:
    program: Program
    engine: RecordingEngine

    @property
    def semantic_hash(self) -> str:
        return self.program.semantic_hash

    def call(self, inputs: Mapping[str, object], now: datetime | None = None, limits: Limits | None = None) -> Outcome:
        outcome = self.program.call(inputs, now, limits)
        self.engine.answers.setdefault(key_of("call", inputs, now, limits), []).append(outcome)
        return outcome

    def start(
        self,
        inputs: Mapping[str, object],
        now: datetime | None = None,
        limits: Limits | None = None,
        observe: Observer | None = None,
        is_traced: bool = True,
    ) -> RecordingExecution:
        steps: Steps = []
        self.engine.answers.setdefault(key_of("start", inputs, now, limits), []).append(steps)
        return RecordingExecution(self.program.start(inputs, now, limits, observe, is_traced), steps)


@dataclass(slots=True)
class RecordingExecution:
    execution: Execution
    steps: Steps

    def advance(self, completions: Sequence[Completion]) -> Blocked | Done:
        self.steps.append(self.execution.advance(completions))
        return self.steps[-1]


@dataclass(slots=True)
class ReplayingEngine:
    """The reference engine of a chunk: it returns what was recorded, and runs what was not."""

    engine: Engine
    answers: Answers
    used: dict[str, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.engine.name

    def load(self, compiled: Compiled) -> ReplayingProgram:
        return ReplayingProgram(compiled, self)

    def take(self, key: str) -> Steps | Outcome | None:
        """Return the next answer to a question; the last one again if it is put more often."""
        kept = self.answers.get(key)
        if not kept:
            return None
        place = self.used.get(key, 0)
        self.used[key] = place + 1
        return kept[min(place, len(kept) - 1)]


@dataclass(slots=True)
class ReplayingProgram:
    compiled: Compiled
    engine: ReplayingEngine
    _loaded: Program | None = None

    @property
    def program(self) -> Program:
        if self._loaded is None:
            self._loaded = self.engine.engine.load(self.compiled)
        return self._loaded

    @property
    def semantic_hash(self) -> str:
        return self.compiled.semantic_hash

    def call(self, inputs: Mapping[str, object], now: datetime | None = None, limits: Limits | None = None) -> Outcome:
        known = self.engine.take(key_of("call", inputs, now, limits))
        return self.program.call(inputs, now, limits) if known is None or isinstance(known, list) else known

    def start(
        self,
        inputs: Mapping[str, object],
        now: datetime | None = None,
        limits: Limits | None = None,
        observe: Observer | None = None,
        is_traced: bool = True,
    ) -> Execution:
        known = self.engine.take(key_of("start", inputs, now, limits))
        if isinstance(known, list):
            return ReplayingExecution(iter(known))
        return self.program.start(inputs, now, limits, observe, is_traced)


@dataclass(frozen=True, slots=True)
class ReplayingExecution:
    steps: Iterator[Blocked | Done]

    def advance(self, completions: Sequence[Completion]) -> Blocked | Done:
        return next(self.steps)


# -- the recorder ---------------------------------------------------------------------------------


class RecordingVerifier(Verifier):
    """A verifier with the reference alone, which keeps what it draws and goes on where it stopped."""

    def __init__(self, compiled: Compiled, seed: int, is_node: bool) -> None:
        self.recorder = RecordingEngine(COMPARED[REFERENCE])
        self._compiled, self._is_node = compiled, is_node
        self.drawn: list[Inputs] = []
        self._stream: Iterator[Inputs] | None = None
        engines: dict[str, Engine] = {REFERENCE: self.recorder}
        super().__init__(compiled, engines, seed, seeks_boundaries=is_node, checks_postconditions=False)

    def _inputs(self, first: int) -> Iterator[Inputs]:
        if self._stream is None:
            self._stream = super()._inputs(first)
        for inputs in self._stream:
            self.drawn.append(dict(inputs))
            yield inputs

    def record(self, label: str, count: int, seed: int) -> Chunk:
        """Draw and answer more inputs."""
        self.report.seed = seed
        self.drawn, self.recorder.answers = [], {}
        runs_cases = self._is_node and bool(self._cases)
        self.run(count)
        self._cases = ()
        return Chunk(label, self._compiled, seed, self._is_node, self.drawn, self.recorder.answers, runs_cases)


def chunks(seed: int) -> Iterator[Chunk]:
    """Yield what a run of all nodes and random programs does, in its order, without an end."""
    nodes = [compiled_file(path) for path in worked_nodes()]
    work = Workload(nodes, COMPARED, seed, documents=[each.source.text for each in nodes])
    yield from kept_chunks()
    verifiers: dict[int, RecordingVerifier] = {}
    rounds = Rounds(len(nodes), MAX_INPUTS, MAX_INPUTS)
    while (unit := rounds.next()) is not None:
        if unit.node is None:
            yield from programs_of(unit, work)
            continue
        begun = time.process_time()
        if unit.node not in verifiers:
            verifiers[unit.node] = RecordingVerifier(nodes[unit.node], seed, True)
        verifier = verifiers[unit.node]
        before = _growth(verifier)
        label = f"node {nodes[unit.node].node.node_id}, round {unit.round}"
        chunk = verifier.record(label, INPUTS_PER_ROUND, seed + unit.round)
        rounds.record(unit, _growth(verifier) != before)
        yield replace(chunk, reference_seconds=time.process_time() - begun)


def _growth(verifier: RecordingVerifier) -> tuple[int, ...]:
    coverage = verifier.report.coverage
    return len(coverage.guards), len(coverage.paths), len(coverage.operations), coverage.branches_covered


def kept_chunks() -> Iterator[Chunk]:
    for each in kept_programs(KEPT_FOLDER):
        chunk = program_chunk(SourceFile(each.path.name, each.text), each.seed, INPUTS_PER_PROGRAM)
        if chunk is not None:
            yield chunk


def programs_of(unit: Unit, work: Workload) -> Iterator[Chunk]:
    for number in unit.numbers:
        own_seed = program_seeds(work.seed, number + 1)[number]
        begun = time.process_time()
        if work.is_variant(number):
            source = variant_source(draw_variant(work.documents, own_seed), own_seed)
        else:
            draft = draw_program(own_seed)
            source = SourceFile(program_path(draft), draft.text())
        chunk = program_chunk(source, own_seed, INPUTS_PER_PROGRAM, begun)
        if chunk is not None:
            yield chunk


def program_chunk(source: SourceFile, seed: int, inputs: int, begun: float | None = None) -> Chunk | None:
    """Compile and record one program, drawn since `begun`; None for a variant that the checker refuses."""
    begun = time.process_time() if begun is None else begun
    compiled, _ = compile_source(source, judge_contracts=False)
    if compiled is None:
        return None
    if seed % PROGRAMS_PER_GENERATION == 0:
        generate_module(compiled.node)
    chunk = RecordingVerifier(compiled, seed, False).record(f"program {source.path}", inputs, seed)
    return replace(chunk, reference_seconds=time.process_time() - begun)


def write_chunks(folder: Path, seed: int, seconds: float) -> None:
    """Write chunks until their references have taken so much processor time; keep those that are there."""
    folder.mkdir(parents=True, exist_ok=True)
    gc.freeze()
    taken = 0.0
    for number, chunk in enumerate(chunks(seed)):
        path = folder / f"{number:06}.pickle"
        if not path.exists():
            scratch = path.with_suffix(".new")
            scratch.write_bytes(pickle.dumps(chunk, protocol=pickle.HIGHEST_PROTOCOL))
            scratch.replace(path)
        taken += chunk.reference_seconds
        if taken > seconds:
            break


def read_chunk(folder: Path, number: int) -> Chunk | None:
    """Return a chunk of this campaign's own folder; None if it is not written yet."""
    path = folder / f"{number:06}.pickle"
    if not path.exists():
        return None
    chunk = pickle.loads(path.read_bytes())
    assert isinstance(chunk, Chunk)
    return chunk
