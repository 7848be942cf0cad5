"""Random programs within little fuel and little memory: every engine ends at the same place."""

from __future__ import annotations

import os
from datetime import UTC, datetime

from vesper.compiler import compile_source
from vesper.engines.compare import Disagree, compare
from vesper.engines.engine import Limits, run_observed
from vesper.engines.outcome import LimitHit
from vesper.engines.registry import ENGINES
from vesper.language.diagnostics.source import SourceFile
from vesper.verify.inputs.generator import InputGenerator
from vesper.verify.programs.nodes import draw_program

PROGRAMS = int(os.environ.get("VESPER_PROGRAMS", "40"))
SEED = 26_000_000
NOW = datetime(2026, 1, 1, tzinfo=UTC)
LIMITS = (
    Limits(memory=0),
    Limits(memory=100),
    Limits(memory=700),
    Limits(memory=5_000),
    Limits(fuel=3),
    Limits(fuel=20),
)


def test_programs_hit_their_limits_at_the_same_place() -> None:
    hits = 0
    for seed in range(SEED, SEED + PROGRAMS):
        draft = draw_program(seed)
        compiled, _ = compile_source(SourceFile("drawn.vsp", draft.text()), judge_contracts=False)
        assert compiled is not None, seed
        if not compiled.node.is_pure():
            continue
        programs = {name: engine.load(compiled) for name, engine in ENGINES.items()}
        inputs = InputGenerator(compiled.node, seed, False, []).draw()
        for limits in LIMITS:
            done = {name: run_observed(program, inputs, NOW, limits) for name, program in programs.items()}
            called = {name: program.call(inputs, NOW, limits) for name, program in programs.items()}
            reference = done["python"]
            hits += isinstance(reference.outcome, LimitHit)
            for name, each in done.items():
                assert not isinstance(compare(reference, each), Disagree), (seed, name, limits, draft.text())
            shown = {name: (each.kind, getattr(each, "limit", None)) for name, each in called.items()}
            assert set(shown.values()) == {(reference.outcome.kind, getattr(reference.outcome, "limit", None))}, (
                seed,
                limits,
                shown,
                draft.text(),
            )
    assert hits > PROGRAMS // 4
