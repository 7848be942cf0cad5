"""Waves of `parallel: auto`: neighbouring statements that do not depend on each other become strands.

A statement joins the strand whose value it reads, or begins a strand. It ends the wave if it reads the values of two
strands, may end the node, or waits. It also ends the wave if it must come after every earlier step, as writes and other
requests to their target must.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count

from vesper.language.check.callees import Interface
from vesper.language.check.flow.observation import is_read_only
from vesper.language.check.flow.strands import MAX_STRANDS
from vesper.language.ir import nodes as ir
from vesper.language.ir.statements import all_statements, expressions_of, is_strand_statement
from vesper.values.generated.effects import EFFECTS

_Target = tuple[str, str]
"""What a request reads or changes: the first word of its capability, and the first fixed field."""


@dataclass(slots=True)
class _Strand:
    first: int
    body: list[ir.Statement] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    targets: set[_Target] = field(default_factory=set)
    writes: bool = False
    makes_requests: bool = False


class WaveFinder:
    """Finds the waves of one node. `called` has the interfaces of the nodes that it calls, by id."""

    def __init__(self, called: Mapping[str, Interface]) -> None:
        self._called = called
        self._numbers = count(1)

    def block(self, block: ir.Block) -> ir.Block:
        """Return the block with its waves as parallel statements."""
        found: list[ir.Statement] = []
        strands: list[_Strand] = []
        flat: list[ir.Statement] = []

        def end_wave() -> None:
            found.extend(self._wave(strands, flat))
            strands.clear()
            flat.clear()

        for statement in block:
            requests = list(self._requests(statement))
            if _is_barrier(statement, requests):
                end_wave()
                found.append(self._with_inner_waves(statement))
                continue
            writes = any(not is_read_only(each) for each in requests)
            read = _steps_read(statement)
            targets = {_target(each) for each in requests}
            sources = [each for each in strands if each.names & read]
            conflicts = any(each.writes and each.targets & targets for each in strands if each not in sources)
            if len(sources) > 1 or writes or conflicts or (not sources and len(strands) == MAX_STRANDS):
                end_wave()
                sources = []
            if not sources:
                sources = [_Strand(len(flat))]
                strands += sources
            (strand,) = sources
            strand.body.append(statement)
            strand.names |= {each.name for each in all_statements((statement,)) if not isinstance(each, _UNNAMED)}
            strand.targets |= targets
            strand.writes |= writes
            strand.makes_requests |= bool(requests)
            flat.append(statement)
        end_wave()
        return tuple(found)

    def _wave(self, strands: list[_Strand], flat: list[ir.Statement]) -> list[ir.Statement]:
        """Return the statements of a wave. They stay unchanged if at most one strand makes requests."""
        members: list[_Strand] = []
        before: list[ir.Statement] = []
        for strand in strands:
            if strand.makes_requests:
                members.append(strand)
            elif members:
                members[-1].body += strand.body  # only computes
            else:
                before += strand.body
        if len(members) < 2:
            return [self._with_inner_waves(each) for each in flat]
        first = members[0].body[0]
        assert not isinstance(first, _UNNAMED)
        bodies = tuple(tuple([self._with_inner_waves(each) for each in member.body]) for member in members)
        return [*before, ir.Parallel(f"_wave_{next(self._numbers)}", bodies, first.place)]

    def _with_inner_waves(self, statement: ir.Statement) -> ir.Statement:
        """Return the statement with the waves in its blocks."""
        match statement:
            case ir.Branch(arms=arms, otherwise=otherwise):
                found = tuple(replace(arm, body=self.block(arm.body)) for arm in arms)
                return replace(statement, arms=found, otherwise=self.block(otherwise))
            case ir.Loop(body=body):
                return replace(statement, body=self.block(body))
            case _:
                return statement

    def _requests(self, statement: ir.Statement) -> Iterator[ir.Request]:
        """Yield the requests that a statement can make, itself or through called nodes."""
        for each in all_statements((statement,)):
            if isinstance(each, ir.Request):
                yield each
            elif isinstance(each, ir.CallNode):
                yield from self._called[each.node].requests.values()


_UNNAMED = (ir.Return, ir.Raise, ir.Require)


def _is_barrier(statement: ir.Statement, requests: list[ir.Request]) -> bool:
    """Return whether a statement cannot be part of a strand."""
    is_parallel = any(is_strand_statement(each) for each in all_statements((statement,)))
    may_end = any(isinstance(each, _UNNAMED) for each in all_statements((statement,)))
    return is_parallel or may_end or any(each.effect_class == "wait" for each in requests)


def _steps_read(statement: ir.Statement) -> set[str]:
    return {
        each.name
        for value in expressions_of((statement,))
        for each in ir.walk(value)
        if isinstance(each, ir.Ref) and each.kind == "step"
    }


def _target(request: ir.Request) -> _Target:
    return EFFECTS[request.effect].capability.partition(".")[0], next(iter(request.fixed.values()), "")
