"""A comparison of two versions as text: witnesses with both outcomes, and the deciding places."""

from __future__ import annotations

from collections.abc import Iterator

from vesper.changes.compare.comparing import CompareResult
from vesper.changes.compare.solving import NO_SOLVER
from vesper.changes.compare.versions import Run, Version, VersionPair
from vesper.changes.compare.witness import Witness, shown_inputs
from vesper.cli.output.diagnostics import decorate
from vesper.cli.output.outcomes import span_of
from vesper.cli.output.terminal import columns, style
from vesper.engines.outcome import ContractBroken, DeclaredError, Failed, Returned
from vesper.engines.version_outcomes import ending, request_text
from vesper.language.diagnostics.diagnostic import Label
from vesper.language.diagnostics.excerpt import render_excerpt
from vesper.language.ir.nodes import Place
from vesper.values.model import scalar_text, show

_MAX_COLUMN = 48
_MISSING = "-"


def compare_text(result: CompareResult) -> str:
    """Render a comparison: the verdict, then each witness."""
    parts = [_headline(result)]
    parts += [f"interface: {each}" for each in result.interface]
    parts += [f"note: {_not_comparable(result)}"] if result.searched.not_comparable else []
    shows_solver = result.solver == NO_SOLVER or (result.solver and result.verdict == "none found")
    parts += [f"note: {result.solver}"] if shows_solver else []
    for number, each in enumerate(result.witnesses, start=1):
        parts += ["", *_witness_lines(result.pair, each, number)]
    return "\n".join(parts)


def _headline(result: CompareResult) -> str:
    ids = _names(result.pair)
    searched, is_implies = result.searched, result.pair.compares_acceptance
    names = f"{ids[1]} accepts all that {ids[0]} accepts" if is_implies else f"{ids[0]} and {ids[1]}"
    if result.verdict == "equal":
        return f"{style('implied' if is_implies else 'equal', 'green', 'bold')}: {names}: {result.reason}"
    if result.verdict == "none found":
        missing = f"no input found that only {ids[0]} accepts," if is_implies else "no difference found"
        counted = f"{missing} {result.reason}"
        return f"{style(counted, 'yellow', 'bold')}: {ids[0]} and {ids[1]}, on {len(searched.paths)} pairs of paths"
    shown, found = len(result.witnesses), max(len(searched.found), len(result.witnesses))
    smallest = f"; the smallest {shown} of them" if shown < found else ""
    verdict, verb = ("different", f"{ids[0]} and {ids[1]} differ")
    if is_implies:
        verdict, verb = ("not implied", f"{ids[1]} refuses inputs that {ids[0]} accepts,")
    return (
        f"{style(verdict, 'red', 'bold')}: {verb} on {found} pair{'s' * (found != 1)} of paths{smallest} "
        f"({searched.differing:,} of {searched.tried:,} inputs)"
    )


def _not_comparable(result: CompareResult) -> str:
    searched = result.searched
    return f"{searched.not_comparable:,} inputs were not comparable: {searched.why_not_comparable}"


def _names(pair: VersionPair) -> tuple[str, str]:
    """Return the ids of the versions; their files where the ids are equal."""
    left, right = (each.node.node_id for each in pair.versions)
    if left != right:
        return left, right
    files = [each.compiled.source.path for each in pair.versions]
    return (f"{left} (before)", f"{right} (after)") if files[0] == files[1] else (files[0], files[1])


def _witness_lines(pair: VersionPair, witness: Witness, number: int) -> Iterator[str]:
    given = witness.given
    inputs = ", ".join(f"{name}={show(value)}" for name, value in shown_inputs(pair, given).items())
    yield f"{style(f'{number}.', 'bold')} input: {inputs or 'none'}"
    if pair.reads_now and given.now is not None:
        yield f"   now: {scalar_text(given.now)}"
    for each in given.answers:
        answer = f"fails {each.failure}" if each.failure is not None else show(each.value)
        yield f"   {each.path} answers: {answer}"
    yield from _side_by_side(pair, witness)
    for version, place in ((pair.before, witness.before), (pair.after, witness.after)):
        if place is not None:
            yield from _excerpt(version, place)


def _side_by_side(pair: VersionPair, witness: Witness) -> Iterator[str]:
    left, right = (dict(_fields(run)) for run in (witness.run.before, witness.run.after))
    rows = [(name, left.get(name, _MISSING), right.get(name, _MISSING)) for name in dict.fromkeys((*left, *right))]
    heads = _names(pair)
    name_width = max(len(name) for name, _, _ in rows)
    width = min(_MAX_COLUMN, max(len(heads[0]), *(len(one) for _, one, _ in rows)))
    yield f"   {'':<{name_width}}   {heads[0]:<{width}}   {heads[1]}"
    marked = _marked_row(witness)
    for name, one, other in rows:
        is_marked = name == marked or (one != other and marked == "")
        line = f" {'*' if is_marked else ' '} {name:<{name_width}}   {one:<{width}}   {other}".rstrip()
        yield style(line, "red") if is_marked else line
    inner = witness.changed.where.partition(".")[2]
    if is_inner(inner):
        yield f"   at {witness.changed.where}: {show(witness.changed.before)} and {show(witness.changed.after)}"


def is_inner(where: str) -> bool:
    """Return whether a place is inside of a field."""
    return "." in where or "[" in where


def _marked_row(witness: Witness) -> str:
    """Return the row of the differing field."""
    kind, _, rest = witness.changed.where.partition(".")
    if kind in ("outputs", "error"):
        return rest.partition(".")[0].partition("[")[0]
    return kind if kind == "outcome" else kind.replace("requests[", "request ").rstrip("]")


def _fields(run: Run) -> Iterator[tuple[str, str]]:
    yield "outcome", ending(run.outcome)
    match run.outcome:
        case Returned(value) | DeclaredError(value) | ContractBroken(values=value):
            yield from ((name, show(each)) for name, each in value.items())
        case Failed(problems=problems):
            yield from ((each.path or "inputs", each.kind.value.replace("_", " ")) for each in problems)
        case _:
            pass
    yield from ((f"request {number}", request_text(each)) for number, each in enumerate(run.requests))


def _excerpt(version: Version, place: Place) -> Iterator[str]:
    source = version.compiled.source
    text = render_excerpt(source, f"decides in {version.node.node_id}", Label(span_of(source, place), ""))
    yield decorate(text, "cyan", columns())
