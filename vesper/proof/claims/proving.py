"""Proof of the claims of one node: search first, then a solver. Claims that neither decides in time are unknown.

Generated inputs refute many claims quickly and reach most conditions. The solver gets the rest: first for a proof,
over all inputs, then for a witness, over small ones. A witness is accepted after both engines have shown it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from vesper.compiler import Compiled
from vesper.language.ir.nodes import Apply
from vesper.proof.claims.model import (
    CLAUSE,
    COMPLETE,
    CONDITION,
    DISJOINT,
    OPERATION,
    ROW,
    TIME_LIMIT,
    Claim,
    ClaimKey,
    Result,
    Verdict,
    Witness,
)
from vesper.proof.claims.obligations import claims_of
from vesper.proof.claims.search import NodeRuns, search

if TYPE_CHECKING:
    import z3

    from vesper.proof.inputs import SymbolicInputs
    from vesper.proof.run import Check, SymbolicRun
    from vesper.proof.solver import Decision, Solver

Emit = Callable[[Result], None]
DEFAULT_SECONDS = 10.0
_SEARCH_SHARE = 0.1
"""Share of the time that the search may use."""
_MAX_SEARCH_INPUTS = 300
_MAX_QUERY_SECONDS = 1.0
_MAX_CONDITION_SECONDS = 0.5
_CLAUSE_SHARE = 0.7
"""Share of the time left that clauses get which the solver gave up at first."""
_EFFECTS = "effect answers unconstrained: only some answer of a request breaks it"
_REACHABLE = (ROW, CONDITION)
"""Kinds of claims that an input proves, and the lack of one refutes."""


def prove_node(compiled: Compiled, seconds: float, emit: Emit) -> None:
    """Decide the claims of a node and emit each result once."""
    _Prover(compiled, time.monotonic() + seconds, seconds, emit).prove()


class _Prover:
    def __init__(self, compiled: Compiled, until: float, seconds: float, emit: Emit) -> None:
        self._compiled = compiled
        self._until = until
        self._seconds = seconds
        self._emit = emit
        self._claims = {each.key: each for each in claims_of(compiled)}
        self._open = dict(self._claims)
        self._runs = NodeRuns(compiled)
        self._candidates: dict[ClaimKey, str] = {}
        """Claims that an input with drawn answers of effects refutes."""
        self._finding: _Encoding | str | None = None

    def prove(self) -> None:
        self._search()
        if not self._open:
            return
        proof = self._encode(is_finding=False)
        if isinstance(proof, str):
            self._leave_open(proof)
            return
        for check in proof.run.checks:
            key = (check.kind, check.phase or "", _number(check), check.code or "")
            if check.kind == OPERATION and key not in self._claims:
                self._add(check)
        self._checks(proof)
        self._rows(proof)
        self._tables(proof)
        self._leave_open(None)

    # -- search -----------------------------------------------------------------------------------

    def _search(self) -> None:
        end = time.monotonic() + self._seconds * _SEARCH_SHARE
        for key, inputs, seed, done in search(
            self._runs, set(self._open), _MAX_SEARCH_INPUTS, lambda: time.monotonic() > end
        ):
            claim = self._claims[key]
            if claim.kind in _REACHABLE:
                self._settle(claim, Verdict.PROVEN)
                continue
            if done.requests:
                self._candidates[key] = _EFFECTS
                continue
            respond = self._runs.responder(seed, inputs)
            witness = self._runs.witness(key, inputs, self._runs.now(seed), respond)
            if witness is not None:
                self._settle(claim, Verdict.REFUTED, None, witness)

    # -- proof ------------------------------------------------------------------------------------

    def _encode(self, is_finding: bool) -> _Encoding | str:
        from vesper.proof.bounds import NotEncodable

        try:
            return _Encoding(self._compiled, is_finding)
        except NotEncodable as why:
            return str(why)

    def _remaining_seconds(self, most: float) -> float:
        return min(most, self._until - time.monotonic())

    def _add(self, check: Check) -> None:
        """Add an operation that only the solver's form of the node shows, such as a sum of a loop."""
        expression = self._compiled.node.expressions()[check.index]
        if isinstance(expression, Apply) and check.code != "recursion_limit":
            return  # the operations of the function are claims themselves
        place = expression.place
        told = (place.line, place.column, place.end_line, place.end_column)
        claim = Claim(OPERATION, "", check.index, check.code or "", check.index, check.text, told)
        self._claims[claim.key] = self._open[claim.key] = claim

    def _checks(self, proof: _Encoding) -> None:
        grouped: dict[ClaimKey, list[Check]] = {}
        for check in proof.run.checks:
            grouped.setdefault((check.kind, check.phase or "", _number(check), check.code or ""), []).append(check)
        clauses = [each for each in grouped.items() if each[0][0] == CLAUSE]
        for key, checks in clauses:
            self._check(proof, key, checks, _MAX_QUERY_SECONDS, is_last=False)
        for number, (key, checks) in enumerate(clauses):
            share = (self._until - time.monotonic()) * _CLAUSE_SHARE / (len(clauses) - number)
            self._check(proof, key, checks, max(_MAX_QUERY_SECONDS, share), is_last=True)
        for key, checks in grouped.items():
            self._check(proof, key, checks, _MAX_QUERY_SECONDS, is_last=True)
        for claim in list(self._open.values()):
            # The solver's form evaluates every expression that an execution can reach.
            if claim.kind in (CLAUSE, OPERATION) and claim.key not in grouped:
                if claim.kind == OPERATION and not proof.run.bounded and proof.run.is_exact:
                    self._settle(claim, Verdict.PROVEN, "never evaluated, or its operands exclude it")

    def _check(self, proof: _Encoding, key: ClaimKey, checks: list[Check], most: float, is_last: bool) -> None:
        """Prove a claim; with `is_last` refute it or give it up otherwise."""
        import z3

        claim, seconds = self._open.get(key), self._remaining_seconds(most)
        if claim is None or seconds <= 0:
            return
        broken = z3.Or([each.fails for each in checks])
        decision = proof.decide(broken, seconds)
        if decision.kind == "never":
            if proof.run.bounded:
                self._settle(claim, Verdict.UNKNOWN, f"loop explored to {proof.max_items} items only")
            else:
                self._settle(claim, Verdict.PROVEN)
            return
        if not is_last:
            return
        if claim.key in self._candidates:
            self._settle(claim, Verdict.UNKNOWN, self._candidates[claim.key])
            return
        is_exact = all(each.is_exact for each in checks)
        found = self._find(claim) if self._remaining_seconds(1.0) > 0 else None
        if isinstance(found, Witness):
            self._settle(claim, Verdict.REFUTED, None, found)
            return
        if self._until - time.monotonic() <= 0:
            return
        self._settle(claim, Verdict.UNKNOWN, found or self._why(proof, decision, is_exact))

    def _why(self, proof: _Encoding, decision: Decision, is_exact: bool) -> str:
        if decision.kind == "unknown":
            return decision.why if decision.why not in ("timeout", "canceled") else "the solver's time for one claim"
        if not is_exact and proof.run.approximations:
            return "abstracted: " + ", ".join(dict.fromkeys(each.why for each in proof.run.approximations[:3]))
        return "the solver's counterexample does not show on the engines"

    def _find(self, claim: Claim) -> Witness | str | None:
        """Return a witness that the engines confirm, or the reason that a model could not be run.

        None if none was found or the time ran out.
        """
        import z3

        if self._finding is None:
            self._finding = self._encode(is_finding=True)
        finding = self._finding
        if isinstance(finding, str):
            return None
        checks = [
            each
            for each in finding.run.checks
            if (each.kind, each.phase or "", _number(each), each.code or "") == claim.key
        ]
        if not checks:
            return None
        broken = z3.Or([each.fails for each in checks])
        for is_small in (True, False):
            seconds = self._remaining_seconds(_MAX_QUERY_SECONDS)
            if seconds <= 0:
                return None
            decision = finding.decide(broken, seconds, is_small)
            if decision.kind != "model" or decision.model is None:
                continue
            witness = self._run_model(claim, finding, decision.model)
            if witness is not None:
                return witness
        return None

    def _run_model(self, claim: Claim, finding: _Encoding, model: z3.ModelRef) -> Witness | str | None:
        inputs = finding.inputs.read(model)
        if inputs is None:
            return None
        completions = finding.inputs.read_completions(model, finding.run)
        if completions:
            return _EFFECTS
        respond = self._runs.responder("witness", inputs)
        return self._runs.witness(claim.key, inputs, finding.inputs.read_now(model), respond)

    # -- rows, conditions and tables -------------------------------------------------------------------

    def _rows(self, proof: _Encoding) -> None:
        import z3

        terms: dict[tuple[int, str], list[z3.BoolRef]] = {}
        for each in proof.run.conditions:
            terms.setdefault((each.index, "true"), []).append(each.holds)
            terms.setdefault((each.index, "false"), []).append(each.declines)
        for claim in [each for each in self._open.values() if each.kind in _REACHABLE]:
            found = terms.get((claim.index, claim.code or "true"))
            seconds = self._remaining_seconds(_MAX_CONDITION_SECONDS)
            if found is None or seconds <= 0:
                continue
            decision = proof.decide(z3.Or(found), seconds)
            if decision.kind == "never" and not proof.run.bounded:
                self._settle(claim, Verdict.REFUTED, "no legal input reaches it")
            elif decision.kind == "model" and self._is_reached(proof, claim, z3.Or(found), decision):
                self._settle(claim, Verdict.PROVEN)
            elif decision.kind == "never":
                self._settle(claim, Verdict.UNKNOWN, f"loop explored to {proof.max_items} items only")
            else:
                self._settle(claim, Verdict.UNKNOWN, self._why(proof, decision, proof.run.is_exact))

    def _is_reached(self, proof: _Encoding, claim: Claim, term: z3.BoolRef, decision: Decision) -> bool:
        """Return whether the input of a model, or of one with small inputs, reaches a condition on both engines."""
        if self._shows(proof, claim, decision):
            return True
        seconds = self._remaining_seconds(_MAX_CONDITION_SECONDS)
        return seconds > 0 and self._shows(proof, claim, proof.decide(term, seconds, is_small=True))

    def _shows(self, proof: _Encoding, claim: Claim, decision: Decision) -> bool:
        inputs = None if decision.model is None else proof.inputs.read(decision.model)
        if inputs is None:
            return False
        now, respond = proof.inputs.read_now(decision.model), self._runs.responder("condition", inputs)
        done = self._runs.run(inputs, now, respond)
        return done is not None and claim.key in self._runs.decided_claims(done)

    def _tables(self, proof: _Encoding) -> None:
        import z3

        by_index = {each.index: each for each in proof.run.conditions}
        for table in self._compiled.node.tables:
            whens = [row.when for row in table.rows]
            complete = self._open.get((COMPLETE, table.name, 0, table.hit))
            disjoint = self._open.get((DISJOINT, table.name, 0, table.hit))
            if complete is not None and None in whens:
                self._settle(complete, Verdict.PROVEN, "its last row matches what no other row does")
                complete = None
            found = [(number, by_index[when].term) for number, when in enumerate(whens) if when in by_index]
            rows = [(number, term) for number, term in found if term is not None]
            if not rows or len(rows) < sum(when is not None for when in whens):
                continue
            reached = by_index[next(when for when in whens if when is not None)].reached
            if complete is not None:
                gap = z3.And(reached, *(z3.Not(term) for _, term in rows))
                self._table(proof, complete, [(gap, "no row matches")])
            if disjoint is not None:
                pairs = [
                    (z3.And(reached, one, other), f"rows {first + 1} and {second + 1} overlap")
                    for place, (first, one) in enumerate(rows)
                    for second, other in rows[place + 1 :]
                ]
                self._table(proof, disjoint, pairs)

    def _table(self, proof: _Encoding, claim: Claim, faults: list[tuple[z3.BoolRef, str]]) -> None:
        import z3

        seconds = self._remaining_seconds(_MAX_QUERY_SECONDS)
        if seconds <= 0:
            return
        decision = proof.decide(z3.Or([term for term, _ in faults]), seconds)
        if decision.kind == "never" and not proof.run.bounded:
            self._settle(claim, Verdict.PROVEN)
        elif decision.kind == "model" and decision.model is not None and proof.run.is_exact:
            model = decision.model
            words = [text for term, text in faults if z3.is_true(model.eval(term, model_completion=True))]
            inputs = proof.inputs.read(model)
            done = None if inputs is None else self._runs.run(inputs, None, self._runs.responder("table", inputs))
            if inputs is None or done is None or self._runs.is_refused(done.outcome):
                self._settle(claim, Verdict.UNKNOWN, "the solver's counterexample does not show on the engines")
                return
            self._settle(claim, Verdict.REFUTED, "; ".join(words[:3]), self._runs.describe(inputs, None, done))
        else:
            self._settle(claim, Verdict.UNKNOWN, self._why(proof, decision, proof.run.is_exact))

    # -- results ------------------------------------------------------------------------------------

    def _settle(
        self, claim: Claim, verdict: Verdict, reason: str | None = None, witness: Witness | None = None
    ) -> None:
        if self._open.pop(claim.key, None) is not None:
            self._emit(Result(claim, verdict, reason, witness))

    def _leave_open(self, why: str | None) -> None:
        is_late = time.monotonic() >= self._until
        for claim in list(self._open.values()):
            late = f"{TIME_LIMIT} of {self._seconds:g} s"
            other = self._candidates.get(claim.key) or "it is in a part of the node that is not encoded"
            self._settle(claim, Verdict.UNKNOWN, why or (late if is_late else other))


