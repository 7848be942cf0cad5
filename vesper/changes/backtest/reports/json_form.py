"""The report of a backtest as JSON (docs/spec/changes.md)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from vesper.changes.backtest.reports.report import Report
from vesper.changes.backtest.tally import Group, Sums
from vesper.values.model import show


def report_json(report: Report) -> dict[str, Any]:
    """Return the report as plain JSON values. Sums are texts, because they are exact."""
    tally = report.tally
    return {
        "before": report.before,
        "after": report.after,
        "on": report.on,
        "complete": report.is_complete,
        "seconds": round(report.seconds, 3),
        "effects_performed": 0,
        "interface": list(report.interface),
        "runs": {
            "seen": tally.seen,
            "compared": tally.compared,
            "changed": tally.changed,
            "changed_share": round(report.changed_share, 6),
            "not_selected": tally.not_selected,
            "where_undecided": tally.not_decided,
            "excluded": tally.excluded_runs,
        },
        "not_reproduced": {
            "runs": tally.apart.runs,
            "changed": tally.apart.changed,
            "other_definition": tally.apart_other_definition,
        },
        "excluded": [
            {"reason": reason, "runs": each.runs, "names": each.names}
            for reason, each in sorted(tally.excluded.items())
        ],
        "not_compared": _counts(tally.not_compared),
        "unanswered_before": _counts(tally.unanswered_before),
        "unanswered_after": _counts(tally.unanswered_after),
        "sums": [_sums(text, each) for text, each in zip(report.sums, tally.total.sums, strict=False)],
        "segments": [
            {"by": text, "groups": [_group(report, label, group) for label, group in report.segments(number)]}
            for number, text in enumerate(report.by)
        ],
        "changes": [
            {
                "kind": each.kind,
                "runs": each.runs,
                "example": None
                if each.example is None
                else {
                    "run": each.example.name,
                    "inputs": {name: show(value) for name, value in each.example.inputs.items()},
                    "before": each.example.before,
                    "after": each.example.after,
                },
            }
            for each in report.kinds
        ],
    }


def _counts(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items()))


def _sums(text: str, sums: Sums) -> dict[str, Any]:
    return {
        "sum": text,
        "before": str(sums.before),
        "after": str(sums.after),
        "difference": sums.after.minus(sums.before),
        "without_before": sums.without_before,
        "without_after": sums.without_after,
    }


def _group(report: Report, label: str, group: Group) -> dict[str, Any]:
    is_value = label[:1] not in ("(", "o")
    return {
        "value": json.loads(label) if is_value else label,
        "runs": group.runs,
        "changed": group.changed,
        "sums": [_sums(text, each) for text, each in zip(report.sums, group.sums, strict=False)],
    }
