"""Properties of damaged IR: the engine refuses it, or both readers and both engines treat it alike."""

from __future__ import annotations

import json
import random
import re
from functools import cache

from tests.support.ir_damage import damage
from tests.support.nodes import compiled, compiled_text, written_for_tests
from vesper import _direct
from vesper.compiler import Compiled
from vesper.engines.direct_engine import all_callees
from vesper.engines.outcome import EngineFault
from vesper.engines.registry import ENGINES
from vesper.language.ir.decode import decode
from vesper.language.ir.encode import encode, semantic_hash
from vesper.verify.inputs.generator import InputGenerator
from vesper.verify.inputs.responses import GeneratedResponses, run_with
from vesper.verify.programs.nodes import draw_program

SEED = 20261117
DAMAGES = 900
RUN = 12
"""Number of accepted documents that are generated as Python and run, which takes most of the time."""


@cache
def sources() -> tuple[Compiled, ...]:
    drawn = (compiled_text(draw_program(seed).text()) for seed in range(7000, 7012))
    return (*(compiled(path) for path in written_for_tests()), *drawn)


@cache
def examined() -> tuple[list[tuple[Compiled, bytes, _direct.Program]], list[str]]:
    """Return the damaged documents that load, and the refusals of the others."""
    accepted, refusals = [], []
    for number in range(DAMAGES):
        source = random.Random(f"{SEED}/{number}")
        whole = sources()[source.randrange(len(sources()))]
        damaged = damage(whole.ir, source)
        if damaged == whole.ir:
            continue
        callees = [each.ir for each in all_callees(whole)]
        try:
            program = _direct.Program.load(damaged, callees)
        except _direct.IrRejected as refusal:
            refusals.append(str(refusal))
        else:
            accepted.append((whole, damaged, program))
    return accepted, refusals


def changed() -> list[tuple[Compiled, bytes, _direct.Program]]:
    """Return the accepted documents with another meaning.

    Engines derive nothing from the source map; only Python looks steps up in it.
    """
    accepted, _ = examined()
    return [each for each in accepted if _semantics(each[1]) != _semantics(each[0].ir) and _maps_its_steps(each[1])]


def test_damage_is_refused_for_many_reasons() -> None:
    accepted, refusals = examined()
    reasons = {re.sub(r"`[^`]*`|\d+", "_", each) for each in refusals}
    assert len(reasons) > 80, "damage that fails at the first byte tests only the decoder"
    assert DAMAGES // 40 < len(accepted) < DAMAGES // 4


def test_both_readers_read_what_is_accepted() -> None:
    for _, damaged, program in changed():
        node = decode(damaged)
        assert encode(node) == damaged
        assert semantic_hash(node) == program.semantic_hash


def test_an_accepted_document_runs_alike_on_both_engines() -> None:
    for whole, damaged, program in changed()[:RUN]:
        node = decode(damaged)
        other = Compiled(whole.source, node, (), damaged, program.semantic_hash, whole.callees)
        inputs = InputGenerator(node, seed=1, seeks_boundaries=False)
        responses = GeneratedResponses(other)
        programs = [ENGINES[engine].load(other) for engine in ("python", "interp")]
        for number in range(3):
            drawn, seed = inputs.draw(), str(number)
            outcomes = [run_with(each, drawn, responses.now(seed), responses.responder(seed)) for each in programs]
            first, second = (each.outcome for each in outcomes)
            assert not isinstance(first, EngineFault)
            assert first == second, f"{drawn}\n{damaged.decode()}"


def test_the_same_seed_draws_the_same_damage() -> None:
    ir = sources()[0].ir
    assert damage(ir, random.Random("1")) == damage(ir, random.Random("1"))
    assert len({damage(ir, random.Random(str(seed))) for seed in range(20)}) > 15


def _semantics(ir: bytes) -> bytes:
    """Return the part before the source map, which the semantic hash covers."""
    return ir.partition(b',"source":{')[0]


def _maps_its_steps(ir: bytes) -> bool:
    """Return whether the source map has every step; damage may rename one."""
    document = json.loads(ir)
    waiting, names = [document["semantics"]["body"]], set[str]()
    while waiting:
        form = waiting.pop()
        if isinstance(form, dict):
            names |= {form["step"]["name"]} if isinstance(form.get("step"), dict) else set()
            waiting += form.values()
        elif isinstance(form, list):
            waiting += form
    return bool(names <= document["source"]["steps"].keys())