class _Encoding:
    """The solver's form of a node, for proofs or for witnesses."""

    def __init__(self, compiled: Compiled, is_finding: bool) -> None:
        from vesper.proof.bounds import FINDING, PROOF
        from vesper.proof.context import Context
        from vesper.proof.inputs import SymbolicInputs
        from vesper.proof.run import run_symbolically

        bounds = FINDING if is_finding else PROOF
        self.max_items = bounds.max_items
        self.inputs: SymbolicInputs = SymbolicInputs(Context(bounds), compiled.node)
        self.run: SymbolicRun = run_symbolically(compiled.node, self.inputs)
        self._solvers: dict[bool, Solver] = {}

    def decide(self, term: z3.BoolRef, seconds: float, is_small: bool = False) -> Decision:
        from vesper.proof.solver import Solver

        if is_small not in self._solvers:
            self._solvers[is_small] = Solver(self.inputs, small=is_small)
        return self._solvers[is_small].decide(term, seconds=seconds)


def _number(check: Check) -> int:
    return check.clause if check.kind == CLAUSE and check.clause is not None else check.index


def unproven(claims: Iterable[Claim], reason: str) -> list[Result]:
    """Return claims that were not tried, with the reason."""
    return [Result(each, Verdict.UNKNOWN, reason) for each in claims]
