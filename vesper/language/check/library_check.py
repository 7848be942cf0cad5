"""Check of a library: every definition, used or not."""

from __future__ import annotations

from vesper.language.check.callees import Callees
from vesper.language.check.declarations import Declarations
from vesper.language.check.libraries import Library
from vesper.language.check.scope import Scope
from vesper.language.check.type_clauses import value_clauses
from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.ir import nodes as ir
from vesper.language.syntax import ast, library_ast


def check_library(document: library_ast.Library, bag: DiagnosticBag, callees: Callees) -> Library | None:
    """Return the definitions of a library, or None when the bag has errors."""
    scope = Scope()
    library_id = document.library_id.text
    found = Declarations(document.types, scope, bag, callees, library_id, is_library=True)
    found.use(document.uses)
    found.types.resolve_all()
    constants = [found.declare_constant(each) for each in document.constants]
    parameters = [found.declare_parameter(each) for each in document.parameters]
    recursive = found.declare_functions(document.functions)
    for each in document.types:
        if not bag.has_errors:  # an outer type repeats the constraints of its inner ones
            _check_constraints(each, found)
    if bag.has_errors:
        return None
    own = {each.name.text for each in document.functions}
    return Library(
        library_id,
        document.source,
        found.types,
        {each.name: each for each in constants if each is not None},
        {each.name: each for each in parameters if each is not None},
        {name: each for name, each in found.expressions.functions.items() if each is not None and name in own},
        recursive,
        tuple(found.expressions.tables),
        scope.local_count,
        found.expressions.lookup_tables,
        tuple(found.expressions.files),
        tuple(found.libraries),
    )


def _check_constraints(declared: ast.RecordType | ast.NamedType, found: Declarations) -> None:
    """Check the constraints of a type. In a node they are checked with each value of the type."""
    text = ast.TypeName(declared.name, declared.name.span)
    type_ = found.types.resolve(text)
    if type_ is not None:
        value = ir.Ref("input", "value", type_, found.expressions.place(declared.name.span))
        value_clauses(value, "value", text, found.types, found.expressions)
