"""Constraints of named types apply to inputs, steps, completions, CAST and outputs.

`tests/integration/differential/nodes/held_to_types_v1.vsp` has the valid cases; here are the violations.
"""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from tests.support.nodes import compiled_text
from vesper.engines.engine import Completion, Request
from vesper.engines.outcome import ContractBroken, Outcome, Returned
from vesper.engines.registry import ENGINES
from vesper.verify.inputs.responses import run_with

OUTPUT = """\
node_id: output_v1
type: function
intent: Return more than the type of the output allows
types:
  Share: {type: decimal, constraints: [{max: 1}]}
inputs: {a: decimal}
outputs: {success: {parts: "array<Share>"}}
contracts:
  postconditions: [length(parts) == 3]
flow:
  - operation: return
    success: {parts: "[a, a * 2]"}
"""

EFFECT = """\
node_id: effect_v1
type: data_transform
intent: Read a row that somebody else wrote
types:
  Share: {type: decimal, constraints: [{max: 1}]}
  Row:
    fields: {owner: string, share: Share}
    constraints: [length(owner) > 0]
inputs: {ids: array<string>}
outputs: {success: {rows: "array<Row>"}}
flow:
  - step: rows
    operation: database_query
    query: SELECT owner, share FROM shares WHERE id = :id
    bind: {id: 'ids[0]'}
    returns: array<Row>
  - operation: return
    success: [rows]
security:
  capabilities_required: [database.read.shares]
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_output_types_are_checked_before_postconditions(engine: str) -> None:
    program = ENGINES[engine].load(compiled_text(OUTPUT))
    broken = program.call({"a": Decimal("0.6")})
    assert isinstance(broken, ContractBroken)
    assert (broken.phase, broken.index) == ("postcondition", 0)
    written = program.call({"a": Decimal("0.5")})
    assert isinstance(written, ContractBroken)
    assert (written.phase, written.index) == ("postcondition", 1), "the one that the node writes"


@pytest.mark.parametrize("engine", ENGINES)
def test_every_row_of_a_completion_is_checked_against_its_type(engine: str) -> None:
    program = ENGINES[engine].load(compiled_text(EFFECT))

    def outcome(*rows: dict[str, object]) -> Outcome:
        def respond(request: Request) -> Completion:
            return Completion(request.id, list(rows))

        return run_with(program, {"ids": ["1"]}, datetime(2026, 11, 15, tzinfo=UTC), respond).outcome

    good = {"owner": "a", "share": Decimal("0.5")}
    assert isinstance(outcome(good, good), Returned)
    for bad, index in (({"owner": "a", "share": Decimal(2)}, 0), ({"owner": "", "share": Decimal(1)}, 1)):
        broken = outcome(good, bad)
        assert isinstance(broken, ContractBroken)
        assert (broken.phase, broken.index) == ("validation", index)
