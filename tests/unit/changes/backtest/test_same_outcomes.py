"""The native comparison equals `VersionOutcomes` on random pairs of values of every type.

Two nodes return different inputs, so that each journalled run is a random pair. Kinds of change, sums and segments of
both counters are equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.support.journalled import compiled_node
from tests.unit.changes.backtest.test_journal_backtest import count_in_python, count_natively
from vesper.changes.backtest.backtest import Comparison
from vesper.changes.backtest.journal_runs import Selection
from vesper.changes.backtest.kinds import Kinds
from vesper.changes.backtest.measures import MeasureReader
from vesper.changes.backtest.tally import Tally
from vesper.compiler import Compiled
from vesper.engines.outcome import Returned
from vesper.engines.registry import ENGINES
from vesper.host.outcomes import outcome_record
from vesper.host.prepared import definition_of
from vesper.journal.entry import Entry, Kind
from vesper.journal.journal import Beginning, Journal, Status, open_journal
from vesper.verify.inputs.generator import InputGenerator

TYPES = (
    "integer", "decimal", "float", "boolean", "string", "bytes", "date", "timestamp", "duration", "time_of_day",
    "period", "json", "enum[a, b, c]", "optional<decimal>", "optional<string>", "array<decimal>", "set<string>",
    "map<string, float>", "array<optional<integer>>", "Line",
)  # fmt: skip
_RUNS = 40
_NODE = """\
node_id: pair_v{version}
type: function
intent: Return one of two values
types:
  Line: {{fields: {{amount: decimal, note: optional<string>, tags: array<string>}}}}
inputs: {{x: "{type}", y: "{type}", same: boolean}}
outputs:
  success: {{found: "{type}", same: boolean}}
flow:
  - {{operation: return, success: {{found: {found}, same: same}}}}
security: {{audit_level: basic}}
"""


def versions(type_: str) -> tuple[Compiled, Compiled]:
    texts = (("x"), ("'IF same THEN x ELSE y'"))
    one, other = (
        compiled_node(_NODE.format(version=at, type=type_, found=found)) for at, found in enumerate(texts, start=1)
    )
    return one, other


def write_runs(journal: Journal, node: Compiled) -> int:
    """Journal runs of random inputs, as the Host does; return how many."""
    program = ENGINES["interp"].load(node)
    generator = InputGenerator(node.node, seed=34)
    written = 0
    for number in range(_RUNS):
        inputs: Mapping[str, object] = generator.draw()
        outcome = program.call(inputs)
        if not isinstance(outcome, Returned):
            continue  # refused inputs, which no journal has
        # The journal has inputs as values, which the outputs of the identity are.
        values = {"x": outcome.value["found"], "y": _converted(program, inputs), "same": outcome.value["same"]}
        run = journal.begin(
            Beginning(f"run-{number:04}", definition_of(node), values, datetime.now(UTC), "interp", writes=False)
        )
        run.append(Entry(Kind.END, "", "", "", None, "", {**outcome_record(outcome), "duration_us": 1}))
        run.commit(Status.ENDED, "returned")
        written += 1
    return written


def _converted(program: object, inputs: Mapping[str, object]) -> object:
    swapped = program.call({**inputs, "x": inputs["y"]})  # type: ignore[attr-defined]
    assert isinstance(swapped, Returned)
    return swapped.value["found"]


def comparable(tally: Tally) -> object:
    kinds = {kind: (each.runs, each.example and each.example.order) for kind, each in tally.kinds.items()}
    return tally.total, tally.apart.runs, tally.seen, kinds, tally.groups


@pytest.mark.parametrize("type_", TYPES)
def test_both_counters_agree(type_: str, tmp_path: Path) -> None:
    before, after = versions(type_)
    is_number = type_ in ("integer", "decimal", "optional<decimal>")
    measures = MeasureReader(before, after).measures(["same", "found"], ["found"] if is_number else [])
    comparison = Comparison(before, after, Kinds(before, after), measures)
    journal = open_journal(f"sqlite:{tmp_path / 'journal.db'}")
    written = write_runs(journal, before)
    selection = Selection(("pair_v1",))
    slow, fast = (count(comparison, journal, selection) for count in (count_in_python, count_natively))
    journal.close()
    assert slow.total.runs == written > _RUNS // 4
    assert 0 < slow.total.changed < written
    assert comparable(fast) == comparable(slow)
