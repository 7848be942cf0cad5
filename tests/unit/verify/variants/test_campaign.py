"""Campaigns of variants and kept programs: what is wrong is found and reduced, what is refused is counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.nodes import compiled_text
from tests.unit.verify.variants.test_draw import NODE
from vesper.compiler import Compiled, compile_source
from vesper.engines.engine import Program
from vesper.engines.registry import PAIR
from vesper.language.diagnostics.source import SourceFile
from vesper.verify.corpus import kept_programs, seed_of
from vesper.verify.programs.campaign import ProgramFailure, examine_text
from vesper.verify.variants import campaign
from vesper.verify.variants.campaign import verify_kept, verify_variants
from vesper.verify.variants.reduce import reduce_document


def test_variants_agree_and_the_refused_ones_are_counted() -> None:
    report = verify_variants(PAIR, [NODE], 12, 3, inputs_each=3)
    assert report.passed, report.failures
    assert report.programs + report.refused == 12
    assert report.programs >= 4
    assert report.executions == 3 * report.programs
    assert len(report.outcomes) > 1


def test_a_failing_variant_is_reduced(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail_on_loops(source: SourceFile, *rest: object) -> ProgramFailure | None:
        text = source.text
        is_compiled = compile_source(source, judge_contracts=False)[0] is not None
        if not is_compiled:
            return ProgramFailure(0, "refused", "", text, "")
        return ProgramFailure(0, "raised", "planted", text, "") if "operation: loop" in text else None

    monkeypatch.setattr(campaign, "examine_text", fail_on_loops)
    report = verify_variants(PAIR, [NODE], 30, 3, stop_after=1)
    (failure,) = report.failures
    assert failure.fingerprint == "planted"
    assert "operation: loop" in failure.text
    assert len(failure.text) < len(NODE) * 0.7


def test_reduction_keeps_what_must_hold() -> None:
    def holds(text: str) -> bool:
        return "item.qty" in text and examine_text(SourceFile("shares_v1.vsp", text), PAIR, 1, 1) is None

    small = reduce_document(NODE, "shares_v1", holds, max_tries=80)
    assert holds(small)
    assert "conditional" not in small
    assert "postconditions" not in small


def test_a_text_for_which_nothing_holds_is_returned_as_it_is() -> None:
    assert reduce_document(NODE, "shares_v1", lambda _: False) == NODE
    assert reduce_document("node_id: [", "shares_v1", lambda _: True) == "node_id: ["


def test_kept_programs_have_the_seed_of_their_name(tmp_path: Path) -> None:
    (tmp_path / "program_12_v1.vsp").write_text(NODE.replace("shares_v1", "program_12_v1"), encoding="utf-8")
    (tmp_path / "broken_v1.vsp").write_text("node_id: broken_v1\n", encoding="utf-8")
    (tmp_path / "notes.txt").write_text("no program", encoding="utf-8")
    kept = kept_programs(tmp_path)
    assert [(each.path.stem, each.seed) for each in kept] == [("broken_v1", 0), ("program_12_v1", 12)]
    report = verify_kept(PAIR, kept, inputs_each=2)
    assert report.programs == 2
    assert [(each.kind, each.seed) for each in report.failures] == [("refused", 0)]
    assert seed_of("variant_7_v2") == 7


def test_a_difference_is_found() -> None:
    """An engine that runs another node must be found out."""

    class Lying:
        name = "lying"

        def load(self, _: Compiled) -> Program:
            return PAIR["interp"].load(compiled_text(NODE.replace("item.qty * 2", "item.qty * 3")))

    failure = examine_text(SourceFile("shares_v1.vsp", NODE), {"python": PAIR["python"], "lying": Lying()}, 1, 30)
    assert failure is not None
    assert failure.kind == "disagreement"
