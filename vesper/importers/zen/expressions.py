"""Translation of zen's expressions to the language, with types.

Zen evaluates without types: an operation on null or on the wrong type is an error. In an expression node that error
ends the evaluation, and the translation fails likewise (`require`). In a cell or a switch an error means that the
row or branch does not match; there the translation collects *guards*, conditions under which no error happens.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from vesper.importers.writer import string_literal
from vesper.importers.zen.core import conjunction, constant, is_decimal, type_name
from vesper.importers.zen.functions import Functions
from vesper.importers.zen.operators import Operators
from vesper.importers.zen.syntax import (
    Array,
    Assignments,
    Binary,
    Boolean,
    Call,
    Conditional,
    Interval,
    Member,
    Method,
    Name,
    Node,
    Null,
    Number,
    Object,
    Pointer,
    Slice,
    String,
    Template,
    Unary,
)
from vesper.importers.zen.terms import (
    AND,
    ATOM,
    COMPARE,
    NOT,
    NULL,
    OPEN,
    OR,
    PRODUCT,
    SUM,
    Leaf,
    Term,
    Tree,
    Untranslatable,
    Value,
    field_term,
    inside_names,
    number_literal,
    set_path,
)
from vesper.importers.zen.types import (
    BOOLEAN,
    JSON,
    NOTHING,
    NUMBER,
    TEXT,
    ArrayOf,
    Record,
    Slot,
    Variable,
    join,
    resolve,
)


class Expressions(Operators):
    """Translates the expressions of one model."""

    def __init__(self, is_taken: Callable[[str], bool]) -> None:
        super().__init__(is_taken)
        self.functions = Functions(self)

    # Entry points

    def value(self, node: Node, facts: set[str] | None = None) -> Term:
        """Return the value of an expression whose errors end the evaluation."""
        with self.mode(None, set(facts or ())):
            return self.term(node)

    def guarded(self, node: Node, facts: set[str]) -> tuple[list[str], Term]:
        """Return the guards of a value and the value. Adds the facts that the guards establish to `facts`."""
        with self.mode([], facts):
            term = self.term(node)
            assert self.guards is not None
            return self.guards, term

    def condition(self, node: Node, facts: set[str]) -> list[str]:
        """Return conjuncts that hold exactly where zen evaluates the expression to true, without error."""
        with self.mode([], facts):
            return self._conjuncts(node)

    def _conjuncts(self, node: Node) -> list[str]:
        match node:
            case Binary("and", left, right):
                return [*self._conjuncts(left), *self._conjuncts(right)]
            case Binary("or", left, right):
                guards, text = self._side(left)
                right_conjuncts = self._branch(right)
                return [*guards, Term(f"{text.at(OR)} OR {conjunction(right_conjuncts).at(AND)}", BOOLEAN, OR).at(AND)]
            case Call("bool", (inner,)) if not isinstance(inner, Call | Name | Member):
                return self._conjuncts(inner)
        guards, term = self._side(node)
        self.facts |= self.established(node, is_true=True)
        return [*guards, term.at(AND)] if term.text != "true" else guards

    def _side(self, node: Node) -> tuple[list[str], Term]:
        before, self.guards = self.guards, []
        try:
            self.boolean(node)
            # The guards stand before the whole text, so it is translated again with what they establish.
            return self.guards, self.boolean(node)
        finally:
            self.guards = before

    def _branch(self, node: Node) -> list[str]:
        facts = set(self.facts)
        with self.mode([], facts):
            return self._conjuncts(node)

    def established(self, node: Node, *, is_true: bool) -> set[str]:
        """Return the paths that are not null where the condition has this value."""
        match node:
            case Unary("not", inner):
                return self.established(inner, is_true=not is_true)
            case Binary("and" | "or" as operator, left, right):
                sides = self.established(left, is_true=is_true), self.established(right, is_true=is_true)
                return sides[0] | sides[1] if (operator == "and") == is_true else sides[0] & sides[1]
            case Binary("!=" | "==" as operator, left, right) if (operator == "!=") == is_true:
                tested = left if isinstance(right, Null) else right if isinstance(left, Null) else None
                return self._checks(tested) if tested is not None else set()
            case Binary("==", left, right) if is_true:
                sides = self._checks(left), self._checks(right)
                return sides[0] if not self._is_nullable(right) else sides[1] if not self._is_nullable(left) else set()
        return set()

    def _quiet(self, node: Node) -> Term:
        with self.mode([], set(self.facts)):
            return self.term(node)

    def _checks(self, node: Node) -> set[str]:
        term = self._quiet(node)
        return {*term.checks} if term.is_path else set()

    def _is_nullable(self, node: Node) -> bool:
        return self._quiet(node).is_nullable

    # Null and types

    # Nodes of the tree

    def term(self, node: Node) -> Term:
        """Return the translation of an expression."""
        match node:
            case Null():
                return NULL
            case Boolean(value):
                return constant(value)
            case Number(text):
                literal = number_literal(text)
                return Term(literal, NUMBER, is_integer="." not in literal)
            case String(text):
                literal = string_literal(text)
                return Term(literal, TEXT, ATOM if literal[-1:] in "'\"" and literal.count(literal[0]) == 2 else SUM)
            case Template(parts):
                return self._template(parts)
            case Array(items):
                return self._array(items)
            case Object(entries):
                return self._object(entries)
            case Name(text):
                return self.from_context(self.look_up(text))
            case Pointer():
                if not self.scope.items:
                    raise Untranslatable("`#` outside of a closure")
                return self.scope.items[-1][1]
            case Member():
                return self._member(node)
            case Slice(base, start, end):
                return self._slice(base, start, end)
            case Conditional(condition, then, otherwise):
                return self._conditional(condition, then, otherwise)
            case Unary(operator, operand):
                return self._unary(operator, operand)
            case Binary(operator, left, right):
                return self._binary(operator, left, right)
            case Call():
                return self.functions.call(node)
            case Method(base, name, arguments):
                return self.functions.method(base, name, arguments)
            case Assignments(entries, output):
                return self._assignments(entries, output)
            case Interval():
                raise Untranslatable("an interval that nothing is tested against")
        raise AssertionError(node)

    def look_up(self, name: str) -> Value:
        """Return the value of a name: an item by its alias, a special name, or a key of the context."""
        for alias, term in reversed(self.scope.items):
            if alias == name:
                return Leaf(term)
        if name == "$" and self.scope.column is not None:
            return self.scope.column
        if name == "$root":
            return self.scope.context
        if name == "$nodes" and self.scope.nodes is not None:
            return self.scope.nodes
        return self.key(self.scope.context, name)

    def key(self, value: Value, key: str) -> Value:
        """Return the value of a key, null where there is none."""
        if isinstance(value, Tree):
            if key in value.fields:
                return value.fields[key]
            if value.source is None:
                return Leaf(NULL)
            return self._new_input(value, key)
        term = value.term
        type_ = resolve(term.type)
        if isinstance(type_, Variable):
            type_.bound = Record(key, is_open=True)
            type_ = type_.bound
        if isinstance(type_, Record):
            return Leaf(
                field_term(replace(term, type=type_) if term.is_path else self._bound(term), key), value.condition
            )
        if type_ == JSON:
            raise Untranslatable(f"key `{key}` of a value whose type the tests leave open")
        return Leaf(NULL)

    def _bound(self, term: Term) -> Term:
        """Return a record that is no path as an operand of `.`; one that may be null has no fields."""
        if term.is_nullable:
            raise Untranslatable("a key of a computed object that may be null")
        return term

    def _new_input(self, tree: Tree, key: str) -> Value:
        """Declare an optional input for a key that an expression reads and no test has."""
        assert tree.source is not None
        slot = tree.source.fields.setdefault(key, Slot(Variable(), is_optional=True))
        text = tree.prefix + inside_names(tree.source)[key]
        leaf = Leaf(Term(text, resolve(slot.type), checks=(text,), is_path=True, slot=slot))
        tree.fields[key] = leaf
        return leaf

    def _member(self, node: Member) -> Term:
        if isinstance(node.key, String):
            return self.from_context(self.key(self.base(node.base), node.key.text))
        base, index = self.term(node.base), self.term(node.key)
        type_ = resolve(base.type)
        if isinstance(type_, Variable) and resolve(index.type) == NUMBER:
            type_.bound = ArrayOf(Slot(Variable()))
            type_ = type_.bound
        if type_ == NOTHING:
            return NULL
        if isinstance(type_, ArrayOf):
            return self._item(base, type_, node.key, index)
        if isinstance(type_, Record):
            return self._computed_key(base, type_, index)
        raise Untranslatable(f"an index of {type_name(type_)}")

    def base(self, node: Node) -> Value:
        """Return the value before a key, as an object with known keys where it is one."""
        match node:
            case Name(text):
                return self.look_up(text)
            case Member(base, String(key)):
                return self.key(self.base(base), key)
        return Leaf(self.term(node))

    def _item(self, base: Term, type_: ArrayOf, key: Node, index: Term) -> Term:
        """Return an item of an array; of null and beyond the end it is null."""
        position = self._position(key, index)
        is_null = self.is_null(base)
        text = f"get({base.text}, {position})"
        if is_null.text == "false":
            return Term(text, resolve(type_.item.type), is_optional=True)
        if not base.is_path:
            raise Untranslatable("an item of a computed array that may be null")
        return Term(f"IF {is_null.text} THEN null ELSE {text}", resolve(type_.item.type), OPEN, is_optional=True)

    def _position(self, key: Node, index: Term) -> str:
        if isinstance(key, Number) and key.text.isdigit():
            return key.text
        needed = self.need(index, NUMBER)
        return needed.text if needed.is_integer else f"to_integer({needed.text})"

    def _computed_key(self, base: Term, record: Record, index: Term) -> Term:
        """Return the value of a key that is computed: one of the record's fields, or null."""
        key = self.need(index, TEXT)
        slots = [*record.fields.values()]
        joined = join(slots, record.hint)
        if joined.type == JSON:
            raise Untranslatable("a computed key of an object whose values have several types")
        base = self.need(base)
        names = inside_names(record)
        text = "null"
        for outside, inside in reversed(names.items()):
            text = f"IF {key.at(COMPARE)} == {string_literal(outside)} THEN {base.at(ATOM)}.{inside} ELSE {text}"
        return Term(text, joined.type, OPEN, is_optional=True)

    def _slice(self, base: Node, start: Node | None, end: Node | None) -> Term:
        term = self.need(self.term(base))
        if resolve(term.type) != TEXT and not isinstance(resolve(term.type), ArrayOf):
            raise Untranslatable(f"a slice of {type_name(term.type)}", is_fault=True)
        first = self._position(start, self.term(start)) if start is not None else "0"
        if end is None:
            return replace(Term(f"slice({term.text}, {first})", term.type))
        last = self._position(end, self.term(end))
        # SEMANTICS: zen's slices include their end.
        after = str(int(last) + 1) if last.isdigit() else f"{last} + 1"
        return Term(f"slice({term.text}, {first}, {after})", term.type)

    def _template(self, parts: tuple[Node, ...]) -> Term:
        texts = [self.functions.text(self.term(part)) for part in parts]
        if not texts:
            return Term("''", TEXT)
        if len(texts) == 1:
            return texts[0]
        return Term(" + ".join(text.at(PRODUCT) for text in texts), TEXT, SUM)

    def _array(self, items: tuple[Node, ...]) -> Term:
        terms = [self.as_value(self.decimal(self.term(item))) for item in items]
        if terms and all(term.type == NOTHING for term in terms):
            raise Untranslatable("an array of nulls")
        slot = join((Slot(term.type, term.is_nullable) for term in terms), "item")
        if resolve(slot.type) == JSON and any(resolve(term.type) != JSON for term in terms):
            terms = [self.functions.json(term) for term in terms]
        if isinstance(resolve(slot.type), Record):
            terms = [self.fit(term, slot) for term in terms]
        text = "[" + ", ".join(term.text for term in terms) + "]"
        type_ = resolve(slot.type)
        if type_ == NUMBER and not all(is_decimal(term) for term in terms):
            # A literal alone is an integer of the language.
            text += " AS array<optional<decimal>>" if slot.is_optional else " AS array<decimal>"
        return Term(text, ArrayOf(slot))

    def _object(self, entries: tuple[tuple[Node, Node], ...]) -> Term:
        terms: dict[str, Term] = {}
        for key, value in entries:
            if not isinstance(key, String):
                raise Untranslatable("an object with a computed key")
            terms[key.text] = self.decimal(self.term(value))
        return self.record(terms, "value")

    def _assignments(self, entries: tuple[tuple[str, Node], ...], output: Node | None) -> Term:
        outer, result = self.scope.context, Tree()
        inner = Tree(dict(outer.fields), outer.source, outer.prefix) if isinstance(outer, Tree) else Tree()
        self.scope.context = inner
        try:
            for path, value in entries:
                leaf = Leaf(self.term(value))
                set_path(inner, path, leaf)
                set_path(result, path, leaf)
            return self.term(output) if output is not None else self.from_context(result)
        finally:
            self.scope.context = outer

    def _conditional(self, condition: Node, then: Node, otherwise: Node) -> Term:
        test = self.boolean(condition)
        before = self.facts
        branches = []
        for node, is_true in ((then, True), (otherwise, False)):
            self.facts = before | self.established(condition, is_true=is_true)
            branches.append(self.deferred(node, test, is_true=is_true))
        self.facts = before
        slot = join([Slot(branch.type, branch.is_nullable) for branch in branches], "value")
        yes, no = (self.fit(branch, slot) for branch in branches)
        if yes.is_integer != no.is_integer:
            yes, no = self.decimal(yes), self.decimal(no)
        text = f"IF {test.text} THEN {yes.text} ELSE {no.text}"
        is_integer = yes.is_integer and no.is_integer
        return Term(text, slot.type, OPEN, is_optional=slot.is_optional, is_integer=is_integer)

    def deferred(self, node: Node, test: Term, *, is_true: bool) -> Term:
        """Return a value that is computed only where the test has this result; its guards depend on the test."""
        if self.guards is None:
            return self.as_value(self.term(node))
        facts = set(self.facts)
        with self.mode([], set(facts)):
            self.term(node)
            guards = self.guards or []
        if guards:
            alternative = f"NOT {test.at(NOT)}" if is_true else test.at(OR)
            self.guards.append(f"({alternative} OR {conjunction(guards).at(AND)})")
        with self.mode(None, facts):
            return self.as_value(self.term(node))
