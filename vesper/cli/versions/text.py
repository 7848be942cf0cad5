"""Text of names with a lead and a candidate, for `vesper versions` and `vesper status`."""

from __future__ import annotations

from collections.abc import Sequence

from vesper.cli.journal.text import table
from vesper.journal.moments import number, time_text
from vesper.migration.candidates.counts import Counts, Example, Group
from vesper.migration.candidates.overview import NameOverview
from vesper.migration.stores.status_text import ago_text
from vesper.values.model import printable

_TOP_GROUPS = 3
_HEADING = ("name", "lead", "candidate", "state", "compared", "changed", "since")


def list_lines(names: Sequence[NameOverview], now_us: int) -> list[str]:
    """Render names as a table, each with its largest groups below."""
    rows = [_HEADING, *(_row(each, now_us) for each in names)]
    lines = table(rows)
    for each in names:
        lines += [f"  {_group_line(group, each.counts)}" for group in each.counts.top_groups(_TOP_GROUPS)]
        lines += [f"  note on {printable(each.name)}: {note}" for note in each.notes()]
    return lines


def _row(found: NameOverview, now_us: int) -> tuple[str, ...]:
    since = "" if found.started is None else ago_text(found.started.at_us, now_us)
    counts, versions = found.counts, (found.lead or "", found.candidate or "")
    return printable(found.name), *versions, found.state, f"{counts.compared:,}", changed_text(counts), since


def changed_text(counts: Counts) -> str:
    """Format the changed outcomes: `12 (0.40 %)`."""
    share = counts.changed_share
    return f"{counts.results['changed']:,}" + ("" if share is None else f" ({share:.2%})".replace("%", " %"))


def _group_line(group: Group, counts: Counts) -> str:
    share = f"{group.count / counts.compared:.2%}".replace("%", " %") if counts.compared else ""
    lead, candidate = (" ∧ ".join(each.words) or "(no condition)" for each in (group.lead_path, group.candidate_path))
    return f"{group.count:,} ({share})  {printable(group.field)}  [{_cut(lead)}] → [{_cut(candidate)}]"


def _cut(text: str) -> str:
    return text if len(text) <= 120 else f"{text[:119]}…"


def detail_lines(found: NameOverview, now_us: int) -> list[str]:
    """Render one name with its groups and their examples."""
    counts, started = found.counts, found.started
    lines = [f"{printable(found.name)}: {found.state}", f"  lead       {found.lead or '?'}"]
    lines.append(f"  candidate  {found.candidate or 'none'}")
    if found.settings is not None and found.settings.candidate is not None:
        until = "" if found.settings.until is None else f", until {found.settings.until}"
        lines.append(f"  follows    {found.settings.share:.6g} of the runs, within the bounds of admission{until}")
    if started is not None:
        when = f"{time_text(started.at_us)} ({ago_text(started.at_us, now_us)})"
        lines.append(f"  since      {when}, by {printable(started.who)}")
    if (decision := found.decision) is not None:
        what = f"{decision.kind} {time_text(decision.at_us)}, by {printable(decision.who)}: {printable(decision.why)}"
        lines.append(f"  decision   {what}")
    lines += [f"  note       {each}" for each in found.notes()]
    lines += ["", *_count_lines(counts)]
    for group in counts.top_groups():
        lines += ["", *_group_lines(group, counts)]
    return lines


def _count_lines(counts: Counts) -> list[str]:
    apart = [
        f"{number(counts.results['unanswered'], 'run')} without a verdict",
        f"{number(counts.results['limits'], 'limit')} hit",
        number(counts.results["faults"], "fault") + (f" (last: {printable(counts.fault)})" if counts.fault else ""),
    ]
    agreed = f"{counts.results['agreed']:,} agreed"
    return [
        f"{number(counts.compared, 'run')} compared: {agreed}, {changed_text(counts)} changed",
        f"not compared: {', '.join(apart)}",
    ]


def _group_lines(group: Group, counts: Counts) -> list[str]:
    share = f"{group.count / counts.compared:.2%}".replace("%", " %") if counts.compared else ""
    lines = [
        f"{printable(group.field)}: {number(group.count, 'run')} ({share})",
        f"  lead       {' ∧ '.join(group.lead_path.words)}",
        f"  candidate  {' ∧ '.join(group.candidate_path.words)}",
        f"  first      {time_text(group.first_us)}, last {time_text(group.last_us)}",
    ]
    for each in group.examples:
        lines += _example_lines(each)
    return lines


def _example_lines(example: Example) -> list[str]:
    lines = [f"  example    {time_text(example.at_us)}" + (f", run {example.execution}" if example.execution else "")]
    for name, text in (("inputs", example.inputs), ("lead", example.lead), ("candidate", example.candidate)):
        first, *rest = text.splitlines() or [""]
        lines.append(f"    {name:<9}  {printable(first)}")
        lines += [f"    {'':<9}  {printable(each)}" for each in rest]
    return lines
