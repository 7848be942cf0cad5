"""The solver's part of a comparison: a proof of equality, or inputs that probably differ.

Each input that the solver finds is only a candidate: both versions run on it, and it is kept if they really differ.
Equality is proven only over an equal interface and an encoding that leaves nothing out.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vesper.changes.compare.search import Search, have_equal_inputs
from vesper.changes.compare.versions import Answer, Given, VersionPair
from vesper.engines.version_outcomes import ChangedOutcome
from vesper.language.ir.nodes import CallNode, Loop, Node
from vesper.language.ir.nodes import Request as RequestStep
from vesper.language.ir.statements import all_statements
from vesper.proof.bounds import FINDING, PROOF, NotEncodable
from vesper.proof.solver import MODEL, NEVER, Solver, is_solver_installed

if TYPE_CHECKING:
    from vesper.proof.bounds import Bounds
    from vesper.proof.inputs import SymbolicInputs
    from vesper.proof.run import SymbolicRun

NO_SOLVER = "no solver: searched only"
_QUERY_SECONDS = 3.0
_MAX_MISSES = 8
"""Candidates that do not really differ, after which the solver gives up."""


@dataclass
class Solved:
    """What the solver found."""

    is_equal: bool = False
    why: str = ""
    """Why nothing is proven, or how many candidates differ."""


@dataclass
class _Encoded:
    inputs: SymbolicInputs
    runs: tuple[SymbolicRun, SymbolicRun]
    differs: Any
    """The term that the two outcomes differ, or that they request different things."""


def solve(search: Search, max_found: int, until: float) -> Solved:
    """Prove both versions equal, or offer candidates to the search until a moment of the monotonic clock."""
    if len(search.result.found) >= max_found:
        return Solved()
    if not is_solver_installed():
        return Solved(why=NO_SOLVER)
    try:
        if not search.result.found:
            obstacle = _obstacle(search.pair)
            proof = _encode(search.pair, PROOF)
            is_bounded = any(run.bounded for run in proof.runs)
            decision = Solver(proof.inputs).decide(proof.differs, seconds=_seconds(until, _QUERY_SECONDS))
            if decision.kind == NEVER and not is_bounded and not obstacle:
                return Solved(True, "a solver proved that no input has a changed outcome")
            why = obstacle or ("only collections of few items were explored" if is_bounded else decision.why)
        else:
            why = ""
        return _find(search, max_found, until, why)
    except NotEncodable as problem:
        return Solved(why=f"the solver proved nothing: {problem}")


def _find(search: Search, max_found: int, until: float, why: str) -> Solved:
    """Offer candidates, each on another pair of symbolic paths."""
    encoded = _encode(search.pair, FINDING)
    blocks: list[Any] = []
    misses = found = 0
    while misses < _MAX_MISSES and len(search.result.found) < max_found and time.monotonic() < until:
        model = _model(encoded, blocks, until)
        if model is None:
            break
        blocks.append(_other_path(encoded, model))
        given = _read_given(encoded, model, f"solver {len(blocks)}")
        is_real = given is not None and isinstance(search.offer(given).found, ChangedOutcome)
        found, misses = found + is_real, misses + (not is_real)
    if found:
        return Solved(why=f"the solver found {found} of the differing inputs")
    if search.result.found:
        return Solved()
    return Solved(why=f"the solver proved nothing: {why or 'its candidates do not really differ'}")


def _model(encoded: _Encoded, blocks: list[Any], until: float) -> Any | None:
    """Return a model, with small inputs where there is one."""
    for is_small in (True, False):
        solver = Solver(encoded.inputs, small=is_small)
        decision = solver.decide(encoded.differs, *blocks, seconds=_seconds(until, _QUERY_SECONDS))
        if decision.kind == MODEL:
            return decision.model
    return None


def _encode(pair: VersionPair, bounds: Bounds) -> _Encoded:
    """Return both versions over the same symbolic inputs. Raises `NotEncodable`."""
    from vesper.proof.context import Context
    from vesper.proof.inputs import SymbolicInputs
    from vesper.proof.run import difference, requests_differ, run_symbolically
    from vesper.proof.terms import both, either, negated

    context = Context(bounds)
    nodes = [each.node for each in pair.versions]
    inputs = SymbolicInputs(context, *nodes)
    before, after = (run_symbolically(each, inputs) for each in nodes)
    if pair.compares_acceptance:
        differs = both(negated(_refuses(before)), _refuses(after))
    else:
        differs = difference(context, before, after, list(pair.rule.outputs))
        if pair.makes_requests:
            differs = either(differs, requests_differ(context, before, after))
    return _Encoded(inputs, (before, after), differs)


def _refuses(run: SymbolicRun) -> Any:
    from vesper.proof.terms import either

    return either(*(each.guard for each in run.endings if each.phase in ("constraint", "precondition")))


def _other_path(encoded: _Encoded, model: Any) -> Any:
    """Return the term that a condition of either version has another result than in a model."""
    from vesper.proof.terms import both, negated

    taken = []
    for run in encoded.runs:
        for condition in run.conditions:
            for term in (condition.reached, condition.holds):
                is_true = str(model.eval(term, model_completion=True)) == "True"
                taken.append(term if is_true else negated(term))
    return negated(both(*taken))


def _read_given(encoded: _Encoded, model: Any, seed: str) -> Given | None:
    """Return the concrete inputs, start and completions of a model; None where it has none."""
    values = encoded.inputs.read(model)
    if values is None:
        return None
    completions = [encoded.inputs.read_completions(model, run) for run in encoded.runs]
    answers = {
        (each.path, each.occurrence): Answer(each.path, each.occurrence, each.value, each.failure)
        for listed in reversed(completions)
        for each in listed or ()
    }
    return Given(dict(values), seed, encoded.inputs.read_now(model), tuple(answers.values()))


def _seconds(until: float, most: float) -> float:
    return max(0.05, min(most, until - time.monotonic()))


def _obstacle(pair: VersionPair) -> str:
    """Return why a query cannot prove equality; empty where it can."""
    before, after = (each.node for each in pair.versions)
    if pair.rule.interface or not have_equal_inputs(before, after):
        return "the interfaces differ"
    if {(each.node, each.semantic_hash) for each in before.calls} != {
        (each.node, each.semantic_hash) for each in after.calls
    }:
        return "the called nodes differ"
    if pair.makes_requests and _requests(before) != _requests(after):
        return "the requests differ in their parts or their order"
    if any(isinstance(each, Loop) and each.in_flight is not None for each in all_statements(before.body)):
        return "rounds in flight begin after one has failed"
    return ""


def _requests(node: Node) -> list[tuple[object, ...]]:
    """Return the requests of a node by name and fixed parts, in program order."""
    found: list[tuple[object, ...]] = []
    for each in all_statements(node.body):
        match each:
            case RequestStep():
                found.append((each.name, each.effect, each.effect_class, sorted(each.fixed.items())))
            case CallNode():
                found.append((each.name, each.node))
            case _:
                pass
    return found
