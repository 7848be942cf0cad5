"""Generated answers of effects, which sometimes repeat values of the inputs."""

from __future__ import annotations

from decimal import Decimal

from tests.support.nodes import compiled_text
from vesper.engines.engine import Done
from vesper.engines.outcome import Returned
from vesper.engines.registry import ENGINES
from vesper.verify.differential.forms import COMPARED
from vesper.verify.differential.verifier import Verifier
from vesper.verify.inputs.responses import GeneratedResponses, run_with

_ROW = """\
node_id: same_row_v1
type: http_handler
intent: Compare a stored row with the input that selects it
types:
  Row: {fields: {amount: decimal, owner: string}}
inputs: {amount: decimal, owner: optional<string>}
outputs:
  success: {found: "enum[both, one, neither]"}
  error: {error_code: "enum[no_row]", message: string}
flow:
  - step: row
    operation: database_query
    query: SELECT amount, owner FROM rows LIMIT 1
    returns: optional<Row>
  - operation: raise
    when: row IS NULL
    error: {error_code: no_row, message: there is no row}
  - operation: return
    success:
      found: "IF row.amount == amount THEN (IF row.owner == owner THEN both ELSE one) ELSE neither"
security:
  capabilities_required: [database.read.rows]
"""
"""A node without cases, whose branches need answers that agree with the inputs."""


def _run(inputs: dict[str, object], number: int) -> Done:
    node = compiled_text(_ROW)
    responses = GeneratedResponses(node)
    seed = f"1 {number}"
    return run_with(ENGINES["python"].load(node), inputs, responses.now(seed), responses.responder(seed, inputs))


def test_answers_that_agree_with_the_inputs_are_drawn() -> None:
    report = Verifier(compiled_text(_ROW), COMPARED, seed=1).run(300)
    assert not report.differences
    assert len(report.coverage.guards) == report.coverage.guards_total


def test_a_seed_and_inputs_determine_the_answers() -> None:
    inputs: dict[str, object] = {"amount": Decimal("731.25"), "owner": "ann"}
    found = [_run(inputs, number).outcome for number in range(100)]
    assert found == [_run(inputs, number).outcome for number in range(100)]
    repeated = [each for each in found if isinstance(each, Returned) and each.value["found"] != "neither"]
    assert 5 <= len(repeated) <= 50


def test_refused_inputs_are_not_repeated() -> None:
    for number in range(50):
        assert not _run({"amount": "no number", "other": 1}, number).requests
