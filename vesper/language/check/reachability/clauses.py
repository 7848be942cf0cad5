"""Diagnostics for contracts and conditions that have only one possible result.

A clause that never holds, or two that contradict each other, make every call of the node fail: errors. A clause that
always holds, a branch that is never taken and a comparison with one result are warnings: they have no effect and
usually hide a mistake. INVARIANT: every finding is true of every execution.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vesper.language.check.reachability.evaluate import Constant, Evaluator
from vesper.language.check.reachability.statements import FlowCondition, FlowWalk
from vesper.language.check.reachability.terms import Facts
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import DiagnosticBag, Label
from vesper.language.diagnostics.source import SourceFile, Span
from vesper.language.ir import nodes as ir

MAX_DEPTH = 160
"""Maximum depth of analysed expressions, since the walk is recursive. Written expressions are ten times shallower."""
_MAX_TRIED = 200
"""Maximum number of clauses tried to find one that contradicts or implies another."""
_MAX_REPEATED = 100
"""Maximum number of clauses for which later ones are checked against earlier ones."""
_NO_FACTS = Facts()


@dataclass(frozen=True, slots=True)
class Finding:
    """A constant result: the expression has this truth value in every execution that evaluates it.

    For a contradiction: in every execution in which all other clauses of its phases hold.
    """

    code: Code
    expression: ir.Expression
    holds: bool


def report_constants(node: ir.Node, bag: DiagnosticBag, functions: Sequence[Span] = ()) -> tuple[Finding, ...]:
    """Report constant clauses, branches and comparisons of a checked node.

    `functions` are the spans of the node's own functions. They are inlined at each call, so a condition may be constant
    for one call without a mistake in the function.
    """
    if _is_deep(node):
        return ()
    reporter = _Reporter(node, bag, functions)
    reporter.run()
    return tuple(reporter.findings)


def _is_deep(node: ir.Node) -> bool:
    before = -1
    for root in node.roots():
        # An expression has at most as many levels as parts, and its parts are numbered consecutively.
        if root.index - before > MAX_DEPTH and ir.depth(root) > MAX_DEPTH:
            return True
        before = root.index
    return False


@dataclass(frozen=True, slots=True)
class _PhaseClause:
    """A clause with its phase, as known context for other clauses."""

    clause: ir.Clause
    phase: str


class _Reporter:
    """Analyses one node and reports its constant conditions."""

    def __init__(self, node: ir.Node, bag: DiagnosticBag, functions: Sequence[Span]) -> None:
        self._node = node
        self._functions = functions
        self._bag = bag
        self._evaluator = Evaluator(node)
        self._reported: set[tuple[Code, Span]] = set()
        self.findings: list[Finding] = []

    def run(self) -> None:
        node, evaluator = self._node, self._evaluator
        before = [_PhaseClause(clause, "constraint") for clause in node.constraints]
        before += [_PhaseClause(clause, "precondition") for clause in node.preconditions]
        for given in before:
            evaluator.terms.add(given.clause.holds)
        facts = self._clauses(before, [], _NO_FACTS)
        if facts is None:
            return
        returned = self._body(facts)
        after = [_PhaseClause(clause, "postcondition") for clause in node.postconditions]
        for given in after:
            evaluator.terms.add(given.clause.holds)
        # Postconditions do not become warnings because the steps always satisfy them; that is their purpose.
        if self._clauses(after, before, facts) is None or returned is None:
            return
        for given in after:
            holds, _ = evaluator.branch(given.clause.holds, returned)
            if holds is None:
                self._report_never(given, "the steps never give such outputs")
                return
            returned = holds

    # -- clauses ----------------------------------------------------------------------------------

    def _clauses(self, clauses: list[_PhaseClause], others: list[_PhaseClause], facts: Facts) -> Facts | None:
        """Return the facts of all clauses together; None after reporting that they never hold together."""
        seen = list(others)
        for given in clauses:
            holds, fails = self._evaluator.branch(given.clause.holds, facts)
            if holds is None and fails is None:
                return None  # it always fails to produce a value; an execution reports the location
            if holds is None:
                self._report_impossible(given, seen)
                return None
            if fails is None:
                self._report_redundant(given, seen)
            facts = holds
            seen.append(given)
        # A later clause may decide an earlier one: `amount <= balance`, `amount > 10`, `balance < 5`.
        may_say_more = len(clauses) <= _MAX_REPEATED and self._evaluator.terms.relates_names(facts)
        for _ in range(2 if may_say_more else 0):
            before = facts
            for given in clauses:
                holds, _ = self._evaluator.branch(given.clause.holds, facts)
                if holds is None:
                    self._report_impossible(given, [each for each in seen if each is not given])
                    return None
                facts = holds
            if facts is before:
                break
        return facts

    def _report_impossible(self, given: _PhaseClause, others: list[_PhaseClause]) -> None:
        alone, _ = self._evaluator.branch(given.clause.holds, _NO_FACTS)
        if alone is None:
            self._report_never(given, "no value makes this true")
            return
        span = self._span(given.clause.holds.place)
        one = self._deciding_clause(given, others, outcome=False)
        together = [one] if one is not None else self._conflicting_clauses(given, others)
        text = self._text(given)
        relation = "contradicts it" if one is not None else "contradicts it together with the others"
        labels = tuple(
            Label(self._span(each.clause.holds.place), f"this {each.phase} {relation}") for each in together[:3]
        )
        other = " and ".join(f"`{self._text(each)}`" for each in together[:3])
        other += " and others" if len(together) > 3 else ""
        help_ = f"{_CONSEQUENCE[given.phase]} because of these clauses; change one of them"
        self.findings.append(Finding(Code.CONTRADICTION, given.clause.holds, False))
        self._error(Code.CONTRADICTION, span, "cannot hold as well", labels, help_, clause=text, other=other)

    def _report_never(self, given: _PhaseClause, why: str) -> None:
        span = self._span(given.clause.holds.place)
        help_ = f"{_CONSEQUENCE[given.phase]}; correct it or remove it"
        self.findings.append(Finding(Code.NEVER_HOLDS, given.clause.holds, False))
        self._error(Code.NEVER_HOLDS, span, why, (), help_, what=given.phase, clause=self._text(given))

    def _report_redundant(self, given: _PhaseClause, others: list[_PhaseClause]) -> None:
        _, fails = self._evaluator.branch(given.clause.holds, _NO_FACTS)
        labels: tuple[Label, ...] = ()
        why = "no value of these types breaks it"
        if fails is not None:
            one = self._deciding_clause(given, others, outcome=True)
            why = "follows from the clauses above"
            if one is not None:
                why = "is redundant"
                labels = (Label(self._span(one.clause.holds.place), f"this {one.phase} implies it"),)
        span = self._span(given.clause.holds.place)
        help_ = "remove it or correct it"
        self.findings.append(Finding(Code.ALWAYS_HOLDS, given.clause.holds, True))
        self._warn(Code.ALWAYS_HOLDS, span, why, labels, help_, what=given.phase, clause=self._text(given))

    def _deciding_clause(self, given: _PhaseClause, others: list[_PhaseClause], outcome: bool) -> _PhaseClause | None:
        """Return another clause that alone makes this one true, or false."""
        for other in others[:_MAX_TRIED]:
            known, _ = self._evaluator.branch(other.clause.holds, _NO_FACTS)
            if known is None:
                continue
            holds, fails = self._evaluator.branch(given.clause.holds, known)
            if (fails if outcome else holds) is None:
                return other
        return None

    def _conflicting_clauses(self, given: _PhaseClause, others: list[_PhaseClause]) -> list[_PhaseClause]:
        """Return a minimal set of other clauses that makes this one impossible.

        Omits each other clause in turn, and drops it if it is not needed.
        """
        needed = others if len(others) <= _MAX_REPEATED else []
        for other in list(needed):
            without = [each for each in needed if each is not other]
            if not self._can_all_hold([*without, given]):
                needed = without
        return needed or others

    def _can_all_hold(self, clauses: list[_PhaseClause]) -> bool:
        facts = _NO_FACTS
        for _ in range(2):
            for given in clauses:
                holds, _ = self._evaluator.branch(given.clause.holds, facts)
                if holds is None:
                    return False
                facts = holds
        return True

    # -- steps ------------------------------------------------------------------------------------

    def _body(self, facts: Facts) -> Facts | None:
        """Return the facts about outputs after the steps. Returns None where the steps never end with a return."""
        flow = FlowWalk(self._evaluator)
        returned = flow.body(self._node.body, facts)
        for constant in self._evaluator.found:
            self._report_constant(constant)
        for condition in flow.conditions:
            self._report_flow_condition(condition)
        return returned

    def _report_flow_condition(self, condition: FlowCondition) -> None:
        """Report a condition of the flow that has only one result."""
        is_negated = isinstance(condition.condition, ir.Call) and condition.condition.op == "boolean.not"
        shown, holds = condition.condition, condition.holds
        if (
            is_negated and condition.condition.place == ir.children(condition.condition)[0].place
        ):  # a validation with an error
            shown, holds = ir.children(condition.condition)[0], not condition.holds
            condition = FlowCondition(shown, holds, "validation")
        span = self._span(shown.place)
        always = "true" if holds else "false"
        if condition.kind == "validation" and holds:
            self.findings.append(Finding(Code.ALWAYS_HOLDS, shown, True))
            text, help_ = self._slice(span), "remove it or correct it"
            why = "follows from the contracts and the steps above"
            self._warn(Code.ALWAYS_HOLDS, span, why, (), help_, what="validation", clause=text)
        elif condition.kind == "arm" and holds and condition.is_last:
            self.findings.append(Finding(Code.CONSTANT_COMPARISON, shown, True))
            text = self._slice(span)
            self._warn(Code.CONSTANT_COMPARISON, span, f"always {always}", (), None, text=text, always=always)
        else:
            self.findings.append(Finding(Code.UNREACHABLE_BRANCH, shown, holds))
            what = {
                ("validation", False): "what comes after this validation",
                ("loop", False): "the inside of this loop",
                ("arm", False): "what this condition leads to",
            }.get((condition.kind, holds), "the other branch of this step")
            label = f"always {always} here"
            help_ = "the contracts and the steps above decide it; remove it or correct it"
            self._warn(Code.UNREACHABLE_BRANCH, span, label, (), help_, what=what)

    def _report_constant(self, constant: Constant) -> None:
        owner = constant.owner
        code = Code.CONSTANT_COMPARISON if owner is None else Code.UNREACHABLE_BRANCH
        self.findings.append(Finding(code, constant.expression, constant.holds))
        span = self._span(constant.expression.place)
        if any(each.start <= span.start and span.end <= each.end for each in self._functions):
            return
        if owner is None:
            always = "true" if constant.holds else "false"
            text = self._slice(span)
            self._warn(Code.CONSTANT_COMPARISON, span, f"always {always}", (), None, text=text, always=always)
            return
        span = self._span(owner.condition.place)
        if owner.place == owner.condition.place and _is_when(owner):
            always = "true" if constant.holds else "false"
            what = "the null of this step" if constant.holds else "what this condition leads to"
            help_ = "the contracts and the steps above decide it; remove it or correct it"
            self._warn(Code.UNREACHABLE_BRANCH, span, f"always {always} here", (), help_, what=what)
        elif owner.place == owner.condition.place:
            self._report_row(owner, constant.holds, span)
        elif not _is_default(owner):
            branch, always = ("ELSE", "true") if constant.holds else ("THEN", "false")
            unused = owner.otherwise if constant.holds else owner.then
            labels = (Label(self._span(unused.place), "never evaluated"),)
            label = f"always {always} here"
            self._warn(Code.UNREACHABLE_BRANCH, span, label, labels, None, what=f"the {branch} of this IF")

    def _report_row(self, row: ir.If, always: bool, span: Span) -> None:
        if not always:
            label = "no value that gets here makes this true"
            help_ = "the contracts and the rows above rule it out; remove it or move it up"
            self._warn(Code.UNREACHABLE_BRANCH, span, label, (), help_, what="this row")
            return
        below = row.otherwise
        is_row = isinstance(below, ir.If) and below.place == below.condition.place
        unused = self._span(below.condition.place if isinstance(below, ir.If) and is_row else below.place)
        labels = (Label(span, "always true for what gets here"),)
        what = "this row" if is_row else "the `otherwise` of this table"
        help_ = "remove the rows below" if is_row else "make the last row the `otherwise`"
        self._warn(Code.UNREACHABLE_BRANCH, unused, "never reached", labels, help_, what=what)

    # -- reporting --------------------------------------------------------------------------------

    def _error(
        self, code: Code, span: Span, label: str, also: tuple[Label, ...], help_: str | None, **holes: str
    ) -> None:
        if (code, span) not in self._reported:
            self._reported.add((code, span))
            self._bag.error(code, span, label, also=also, help=help_, **holes)

    def _warn(
        self, code: Code, span: Span, label: str, also: tuple[Label, ...], help_: str | None, **holes: str
    ) -> None:
        if (code, span) not in self._reported:  # a clause of a record type applies to every input of the type
            self._reported.add((code, span))
            self._bag.warning(code, span, label, also=also, help=help_, **holes)

    @property
    def _source(self) -> SourceFile:
        return self._bag.source

    def _span(self, place: ir.Place) -> Span:
        start = self._source.offset(place.line, place.column)
        return Span(start, self._source.offset(place.end_line, place.end_column))

    def _slice(self, span: Span) -> str:
        return " ".join(self._source.slice(span).split())

    def _text(self, given: _PhaseClause) -> str:
        return " ".join(given.clause.text.split())


def _is_when(owner: ir.If) -> bool:
    """Return whether the `if` is a skippable step. Its null then has the location of the step."""
    last = owner.otherwise
    return isinstance(last, ir.Literal) and last.value is None and last.place == owner.place


def _is_default(owner: ir.If) -> bool:
    """Return whether the `if` is `a ?? b`, where a redundant default is not a mistake.

    Its test has its operand's location.
    """
    condition = owner.condition
    return isinstance(condition, ir.Call) and bool(condition.args) and condition.place == condition.args[0].place


_CONSEQUENCE = {
    "constraint": "every call of this node fails",
    "precondition": "every call of this node fails",
    "postcondition": "this node can never return",
}
