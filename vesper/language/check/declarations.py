"""Definitions of a node or a library: used libraries, types, constants, parameters and functions."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from decimal import Decimal

from vesper.language.check.callees import Callees, NotCallable
from vesper.language.check.expressions.checker import ExpressionChecker
from vesper.language.check.expressions.functions import qualified_name
from vesper.language.check.expressions.literals import UNREAD, Unread, read_literal
from vesper.language.check.expressions.parameters import SCALES, DatedValue, Parameter
from vesper.language.check.expressions.relocate import relocate
from vesper.language.check.libraries import Library
from vesper.language.check.named_types import TypeResolver
from vesper.language.check.scope import Declared, Scope
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import CheckingStopped, DiagnosticBag
from vesper.language.diagnostics.source import Span
from vesper.language.diagnostics.suggest import did_you_mean
from vesper.language.ir import nodes as ir
from vesper.language.syntax import ast, library_ast
from vesper.language.syntax.yaml_tree import Sequence, Tree
from vesper.values.literal_text import value_from_text
from vesper.values.model import Value, ValueProblem
from vesper.values.types import DATE, ArrayOf, OptionalOf, Type


class Declarations:
    """Reads the definitions of one document into its scope, its types and its expression checker."""

    def __init__(
        self,
        types: tuple[ast.RecordType | ast.NamedType, ...],
        scope: Scope,
        bag: DiagnosticBag,
        callees: Callees,
        document_id: str,
        is_library: bool = False,
    ) -> None:
        self._bag = bag
        self._callees = callees
        self._document_id = document_id
        self._is_library = is_library
        self.scope = scope
        self.types = TypeResolver(types, bag)
        self.expressions = ExpressionChecker(scope, bag, self.types)
        self.expressions.library_id = document_id if is_library else None
        self.libraries: list[Library] = []

    # -- used libraries ---------------------------------------------------------------------------

    def use(self, uses: tuple[library_ast.Use, ...]) -> None:
        """Declare the definitions of the used libraries, before every definition of the document.

        An error here ends the check, because most names would be unknown.
        """
        for each in uses:
            found = self._callees.library(each.library.text)
            if isinstance(found, NotCallable):
                self._bag.report(found.code, each.library.span, found.holes, found.help)
                continue
            self.libraries.append(found)
            self.expressions.lookup_tables |= found.lookup_tables
            self.expressions.files += found.files
            self.scope.local_count = max(self.scope.local_count, found.local_count)
            names = found.names()
            for word in (ast.Word(name, each.library.span) for name in names) if each.names is None else each.names:
                if word.text in names:
                    self._use_name(found, word.text, word.span)
                    continue
                kinds, help_ = f"no definition of `{found.library_id}`", did_you_mean(word.text, names)
                self._bag.error(Code.UNKNOWN_NAME, word.span, kinds=kinds, name=word.text, help=help_)

        if uses and self._bag.has_errors:
            raise CheckingStopped

    def _use_name(self, library: Library, name: str, span: Span) -> None:
        """Declare every definition of a name: a constant and a function may share one."""
        if name in library.types.declared_names():
            self._report_clash(library, "a type", name, span, self.types.use(library, name, span))
        constant = library.constants.get(name)
        if constant is not None:
            declared = Declared("constant", name, constant.type, span, used=True, library=library.library_id)
            declared.ir_name = qualified_name(library.library_id, name)
            self._declare(library, declared, span)
        parameter = library.parameters.get(name)
        if parameter is not None:
            self._declare(
                library, Declared("parameter", name, parameter.type, span, used=True, library=library.library_id), span
            )
            self.expressions.parameters.setdefault(name, parameter)
        function = library.functions.get(name)
        if function is not None:
            other = self.expressions.functions.get(name)
            clash = None if other is None else f"a function of `{other.library}`"
            self._report_clash(library, "a function", name, span, clash)
            self.expressions.functions[name] = replace(
                function, library=library.library_id, used=False, tables=library.tables
            )

    def _declare(self, library: Library, declared: Declared, span: Span) -> None:
        other = self.scope.names.setdefault(declared.name, declared)
        clash = None if other is declared else other.describe()
        self._report_clash(library, f"a {declared.kind}", declared.name, span, clash)

    def _report_clash(self, library: Library, what: str, name: str, span: Span, clash: str | None) -> None:
        if clash is not None:
            what = f"{what} of `{library.library_id}`"
            help_ = f"list the names that you need: `use: {{{library.library_id}: […]}}`"
            self._bag.error(Code.NAME_TAKEN, span, what=what, name=name, other=clash, help=help_)

    def library_functions(self) -> tuple[ir.Function, ...]:
        """Return the recursive functions of the used libraries, under their qualified names."""
        found = {name: each for library in self.libraries for name, each in library.all_functions().items()}
        return tuple(found.values())

    def with_library_parts(self, node: ir.Node) -> tuple[ir.Node, dict[str, str]]:
        """Return the node with the library constants and functions that it refers to.

        The functions get the place of their first call. The second result maps qualified names to names in the IR; the
        keys of functions end with `()`. Names in the IR begin with an underscore, so that they differ from every name
        in a node. Messages omit the underscore.
        """
        if not self.libraries:
            return node, {}
        expressions = node.expressions()
        names = _names_in_ir({f"{each.name}()": each.name for each in node.functions if "." in each.name})
        place = _first_call(node) if names else ir.Place(1, 1, 1, 1)
        functions = tuple(
            replace(each, name=names[f"{each.name}()"], value=relocate(each.value, place)) if "." in each.name else each
            for each in node.functions
        )
        known = {name: each for library in self.libraries for name, each in library.all_constants().items()}
        used = {
            each.name: known[each.name]
            for each in expressions
            if isinstance(each, ir.Ref) and each.kind == "constant" and each.name in known
        }
        of_constants = _names_in_ir({name: name for name in used})
        constants = tuple(replace(each, name=of_constants[name]) for name, each in used.items())
        return replace(node, functions=functions, constants=(*node.constants, *constants)), names | of_constants

    # -- own definitions --------------------------------------------------------------------------

    def declare_constant(self, declared: ast.Constant) -> ir.Constant | None:
        """Check a constant and declare it."""
        type_ = self.types.resolve(declared.type)
        known = self.scope.declare("constant", declared.name, type_, self._bag)
        if self._is_library:
            known.ir_name = qualified_name(self._document_id, declared.name.text)
        value = UNREAD if type_ is None else read_literal(type_, declared.value, "value", self._bag)
        return None if type_ is None or isinstance(value, Unread) else ir.Constant(declared.name.text, type_, value)

    def declare_parameter(self, declared: library_ast.Parameter) -> Parameter | None:
        """Check a parameter and declare it."""
        name, before = declared.name.text, self._bag.error_count
        type_ = self._parameter_type(declared)
        self.scope.declare("parameter", declared.name, type_, self._bag)
        entries = [] if type_ is None else [_entry(each, type_, declared.scale, self._bag) for each in declared.entries]
        dated = tuple(each for each in entries if each is not None)
        for entry, earlier, later in zip(declared.entries[1:], dated, dated[1:], strict=False):
            if len(dated) == len(entries) and later.since <= earlier.since:
                expected = f"a date after {earlier.since}: entries are in order, each date once"
                self._bag.error(Code.BAD_LITERAL, entry.since.span, text=entry.since.text, expected=expected)
        if type_ is None or self._bag.error_count > before:
            self.expressions.parameters[name] = None
            return None
        dated = self._with_overlay(declared, type_, dated)
        found = Parameter(name, type_, dated, declared.unit, declared.reference)
        self.expressions.parameters[name] = found
        return found

    def _parameter_type(self, declared: library_ast.Parameter) -> Type | None:
        if declared.scale is not None:
            return ArrayOf(SCALES[declared.scale])
        type_ = None if declared.type is None else self.types.resolve(declared.type)
        if declared.type is not None and isinstance(type_, OptionalOf):
            expected = "a type without null, which means that no value is in force"
            self._bag.error(Code.TYPE_MISMATCH, declared.type.span, expected=expected, found=type_)
            return None
        return type_

    def _with_overlay(
        self, declared: library_ast.Parameter, type_: Type, dated: tuple[DatedValue, ...]
    ) -> tuple[DatedValue, ...]:
        """Return the entries with those of the overlay. An entry of the overlay replaces one of the same date."""
        overlay = self._callees.overlay
        if overlay is None:
            return dated
        given = overlay.entries_of(self._document_id, declared.name.text)
        added = [_entry(each, type_, declared.scale, overlay.bag) for each in given]
        by_date = {each.since: each for each in (*dated, *added) if each is not None}
        return tuple(by_date[since] for since in sorted(by_date))

    def declare_functions(self, declared: tuple[ast.Function, ...]) -> tuple[ir.Function, ...]:
        """Check the functions in order, and return the recursive ones. Each function is known to those below it."""
        return self.expressions.declare_functions(declared, self.types)


def _first_call(node: ir.Node) -> ir.Place:
    """Return the place of the node's first call of a recursive library function.

    Calls in the library functions themselves are skipped.
    """
    elsewhere = {id(each.value) for each in node.functions if "." in each.name}
    own = (each for root in node.roots() if id(root) not in elsewhere for each in ir.walk(root))
    return next(each.place for each in own if isinstance(each, ir.Apply) and "." in each.function)


def _names_in_ir(names: dict[str, str]) -> dict[str, str]:
    """Return a name in the IR for each qualified name.

    It begins with an underscore; equal names of two libraries get more of them.
    """
    found: dict[str, str] = {}
    for key, name in names.items():
        own = f"_{name.rpartition('.')[2]}"
        while own in found.values():
            own = f"_{own}"
        found[key] = own
    return found


def _entry(entry: library_ast.ParameterEntry, type_: Type, scale: str | None, bag: DiagnosticBag) -> DatedValue | None:
    since = read_date(entry.since, bag)
    value = read_literal(OptionalOf(type_), entry.value, "value", bag)
    if isinstance(value, Unread) or since is None:
        return None
    if scale is not None and value is not None:
        check_brackets(value, entry.value, bag)
    return DatedValue(since, value, None if entry.reference is None else entry.reference.text)


def read_date(word: ast.Word, bag: DiagnosticBag) -> date | None:
    """Return the date in a word, or None after reporting that it is not one."""
    try:
        found = value_from_text(DATE, word.text)
    except ValueProblem:
        bag.error(Code.BAD_LITERAL, word.span, text=word.text, expected="a date: `2026-11-15`")
        return None
    assert isinstance(found, date)
    return found


def check_brackets(value: Value, tree: Tree, bag: DiagnosticBag) -> None:
    """Report brackets that are not in ascending order, and a scale without brackets."""
    assert isinstance(value, list) and isinstance(tree, Sequence)
    if not value:
        bag.error(Code.WRONG_KIND, tree.span, key="since", expected="at least one bracket", found="none")
    starts = [start for each in value if isinstance(each, dict) and isinstance(start := each.get("from"), Decimal)]
    for item, lower, start in zip(tree.items[1:], starts, starts[1:], strict=False):
        if start <= lower:
            expected = f"a bracket that begins above {lower}: brackets are in order"
            bag.error(Code.BAD_LITERAL, item.span, text=bag.source.slice(item.span), expected=expected)
