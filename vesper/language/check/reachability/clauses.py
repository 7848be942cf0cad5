"""Contracts and conditions that can only come out in one way.

A clause that never holds, or two that contradict each other, make a node that nobody can call: errors. A clause that
always holds, a branch that is never taken and a comparison with one result are warnings: they say nothing, and mostly
the author meant something else. INVARIANT: what is said here is true of every execution.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vesper.language.check.reachability.evaluate import Constant, Judge
from vesper.language.check.reachability.statements import FlowWalk, Way
from vesper.language.check.reachability.terms import Facts
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import DiagnosticBag, Label
from vesper.language.diagnostics.source import SourceFile, Span
from vesper.language.ir import nodes as ir

MAX_DEPTH = 160
"""Deeper expressions are not judged: the walk is recursive. Authors' expressions are a tenth of that."""
_MAX_TRIED = 200
"""So many other clauses are tried to find the one that a clause contradicts or repeats."""
_MAX_REPEATED = 100
"""Of more clauses, what a later one says is not held against the earlier ones."""
_NO_FACTS = Facts()


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was said: this expression comes out so in every execution that evaluates it.

    Of a contradiction it is: in every execution in which all the other clauses of its phases hold.
    """

    code: Code
    expression: ir.Expression
    holds: bool


def report_constants(node: ir.Node, bag: DiagnosticBag, functions: Sequence[Span] = ()) -> tuple[Finding, ...]:
    """Say which clauses, branches and comparisons of a checked node are constant.

    `functions` are the values of the node's own functions. Those are put in where they are called, and what is constant
    with the arguments of one call is no mistake of the function.
    """
    if _is_deep(node):
        return ()
    reporter = _Reporter(node, bag, functions)
    reporter.run()
    return tuple(reporter.findings)


def _is_deep(node: ir.Node) -> bool:
    before = -1
    for root in node.roots():
        # An expression is no deeper than it has parts, and those are numbered one after the other.
        if root.index - before > MAX_DEPTH and ir.depth(root) > MAX_DEPTH:
            return True
        before = root.index
    return False


@dataclass(frozen=True, slots=True)
class _Given:
    """A clause that others are held against."""

    clause: ir.Clause
    phase: str


class _Reporter:
    def __init__(self, node: ir.Node, bag: DiagnosticBag, functions: Sequence[Span]) -> None:
        self._node = node
        self._functions = functions
        self._bag = bag
        self._judge = Judge(node)
        self._said: set[tuple[Code, Span]] = set()
        self.findings: list[Finding] = []

    def run(self) -> None:
        node, judge = self._node, self._judge
        before = [_Given(clause, "constraint") for clause in node.constraints]
        before += [_Given(clause, "precondition") for clause in node.preconditions]
        for given in before:
            judge.terms.add(given.clause.holds)
        facts = self._clauses(before, [], _NO_FACTS)
        if facts is None:
            return
        returned = self._body(facts)
        after = [_Given(clause, "postcondition") for clause in node.postconditions]
        for given in after:
            judge.terms.add(given.clause.holds)
        # What the steps promise is not held against them: a postcondition that they always meet is a good one.
        if self._clauses(after, before, facts) is None or returned is None:
            return
        for given in after:
            holds, _ = judge.branch(given.clause.holds, returned)
            if holds is None:
                self._never(given, "the steps never give such outputs")
                return
            returned = holds

    # -- clauses ----------------------------------------------------------------------------------

    def _clauses(self, clauses: list[_Given], others: list[_Given], facts: Facts) -> Facts | None:
        """What the clauses say together; None after reporting that they never hold together."""
        seen = list(others)
        for given in clauses:
            holds, fails = self._judge.branch(given.clause.holds, facts)
            if holds is None and fails is None:
                return None  # it always fails to have a value; running it says where
            if holds is None:
                self._impossible(given, seen)
                return None
            if fails is None:
                self._idle(given, seen)
            facts = holds
            seen.append(given)
        # What a later clause said may decide an earlier one: `amount <= balance`, `amount > 10`, `balance < 5`.
        may_say_more = len(clauses) <= _MAX_REPEATED and self._judge.terms.relates_names(facts)
        for _ in range(2 if may_say_more else 0):
            before = facts
            for given in clauses:
                holds, _ = self._judge.branch(given.clause.holds, facts)
                if holds is None:
                    self._impossible(given, [each for each in seen if each is not given])
                    return None
                facts = holds
            if facts is before:
                break
        return facts

    def _impossible(self, given: _Given, others: list[_Given]) -> None:
        alone, _ = self._judge.branch(given.clause.holds, _NO_FACTS)
        if alone is None:
            self._never(given, "no value makes this true")
            return
        span = self._span(given.clause.holds.place)
        one = self._decided_by(given, others, wants=False)
        together = [one] if one is not None else self._conflict(given, others)
        text = self._text(given)
        says = "says otherwise" if one is not None else "with the others says otherwise"
        labels = tuple(Label(self._span(each.clause.holds.place), f"this {each.phase} {says}") for each in together[:3])
        other = " and ".join(f"`{self._text(each)}`" for each in together[:3])
        other += " and others" if len(together) > 3 else ""
        help_ = f"{_CONSEQUENCE[given.phase]} while all of these stand; change one of them"
        self.findings.append(Finding(Code.CONTRADICTION, given.clause.holds, False))
        self._error(Code.CONTRADICTION, span, "cannot hold as well", labels, help_, clause=text, other=other)

    def _never(self, given: _Given, why: str) -> None:
        span = self._span(given.clause.holds.place)
        help_ = f"{_CONSEQUENCE[given.phase]}; say what was meant, or take it out"
        self.findings.append(Finding(Code.NEVER_HOLDS, given.clause.holds, False))
        self._error(Code.NEVER_HOLDS, span, why, (), help_, what=given.phase, clause=self._text(given))

    def _idle(self, given: _Given, others: list[_Given]) -> None:
        _, fails = self._judge.branch(given.clause.holds, _NO_FACTS)
        labels: tuple[Label, ...] = ()
        why = "no value of these types breaks it"
        if fails is not None:
            one = self._decided_by(given, others, wants=True)
            why = "follows from the clauses above"
            if one is not None:
                why = "says nothing new"
                labels = (Label(self._span(one.clause.holds.place), f"this {one.phase} says so already"),)
        span = self._span(given.clause.holds.place)
        help_ = "take it out, or say what was meant"
        self.findings.append(Finding(Code.ALWAYS_HOLDS, given.clause.holds, True))
        self._warn(Code.ALWAYS_HOLDS, span, why, labels, help_, what=given.phase, clause=self._text(given))

    def _decided_by(self, given: _Given, others: list[_Given], wants: bool) -> _Given | None:
        """The one other clause that alone makes this one true, or false."""
        for other in others[:_MAX_TRIED]:
            known, _ = self._judge.branch(other.clause.holds, _NO_FACTS)
            if known is None:
                continue
            holds, fails = self._judge.branch(given.clause.holds, known)
            if (fails if wants else holds) is None:
                return other
        return None

    def _conflict(self, given: _Given, others: list[_Given]) -> list[_Given]:
        """As few other clauses as make this one impossible: each is left out if it goes without."""
        needed = others if len(others) <= _MAX_REPEATED else []
        for other in list(needed):
            without = [each for each in needed if each is not other]
            if not self._can_all_hold([*without, given]):
                needed = without
        return needed or others

    def _can_all_hold(self, clauses: list[_Given]) -> bool:
        facts = _NO_FACTS
        for _ in range(2):
            for given in clauses:
                holds, _ = self._judge.branch(given.clause.holds, facts)
                if holds is None:
                    return False
                facts = holds
        return True

    # -- steps ------------------------------------------------------------------------------------

    def _body(self, facts: Facts) -> Facts | None:
        """What is known of the outputs when the steps are done; None where they never are."""
        flow = FlowWalk(self._judge)
        returned = flow.body(self._node.body, facts)
        for constant in self._judge.found:
            self._constant(constant)
        for way in flow.ways:
            self._way(way)
        return returned

    def _way(self, way: Way) -> None:
        """A condition of the flow. A loop or a step that always runs says too much, one that never runs is no step."""
        is_negated = isinstance(way.condition, ir.Call) and way.condition.op == "boolean.not"
        shown, holds = way.condition, way.holds
        if is_negated and way.condition.place == ir.children(way.condition)[0].place:  # a validation with an error
            shown, holds = ir.children(way.condition)[0], not way.holds
            way = Way(shown, holds, "validation")
        span = self._span(shown.place)
        always = "true" if holds else "false"
        if way.kind == "validation" and holds:
            self.findings.append(Finding(Code.ALWAYS_HOLDS, shown, True))
            text, help_ = self._slice(span), "take it out, or say what was meant"
            why = "follows from the contracts and the steps above"
            self._warn(Code.ALWAYS_HOLDS, span, why, (), help_, what="validation", clause=text)
        elif way.kind == "arm" and holds and way.is_last:
            self.findings.append(Finding(Code.CONSTANT_COMPARISON, shown, True))
            text = self._slice(span)
            self._warn(Code.CONSTANT_COMPARISON, span, f"always {always}", (), None, text=text, always=always)
        else:
            self.findings.append(Finding(Code.UNREACHABLE_BRANCH, shown, holds))
            what = {
                ("validation", False): "what comes after this validation",
                ("loop", False): "the inside of this loop",
                ("arm", False): "what this condition leads to",
            }.get((way.kind, holds), "the other way of this step")
            label = f"always {always} here"
            help_ = "the contracts and what stands above decide it; take it out, or say what was meant"
            self._warn(Code.UNREACHABLE_BRANCH, span, label, (), help_, what=what)

    def _constant(self, constant: Constant) -> None:
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
            help_ = "the contracts and what stands above decide it; take it out, or say what was meant"
            self._warn(Code.UNREACHABLE_BRANCH, span, f"always {always} here", (), help_, what=what)
        elif owner.place == owner.condition.place:
            self._row(owner, constant.holds, span)
        elif not _is_default(owner):
            branch, always = ("ELSE", "true") if constant.holds else ("THEN", "false")
            unused = owner.otherwise if constant.holds else owner.then
            labels = (Label(self._span(unused.place), "never evaluated"),)
            label = f"always {always} here"
            self._warn(Code.UNREACHABLE_BRANCH, span, label, labels, None, what=f"the {branch} of this IF")

    def _row(self, row: ir.If, always: bool, span: Span) -> None:
        if not always:
            label = "no value that gets here makes this true"
            help_ = "the contracts and the rows above rule it out; take it out, or move it up"
            self._warn(Code.UNREACHABLE_BRANCH, span, label, (), help_, what="this row")
            return
        below = row.otherwise
        is_row = isinstance(below, ir.If) and below.place == below.condition.place
        unused = self._span(below.condition.place if isinstance(below, ir.If) and is_row else below.place)
        labels = (Label(span, "always true for what gets here"),)
        what = "this row" if is_row else "the `otherwise` of this table"
        help_ = "take out what stands below" if is_row else "make the last row the `otherwise`"
        self._warn(Code.UNREACHABLE_BRANCH, unused, "never reached", labels, help_, what=what)

    # -- reporting --------------------------------------------------------------------------------

    def _error(
        self, code: Code, span: Span, label: str, also: tuple[Label, ...], help_: str | None, **holes: str
    ) -> None:
        if (code, span) not in self._said:
            self._said.add((code, span))
            self._bag.error(code, span, label, also=also, help=help_, **holes)

    def _warn(
        self, code: Code, span: Span, label: str, also: tuple[Label, ...], help_: str | None, **holes: str
    ) -> None:
        if (code, span) not in self._said:  # a record type's clause stands for every input that has the type
            self._said.add((code, span))
            self._bag.warning(code, span, label, also=also, help=help_, **holes)

    @property
    def _source(self) -> SourceFile:
        return self._bag.source

    def _span(self, place: ir.Place) -> Span:
        start = self._source.offset(place.line, place.column)
        return Span(start, self._source.offset(place.end_line, place.end_column))

    def _slice(self, span: Span) -> str:
        return " ".join(self._source.slice(span).split())

    def _text(self, given: _Given) -> str:
        return " ".join(given.clause.text.split())


def _is_when(owner: ir.If) -> bool:
    """True for a step that is skipped where its `when` is false: the null stands where the condition stands."""
    last = owner.otherwise
    return isinstance(last, ir.Literal) and last.value is None and last.place == owner.place


def _is_default(owner: ir.If) -> bool:
    """True for `a ?? b`, where being careful is no mistake; its question stands where its operand stands."""
    condition = owner.condition
    return isinstance(condition, ir.Call) and bool(condition.args) and condition.place == condition.args[0].place


_CONSEQUENCE = {
    "constraint": "nobody can call this node",
    "precondition": "nobody can call this node",
    "postcondition": "this node can never return",
}
