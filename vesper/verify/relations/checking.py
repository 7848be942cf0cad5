"""Check relations: rewrite a node, run both forms on the same inputs, compare, shrink.

Both engines share the parser, the checker and the lowering, so a comparison of engines shows no fault of these parts. A
relation shows them, because it compares a node with a rewritten form of itself on one engine.
"""

from __future__ import annotations

import random
import re
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from vesper.compiler import Compiled, compile_source
from vesper.compiler.callees import Collection, Neighbours, collection_folder
from vesper.engines.compare import same_outcome, same_requests
from vesper.engines.engine import Completion, Done, Engine, Program, Request
from vesper.engines.outcome import ContractBroken, Failed, LimitHit, Outcome, Returned
from vesper.engines.registry import REFERENCE
from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.diagnostics.render.full import render_full
from vesper.language.diagnostics.source import SourceFile
from vesper.language.ir.nodes import Node
from vesper.values.inputs import accept_inputs
from vesper.values.model import plain, same
from vesper.verify.differential.forms import COMPARED
from vesper.verify.inputs.generator import InputGenerator
from vesper.verify.inputs.responses import GeneratedResponses, TooManyRequests, run_with
from vesper.verify.relations.catalog import ALL_RELATIONS
from vesper.verify.relations.report import RelationFailure, RelationsReport
from vesper.verify.relations.rewritings import Relation, Rewriting
from vesper.verify.relations.subject import Subject
from vesper.verify.shrink.inputs import shrink

INPUTS_PER_NODE = 8
RELATED = (REFERENCE, "interp")
"""Engines that run rewritings by default."""
_ATTEMPTS = (1000, 2, 1)
"""Numbers of rewritten expressions, tried until the checker accepts a rewriting."""
NODE_SHARE = 0.3
"""Share of the rewritings of a node that the reference runs too: generating their Python takes most of the time."""
_NAME = re.compile(r"[a-z][a-z0-9_]*")


def verify_relations(
    subject: Compiled | SourceFile,
    engines: Mapping[str, Engine] | None = None,
    seed: int = 0,
    inputs_each: int = INPUTS_PER_NODE,
    relations: Sequence[Relation] = ALL_RELATIONS,
    reference_share: float = NODE_SHARE,
) -> RelationsReport:
    """Check relations of one node on inputs of a seed. A source must compile.

    The reference runs `reference_share` of the rewritings, the other engines all of them.
    """
    begun = time.monotonic()
    engines = {name: COMPARED[name] for name in RELATED} if engines is None else engines
    report = RelationsReport(seed, tuple(engines), nodes=1)
    if isinstance(subject, SourceFile):
        compiled, bag = compile_source(subject, judge_contracts=False)
        if compiled is None:
            raise ValueError(render_full(bag.source, bag.sorted()[0]))
    else:
        compiled = subject
    checker = _Checker(compiled, engines, seed, inputs_each, report, reference_share)
    for relation in relations:
        checker.check(relation)
    report.elapsed_seconds = time.monotonic() - begun
    return report


