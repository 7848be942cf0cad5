"""Functions for contract clauses that several ends of a node share.

Each function is written once and called at each end.
"""

from __future__ import annotations

from collections.abc import Mapping

import libcst as cst

from vesper.codegen.layout.python_expression import EQUAL
from vesper.codegen.naming import Naming
from vesper.codegen.statements import BlockWriter
from vesper.codegen.types import TypeWriter
from vesper.language.ir import nodes as ir
from vesper.values.types import Type


class ContractFunction:
    """Writer of `check_postconditions(*, …)` or `check_invariants(*, …)`. Names in the clauses are parameters."""

    def __init__(self, phase: str, clauses: tuple[ir.Clause, ...], own: Mapping[str, str], is_apart: bool) -> None:
        """`own` are parameters that the form of the module needs, with their types.

        With `is_apart`, a handler that catches failures at an end does not catch those of the clauses.
        """
        self._is_apart = is_apart
        self.name = f"check_{phase}s"
        self._phase = phase
        self._clauses = clauses
        self._own = own
        self._mentioned = _find_mentioned(clauses)
        self._needs_now = any(isinstance(e, ir.Now) for clause in clauses for e in ir.walk(clause.holds))

    def write_definition(self, blocks: BlockWriter, naming: Naming, types: TypeWriter) -> cst.FunctionDef:
        """Write the function; its names are independent of the names around it."""
        with naming.enter_function():
            parameters = [
                self._write_parameter(naming.name(kind, name), types.write_annotation(type_))
                for (kind, name), type_ in self._mentioned.items()
            ]
            if self._needs_now:
                parameters.append(self._write_parameter("now", cst.Name("datetime")))
            parameters += [self._write_parameter(name, cst.Name(type_)) for name, type_ in self._own.items()]
            body = blocks.write_clauses([(self._phase, index, each) for index, each in enumerate(self._clauses)])
        first = body[0]
        assert isinstance(first, cst.If | cst.For)
        first = first.with_changes(leading_lines=first.leading_lines[1:])
        star = cst.Parameters(kwonly_params=parameters) if parameters else cst.Parameters()
        return cst.FunctionDef(
            cst.Name(self.name),
            star,
            cst.IndentedBlock([first, *body[1:]]),
            decorators=[cst.Decorator(cst.Name("outside_of_the_flow"))] if self._is_apart else [],
            returns=cst.Annotation(cst.Name("None")),
        )

    def write_call(self, naming: Naming) -> cst.BaseStatement:
        """Write the call at one end of the node, with the values that this end has."""
        values = {name: naming.name(kind, each) for (kind, each), name in self._choose_names(naming).items()}
        if self._needs_now:
            values["now"] = "now"
        values |= {name: name for name in self._own}
        arguments = [cst.Arg(cst.Name(value), keyword=cst.Name(name), equal=EQUAL) for name, value in values.items()]
        return cst.SimpleStatementLine([cst.Expr(cst.Call(cst.Name(self.name), arguments))])

    def _choose_names(self, naming: Naming) -> dict[tuple[str, str], str]:
        """Choose the names of the parameters, in the order of the definition."""
        with naming.enter_function():
            return {(kind, name): naming.name(kind, name) for kind, name in self._mentioned}

    def _write_parameter(self, name: str, annotation: cst.BaseExpression) -> cst.Param:
        return cst.Param(cst.Name(name), annotation=cst.Annotation(annotation))


def _find_mentioned(clauses: tuple[ir.Clause, ...]) -> dict[tuple[str, str], Type]:
    """Find the inputs, outputs and fields of errors that the clauses read, in order of first mention."""
    found: dict[tuple[str, str], Type] = {}
    for clause in clauses:
        for expression in ir.walk(clause.holds):
            if isinstance(expression, ir.Ref) and expression.kind != "constant":
                found.setdefault((expression.kind, expression.name), expression.type)
    return found
