"""Calls of recursive functions: uninterpreted functions, named by the text of their definitions."""

from __future__ import annotations

import hashlib

import z3

from vesper.language.ir import nodes as ir
from vesper.language.ir.failures import codes_of_expression
from vesper.proof.context import ABSTRACT
from vesper.proof.evaluation import Evaluator
from vesper.proof.symbols import Symbolic, components, symbol


def evaluate_apply(evaluator: Evaluator, apply: ir.Apply) -> Symbolic:
    """Return the result of a call of a recursive function."""
    context = evaluator.context
    args = [evaluator.value(each) for each in apply.args]
    operands = [term for each in args for term in components(context, each)]
    name = f"{ABSTRACT}function {definition_text(evaluator.node, apply.function)}"
    evaluator.note(apply.index, f"the recursive function {apply.function} is not unrolled")
    codes = {"recursion_limit"}
    for each in reachable_functions(evaluator.node, apply.function):
        codes |= codes_of_expression(each.value)
    for code in sorted(codes):
        evaluator.fail(apply.index, code, context.apply(f"{name} fails {code}", operands, z3.BoolSort()), "apply")
    return symbol(context, apply.type, name, operands)


def reachable_functions(node: ir.Node, function: str) -> list[ir.Function]:
    """Return a function and those that it calls, directly or through others."""
    by_name = {each.name: each for each in node.functions}
    found: dict[str, ir.Function] = {}
    waiting = [function]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = by_name[name]
            waiting += [each.function for each in ir.walk(by_name[name].value) if isinstance(each, ir.Apply)]
    return list(found.values())


def definition_text(node: ir.Node, function: str) -> str:
    """Return a text that is equal for functions with equal definitions, whatever they and their locals are called."""
    functions = reachable_functions(node, function)
    numbers = {each.name: at for at, each in enumerate(functions)}
    constants = {each.name: repr((each.type, each.value)) for each in node.constants}
    parts: list[str] = []
    for each in functions:
        locals_: dict[int, int] = {}
        for parameter in each.parameters:
            locals_[parameter.local] = len(locals_)
        parts.append(f"{each.max_depth} {each.returns!r} {len(each.parameters)}")
        for part in ir.walk(each.value):
            match part:
                case ir.Literal(type=type_, value=value):
                    parts.append(f"literal {type_!r} {value!r}")
                case ir.Ref(name=name):
                    parts.append(constants[name])
                case ir.Call(op=op, of=of):
                    parts.append(f"{op} {of!r} {len(part.args)}")
                case ir.Local(number=number):
                    parts.append(f"local {locals_.setdefault(number, len(locals_))}")
                case ir.Let(local=number):
                    parts.append(f"let {locals_.setdefault(number, len(locals_))}")
                case ir.For(kind=kind, locals=own):
                    numbered = [locals_.setdefault(number, len(locals_)) for number in own]
                    has = (part.where is not None, part.key is not None, part.with_ is not None)
                    parts.append(f"for {kind} {numbered} {has}")
                case ir.Apply(function=called):
                    parts.append(f"apply {numbers[called]} {len(part.args)}")
                case ir.Field(name=name):
                    parts.append(f"field {name}")
                case ir.RecordValue(fields=fields):
                    parts.append(f"record {[name for name, _ in fields]}")
                case ir.Array(items=items, of=element):
                    parts.append(f"array {len(items)} {element!r}")
                case ir.Logical(kind=kind):
                    parts.append(kind)
                case _:
                    parts.append(type(part).__name__)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]
