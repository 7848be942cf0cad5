"""Ends of a flow: returns, declared errors, and steps after which no step is reached."""

from __future__ import annotations

from vesper.language.check.expressions.checker import ExpressionChecker, place_of
from vesper.language.check.scope import Declared, Scope
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.diagnostics.source import Span
from vesper.language.diagnostics.suggest import did_you_mean
from vesper.language.ir import nodes as ir
from vesper.language.syntax import ast, budget_ast
from vesper.values.types import Enum


class EndChecker:
    """Checks returns and declared errors of one node, and collects the errors that are raised."""

    def __init__(self, scope: Scope, expressions: ExpressionChecker, bag: DiagnosticBag) -> None:
        self._scope = scope
        self._expressions = expressions
        self._bag = bag
        self.raised: list[tuple[str, Span]] = []
        """Members of `error_code` that steps raise, with their locations."""

    def check_return(self, action: ast.Return) -> ir.Return | None:
        """Return the IR of a return. None after reporting an error, such as a missing output."""
        given = self._check_values(action.values, self._scope.outputs, "an output", Code.RETURN_OUTPUTS)
        named = {word.text for word, _ in action.values}
        missing = [name for name in self._scope.outputs if name not in named]
        if missing:
            names = ", ".join(f"`{name}`" for name in missing)
            first = missing[0]
            values = ", ".join(f"{name}: {'…' if name in missing else name}" for name in self._scope.outputs)
            is_list = all(isinstance(value, ast.Name) and value.text == word.text for word, value in action.values)
            place = f"success: {{{values}}}" if is_list else f"{first}: …"
            help_ = f"compute it in a step named `{first}` and add `{first}` to `success`, or write `{place}`"
            span = action.values[-1][0].span if action.values else action.span
            problem, label = f"does not give {names}", f"{names} {'is' if len(missing) == 1 else 'are'} missing here"
            self._bag.error(Code.RETURN_OUTPUTS, span, label, problem=problem, help=help_)
        if missing or given is None:
            return None
        return ir.Return(tuple((name, given[name]) for name in self._scope.outputs if name in given))

    def check_error(self, error: ast.ErrorValue) -> ir.Raise | None:
        """Return a declared error with its required fields, or None after reporting an error."""
        errors = self._scope.errors
        if not errors:
            help_ = "declare `error_code` and `message` under `outputs.error`"
            self._bag.error(Code.UNDECLARED_ERROR, error.span, what="an error", help=help_)
            return None
        for word, expression in error.values:
            if word.text == "error_code" and not self._record_raised(expression):
                return None
        given = self._check_values(error.values, errors, "a field of the errors", Code.RETURN_OUTPUTS)
        named = {word.text for word, _ in error.values}
        place = place_of(self._bag.source, error.span)
        found: list[tuple[str, ir.Expression]] = []
        for name, declared in errors.items():
            if given is not None and name in given:
                found.append((name, given[name]))
            elif name not in named and str(declared.type).startswith("optional<"):
                assert declared.type is not None
                found.append((name, ir.Literal(declared.type, None, place)))
            elif name not in named:
                self._bag.error(Code.RETURN_OUTPUTS, error.span, problem=f"does not give `{name}`")
                return None
        return None if given is None or len(found) < len(errors) else ir.Raise(tuple(found))

    def _record_raised(self, expression: ast.Expression) -> bool:
        """Record the errors that an expression can raise. Reports an undeclared one and returns False."""
        declared = self._scope.errors.get("error_code")
        members = declared.type.members if declared is not None and isinstance(declared.type, Enum) else ()
        if isinstance(expression, ast.Name | ast.String) and expression.text in members:
            self.raised.append((expression.text, expression.span))
        elif isinstance(expression, ast.Name | ast.String) and self._scope.find(expression.text) is None:
            help_ = did_you_mean(expression.text, members) or "add it to `error_code` under `outputs.error`"
            what = f"`{expression.text}`"
            self._bag.error(Code.UNDECLARED_ERROR, expression.span, what=what, help=help_)
            return False
        else:  # computed: any member is possible
            self.raised += [(member, expression.span) for member in members]
        return True

    def _check_values(
        self,
        values: tuple[tuple[ast.Word, ast.Expression], ...],
        declared: dict[str, Declared],
        what: str,
        code: Code,
    ) -> dict[str, ir.Expression] | None:
        """Return the values by name, or None after reporting unknown, repeated or faulty ones."""
        given: dict[str, ir.Expression] = {}
        complete = True
        for word, expression in values:
            wanted = declared.get(word.text)
            if wanted is None:
                help_ = did_you_mean(word.text, declared)
                self._bag.error(code, word.span, problem=f"gives `{word.text}`, which is not {what}", help=help_)
                complete = False
                continue
            if word.text in given:
                self._bag.error(code, word.span, problem=f"gives `{word.text}` twice")
            value = None if wanted.type is None else self._expressions.check(expression, wanted.type)
            if value is None:
                complete = False
            else:
                given[word.text] = value
        return given if complete else None


def step_leaves(step: ast.Step) -> bool:
    """Return whether no step after this one can be reached."""
    if step.conditions:
        return False
    match step.action:
        case ast.Return() | ast.Raise():
            return True
        case ast.Conditional(then=then, otherwise=otherwise):
            inner = block_leaves(then) and otherwise is not None and block_leaves(otherwise)
        case ast.Match(cases=cases, otherwise=otherwise):
            inner = all(block_leaves(case.then) for case in cases)
            inner = inner and (otherwise is None or block_leaves(otherwise))
        case budget_ast.BudgetBlock(block=block):
            inner = block_leaves(block)
        case _:
            return False
    return inner and all(any(step_leaves(each) for each in handler.steps) for handler in step.handlers)


def block_leaves(block: ast.Block) -> bool:
    """Return whether the end of the block can never be reached."""
    return any(step_leaves(step) for step in block.steps)
