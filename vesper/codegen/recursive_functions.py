"""Recursive functions of a node as functions of the module. The depth of the call is a parameter."""

from __future__ import annotations

from collections.abc import Mapping

import libcst as cst

from vesper.codegen.expressions import ExpressionWriter
from vesper.codegen.metering import write_price
from vesper.codegen.naming import Naming
from vesper.codegen.types import TypeWriter
from vesper.language.ir import nodes as ir
from vesper.language.ir.new_values import price_function


class RecursiveFunctions:
    """Writer of `def name(parameters, *, depth: int)` for each recursive function of a node."""

    def __init__(
        self, node: ir.Node, naming: Naming, types: TypeWriter, expressions: ExpressionWriter, own: Mapping[str, str]
    ) -> None:
        """`own` are parameters that the form of the module needs, with their types."""
        self._node = node
        self._naming = naming
        self._types = types
        self._expressions = expressions
        self._own = own
        if node.functions:
            naming.reserve("depth")  # the keyword of every function
        self.names = {naming.name("function", each.name) for each in node.functions}
        """Identifiers of the functions."""

    def write_definitions(self) -> list[cst.FunctionDef]:
        return [self._write_definition(each) for each in self._node.functions]

    def _write_definition(self, function: ir.Function) -> cst.FunctionDef:
        name = self._naming.name("function", function.name)
        with self._naming.enter_function():
            depth = self._naming.create_name("depth")
            parameters = [
                _write_parameter(self._naming.hold(each.local, each.name), self._types.write_annotation(each.type))
                for each in function.parameters
            ]
            form = {depth: "int", **self._own}
            with self._expressions.enter_function(function.name, depth):
                body = self._write_return(function.value, function)
            for each in function.parameters:
                self._naming.release(each.local, each.name)
        prose = f'"""At most {function.max_depth:,} calls deep; line {function.value.place.line}."""'
        return cst.FunctionDef(
            cst.Name(name),
            cst.Parameters(
                params=parameters,
                kwonly_params=[_write_parameter(each, cst.Name(type_)) for each, type_ in form.items()],
            ),
            cst.IndentedBlock([cst.SimpleStatementLine([cst.Expr(cst.SimpleString(prose))]), *body]),
            returns=cst.Annotation(self._types.write_annotation(function.returns)),
        )

    def _write_return(self, value: ir.Expression, function: ir.Function) -> list[cst.BaseStatement]:
        """Write the outermost conditions and names of a value as statements, and a return at each end."""
        writer = self._expressions
        if isinstance(value, ir.If):
            condition = writer.write_condition(value.condition).node
            then = cst.IndentedBlock(self._write_return(value.then, function))
            return [cst.If(test=condition, body=then), *self._write_return(value.otherwise, function)]
        written = writer.write_stored(value).node
        price = price_function(function)
        if price is not None and writer.metering.is_metered:
            written = writer.metering.charge("charge_result", write_price(price), written)
        return [cst.SimpleStatementLine([cst.Return(written)])]


def _write_parameter(name: str, annotation: cst.BaseExpression) -> cst.Param:
    return cst.Param(cst.Name(name), annotation=cst.Annotation(annotation))
