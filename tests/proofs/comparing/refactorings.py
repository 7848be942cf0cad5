"""Refactorings that keep the meaning of a node: the rewritings by which `vesper verify --relations` checks engines."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.proofs.comparing.planting import compile_changed
from vesper.compiler import Compiled, compile_file
from vesper.verify.relations import branching, functions, loops, operators, renaming, step_order, values
from vesper.verify.relations.rewritings import Relation
from vesper.verify.relations.subject import Subject

RELATIONS: tuple[Relation, ...] = (
    *operators.RELATIONS,
    *values.RELATIONS,
    *functions.RELATIONS,
    *step_order.RELATIONS,
    *branching.RELATIONS,
    *loops.RELATIONS,
    *(each for each in renaming.RELATIONS if each.name == "renamed_steps"),
)


@dataclass(frozen=True)
class Refactored:
    relation: str
    before: Compiled
    after: Compiled

    @property
    def id(self) -> str:
        return f"{self.relation} {self.before.node.node_id}"


def refactorings(seed: int, nodes: list[Path], skip: frozenset[str] = frozenset()) -> Iterator[Refactored]:
    """Yield refactored nodes with another semantic hash, by relations in turn; `skip` are ids that are not made."""
    waiting = [_of_relation(relation, seed, nodes, skip) for relation in RELATIONS]
    while waiting:
        for each in list(waiting):
            refactored = next(each, None)
            if refactored is None:
                waiting.remove(each)
            else:
                yield refactored


def _of_relation(relation: Relation, seed: int, nodes: list[Path], skip: frozenset[str]) -> Iterator[Refactored]:
    order = list(nodes)
    random.Random(f"refactored {relation.name} {seed}").shuffle(order)
    for path in order:
        if f"{relation.name} {path.stem}" in skip:
            continue
        compiled, _ = compile_file(path)
        if compiled is None:
            continue
        subject = Subject(compiled)
        subject.prepare(2)
        rewriting = relation.rewrite(subject, random.Random(f"{relation.name} {seed} {path.stem}"))
        after = None if rewriting is None else compile_changed(compiled, rewriting.text)
        if after is not None and after.semantic_hash != compiled.semantic_hash:
            yield Refactored(relation.name, compiled, after)
