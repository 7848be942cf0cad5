"""Reports show no sensitive value, escape control characters, and stay short."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.support.journalled import compiled_node
from vesper.changes.backtest.backtest import Backtest, Comparison
from vesper.changes.backtest.cases import Case, Excluded
from vesper.changes.backtest.kinds import Kinds
from vesper.changes.backtest.measures import MeasureReader
from vesper.changes.backtest.native import is_native
from vesper.changes.backtest.reports.json_form import report_json
from vesper.changes.backtest.reports.page import report_html
from vesper.changes.backtest.reports.report import Report, make_report
from vesper.changes.backtest.reports.text import MAX_SHOWN, report_lines
from vesper.changes.backtest.tally import MAX_KEYS, OTHERS, Tally

NODE = """\
node_id: hail_v{version}
type: function
intent: Hail a customer
inputs:
  customer: string
  kind: enum[gone, blocked]
outputs:
  success: {{text: string}}
  error: {{error_code: "enum[gone, blocked]"}}
flow:
  - operation: return
    when: customer == "nobody"
    error: {{error_code: kind}}
  - operation: return
    success: {{text: {text}}}
{security}"""
SECRET = "security: {sensitive_data: [customer, kind]}\n"


def node(version: int, text: str = "customer", security: str = "") -> str:
    return NODE.format(version=version, text=f"'{text}'", security=security)


def given(customer: str, **more: str) -> dict[str, object]:
    return {"customer": customer, "kind": "blocked", **more}


def report_of(before: str, after: str, *cases: Mapping[str, object] | Excluded, by: tuple[str, ...] = ()) -> Report:
    one, other = compiled_node(before), compiled_node(after)
    comparison = Comparison(one, other, Kinds(one, other), MeasureReader(one, other).measures(by))
    backtest = Backtest(comparison)
    rows: list[Case | Excluded] = [each if isinstance(each, Excluded) else Case("row 1", each) for each in cases]
    for _ in backtest.run(rows):
        pass
    return make_report(comparison, backtest.tally, "rows", pytest.fail, True, 0.0)


def texts_of(report: Report) -> str:
    return "\n".join([*report_lines(report), report_html(report), repr(report_json(report))])


def test_an_input_that_one_version_declares_sensitive_is_masked_in_the_outcome_of_both() -> None:
    report = report_of(node(1, '"x"', security=SECRET), node(2, "customer"), given("Utopia"))
    assert report.tally.changed == 1
    assert "Utopia" not in texts_of(report)


def test_an_input_of_a_third_version_does_not_show() -> None:
    shown = texts_of(report_of(node(1), node(2, '"x"'), given("ann", card="4242")))
    assert "ann" in shown
    assert "4242" not in shown


def test_a_sensitive_code_is_no_segment() -> None:
    before, after = (node(each, '"x"', SECRET) for each in (1, 2))
    one, other = compiled_node(before), compiled_node(after)
    assert not is_native(Comparison(one, other, Kinds(one, other), MeasureReader(one, other).measures()))
    report = report_of(before, after, given("nobody"), by=("text",))
    assert list(report.tally.groups[0]) == ["(declared error)"]
    assert "blocked" not in texts_of(report)


def test_control_characters_of_values_are_escaped() -> None:
    report = report_of(node(1), node(2, '"x"'), given("a\x1b[2J\x9b2J"), by=("customer",))
    assert report.tally.changed == 1
    assert not {"\x1b", "\x9b"} & set("\n".join(report_lines(report)))


def test_many_reasons_are_a_short_list() -> None:
    rows = [Excluded(f"row {number}", f"row refused: line {number} is ragged") for number in range(MAX_SHOWN + 5)]
    lines = list(report_lines(report_of(node(1), node(2), given("ann"), *rows)))
    assert sum(each.startswith("  not replayed: 1 run,") for each in lines) == MAX_SHOWN
    assert "  not replayed: 5 runs for 5 more reasons" in lines
    tally = Tally()
    for number in range(MAX_KEYS + 3):
        tally.exclude(f"reason {number}", 1, (f"row {number}",))
    assert (len(tally.excluded), tally.excluded[OTHERS].runs, tally.excluded_runs) == (MAX_KEYS + 1, 3, MAX_KEYS + 3)
