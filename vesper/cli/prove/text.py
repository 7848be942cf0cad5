"""Results of proofs as text, with places and carets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from vesper.cli.output.diagnostics import decorate
from vesper.cli.output.terminal import columns, style
from vesper.compiler import Compiled
from vesper.language.diagnostics.diagnostic import Label
from vesper.language.diagnostics.excerpt import render_excerpt
from vesper.language.diagnostics.source import Span
from vesper.proof.claims.claims_file import LostProof
from vesper.proof.claims.model import (
    CLAUSE,
    COMPLETE,
    CONDITION,
    DISJOINT,
    OPERATION,
    ROW,
    Claim,
    NodeProof,
    Result,
    Verdict,
)
from vesper.values.model import printable

if TYPE_CHECKING:
    from vesper.cli.prove.reports import ProveResults

_COLOURS = {Verdict.PROVEN: "green", Verdict.REFUTED: "red", Verdict.UNKNOWN: "yellow"}
_LABELS = {
    (CLAUSE, Verdict.PROVEN): "holds on every legal input",
    (CLAUSE, Verdict.REFUTED): "can be false",
    (OPERATION, Verdict.PROVEN): "cannot fail with {code}",
    (OPERATION, Verdict.REFUTED): "can fail with {code}",
    (OPERATION, Verdict.UNKNOWN): "may fail with {code}",
    (COMPLETE, Verdict.REFUTED): "no row matches",
    (DISJOINT, Verdict.REFUTED): "two rows match",
    (ROW, Verdict.REFUTED): "is never reached",
    (CONDITION, Verdict.REFUTED): "is never {code}",
}
_LISTED = (CLAUSE, OPERATION, COMPLETE, DISJOINT, ROW)
GROUPS = (("clauses", (CLAUSE,)), ("operations", (OPERATION,)), ("tables", (COMPLETE, DISJOINT, ROW)))


def node_text(compiled: Compiled, proof: NodeProof, shows_all: bool) -> str:
    """Return the results of a node as text: counts, then the listed claims.

    `shows_all` also lists proven and unknown claims, except those of conditions.
    """
    blocks = [_headline(proof)]
    blocks += [_block(compiled, each) for each in proof.results if _is_listed(each, shows_all)]
    return "\n".join(blocks)


def _is_listed(result: Result, shows_all: bool) -> bool:
    kind, verdict = result.claim.kind, result.verdict
    if kind == CONDITION:
        return verdict is Verdict.REFUTED
    if shows_all:
        return True
    if kind == DISJOINT and not result.claim.is_defect_if_refuted:
        return False
    return verdict is Verdict.REFUTED or (verdict is Verdict.UNKNOWN and kind == CLAUSE)


def _headline(proof: NodeProof) -> str:
    parts = []
    for name, kinds in GROUPS:
        counts = proof.counted(kinds)
        if any(counts.values()):
            parts.append(f"{name} {_counts(counts)}")
    told = "; ".join(parts) or "nothing to prove"
    end = "from the cache" if proof.is_cached else f"{proof.seconds:.1f} s"
    return style(f"{proof.node_id}: {told} ({end})", "bold")


def _counts(counts: dict[Verdict, int]) -> str:
    return ", ".join(f"{count} {verdict.value}" for verdict, count in counts.items() if count)


def _block(compiled: Compiled, result: Result) -> str:
    claim = result.claim
    label = Label(_span(compiled, claim), _label(result))
    title = f"{result.verdict.value}: {title_of(claim)}"
    text = render_excerpt(compiled.source, title, label, (), list(_footer(result)))
    return decorate(text, _COLOURS[result.verdict], columns())


def title_of(claim: Claim) -> str:
    """Return a claim in words."""
    match claim.kind:
        case "clause":
            return f"{claim.group} `{claim.text}`"
        case "operation":
            return f"`{claim.text}` never fails with {claim.code}"
        case "row" | "condition":
            return f"`{claim.text}` can be {claim.code or 'reached'}"
        case _:
            return claim.text


def _label(result: Result) -> str:
    label = _LABELS.get((result.claim.kind, result.verdict), "")
    return label.replace("{code}", result.claim.code)


def _footer(result: Result) -> Iterator[str]:
    if result.reason is not None:
        yield f"{'why' if result.verdict is Verdict.UNKNOWN else 'note'}: {printable(result.reason)}"
    if result.witness is not None:
        yield f"witness: {printable(result.witness.inputs)}"
        yield f"both engines: {printable(result.witness.outcome)}"


def _span(compiled: Compiled, claim: Claim) -> Span:
    source = compiled.source
    line, column, end_line, end_column = claim.place
    if claim.kind == ROW:
        text = source.line_text(line)
        start = source.offset(line, len(text) - len(text.lstrip()) + 1)
        return Span(start, start + max(1, len(text.strip())))
    return Span(source.offset(line, column), source.offset(end_line, end_column))


def lost_text(lost: LostProof) -> str:
    """Return a proof that no longer holds."""
    return style(f"lost: {lost.node_id}: {lost.phase} `{lost.text}` was proven", "red") + f"\n  = {printable(lost.why)}"


def total_text(run: ProveResults) -> str:
    """Return the last line."""
    if run.is_check:
        again = _nodes(len(run.nodes))
        return f"{run.saved} clauses saved as proven, {len(run.lost)} lost; {again} proven again, {run.seconds:.1f} s"
    counts = run.counts(CLAUSE)
    total = sum(counts.values())
    decided = total - counts[Verdict.UNKNOWN]
    share = f", {100 * decided // total} % of {total} clauses decided" if total else ""
    text = f"{_nodes(len(run.nodes))}: {_counts(counts) or 'no clauses'}{share}, {run.seconds:.1f} s"
    if run.refused:
        text += f"; {len(run.refused)} with errors were not proven: {', '.join(run.refused)}"
    return text


def _nodes(count: int) -> str:
    return "1 node" if count == 1 else f"{count} nodes"
