"""A divergence of a node with effects becomes a case with its answers and the outcome of the reference engine."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from tests.support.journalled import compiled_node, node_text
from tests.unit.migration.support.wrong_engine import recorded
from vesper.compiler import compile_source
from vesper.engines.registry import ENGINES, PAIR
from vesper.language.diagnostics.source import SourceFile
from vesper.migration.compare.divergence_record import divergence_of
from vesper.migration.compare.reports import Difference, Disagreement
from vesper.migration.compare.rerun_from_log import Given, LoggedCompletion
from vesper.migration.stores.kept_divergences import SMALL_GIVEN
from vesper.replay.divergence_case import CannotKeep, text_with_case
from vesper.verify.differential.verifier import meets
from vesper.verify.inputs.responses import run_case

NOW = datetime(2026, 11, 15, tzinfo=UTC)
INPUTS = {"event_id": "e 1", "customer": "cus", "amount": Decimal("10.00")}
ANSWERS = {"known": 15, "charge": {"id": "ch_1", "fee": Decimal("0.1"), "note": None}}


def test_answers_and_outcome_are_part_of_the_case() -> None:
    text = node_text()
    compiled = compiled_node(text)
    transcript = recorded(ENGINES["python"].load(compiled), INPUTS, NOW, ANSWERS)
    difference = Difference("outcome", "outputs.fee", "returned", "returned")
    found = divergence_of(Disagreement(difference, None, 7, transcript, transcript.outcome), compiled, False, 1)
    after = text_with_case(compiled, found, "Kept\nby ann")
    assert after.startswith(text.rstrip("\n"))
    assert "    # Kept\\nby ann\n" in after
    assert "now: 2026-11-15T00:00:00Z" in after
    changed, _ = compile_source(SourceFile("charge_v1.vsp", after))
    assert changed is not None
    for engine in PAIR.values():
        assert meets(changed.cases[-1], run_case(engine.load(changed), changed.cases[-1]).outcome)
    with pytest.raises(CannotKeep, match="already"):
        text_with_case(changed, found, "again")
    bare = replace(found, exemplars=(replace(found.exemplars[0], inputs=None, records=None),))
    with pytest.raises(CannotKeep, match="not stored"):
        text_with_case(compiled, bare, "no inputs")
    # The smallest case wins, and a request without an answer fails as unavailable.
    small = Given({**INPUTS, "amount": Decimal(1)}, NOW, (LoggedCompletion("known", 15),))
    shrunk = text_with_case(compiled, replace(found, extra={SMALL_GIVEN: small.to_text()}), "small")
    assert "fails: unavailable" in shrunk