class _Checker:
    """One node, its inputs, and its outcomes on each engine."""

    def __init__(
        self,
        compiled: Compiled,
        engines: Mapping[str, Engine],
        seed: int,
        inputs_each: int,
        report: RelationsReport,
        reference_share: float,
    ) -> None:
        self._compiled = compiled
        self._node = compiled.node
        self._subject = Subject(compiled)
        self._collection: Collection | None = None
        self._engines = engines
        self._seed = seed
        self._report = report
        self._reference_share = reference_share
        self._declared = compiled.node.declared_inputs
        self._responses = GeneratedResponses(compiled)
        self._programs = {name: engine.load(compiled) for name, engine in engines.items()}
        self._inputs = self._draw(inputs_each)
        self._expected = {
            name: [self._run(program, inputs, number, Rewriting("")) for number, inputs in enumerate(self._inputs)]
            for name, program in self._programs.items()
        }

    def _draw(self, count: int) -> list[dict[str, object]]:
        """Return inputs that the node accepts, those of cases first."""
        cases = [dict(case.inputs) for case in self._compiled.cases if not case.effects]
        generator = InputGenerator(self._node, self._seed, False, [each.inputs for each in self._compiled.cases])
        drawn = cases[: count // 2] + [generator.draw() for _ in range(2 * count)]
        found = (self._accept_inputs(each) for each in drawn)
        return [each for each in found if each is not None][:count]

    def _accept_inputs(self, inputs: Mapping[str, object]) -> dict[str, object] | None:
        """Return inputs in the form of their types; None if the node refuses them."""
        values, problems = accept_inputs(self._declared, dict(inputs))
        return None if problems else {name: plain(values[name]) for name in inputs}

    def check(self, relation: Relation) -> None:
        """Compare the node with one rewriting of a relation."""
        for max_sites in _ATTEMPTS:
            chance = random.Random(f"{relation.name} {self._seed} {max_sites}")
            text = ""
            try:
                self._subject.prepare(max_sites)
                rewriting = relation.rewrite(self._subject, chance)
                if rewriting is None:
                    return
                text = rewriting.text
                compiled, bag = self._compile(text)
                if compiled is not None:
                    self._count(self._report.checked, relation)
                    self._compare(relation, rewriting, compiled)
                    return
            except Exception:  # noqa: BLE001  # a valid document must not raise anything
                self._fail(relation, "raised", text, detail=traceback.format_exc())
                return
            if relation.is_always_valid:
                self._fail(relation, "refused", text, detail=render_full(bag.source, bag.sorted()[0]))
                return
        self._count(self._report.left_out, relation)

    def _compile(self, text: str) -> tuple[Compiled | None, DiagnosticBag]:
        """Compile a rewriting at the path of the node; called nodes are compiled once."""
        source = SourceFile(self._compiled.source.path, text)
        if not self._compiled.callees:
            return compile_source(source, judge_contracts=False)
        if self._collection is None:
            self._collection = Collection(collection_folder(Path(source.path)))
        return compile_source(source, Neighbours(self._collection, (self._node.node_id,)), judge_contracts=False)

    def _count(self, counts: dict[str, int], relation: Relation) -> None:
        counts[relation.name] = counts.get(relation.name, 0) + 1

    def _fail(self, relation: Relation, kind: str, text: str, detail: str) -> None:
        self._report.failures.append(
            RelationFailure(relation.name, relation.law, self._node, kind, text, detail=detail)
        )

    def _compare(self, relation: Relation, rewriting: Rewriting, compiled: Compiled) -> None:
        is_same_ir = compiled.semantic_hash == self._compiled.semantic_hash
        self._report.same_ir += is_same_ir
        drawn = random.Random(f"reference {relation.name} {self._seed} {self._node.node_id}").random()
        is_drawn = drawn < self._reference_share or len(self._engines) == 1
        for name, engine in self._engines.items():
            # On the same IR an engine cannot differ, unless it generates Python with names of locals.
            is_reference = name == REFERENCE
            if is_same_ir and not (is_reference and rewriting.has_new_locals):
                continue
            if is_reference and not (is_drawn or is_same_ir):
                continue
            program = engine.load(compiled)
            for number, inputs in enumerate(self._inputs):
                found = self._run(program, inputs, number, rewriting)
                expected = self._expected[name][number]
                self._report.executions += 1
                if isinstance(found.outcome, LimitHit) or isinstance(expected.outcome, LimitHit):
                    self._report.not_comparable += 1
                elif _difference(expected, found, rewriting) is not None:
                    self._report_difference(relation, rewriting, name, program, number, compiled.node)
                    return

    def _run(self, program: Program, inputs: Mapping[str, object], number: int, rewriting: Rewriting) -> Done:
        """Run a rewriting; its requests are answered as those of the node."""
        seed = f"{self._seed} {number}"
        answer = self._responses.responder(seed, inputs)
        old = {new: name for name, new in rewriting.names.items()}

        def respond(request: Request) -> Completion:
            return answer(replace(request, path=_old_path(request.path, old)))

        try:
            return run_with(program, rewriting.convert_inputs(inputs), self._responses.now(seed), respond)
        except TooManyRequests:
            return Done(LimitHit("requests"), ())

    def _report_difference(
        self, relation: Relation, rewriting: Rewriting, engine: str, program: Program, number: int, rewritten: Node
    ) -> None:
        """Report the smallest inputs on which the rewriting differs."""

        def runs(inputs: Mapping[str, object]) -> tuple[Done, Done]:
            expected = self._run(self._programs[engine], inputs, number, Rewriting(""))
            return expected, self._run(program, inputs, number, rewriting)

        kind = _difference(*runs(self._inputs[number]), rewriting)

        def still_differs(candidate: dict[str, object]) -> bool:
            accepted = self._accept_inputs(candidate)
            if accepted is None:
                return False
            expected, found = runs(accepted)
            is_lost = isinstance(expected.outcome, LimitHit) or isinstance(found.outcome, LimitHit)
            return not is_lost and _difference(expected, found, rewriting) == kind

        small = self._accept_inputs(shrink(self._node, self._inputs[number], still_differs))
        assert small is not None and kind is not None, "shrinking keeps the difference"
        expected, found = runs(small)
        self._report.failures.append(
            RelationFailure(
                relation.name, relation.law, self._node, kind, rewriting.text, engine, small,
                rewriting.convert_inputs(small), expected.outcome, found.outcome, rewritten,
            )
        )  # fmt: skip


def _old_path(path: str, old: Mapping[str, str]) -> str:
    return _NAME.sub(lambda match: old.get(match[0], match[0]), path) if old else path


def _difference(expected: Done, found: Done, rewriting: Rewriting) -> str | None:
    """Return the kind of the difference between two executions, under the names of the node."""
    old = {new: name for name, new in rewriting.names.items()}
    requests = [replace(each, path=_old_path(each.path, old)) for each in found.requests]
    if not same_requests(expected.requests, requests):
        return "requests"
    return None if _is_same(expected.outcome, found.outcome, old) else "outcome"


def _is_same(expected: Outcome, found: Outcome, old: Mapping[str, str]) -> bool:
    """Compare two outcomes under the old names; places of expressions differ, and a clause may list other names."""
    match expected, found:
        case Returned(), Returned(value):
            return same_outcome(expected, Returned({old.get(name, name): each for name, each in value.items()}))
        case Failed(code), Failed(other):
            return code == other
        case ContractBroken(phase, index, values), ContractBroken(other_phase, other_index, others):
            renamed = {old.get(name, name): each for name, each in others.items()}
            is_same_clause = (phase, index) == (other_phase, other_index)
            return is_same_clause and all(same(values[name], renamed[name]) for name in values if name in renamed)
        case _:
            return same_outcome(expected, found)
